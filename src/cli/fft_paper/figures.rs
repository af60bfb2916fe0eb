//! The paper's FFT, Fig. 12 and 13: a transform whose data lies at random over all nodes of an 8×8
//! mesh, uncached and cached, by more and more of the nodes.
//!
//! Called by `sme fft --paper`, which has read what is to be run into [`Figure`]s; runs it as `sme
//! fft` does ([`Plan::simulate`]), and draws with [`crate::plot`]. The paper has curves and words
//! for it, but no numbers and no number of points: there is nothing published to draw beside.

use std::fs;
use std::path::Path;

use crate::cli::fft::FftTask;
use crate::cli::program::{Plan, Task, of, verdict};
use crate::cli::program_row::{self, Done};
use crate::paper::{BLUES, GREY, ORANGES};
use crate::plot::{Axis, Chart, Curve, Scaling, Stroke};
use crate::program::{Mapped, Program};
use crate::progress::Watch;
use crate::report::Format;
use crate::report::output::Output;
use crate::report::row::{self, Cell};
use crate::report::stop::{Stop, one_line};
use crate::report::table::aligned;
use crate::validate::measure::over;

/// One of the two figures: what is run for it.
#[derive(Debug)]
pub struct Figure {
    plan: Plan,
    /// Nodes, and threads on each, that have more threads than the matrix has rows.
    left_out: Vec<(u32, u32)>,
}

/// A run that has ended well, and the run of one node with as many threads.
type Compared<'d, 'p> = (&'d Done<'p>, &'d Done<'p>);

impl Figure {
    /// The runs of `plan`, all of one kind of memory, without those that have more threads than
    /// there are rows in `task`.
    pub fn new(plan: Plan, task: &FftTask) -> Self {
        let has_work = |program: &Program| program.threads() <= task.rows();
        let left_out = plan.programs().iter().filter(|program| !has_work(program));
        Self {
            left_out: left_out.map(|left| (left.nodes, left.cores)).collect(),
            plan: plan.only(has_work),
        }
    }

    /// The runs of the figure.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    fn mapped(&self) -> Mapped {
        let first = self.plan.programs().first();
        first.map_or(Mapped::Uncached, |program| program.mapped)
    }

    /// Its number in the paper.
    fn number(&self) -> u32 {
        match self.mapped() {
            Mapped::Uncached => 12,
            Mapped::Cached => 13,
        }
    }
}

/// Simulates `figures` on `workers` threads of the host, writes `fig12.csv`, `fig12.svg` and so on
/// into `directory`, and returns what to print.
///
/// # Errors
/// [`Stop::Input`] where `directory` cannot be written to, which is known before anything is
/// simulated; [`Stop::Failed`] where a simulation does not end well or a result is wrong. No file
/// is written then.
pub fn run(
    figures: &[Figure],
    task: &FftTask,
    directory: &Path,
    workers: usize,
    watch: &dyn Watch,
) -> Result<String, Stop> {
    // No flag has named them: their paths say what they are.
    let what = "";
    fs::create_dir_all(directory).map_err(|error| Stop::unwritable(what, directory, &error))?;
    let mut outputs = Vec::with_capacity(figures.len());
    for figure in figures {
        let path = |ending| directory.join(format!("fig{}.{ending}", figure.number()));
        let (csv, svg) = (path("csv"), path("svg"));
        let files = (Output::file(what, &csv)?, Output::file(what, &svg)?);
        outputs.push((files, (csv, svg)));
    }

    let done = simulate(figures, task, workers, watch)?;
    let mut text = heading(figures, task);
    let mut written = Vec::with_capacity(2 * figures.len());
    for (figure, ((mut csv, mut svg), (csv_path, svg_path))) in figures.iter().zip(outputs) {
        let of_figure = |done: &&Done| done.program.mapped == figure.mapped();
        let all: Vec<&Done> = done.iter().filter(of_figure).collect();
        let all = compared(&all)?;
        csv.push(&to_csv(figure, task, &all))?;
        let drawn = chart(figure, task, &all).to_svg();
        svg.push(&drawn.map_err(|error| Stop::Failed(error.to_string()))?)?;
        written.extend([csv, svg]);
        text.push_str(&format!(
            "\nFig. {}: {}\n\n{}\nTable: {}\nPlot:  {}\n",
            figure.number(),
            figure.mapped(),
            table(&all),
            csv_path.display(),
            svg_path.display()
        ));
    }
    if let Some(left_out) = figures.first().and_then(|figure| left_out(figure, task)) {
        text.push_str(&format!("\n{left_out}.\n"));
    }
    for output in written {
        output.commit()?;
    }
    Ok(text)
}

/// Every run, figure by figure, few threads per node before many, few nodes before many.
fn simulate<'f>(
    figures: &'f [Figure],
    task: &FftTask,
    workers: usize,
    watch: &dyn Watch,
) -> Result<Vec<Done<'f>>, Stop> {
    let mut runs: Vec<(&Figure, &Program)> = Vec::new();
    for figure in figures {
        let mut programs: Vec<&Program> = figure.plan.programs().iter().collect();
        programs.sort_by_key(|program| (program.cores, program.nodes));
        programs.dedup_by_key(|program| (program.cores, program.nodes));
        runs.extend(programs.into_iter().map(|program| (figure, program)));
    }
    // The first phase is not in the row.
    let barriers = 1 + FftTask::phases().len() as u64;
    watch.begin("barriers", barriers * runs.len() as u64);
    let uncached_first = |(figure, _): &(&Figure, &Program)| match figure.mapped() {
        Mapped::Uncached => 1,
        Mapped::Cached => 0,
    };
    let ended = over(&runs, workers, uncached_first, |(figure, program)| {
        let simulated = figure.plan.simulate(task, program, &Steps(watch), None);
        simulated.map(|(done, _)| done)
    });
    watch.end();
    let done: Vec<Done> = ended.into_iter().collect::<Result<_, _>>()?;
    verdict(&done)?;
    Ok(done)
}

/// Hands on the steps of one of several runs.
struct Steps<'w>(&'w dyn Watch);

impl Watch for Steps<'_> {
    fn begin(&self, _what: &str, _steps: u64) {}
    fn advance(&self, steps: u64) {
        self.0.advance(steps);
    }
    fn end(&self) {}
}

/// Each run beside that of one node with as many threads.
fn compared<'d, 'p>(all: &[&'d Done<'p>]) -> Result<Vec<Compared<'d, 'p>>, Stop> {
    let with_base = all.iter().map(|done| {
        let is_base =
            |base: &&&Done| base.program.nodes == 1 && base.program.cores == done.program.cores;
        match all.iter().find(is_base) {
            Some(base) => Ok((*done, *base)),
            None => Err(Stop::Failed(one_line(&format!(
                "{}: there is no run of one node",
                of(done.program)
            )))),
        }
    });
    with_base.collect()
}

/// The rows of `sme fft`.
fn to_csv(figure: &Figure, task: &FftTask, all: &[Compared]) -> String {
    let mut keys = Vec::new();
    let mut rows: Vec<Vec<Cell>> = Vec::with_capacity(all.len());
    for (done, base) in all {
        let row = program_row::row(task, figure.plan.placement(), done, base);
        let (of_row, cells) = row.into_iter().unzip();
        keys = of_row;
        rows.push(cells);
    }
    row::rendered(&keys, &rows, Format::Csv)
}

fn table(all: &[Compared]) -> String {
    let keys = [
        "cores_per_node",
        "nodes",
        "threads",
        "time_ms",
        "speedup",
        "efficiency",
    ];
    let rows: Vec<Vec<Cell>> = all
        .iter()
        .map(|(done, base)| {
            let program = done.program;
            let counts = [program.cores, program.nodes, program.threads()];
            let mut row: Vec<Cell> = counts.map(|count| Cell::Count(count.into())).to_vec();
            row.push(Cell::Fixed {
                units: (done.outcome.time().as_ps() + 500_000) / 1_000_000,
                decimals: 3,
            });
            let [_, speedup, efficiency] = program_row::times(done, base);
            row.extend([speedup.1, efficiency.1]);
            row
        })
        .collect();
    aligned(&keys.map(str::to_owned), &rows)
}

fn heading(figures: &[Figure], task: &FftTask) -> String {
    let programs = figures.iter().flat_map(|figure| figure.plan.programs());
    let Some(program) = programs.into_iter().next() else {
        return String::new();
    };
    format!(
        "The FFT of the paper on {}: 2^{} points, {}, every result checked (Fig. 12, 13).\n\
         Speed-up is against one node of as many threads. {PUBLISHED}\n",
        program.machine.name(),
        task.log2n(),
        data(program)
    )
}

/// The paper's statement on the figures.
const PUBLISHED: &str = "The paper has no numbers but says: nearly linear to 32 nodes, behind at 64; \
                         no gain beyond 4 threads per node; cached far faster.";

fn data(program: &Program) -> String {
    format!(
        "data spread at random over {} nodes of {} in pieces of {} B",
        program.memory_nodes, program.topology, program.page_bytes
    )
}

/// The combinations that are not in the figure, and the reason.
fn left_out(figure: &Figure, task: &FftTask) -> Option<String> {
    let mut pairs = figure.left_out.clone();
    pairs.sort_by_key(|&(nodes, cores)| (cores, nodes));
    pairs.dedup();
    // What is left out of the nodes with as many threads are the most.
    let fewest = pairs
        .chunk_by(|a, b| a.1 == b.1)
        .filter_map(|pairs| pairs.first());
    let of_cores: Vec<String> = fewest
        .map(|(nodes, cores)| format!("{cores} a node from {nodes} nodes on"))
        .collect();
    (!of_cores.is_empty()).then(|| {
        format!(
            "Left out, as the matrix has {} rows and would have more threads: {}",
            task.rows(),
            of_cores.join(", ")
        )
    })
}

fn chart(figure: &Figure, task: &FftTask, all: &[Compared]) -> Chart {
    let milliseconds = |done: &Done| done.outcome.time().as_us() / 1e3;
    let of_cores = all.chunk_by(|(a, _), (b, _)| a.program.cores == b.program.cores);
    let (mut ideal, mut simulated) = (Vec::new(), Vec::new());
    let colours = match figure.mapped() {
        Mapped::Uncached => ORANGES,
        Mapped::Cached => BLUES,
    };
    // The lightest is for more curves than the paper has.
    let colours = colours.into_iter().cycle().skip(1);
    for (runs, colour) in of_cores.zip(colours) {
        let over_nodes = |time: &dyn Fn(&Compared) -> f64| {
            let point = |run: &Compared| (f64::from(run.0.program.nodes), time(run));
            runs.iter().map(point).collect::<Vec<_>>()
        };
        let cores = runs.first().map_or(0, |(done, _)| done.program.cores);
        simulated.push(Curve {
            group: "Threads per node".into(),
            label: cores.to_string(),
            points: over_nodes(&|(done, _)| milliseconds(done)),
            colour,
            stroke: Stroke::Dotted,
        });
        ideal.push(Curve {
            group: "For comparison".into(),
            label: if ideal.is_empty() { "ideal slope" } else { "" }.into(),
            points: over_nodes(&|(done, base)| milliseconds(base) / f64::from(done.program.nodes)),
            colour: GREY,
            stroke: Stroke::Dashed,
        });
    }
    let mut nodes: Vec<u32> = all.iter().map(|(done, _)| done.program.nodes).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let mut caption = Vec::new();
    let mut subtitle = String::new();
    if let Some((done, _)) = all.first() {
        let machine = &done.program.machine;
        subtitle = format!(
            "{}, simulated: {}, 2^{} points (cf. Fröning et al., Fig. {})",
            machine.name(),
            figure.mapped(),
            task.log2n(),
            figure.number()
        );
        caption.push(PUBLISHED.to_owned());
        caption.push(format!(
            "Here 2^{} = {} points; {}; every result checked.",
            task.log2n(),
            1u64 << task.log2n(),
            data(done.program)
        ));
        caption.extend(left_out(figure, task).map(|text| text + "."));
        let set = match row::set(machine) {
            set if set.is_empty() => set,
            set => format!(" with {set}"),
        };
        caption.push(format!(
            "sme {}, {}{set} ({}), seed {}.",
            env!("CARGO_PKG_VERSION"),
            machine.name(),
            machine.hash(),
            done.program.seed
        ));
    }
    Chart {
        title: match figure.mapped() {
            Mapped::Uncached => "FFT on uncached global memory, over nodes".into(),
            Mapped::Cached => "FFT on cached global memory, over nodes".into(),
        },
        subtitle,
        x: Axis {
            label: "nodes".into(),
            ticks: nodes.into_iter().map(f64::from).collect(),
            scaling: Scaling::Logarithmic,
        },
        y: Axis {
            label: "time of a transform [ms]".into(),
            ticks: Vec::new(),
            scaling: Scaling::Logarithmic,
        },
        // In the legend what was simulated comes first; where curves cross, dashes do not hide it.
        curves: simulated.into_iter().chain(ideal).collect(),
        marks: Vec::new(),
        caption,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::fft::FftFlags;
    use crate::cli::fft_paper::FftPaper;
    use crate::cli::flags::{OutputFlags, ProgramFlags};
    use crate::progress::Silent;
    use clap::Parser;
    use parking_lot::Mutex;
    use std::path::PathBuf;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        flags: FftFlags,
    }

    #[derive(Parser)]
    struct Runs {
        #[command(flatten)]
        program: ProgramFlags,
        #[command(flatten)]
        output: OutputFlags,
    }

    fn paper(line: &str) -> Result<FftPaper, Stop> {
        let line = ["sme", "--paper"]
            .into_iter()
            .chain(line.split_whitespace());
        FftPaper::read(&Line::parse_from(line).flags)
    }

    const FILES: [&str; 4] = ["fig12.csv", "fig12.svg", "fig13.csv", "fig13.svg"];

    /// Counts what it is told.
    #[derive(Default)]
    struct Steps(Mutex<(u64, u64)>);

    impl Watch for Steps {
        fn begin(&self, _what: &str, steps: u64) {
            self.0.lock().0 += steps;
        }
        fn advance(&self, steps: u64) {
            self.0.lock().1 += steps;
        }
        fn end(&self) {}
    }

    #[test]
    fn the_output_is_the_same_for_any_number_of_workers() {
        let written = |workers| {
            let directory = tempfile::tempdir().unwrap();
            let paper = paper("--log2n 6 --nodes 2,1,1 --cores 1,2").unwrap();
            let steps = Steps::default();
            let text = paper
                .into_directory(directory.path(), workers, &steps)
                .unwrap();
            // Four barriers of four runs, twice; the last is not always told.
            let (begun, done) = *steps.0.lock();
            assert!(begun == 32 && done <= 32, "{begun} {done}");
            let text = text.replace(&directory.path().display().to_string(), "");
            let files = FILES.map(|name| fs::read_to_string(directory.path().join(name)).unwrap());
            assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 4);
            (text, files)
        };
        let one = written(1);
        assert!(written(3) == one);
        let (text, [uncached, uncached_svg, cached, cached_svg]) = one;

        // Two tables of four rows, in their order, and as in the files.
        let cells = |line: &str| {
            line.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let rows: Vec<Vec<String>> = text.lines().map(cells).collect();
        let rows = rows
            .iter()
            .filter(|row| row.len() == 6 && row[0].parse::<u32>().is_ok());
        let rows: Vec<_> = rows.collect();
        let order = [["1", "1"], ["1", "2"], ["2", "1"], ["2", "2"]];
        assert_eq!(rows.len(), 8, "{text}");
        let of_files = [&uncached, &cached].map(|csv| csv.lines().skip(1).collect::<Vec<_>>());
        for (row, ([cores, nodes], line)) in
            rows.iter().zip(order.iter().cycle().zip(of_files.concat()))
        {
            assert_eq!(
                (&row[0], &row[1]),
                (&(*cores).to_owned(), &(*nodes).to_owned())
            );
            let line: Vec<&str> = line.split(',').collect();
            assert_eq!((line[10], line[11]), (*nodes, *cores));
            let (ms, us): (f64, f64) = (row[3].parse().unwrap(), line[17].parse().unwrap());
            assert!((ms - us / 1e3).abs() <= 0.000_51, "{ms} {us}");
            assert_eq!((row[4].as_str(), row[5].as_str()), (line[18], line[19]));
            assert_eq!(line[39], "true");
            if *nodes == "1" {
                assert_eq!(row[4], "1.000");
            }
        }
        assert!(uncached.contains(",fft,uncached,") && cached.contains(",fft,cached,"));
        for (svg, number) in [(uncached_svg, "Fig. 12"), (cached_svg, "Fig. 13")] {
            let version = env!("CARGO_PKG_VERSION");
            for part in [
                number,
                "2^6 = 64 points",
                "no numbers",
                "[ms]",
                "nodes",
                version,
            ] {
                assert!(svg.contains(part), "{part}\n{svg}");
            }
            // Two curves of two points, one with circles and one with squares, and the legend.
            for shape in ["<circle", "<polygon"] {
                assert_eq!(svg.matches(shape).count(), 2 + 1, "{shape}");
            }
        }
    }

    #[test]
    fn more_threads_than_rows_are_left_out_and_said_to_be() {
        let paper = paper("--log2n 4 --nodes 1..8*2 --cores 1,2").unwrap();
        let directory = tempfile::tempdir().unwrap();
        let text = paper.into_directory(directory.path(), 2, &Silent).unwrap();
        let said = "the matrix has 4 rows and would have more threads: 1 a node from 8 nodes on, \
                    2 a node from 4 nodes on.";
        assert!(text.contains(said), "{text}");
        let csv = fs::read_to_string(directory.path().join(FILES[0])).unwrap();
        assert_eq!(csv.lines().count(), 1 + 3 + 2);
        let svg = fs::read_to_string(directory.path().join(FILES[1])).unwrap();
        assert!(svg.contains(said));
    }

    #[test]
    fn a_directory_that_cannot_be_is_bad_input() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let directory: PathBuf = file.path().join("results");
        let paper = paper("--log2n 2 --nodes 1 --cores 1").unwrap();
        let stop = paper.into_directory(&directory, 1, &Silent).unwrap_err();
        assert_eq!(stop.status(), 2, "{stop}");
    }

    #[test]
    fn of_a_run_that_fails_nothing_is_written() {
        // Cached, without a coherence point: what is at home is no result.
        let line = "sme --nodes 1,2 --cores 1 --memory-nodes 2 --coherence-point none";
        let line = Runs::parse_from(line.split_whitespace());
        let task = FftTask::random(6);
        let figure = Figure::new(Plan::read(&line.program, line.output).unwrap(), &task);
        let directory = tempfile::tempdir().unwrap();
        let stop = run(&[figure], &task, directory.path(), 2, &Silent).unwrap_err();
        assert!(stop.to_string().contains("the result is wrong"), "{stop}");
        assert_eq!(stop.status(), 1, "{stop}");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
