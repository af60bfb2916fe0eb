//! A program of one's own with two mistakes, for docs/tutorial.md:
//! `cargo run --release --example hand_over`.
//!
//! The only thread of node 0 stores a word into its cache twice and hands it over to the thread of
//! node 1 each time, by a flag in the reader's node; the reader acknowledges by a flag in the
//! writer's.

use std::{error::Error, process::ExitCode};

use sme::prelude::*;

const ROUNDS: u8 = 2;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Mistake {
    None,
    NoAcknowledgement,
    NoFlush,
}

struct HandOver {
    data: Array,
    ready: Array,
    mistake: Mistake,
}

impl Kernel for HandOver {
    fn phases(&self) -> Vec<&'static str> {
        vec!["begin", "hand over"] // what each barrier ends
    }
    fn initial(&self) -> Box<dyn Iterator<Item = (Place, u64)> + '_> {
        Box::new(std::iter::once((self.data.place(0), 0)))
    }
    fn arrays(&self) -> Vec<(&'static str, &Array)> {
        vec![("data", &self.data), ("ready", &self.ready)] // names for the reports
    }
    async fn run<T: Team<Memory: Atomic>>(&self, team: &mut T) {
        team.barrier().await;
        let memory = team.memory();
        let data = self.data.word(memory, 0, Route::Cached);
        let at_home = self.data.word(memory, 0, Route::Global);
        // `ready` has a page on each node: word 0 is in the writer's memory, word 64 in the
        // reader's.
        let acknowledged = memory.flag(self.ready.place(0), Route::Nearest);
        let ready = memory.flag(self.ready.place(64), Route::Nearest);
        for round in 1..=ROUNDS {
            if memory.node() == 0 {
                memory.store(data, 100 * u64::from(round)).await;
                memory.flush(data).await; // write back
                memory.load(at_home).await; // the write-back has been performed
                memory.set(ready, round).await;
                memory.wait(acknowledged, Until::Is(round)).await;
            } else {
                memory.wait(ready, Until::Is(round)).await;
                if self.mistake != Mistake::NoFlush {
                    memory.flush(data).await; // drop the copy of the round before
                }
                memory.load(data).await;
                if self.mistake != Mistake::NoAcknowledgement {
                    memory.set(acknowledged, round).await;
                }
            }
        }
        team.barrier().await;
    }
}

fn run(mistake: Mistake) -> Result<(), Box<dyn Error>> {
    let machine = std::env::args().nth(1);
    let machine = Machine::load(machine.as_deref().unwrap_or("sme-prototype"))?;
    let program = Program {
        mapped: Mapped::Cached,
        page_bytes: 512, // 64 words
        checked: true,
        ..Program::new(Arc::new(machine), 2, 1)
    };
    let mut pool = program.pool()?;
    let data = pool.array(1, Placement::Block)?;
    let ready = pool.array(128, Placement::Block)?;
    let kernel = HandOver {
        data,
        ready,
        mistake,
    };
    println!("{mistake:?}:");
    match program.run(&Arc::new(kernel), |_, _| ()) {
        Ok((outcome, ())) => {
            println!("{:.2} us", outcome.time().as_us());
            println!("{}", outcome.stale.ok_or("not checked")?);
        }
        Err(error) => println!("{error}\n"),
    }
    Ok(())
}

fn main() -> ExitCode {
    let mistakes = [Mistake::None, Mistake::NoAcknowledgement, Mistake::NoFlush];
    exit_code(mistakes.into_iter().try_for_each(run))
}
