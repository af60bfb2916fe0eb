//! The figures of Comprés et al. on invasive MPI, as far as they are simulated.

use std::sync::Arc;

use sme_sim::machine::Machine;

use super::{Estimator, Point};
use crate::messages::Measurement;
use crate::messages::invade::Invade;
use crate::messages::job::Job;

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

/// The estimator of a figure.
pub(super) fn estimator(id: &str) -> Option<Estimator<Point>> {
    match id {
        "impi.fig4.invade" => Some(Estimator::single(Point::Invade(48), 1.0)),
        _ => None,
    }
}
