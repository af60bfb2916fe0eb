//! Conjugate gradients by a program that grows and shrinks, numerically real: its vectors are in
//! blocks over the ranks of the world, and are dealt out again whenever the world changes.

mod grid;

use std::sync::Arc;

use parking_lot::Mutex;
use sme_mpi::op::Op;
use sme_mpi::process::manager::Kind;
use sme_mpi::rank::{Blocks, PROC_NULL, Source, Tag};
use sme_sim::observe::energy::Energy;
use sme_sim::parts::contract::Span;
use sme_sim::time::Time;

use super::Measurement;
use super::job::{Error, Job, Observe, Observed};
use super::programs::{self, Begin, Process};
use grid::{OPERATIONS, Rows};

/// One solution.
#[derive(Clone, Debug)]
pub struct Cg {
    /// The machine, whose cores all have daemons.
    pub job: Job,
    /// Points along each side of the square, at least 1.
    pub side: u32,
    /// Iterations in each phase, at least 1.
    pub iterations: u32,
    /// The processes of each phase, at most as many as there are rows.
    pub processes: Vec<u32>,
    /// The rate of one core \[10^9 floating-point operations per second\].
    pub core_gflops: f64,
    /// Lets ranks keep the rows that they should give to others.
    #[cfg(test)]
    pub keeps_rows: bool,
}

/// A phase, as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Phase {
    /// Processes of the world.
    pub processes: u32,
    /// From the program's begin until its first iteration.
    pub begin: Time,
    /// From the program's begin until its last iteration is over.
    pub end: Time,
    /// The time in which the vectors were dealt out before it.
    pub deals: Time,
}

/// The outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// From the program's begin to the end of the last iteration.
    pub time: Time,
    /// The norm of b - A x by that of b, of the x that was found.
    pub residual: f64,
    /// The phases.
    pub phases: Vec<Phase>,
    /// The energy of the machine until the last program ended; none where the machine has no
    /// figures of power.
    pub energy: Option<Energy>,
}

/// From the program's begin to its end, at rank 0.
pub const WHOLE: &str = "solves";

/// The iterations of a phase, at rank 0.
const PHASES: &str = "phase";

/// The vectors dealt out before a phase.
const DEALS: &str = "deals";

/// The tags of messages to the rank with the rows above, and with those below.
const UP: i32 = 1;
const DOWN: i32 = 2;

/// A rank's part: x, what is left of the right-hand side, the direction, and the square of the
/// second's norm.
#[derive(Clone, Debug, Default)]
struct Part {
    solution: Rows,
    rest: Rows,
    direction: Rows,
    square: f64,
}

impl Cg {
    /// The rows of the square over so many ranks.
    fn rows(&self, ranks: u32) -> Blocks {
        let side = self.side.into();
        Blocks {
            units: side,
            unit: side,
            ranks,
        }
    }

    /// Bytes of the vectors, the product included, that one process has of a phase.
    pub fn data_bytes(&self) -> u64 {
        let least = self.processes.iter().min().copied().unwrap_or(1);
        let points = self.rows(least).of(0);
        4 * 8 * (points.end - points.start)
    }

    async fn process(
        self,
        process: Arc<Process>,
        found: Arc<Mutex<(f64, Vec<u32>)>>,
    ) -> Result<(), Error> {
        let came = process.member.begun().launch.port.is_some();
        let side = self.side as usize;
        let (mut phase, mut part) = (0, Part::default());
        if came {
            phase = self.deals(&process, &mut part, (0, 0)).await?;
        } else {
            let world = process.mpi.world();
            if world.rank() == 0 {
                process.memory.begin(Span::new(WHOLE, 0)).await;
            }
            let points = self.rows(world.size()).of(world.rank());
            let points = (points.end - points.start) as usize;
            part.solution = vec![0.0; points];
            part.rest = vec![1.0; points];
            part.direction = part.rest.clone();
            part.square = f64::from(self.side).powi(2);
        }
        loop {
            let is_first = process.mpi.world().rank() == 0;
            if is_first {
                found.lock().1.push(process.mpi.world().size());
                process.memory.begin(Span::new(PHASES, phase)).await;
            }
            for _ in 0..self.iterations {
                self.iterates(&process, &mut part).await?;
            }
            if is_first {
                process.memory.end(Span::new(PHASES, phase)).await;
            }
            phase += 1;
            let Some(&wanted) = self.processes.get(phase as usize) else {
                break;
            };
            let before = process.mpi.world().size();
            if wanted > before {
                process.grows(wanted).await?;
                self.deals(&process, &mut part, (phase, before)).await?;
            } else if wanted < before {
                self.moves(&process, &mut part, (before, wanted), phase)
                    .await?;
                let stays = process.mpi.world().rank() < wanted;
                process.mpi.retreat(stays).await?;
                if !stays {
                    return Ok(());
                }
            }
        }
        let is_first = process.mpi.world().rank() == 0;
        if is_first {
            process.memory.end(Span::new(WHOLE, 0)).await;
        }
        // All rows at rank 0.
        let all = (process.mpi.world().size(), 1);
        self.moves(&process, &mut part, all, phase).await?;
        if is_first {
            found.lock().0 = grid::residual(side, &part.solution);
        }
        Ok(())
    }

    /// Deals the vectors out over a world that has grown before this phase from so many ranks.
    /// Ranks that have come hear of both. Ends with the phase.
    async fn deals(
        &self,
        process: &Process,
        part: &mut Part,
        (phase, before): (u32, u32),
    ) -> Result<u32, Error> {
        let world = process.mpi.world();
        let mut told = [f64::from(phase), f64::from(before), part.square];
        world.broadcast(&mut told, 0).await?;
        let [phase, before, square] = told;
        part.square = square;
        let ranks = (before as u32, world.size());
        self.moves(process, part, ranks, phase as u32).await?;
        Ok(phase as u32)
    }

    /// Moves the vectors from the blocks over the first of these numbers of ranks to those over the
    /// second.
    async fn moves(
        &self,
        process: &Process,
        part: &mut Part,
        (from, to): (u32, u32),
        phase: u32,
    ) -> Result<(), Error> {
        let world = process.mpi.world();
        let is_first = world.rank() == 0;
        if is_first {
            process.memory.begin(Span::new(DEALS, phase)).await;
        }
        #[cfg(test)]
        let (from, to) = match self.keeps_rows {
            true => (to, to),
            false => (from, to),
        };
        let rows = (self.rows(from), self.rows(to));
        for vector in [&mut part.solution, &mut part.rest, &mut part.direction] {
            let block = rows.1.of(world.rank());
            let mut moved = vec![0.0; (block.end - block.start) as usize];
            world.redistribute(vector, &mut moved, rows).await?;
            *vector = moved;
        }
        if is_first {
            process.memory.end(Span::new(DEALS, phase)).await;
        }
        Ok(())
    }

    /// One iteration.
    async fn iterates(&self, process: &Process, part: &mut Part) -> Result<(), Error> {
        let world = process.mpi.world();
        let side = self.side as usize;
        let (above, below) = self.borders(process, &part.direction).await?;
        let product = grid::product(side, &part.direction, &above, &below);
        let mut along = [0.0];
        let own = [grid::dot(&part.direction, &product)];
        world.allreduce(&own, &mut along, &Op::Sum).await?;
        let step = ratio(part.square, along[0]);
        grid::add(&mut part.solution, step, &part.direction);
        grid::add(&mut part.rest, -step, &product);
        let mut square = [0.0];
        let own = [grid::dot(&part.rest, &part.rest)];
        world.allreduce(&own, &mut square, &Op::Sum).await?;
        let keeps = ratio(square[0], part.square);
        for (direction, rest) in part.direction.iter_mut().zip(&part.rest) {
            *direction = rest + keeps * *direction;
        }
        part.square = square[0];
        let operations = OPERATIONS * part.rest.len() as u64;
        let time_ps = operations as f64 / self.core_gflops * 1e3;
        process
            .memory
            .delay(Time::from_ps(time_ps.round() as u64))
            .await;
        Ok(())
    }

    /// The rows of a vector that the neighbours have, above and below this rank's.
    async fn borders(&self, process: &Process, rows: &[f64]) -> Result<(Rows, Rows), Error> {
        let world = process.mpi.world();
        let side = self.side as usize;
        let (me, last) = (world.rank(), world.size() - 1);
        let up = if me == 0 { PROC_NULL } else { me - 1 };
        let down = if me == last { PROC_NULL } else { me + 1 };
        let (mut above, mut below) = (vec![0.0; side], vec![0.0; side]);
        let (first, end) = (&rows[..side], &rows[rows.len() - side..]);
        let from = Source::Rank;
        let sent = (first, up, UP);
        let came = (&mut below[..], from(down), Tag::Is(UP));
        world.send_receive(sent, came).await?;
        let sent = (end, down, DOWN);
        let came = (&mut above[..], from(up), Tag::Is(DOWN));
        world.send_receive(sent, came).await?;
        Ok((above, below))
    }
}

/// The ratio of two squares; 0 when nothing is left to be solved.
fn ratio(one: f64, other: f64) -> f64 {
    if other > 0.0 { one / other } else { 0.0 }
}

impl Measurement for Cg {
    type Outcome = Outcome;

    fn job(&self) -> &Job {
        &self.job
    }

    fn calls(&self) -> u64 {
        let of_phase = 16 + 4 * u64::from(self.iterations);
        let phases = self.processes.iter().map(|&processes| u64::from(processes));
        of_phase.saturating_mul(phases.sum())
    }

    fn observed(&self, observe: Observe) -> Result<(Outcome, Observed), Error> {
        let begin = Begin {
            core: 0,
            processes: self.processes.first().copied().unwrap_or(1),
            manager: Kind::Invasive,
        };
        let found: Arc<Mutex<(f64, Vec<u32>)>> = Arc::default();
        let process = {
            let (cg, found) = (self.clone(), Arc::clone(&found));
            move |process| cg.clone().process(process, Arc::clone(&found))
        };
        let observed = programs::run(&self.job, observe, &[begin], process)?;
        let (residual, processes) = std::mem::take(&mut *found.lock());
        let whole = programs::last(&observed, WHOLE);
        let spans = |name| observed.spans.called(name);
        let phases = processes.into_iter().zip(spans(PHASES)).enumerate();
        let phases = phases.map(|(number, (processes, span))| {
            let deals = spans(DEALS).get(number).filter(|_| number > 0);
            Phase {
                processes,
                begin: span.first_begin.since(whole.first_begin),
                end: span.last_end.since(whole.first_begin),
                deals: deals.map_or(Time::ZERO, |span| span.last_end.since(span.first_begin)),
            }
        });
        let outcome = Outcome {
            time: whole.last_end.since(whole.first_begin),
            residual,
            phases: phases.collect(),
            energy: observed.energy.clone(),
        };
        Ok((outcome, observed))
    }
}

#[cfg(test)]
mod tests {
    use sme_sim::machine::Machine;

    use super::*;

    fn cg(side: u32, iterations: u32, processes: &[u32]) -> Cg {
        Cg {
            job: Job::managed(Arc::new(Machine::builtin("scc-800").unwrap())),
            side,
            iterations,
            processes: processes.to_vec(),
            core_gflops: 0.1,
            keeps_rows: false,
        }
    }

    /// The same iterations give the same solution, however the world changes meanwhile.
    #[test]
    fn a_world_that_changes_solves_the_same() {
        assert!(cg(12, 30, &[1]).run().unwrap().residual < 1e-6);
        // So few that rounding does not show.
        let alone = cg(12, 12, &[1]).run().unwrap();
        for processes in [&[3, 7, 2][..], &[1, 12, 12], &[5, 1, 4], &[2, 3, 12]] {
            let outcome = cg(12, 4, processes).run().unwrap();
            let were: Vec<u32> = outcome.phases.iter().map(|phase| phase.processes).collect();
            assert_eq!(were, processes);
            let ratio = outcome.residual / alone.residual;
            assert!(
                (ratio - 1.0).abs() < 1e-9,
                "{processes:?}: {outcome:?} {alone:?}"
            );
        }
    }

    /// A system that is solved exactly stays solved.
    #[test]
    fn a_solved_system_stays_solved() {
        for side in 1..4 {
            let outcome = cg(side, 20, &[1]).run().unwrap();
            assert!(outcome.residual < 1e-12, "{outcome:?}");
        }
    }

    /// Ranks that keep rows that others should get are found out: by an error, or by the residual.
    #[test]
    fn rows_that_are_not_dealt_out_are_missed() {
        let keeps = Cg {
            keeps_rows: true,
            ..cg(12, 8, &[2, 6, 3])
        };
        let found = keeps.run();
        assert!(found.is_err() || found.is_ok_and(|outcome| outcome.residual > 1e-3));
    }
}
