//! Whether a run fits into this computer's memory: what its state takes is estimated, and one that
//! would not fit is refused before anything is built. Bytes.
//!
//! Called by [`super::barrier`], [`super::sweep`], [`super::program`] and [`super::lock`].

use crate::experiment::{EngineKind, Experiment, Observe};
use crate::program::{Mapped, Program};
use crate::report::stop::Stop;

/// The memory that an engine in RTL takes besides, in rust-hdl's simulation and as verilated:
/// measured as the memory of runs on meshes of 256 to 4096 positions.
const PER_RTL_ENGINE: u64 = 512 << 10;
const PER_VERILATED_ENGINE: u64 = 32 << 10;
/// Bytes that a thread adds in compact form, in which a node has it twice while it runs ahead.
const PER_COMPACT_THREAD: u64 = 6;
/// Bytes of a row of `--per-thread`, while it is collected and once more while it is sorted.
const PER_RECORD: u64 = 128;
/// Bytes that `--timeline` takes for each thread and barrier: most for that of the dissemination
/// barrier, 1.7 KiB on 64 nodes of 16 threads. Measured, as the memory of whole runs.
const PER_BARRIER_DRAWN: u64 = 2048;
/// Bytes of a word of a program's shared memory: in its line at home, and on each node that has
/// ever cached the line. Measured, as the memory of whole runs.
const PER_WORD: u64 = 32;
/// Bytes that the checker of loads takes for a word.
const PER_WORD_CHECKED: u64 = 32;
/// Bytes that an episode takes besides: its times.
const PER_EPISODE: u64 = 64;

/// The memory, in bytes, that `experiment` takes at most when it is observed like this: an
/// estimate.
pub fn needed(experiment: &Experiment, observe: &Observe<'_>) -> u64 {
    let Experiment { nodes, cores, .. } = *experiment;
    let episodes = u64::from(experiment.episodes) + 1;
    let threads = u64::from(nodes) * u64::from(cores);
    let footprint = experiment.machine.shape().footprint;
    let positions = u64::from(experiment.topology.positions().max(nodes));
    let kept = match experiment.is_compact(observe) {
        Ok(true) => footprint.of(&experiment.topology, 0, cores) + threads * PER_COMPACT_THREAD,
        _ => footprint.of(&experiment.topology, threads, cores),
    };
    let state = kept + episodes * PER_EPISODE + positions * per_engine(experiment.engine);
    let each = threads.saturating_mul(episodes);
    let kept_of_each = match (observe.per_thread, observe.timeline) {
        (_, true) => PER_BARRIER_DRAWN,
        (true, false) => PER_RECORD,
        (false, false) => 0,
    };
    // For the critical path it is simulated again, beside what is left of the first time.
    let times = 1 + u64::from(observe.critical_path);
    (times * state).saturating_add(each.saturating_mul(kept_of_each))
}

/// Bytes that an engine in RTL takes besides; none for one of the cycle model.
fn per_engine(kind: EngineKind) -> u64 {
    match kind {
        EngineKind::Cycle => 0,
        EngineKind::Rtl => PER_RTL_ENGINE,
        EngineKind::Verilated => PER_VERILATED_ENGINE,
    }
}

/// The needs of the kernel of a program.
#[derive(Clone, Copy, Debug)]
pub struct Needs {
    /// 64-bit words of shared memory.
    pub words: u64,
    /// On how many nodes each of its lines is used, about, if these are cached.
    pub nodes_of_line: u64,
    /// Barriers that each thread passes.
    pub barriers: u64,
    /// Bytes of this computer for its input, its result and what that is compared with.
    pub bytes: u64,
}

/// The most memory, in bytes, that `program` takes at any time: an estimate.
pub fn needed_by(program: &Program, needs: &Needs) -> u64 {
    let threads = u64::from(program.memory_nodes) * u64::from(program.cores);
    let footprint = program.machine.shape().footprint;
    let state = footprint.of(&program.topology, threads, program.cores);
    let copies = match program.mapped {
        Mapped::Cached => needs.nodes_of_line.min(program.nodes.into()),
        Mapped::Uncached => 0,
    };
    let mut per_word = PER_WORD * (1 + copies);
    let mut clocks = 0;
    if program.checked {
        per_word += PER_WORD_CHECKED;
        // A word for every two threads.
        clocks = threads.saturating_mul(threads).saturating_mul(8);
    }
    let drawn = match program.timeline {
        true => (threads * PER_BARRIER_DRAWN).saturating_mul(needs.barriers),
        false => 0,
    };
    let shared = needs.words.saturating_mul(per_word);
    let parts = [shared, clocks, drawn, needs.bytes];
    parts.into_iter().fold(state, u64::saturating_add)
}

/// Whether `needed` for `experiment` is `available`; where it is not known how much there is,
/// everything fits.
pub fn fits(experiment: &Experiment, needed: u64, available: Option<u64>) -> Result<(), Stop> {
    let Experiment {
        nodes,
        cores,
        topology,
        engine,
        ..
    } = experiment;
    let mut flags = format!("--nodes {nodes} --cores {cores} --topology {topology}");
    if *engine != EngineKind::Cycle {
        flags += &format!(" --engine {engine}");
    }
    enough(&flags, needed, available)
}

/// Whether the `needed` of what `flags` describe is `available`.
pub fn enough(flags: &str, needed: u64, available: Option<u64>) -> Result<(), Stop> {
    let Some(available) = available.filter(|&available| available < needed) else {
        return Ok(());
    };
    Err(Stop::flag(
        flags,
        format!(
            "takes about {} of memory; {} are available",
            mebibytes(needed),
            mebibytes(available)
        ),
    ))
}

/// Number of points, out of `jobs`, each with its `needed`, that can be simulated at the same time,
/// whichever they are: at least one.
pub fn jobs_that_fit(jobs: usize, needed: &[u64], available: Option<u64>) -> usize {
    let Some(available) = available else {
        return jobs;
    };
    let mut largest = needed.to_vec();
    largest.sort_unstable_by(|a, b| b.cmp(a));
    let together = largest.iter().scan(0u64, |sum, &needed| {
        *sum = sum.saturating_add(needed);
        Some(*sum)
    });
    let fit = together.take_while(|&sum| sum <= available).count();
    // More jobs than points do no harm.
    if fit == largest.len() {
        jobs
    } else {
        jobs.min(fit.max(1))
    }
}

fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes.div_ceil(1 << 20))
}

/// Memory a run can have here (`available.rs`); `None` where the system does not say.
///
/// Where processes on several computers share a run it is that of all these.
pub fn available() -> Option<u64> {
    let here = super::available::here()?;
    #[cfg(feature = "mpi")]
    let here = here.saturating_mul(crate::distributed::mpi::computers());
    Some(here)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::testing;
    use crate::experiment::Observe;
    use crate::progress::Silent;

    #[test]
    fn what_does_not_fit_is_refused_in_a_line() {
        let large =
            testing::experiment(&["--nodes", "1048576", "--cores", "16", "--form", "readable"]);
        let needed = needed(&large, &Observe::default());
        let refused = fits(&large, needed, Some(8 << 30)).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "--nodes 1048576 --cores 16 --topology mesh:1024x1024: takes about 16385 MiB of \
             memory; 8192 MiB are available"
        );
        assert_eq!(refused.status(), 2);
        assert_eq!(fits(&large, needed, Some(needed)), Ok(()));
        assert!(fits(&large, needed, Some(needed - 1)).is_err());
        assert_eq!(fits(&large, needed, None), Ok(()));
    }

    #[test]
    fn everything_that_is_kept_counts() {
        // What is looked into is in readable form anyhow.
        let few = ["--nodes", "4", "--episodes", "1000", "--form", "readable"];
        let few = testing::experiment(&few);
        let nothing = Observe::default();
        let plain = needed(&few, &nothing);
        let rows = Observe {
            per_thread: true,
            ..nothing
        };
        assert!(needed(&few, &rows) > plain + 4 * 16 * 1000 * 56);
        let twice = Observe {
            critical_path: true,
            ..nothing
        };
        assert_eq!(needed(&few, &twice), 2 * plain);
        let drawn = Observe {
            timeline: true,
            ..nothing
        };
        assert!(needed(&few, &drawn) > needed(&few, &rows));
        let rtl = testing::experiment(&["--nodes", "4", "--episodes", "1000", "--engine", "rtl"]);
        assert_eq!(needed(&rtl, &nothing), plain + 4 * PER_RTL_ENGINE);
        let refused = fits(&rtl, 2, Some(1)).unwrap_err().to_string();
        assert!(
            refused.contains("mesh:2x2 --engine rtl: takes"),
            "{refused}"
        );
        // Positions without a host have an engine too.
        let sparse = testing::experiment(&["--nodes", "4", "--topology", "mesh:1024x1024"]);
        assert!(needed(&sparse, &nothing) > 1 << 32);
    }

    /// The estimate must cover what the simulator says that its state takes, and not by so much
    /// that what would fit is refused.
    #[test]
    fn the_estimate_is_near_the_truth() {
        for flags in [
            "--nodes 64 --cores 1",
            "--nodes 64 --cores 16",
            "--nodes 25 --cores 4 --algorithm dissemination",
            "--nodes 64 --cores 16 --form readable",
            "--machine exascale --nodes 8 --cores 741",
            "--nodes 100 --cores 8 --algorithm flat",
            "--machine ideal --nodes 1024 --cores 1",
            "--machine ideal --nodes 256 --cores 16",
            "--machine ideal --nodes 100 --cores 64 --algorithm flat",
            "--machine ideal --set node.cores=700 --nodes 4 --cores 700",
        ] {
            let flags: Vec<_> = flags.split_whitespace().collect();
            let mut experiment = testing::experiment(&flags);
            experiment.episodes = 2;
            let outcome = experiment.run(&Observe::default(), &Silent).unwrap();
            let threads = u64::from(experiment.nodes) * u64::from(experiment.cores);
            let state = outcome.bytes_per_thread * threads;
            let needed = needed(&experiment, &Observe::default());
            assert!(needed >= state && needed < 4 * state, "{needed} {state}");
        }
    }

    #[test]
    fn no_more_jobs_than_fit() {
        let points = [10, 40, 20, 30];
        assert_eq!(jobs_that_fit(4, &points, Some(100)), 4);
        assert_eq!(jobs_that_fit(9, &points, Some(100)), 9);
        assert_eq!(jobs_that_fit(4, &points, Some(99)), 3);
        assert_eq!(jobs_that_fit(4, &points, Some(69)), 1);
        assert_eq!(jobs_that_fit(4, &points, Some(1)), 1);
        assert_eq!(jobs_that_fit(4, &points, None), 4);
    }
}
