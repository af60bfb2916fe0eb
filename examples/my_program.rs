//! A shared-memory program of one's own: `cargo run --release --example my_program`.
//!
//! Every thread fills a part of an array; after a barrier it sums up the next thread's part, and
//! adds that to a total under a lock. Then the same with a lock that forgets to flush the total.

use std::{error::Error, process::ExitCode};

use sme::prelude::*;

const NODES: u32 = 4;
const CORES: u32 = 2; // threads per node
const PART: u64 = 64; // words that a thread fills: whole lines

struct Sum {
    data: Array,
    total: Array,
    lock: Cohort,
    route: Route,
}

impl Kernel for Sum {
    fn phases(&self) -> Vec<&'static str> {
        vec!["begin", "fill", "sum"] // what each barrier ends
    }
    fn initial(&self) -> Box<dyn Iterator<Item = (Place, u64)> + '_> {
        Box::new(std::iter::once((self.total.place(0), 1000)))
    }
    fn synchronizing(&self) -> Vec<Place> {
        self.lock.synchronizing().collect()
    }
    async fn run<T: Team<Memory: Atomic>>(&self, team: &mut T) {
        let me = u64::from(team.number());
        team.barrier().await;
        for index in me * PART..(me + 1) * PART {
            let word = self.data.word(team.memory(), index, self.route);
            team.memory().store(word, index).await;
        }
        team.barrier().await;

        let next = (me + 1) % u64::from(team.size());
        let mut sum = 0;
        for index in next * PART..(next + 1) * PART {
            let word = self.data.word(team.memory(), index, self.route);
            sum += team.memory().load(word).await;
            team.compute(1).await;
        }
        let (node, core) = (team.memory().node(), team.number() % CORES);
        let (who, mut ticket) = (Member { node, core }, 0);
        self.lock.acquire(team.memory(), who, &mut ticket).await;
        let total = self.total.word(team.memory(), 0, self.route);
        let before = team.memory().load(total).await;
        team.memory().store(total, before + sum).await;
        self.lock.release(team.memory(), who, &mut ticket).await;
        team.barrier().await;
    }
}

fn run(mapped: Mapped, route: Route, flushed: bool) -> Result<(), Box<dyn Error>> {
    let program = Program {
        mapped,
        page_bytes: PART * 8,
        checked: true,
        ..Program::new(Arc::new(Machine::builtin("sme-prototype")?), NODES, CORES)
    };
    let mut pool = program.pool()?;
    let words = u64::from(program.threads()) * PART;
    let data = pool.array(words, Placement::Random)?;
    let total = pool.array(1, Placement::Block)?;
    let homes = vec![total.place(0).node];
    let copies = match flushed {
        true => Copies::Lines(vec![total.place(0)]),
        false => Copies::Kept,
    };
    let lock = program.lock(&mut pool, 4, Coherence { homes, copies })?;
    let sum = Sum {
        data,
        total,
        lock,
        route,
    };
    let (outcome, total) = program.run(&Arc::new(sum), |sum, read| read(sum.total.place(0)))?;
    let (right, us) = (1000 + (0..words).sum::<u64>(), outcome.time().as_us());
    println!("{route:?}: total {total}, which should be {right}, after {us:.1} us");
    println!("{}", outcome.stale.ok_or("not checked")?);
    Ok(())
}

fn runs() -> Result<(), Box<dyn Error>> {
    run(Mapped::Uncached, Route::Nearest, false)?;
    run(Mapped::Uncached, Route::Global, false)?;
    run(Mapped::Cached, Route::Cached, true)?;
    println!("The lock forgets to flush the total:");
    run(Mapped::Cached, Route::Cached, false)
}

fn main() -> ExitCode {
    exit_code(runs())
}
