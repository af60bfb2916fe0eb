//! Random command lines, read as the program reads them, without running anything: none panics,
//! every complaint is one line, and what passes fits together.

use std::ffi::OsString;

use proptest::prelude::*;
use sme::cli::Job;
use sme::cli::stop::Stop;

const COMMANDS: &[&str] = &[
    "barrier",
    "sweep",
    "extrapolate",
    "validate",
    "machines",
    "native",
    "lock",
    "litmus",
    "fft",
    "lu",
    "radix",
    "bar",
    "",
];

const FLAGS: &[&str] = &[
    "--machine",
    "--set",
    "--algorithm",
    "--placement",
    "--topology",
    "--nodes",
    "--cores",
    "--episodes",
    "--seed",
    "--pin",
    "--layout",
    "--fan-in",
    "--local-fan-in",
    "--against-simulation",
    "--topologies",
    "--fit-nodes",
    "--fit-cores",
    "--confidence",
    "--column",
    "--where",
    "--large-episodes",
    "--plot",
    "--lines",
    "--tree-shape",
    "--mapping",
    "--skew",
    "--skew-distribution",
    "--work",
    "--noise-period",
    "--noise-duration",
    "--noise-distribution",
    "--noise-duration-distribution",
    "--workers",
    "--format",
    "--output",
    "--no-host",
    "--explain",
    "--per-thread",
    "--link-load",
    "--waves",
    "--waves-nodes",
    "--waves-from",
    "--waves-to",
    "--resume",
    "--jobs",
    "--threads",
    "--repetitions",
    "--turn",
    "--acquisitions",
    "--passes",
    "--data",
    "--memory",
    "--memory-nodes",
    "--coherence-point",
    "--page",
    "--homes",
    "--runs",
    "--spread",
    "--log2n",
    "--paper",
    "--n",
    "--keys",
    "litmus/SB.litmus",
    "list",
    "show",
    "--help",
    "--",
    "-o",
];

/// Values that some flag takes, or nearly.
const VALUES: &[&str] = &[
    "sme-prototype",
    "sme-asic,sme-prototype",
    "engine.clock=156MHz,1GHz",
    "engine.clock=",
    "=",
    "tree",
    "flat,tree,flag-phase",
    "pthread",
    "local",
    "remote,coherent",
    "mesh:8x8",
    "torus:4x4x4,mesh:1x1",
    "mesh:4294967295x4294967295",
    "1",
    "0",
    "2",
    "16",
    "64",
    "1..8",
    "1..64+3",
    "2..64*2",
    "8..1",
    "0..18446744073709551615",
    "18446744073709551615..18446744073709551615",
    "1048576",
    "4294967296",
    "99999999999999999999999999",
    "-1",
    "1e3",
    "scatter",
    "packed,padded",
    "heap",
    "rows,snake",
    "500ns",
    "2us",
    "uncached",
    "cached",
    "line",
    "block",
    "writeback-only",
    "4KiB",
    "a.vcd",
    "a.fst",
    "18446744073709551615s",
    "json",
    "a\nb",
    "é,\u{0}",
    "",
    ",",
];

fn argument() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => prop::sample::select(FLAGS).prop_map(str::to_owned),
        5 => prop::sample::select(VALUES).prop_map(str::to_owned),
        1 => "[-a-z0-9.,:x*+=]{0,12}",
        1 => any::<String>(),
    ]
}

/// A flag and a value, for a command, so that more command lines come through.
fn pairs() -> impl Strategy<Value = Vec<String>> {
    let pair = (prop::sample::select(FLAGS), prop::sample::select(VALUES));
    let pair = pair.prop_map(|(flag, value)| [flag.to_owned(), value.to_owned()]);
    prop::collection::vec(pair, 0..5).prop_map(|pairs| pairs.concat())
}

fn check(command: &str, arguments: &[String]) -> Result<(), TestCaseError> {
    let line = ["sme", command].into_iter().map(str::to_owned);
    let line = line.chain(arguments.iter().cloned()).map(OsString::from);
    match Job::read(line) {
        Ok(_) | Err(Stop::Help(_)) => {}
        Err(stop) => {
            let complaint = stop.to_string();
            prop_assert_eq!(stop.status(), 2, "{}", complaint);
            prop_assert!(!complaint.is_empty() && !complaint.chars().any(char::is_control));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_command_line_panics(
        command in prop::sample::select(COMMANDS),
        arguments in prop::collection::vec(argument(), 0..8),
    ) {
        check(command, &arguments)?;
    }

    #[test]
    fn no_pairs_of_flags_and_values_panic(
        command in prop::sample::select(&["barrier", "sweep", "extrapolate", "lock"][..]),
        arguments in pairs(),
    ) {
        check(command, &arguments)?;
    }
}

#[cfg(unix)]
#[test]
fn what_is_no_text_is_refused() {
    use std::os::unix::ffi::OsStringExt;
    let odd = OsString::from_vec(vec![0xff, 0xfe]);
    for flag in ["--nodes", "--machine", "--set", "--format"] {
        let line = ["sme", "barrier", flag].map(OsString::from);
        let read = Job::read(line.into_iter().chain([odd.clone()]));
        assert!(matches!(read, Err(Stop::Input(_))), "{flag}");
    }
}

#[test]
fn most_pairs_of_a_good_flag_and_value_pass() {
    for line in [
        "barrier --nodes 8 --cores 4 --topology torus:2x2x2 --algorithm butterfly",
        "barrier --algorithm tree --tree-shape groups --fan-in 4 --mapping snake --skew 1.5us",
        "barrier --noise-period 1ms --noise-duration 0.5ms --work 1s --skew 1us --skew-distribution normal",
        "barrier --set engine.clock=200MHz --pin compact --layout packed --workers 2",
        "sweep --set engine.clock=100MHz,200MHz --set uncached.turnaround=50ns,100ns",
        "sweep --machine sme-prototype,sme-asic --nodes 1,2..8*2 --topology mesh:4x4,torus:4x4",
        "barrier --algorithm tree --local-fan-in 4 --cores 16",
        "extrapolate --paper --fit-nodes 2,4 --fit-cores 1..4 --confidence 99.5 --workers 2",
        "extrapolate sweep.csv --where algorithm=tree --column latency_p99_us --lines fit.csv",
        "extrapolate --against-simulation --topologies torus,mesh --nodes 64..512*2 --cores 16",
        "native --threads 2..8*2 --algorithm tree --fan-in 3",
        "validate --seed 3 --episodes 10",
        "lock --nodes 8 --cores 4 --data line --passes 0 --format json --no-host",
        "litmus litmus/SB.litmus litmus/MP.litmus --memory cached --spread one-node",
        "fft --log2n 10 --nodes 1..4*2 --memory uncached --coherence-point none",
        "fft --paper --log2n 10 --nodes 1..16*2 --cores 1,4 --page 4KiB --workers 2",
        "lu --n 96 --nodes 4 --placement block",
        "radix --keys 4096 --nodes 4 --set cache.writeback=mask",
    ] {
        let arguments = ["sme"].into_iter().chain(line.split_whitespace());
        let read = Job::read(arguments.map(OsString::from));
        assert!(read.is_ok(), "{line}: {:?}", read.err());
    }
}
