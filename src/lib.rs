//! The command line of the simulator, as a library: what its commands do, the validation against
//! the published figures, and the default job.
//!
//! A barrier, lock or program of one's own begins with `use sme::prelude::*`: see [`prelude`], and
//! `examples/`. The crates below this one are here under shorter names: [`memory`], [`barrier`],
//! [`sim`], [`mpi`], [`experiment`] for runs of barriers, and [`messages`] for jobs of MPI ranks,
//! so that `sme` is the only dependency.
//!
//! * [`validate`]: the published figures beside the simulated ones.
//! * [`coherence`]: memory throughput by cache state, and the model of messages over it.
//! * [`distributed`]: several processes that do one job together.
//! * [`extrapolate`]: from a sweep to larger clusters, by Eq. 2.
//! * [`paper`]: the default job, Fig. 8 of the paper; and its FFT, Fig. 12 and 13.
//! * [`program`]: shared-memory programs on a simulated cluster.
//! * [`plot`]: charts as SVG.
//! * [`fit`]: lines, logarithms and surfaces by least squares.
//! * [`host`]: the memory of this process.
//! * [`latency`]: what one access costs.
//! * `launch`, with the feature `cli`: MPI programs as they are, a process for each rank.
//! * [`litmus`]: litmus tests on a simulated cluster.
//! * [`lock`]: the cluster-wide lock on a simulated machine.
//! * [`native`]: the barriers on this machine's own threads, measured.
//! * [`network`]: latency over offered load of a machine's fabric.
//! * [`progress`]: who is told how far something is.
//! * `cli`, with the feature of that name: flags, and the commands themselves.

#[cfg(feature = "cli")]
pub mod cli;
pub mod coherence;
pub mod distributed;
pub mod extrapolate;
pub mod fit;
pub mod host;
pub mod latency;
pub mod litmus;
pub mod lock;
pub mod native;
pub mod network;
pub mod paper;
pub mod plot;
pub mod prelude;
pub mod program;
pub mod progress;
pub mod report;
pub mod validate;

pub use sme_barrier as barrier;
pub use sme_jobs as messages;
#[cfg(all(feature = "cli", target_os = "linux"))]
pub use sme_jobs::launch;
pub use sme_memory as memory;
pub use sme_mpi as mpi;
pub use sme_runs as experiment;
pub use sme_sim as sim;
