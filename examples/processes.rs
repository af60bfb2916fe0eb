//! The exchange between processes that simulate one barrier: windows, messages' bytes, and how both
//! grow with the machine; from that, what a machine of 10^6 nodes would take. The processes are
//! threads of this one; what they exchange is what MPI would carry. Nodes of the exascale machine,
//! on its torus, with a few threads each, which the traffic between nodes does not depend on.
//!
//! `cargo run --release --example processes`
//!
//! Numbers of nodes on the command line are simulated instead; `PROCESSES` in the environment is
//! how many processes there are.

use std::env;
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

use sme::experiment::{Algorithm, Experiment, Form, Observe, VariablePlacement};
use sme::fit::logarithm;
use sme::progress::Silent;
use sme::report::stop::exit_code;
use sme::sim::kernel::peers::{Connected, PeerError, Peers, connected};
use sme::sim::machine::Machine;
use sme::sim::time::Time;
use sme::validate::papers::sme::points::Variant;
use sme::validate::papers::sme::simulator::Simulator;

const MACHINE: &str = "exascale";
const CORES: u32 = 4;
const NODES: [u32; 5] = [512, 1_728, 4_096, 13_824, 32_768];
const PREDICTED: f64 = 1e6;

/// A process that counts what it exchanges.
struct Counting {
    peers: Connected,
    windows: u64,
    bytes: u64,
    most: u64,
}

impl Peers for Counting {
    fn count(&self) -> usize {
        self.peers.count()
    }

    fn me(&self) -> usize {
        self.peers.me()
    }

    fn exchange(&mut self, letters: &mut [Vec<u8>], earliest: Time) -> Result<Time, PeerError> {
        let bytes = letters.iter().map(|letter| letter.len() as u64).sum();
        self.windows += 1;
        self.bytes += bytes;
        self.most = self.most.max(bytes);
        self.peers.exchange(letters, earliest)
    }

    fn all_gather(&mut self, mine: Vec<u8>) -> Result<Vec<Vec<u8>>, PeerError> {
        self.peers.all_gather(mine)
    }
}

/// What a run took: a warm-up and one barrier.
struct Taken {
    nodes: f64,
    events: f64,
    windows: f64,
    /// Of all processes.
    bytes: f64,
    /// Of the process that had most, in the window in which it had.
    most: f64,
}

fn main() -> ExitCode {
    exit_code(costs())
}

fn costs() -> Result<(), Box<dyn Error>> {
    let asked: Vec<u32> = env::args()
        .skip(1)
        .map(|nodes| nodes.parse().map_err(|error| format!("{nodes}: {error}")))
        .collect::<Result<_, _>>()?;
    let nodes = match asked.is_empty() {
        true => NODES.to_vec(),
        false => asked,
    };
    let processes = match env::var("PROCESSES") {
        Ok(text) => text
            .parse()
            .map_err(|error| format!("PROCESSES={text}: {error}"))?,
        Err(_) => 4,
    };
    println!("algorithm,nodes,processes,events,windows,bytes,bytes_per_window,most_bytes_of_one");
    for algorithm in [Algorithm::Tree, Algorithm::Dissemination] {
        let mut all = Vec::new();
        for &nodes in &nodes {
            let taken = taken(algorithm, nodes, processes)?;
            print_row(&algorithm.to_string(), processes, &taken);
            all.push(taken);
        }
        let grown = |of: fn(&Taken) -> f64| power_law(&all, of);
        let predicted = Taken {
            nodes: PREDICTED,
            events: grown(|taken| taken.events),
            windows: grown(|taken| taken.windows),
            bytes: grown(|taken| taken.bytes),
            most: grown(|taken| taken.most),
        };
        print_row(&format!("{algorithm} (predicted)"), processes, &predicted);
    }
    Ok(())
}

fn taken(algorithm: Algorithm, nodes: u32, processes: usize) -> Result<Taken, Box<dyn Error>> {
    let machine = Arc::new(Machine::builtin(MACHINE)?);
    let simulator = Simulator::new(Arc::clone(&machine), 1, 1)?;
    let (variant, placement) = (Variant::Prototype, VariablePlacement::Local);
    let experiment = Experiment {
        topology: machine.shape().topology(nodes),
        form: Form::Compact,
        ..simulator.experiment(variant, algorithm, placement, nodes, CORES)
    };
    let experiment = &experiment;
    let process = |peers| {
        let mut counting = Counting {
            peers,
            windows: 0,
            bytes: 0,
            most: 0,
        };
        let outcome = experiment.run_among(&mut counting, &Observe::default(), &Silent);
        outcome
            .map(|outcome| (outcome.events, counting))
            .map_err(|error| error.to_string())
    };
    let ended: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = connected(processes)
            .into_iter()
            .map(|peers| scope.spawn(|| process(peers)))
            .collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined
            .map(|ended| ended.unwrap_or_else(|_| Err("a process has panicked".into())))
            .collect()
    });
    let mut taken = Taken {
        nodes: nodes.into(),
        events: 0.0,
        windows: 0.0,
        bytes: 0.0,
        most: 0.0,
    };
    for process in ended {
        let (events, counting) = process?;
        taken.events = events as f64;
        taken.windows = counting.windows as f64;
        taken.bytes += counting.bytes as f64;
        taken.most = taken.most.max(counting.most as f64);
    }
    Ok(taken)
}

/// Of [`PREDICTED`] nodes, by the straight line through the logarithms of the larger half.
fn power_law(all: &[Taken], of: fn(&Taken) -> f64) -> f64 {
    let larger = &all[all.len() / 2..];
    let points: Vec<(f64, f64)> = larger
        .iter()
        .map(|taken| (taken.nodes, of(taken).max(1.0).ln()))
        .collect();
    logarithm(&points).map_or(f64::NAN, |fit| {
        (fit.slope.value * PREDICTED.ln() + fit.intercept.value).exp()
    })
}

fn print_row(algorithm: &str, processes: usize, taken: &Taken) {
    let Taken {
        nodes,
        events,
        windows,
        bytes,
        most,
    } = taken;
    let per_window = bytes / windows;
    println!(
        "{algorithm},{nodes:.0},{processes},{events:.0},{windows:.0},{bytes:.0},{per_window:.0},\
         {most:.0}"
    );
}
