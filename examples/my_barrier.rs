//! A barrier of one's own on the simulated cluster: `cargo run --release --example my_barrier`.
//!
//! A chain: each thread passes the word on to the next one by a flag in that one's node, and
//! the last releases every node by a phase in the node's own memory, where all spin in a cache.

use std::{error::Error, process::ExitCode};

use sme::prelude::*;

const NODES: u32 = 8;
const CORES: u32 = 8; // threads per node

struct Chain;

impl<M: Memory> Barrier<M> for Chain {
    type Local = u8; // the phase of the episode before
    async fn wait(&self, memory: &M, me: Member, phase: &mut u8) {
        // In every node: its phase on line 0, and on line 1 + core what that core waits for.
        let place = |node, line| Place {
            node,
            offset: 64 * u64::from(line),
        };
        let flag = |node, line: u32| memory.flag(place(node, line), Route::Nearest);
        *phase = 1 - *phase;
        if (me.node, me.core) != (0, 0) {
            memory
                .wait(flag(me.node, 1 + me.core), Until::Is(*phase))
                .await;
        }
        if me.core + 1 < CORES {
            memory.set(flag(me.node, 2 + me.core), *phase).await;
        } else if me.node + 1 < NODES {
            memory.set(flag(me.node + 1, 1), *phase).await;
        } else {
            for node in 0..NODES {
                memory.set(flag(node, 0), *phase).await;
            }
        }
        memory.wait(flag(me.node, 0), Until::Is(*phase)).await;
    }
}

fn compare() -> Result<(), Box<dyn Error>> {
    let tree = Experiment {
        nodes: NODES, // the first of a network of 64
        cores: CORES,
        ..Experiment::new(Arc::new(Machine::builtin("sme-prototype")?))
    };
    let built_in = tree.run(&Observe::default(), &Silent)?;
    println!("tree  {:6.2} us", built_in.mean_us());
    let own = tree.simulate(Chain, &Observe::default(), &Silent)?;
    println!("chain {:6.2} us", own.mean_us());
    Ok(())
}

fn main() -> ExitCode {
    exit_code(compare())
}
