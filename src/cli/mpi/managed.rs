//! The flags of commands on a chip whose cores have daemons.

use std::sync::Arc;

use clap::Args;

use super::{WatchFlags, caption};
use crate::cli::args;
use crate::cli::flags::MachineFlags;
use crate::messages::job::Job;
use crate::plot::{Axis, Chart, Curve, Marks, Scaling};
use crate::report::stop::Stop;

/// The machine.
#[derive(Args, Clone, Debug)]
pub(super) struct ManagedFlags {
    /// Machine description: built in (see `sme machines list`) or a file
    #[arg(
        long = "machine",
        value_name = "NAME|FILE.toml",
        default_value = "scc-800"
    )]
    machine: String,
    /// Override a machine constant, with its unit; may be repeated
    #[arg(long, value_name = "SECTION.KEY=VALUE")]
    set: Vec<String>,
}

impl ManagedFlags {
    /// The machine, and its cores.
    pub(super) fn job(&self, watch: &WatchFlags) -> Result<(Job, u32), Stop> {
        let machine = args::machine(&MachineFlags {
            name: self.machine.clone(),
            set: self.set.clone(),
        })?;
        let cores = machine.shape().nodes;
        let workers = watch.workers()?;
        let job = Job {
            workers,
            ..Job::managed(Arc::new(machine))
        };
        job.check()
            .map_err(|error| Stop::flag("--machine", error))?;
        Ok((job, cores))
    }
}

/// A chart as a figure of Comprés et al. has it, of runs of which this is the first's job.
pub(super) fn chart(
    job: Option<&Job>,
    [title, figure]: [&str; 2],
    axes: [(&str, Scaling); 2],
    (curves, marks): (Vec<Curve>, Vec<Marks>),
) -> Chart {
    let [x, y] = axes.map(|(label, scaling)| Axis {
        label: label.into(),
        ticks: Vec::new(),
        scaling,
    });
    let name = job.map_or("", |job| job.machine.name());
    Chart {
        title: title.into(),
        subtitle: format!("{name}, simulated (cf. Comprés et al., {figure})"),
        x,
        y,
        curves,
        marks,
        caption: job.map(caption).into_iter().collect(),
    }
}
