//! The figures of Comprés et al. on invasive MPI, as far as they are simulated.

use std::sync::Arc;

use sme_sim::machine::Machine;

use super::{Estimator, Point};
use crate::messages::Measurement;
use crate::messages::invade::Invade;
use crate::messages::job::Job;
use crate::messages::spawn::Spawn;

/// The time in which a program gets so many cores, its own included [us].
pub(super) fn invades(machine: &Arc<Machine>, cores: u32) -> Result<f64, String> {
    let invade = Invade {
        job: Job::managed(Arc::clone(machine)),
        cores,
        contiguous: false,
    };
    let outcome = invade.run().map_err(|error| error.to_string())?;
    Ok(outcome.invades.as_us())
}

/// The time in which a program of one process starts so many others [us].
pub(super) fn spawns(machine: &Arc<Machine>, processes: u32) -> Result<f64, String> {
    let spawn = Spawn {
        job: Job::managed(Arc::clone(machine)),
        processes,
    };
    let outcome = spawn.run().map_err(|error| error.to_string())?;
    Ok(outcome.spawns.as_us())
}

/// The estimator of a figure.
pub(super) fn estimator(id: &str) -> Option<Estimator<Point>> {
    match id {
        "impi.fig4.invade" => Some(Estimator::single(Point::Invade(48), 1.0)),
        // In milliseconds.
        "impi.spawn.1_process" => Some(Estimator::single(Point::Spawn(1), 1e-3)),
        _ => None,
    }
}
