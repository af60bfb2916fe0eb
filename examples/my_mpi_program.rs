//! An MPI program of one's own: `cargo run --release --example my_mpi_program`.
//!
//! Each rank has a piece of a rod. In each step it exchanges the ends of its piece with its
//! neighbours, and all learn how much has changed. The same program runs on the SCC and on the SME
//! cluster.

use std::error::Error;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use sme::messages::job::{Job, Library, Observe};
use sme::mpi::channel::Channel;
use sme::mpi::error::MpiError;
use sme::mpi::op::Op;
use sme::mpi::rank::Mpi;
use sme::report::stop::exit_code;
use sme::sim::machine::Machine;

const RANKS: u32 = 32;
const CELLS: usize = 16; // of each rank
const STEPS: u32 = 100;

async fn rod<C: Channel>(mpi: &Mpi<C>) -> Result<String, MpiError> {
    let world = mpi.world();
    let Some(rod) = world.cart_create(&[RANKS], &[false]).await? else {
        return Ok(String::new()); // a rank beyond the rod
    };
    let mut cells = vec![0.0; CELLS];
    let mut change = [0.0];
    let begin = mpi.wtime().await;
    for _ in 0..STEPS {
        let ends = [cells[0], cells[CELLS - 1]];
        let mut halo = [100.0, 0.0]; // stays where there is no neighbour
        rod.neighbor_alltoall(&ends, &mut halo).await?;
        let whole = [&halo[..1], &cells, &halo[1..]].concat();
        let next = whole.windows(3).map(|three| (three[0] + three[2]) / 2.0);
        let next: Vec<f64> = next.collect();
        let changes = next.iter().zip(&cells).map(|(new, old)| (new - old).abs());
        let largest: f64 = changes.fold(0.0, f64::max);
        rod.allreduce(&[largest], &mut change, &Op::Max).await?;
        cells = next;
    }
    let step_us = (mpi.wtime().await - begin) * 1e6 / f64::from(STEPS);
    let mut heat = [0.0];
    rod.reduce(&[cells.iter().sum::<f64>()], &mut heat, &Op::Sum, 0)
        .await?;
    let [heat, change] = [heat[0], change[0]];
    Ok(format!(
        "heat {heat:.3}, last change {change:.3}, {step_us:.1} us a step"
    ))
}

fn compare() -> Result<(), Box<dyn Error>> {
    for (machine, library) in [
        ("scc", Library::Sccmpb),
        ("sme-prototype", Library::Sections),
    ] {
        let job = Job::new(Arc::new(Machine::builtin(machine)?), library, RANKS);
        let told = Arc::new(Mutex::new(String::new()));
        let hears = Arc::clone(&told);
        job.run_mpi(Observe::default(), move |mpi, _| {
            let hears = Arc::clone(&hears);
            async move {
                let said = rod(&mpi).await?;
                if mpi.world().rank() == 0 {
                    *hears.lock().unwrap_or_else(PoisonError::into_inner) = said;
                }
                mpi.finalize().await
            }
        })?;
        let said = told.lock().unwrap_or_else(PoisonError::into_inner);
        println!("{machine}, {library}: {said}");
    }
    Ok(())
}

fn main() -> ExitCode {
    exit_code(compare())
}
