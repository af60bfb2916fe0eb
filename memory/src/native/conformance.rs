//! Native memory under the suite of all memories.

use super::{Native, Patience, Size, Thread, run};
use crate::Capabilities;
use crate::conformance::{BYTES, Machine, NODES, Program, THREADS};

/// Threads of the host over native memory, as a machine under test.
#[derive(Clone, Copy, Debug)]
pub struct OnThreads;

impl Machine for OnThreads {
    type Memory = Thread;

    fn capabilities(&self) -> Capabilities {
        Native::CAPABILITIES
    }

    fn run(&self, program: &mut dyn FnMut(Thread, u32, u32) -> Program) -> Result<(), String> {
        let size = Size {
            nodes: NODES,
            flag_bytes: BYTES,
            word_bytes: BYTES,
        };
        // A thread that panics ends its program's case.
        let memory = Native::new(size, Patience::for_threads((NODES * THREADS) as usize));
        let ended = std::thread::scope(|scope| {
            let mut threads = Vec::new();
            for node in 0..NODES {
                for thread in 0..THREADS {
                    let program = program(memory.thread(node), node, thread);
                    threads.push(scope.spawn(|| run(program)));
                }
            }
            threads.into_iter().all(|thread| thread.join().is_ok())
        });
        match ended {
            true => Ok(()),
            false => Err("a thread has panicked".to_owned()),
        }
    }
}
