//! Running programs on the built-in chip.

use std::future::Future;

use sme_memory::{Flag, Memory, Place, Route, Word};
use sme_sim::machine::{Machine, Readable, Setup};
use sme_sim::observe::failure::Failure;
use sme_sim::parts::contract::ThreadMemory;

/// The offset of memory behind the controllers in each core's shared part; before that lies its
/// buffer.
pub const MEMORY: u64 = 1 << 20;

pub fn place(node: u32, offset: u64) -> Place {
    Place { node, offset }
}

pub fn word(memory: &ThreadMemory, at: Place, route: Route) -> Word {
    memory.word(at, route)
}

/// Flag number `number` in the buffer of core `node`, in a line of its own.
pub fn flag(memory: &ThreadMemory, node: u32, number: u64) -> Flag {
    memory.flag(place(node, 4096 + 32 * number), Route::Global)
}

/// The chip with these constants changed, and a program on each of its first `nodes` cores.
pub fn chip<F>(
    constants: &[(&str, &str)],
    nodes: u32,
    mut program: impl FnMut(ThreadMemory, u32) -> F,
) -> Box<dyn Readable>
where
    F: Future<Output = ()> + Send + 'static,
{
    let machine = Machine::builtin("scc").unwrap().with(constants).unwrap();
    let setup = Setup::new(machine.shape(), nodes, 1);
    machine
        .build(setup, |memory, node, _| program(memory, node))
        .unwrap()
}

/// The same, run to its end.
pub fn run<F>(nodes: u32, program: impl FnMut(ThreadMemory, u32) -> F) -> Result<(), Failure>
where
    F: Future<Output = ()> + Send + 'static,
{
    chip(&[], nodes, program).run(1, |_| {})
}
