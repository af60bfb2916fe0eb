//! Random command lines, read as the program reads them, without running anything: none panics,
//! every complaint is one line, and what passes fits together.

use std::ffi::OsString;

use proptest::prelude::*;
use sme::cli::Job;
use sme::report::stop::Stop;

/// Every command, one that there is not, and none.
fn commands() -> Vec<String> {
    let all = sme::cli::command();
    let known = all.get_subcommands().map(|c| c.get_name().to_owned());
    known.chain(["bar".into(), String::new()]).collect()
}

/// Every flag of any command, and what may stand among flags.
fn flags() -> Vec<String> {
    let all = sme::cli::command();
    let subcommands: Vec<&clap::Command> = all.get_subcommands().collect();
    let deeper: Vec<&clap::Command> = (subcommands.iter())
        .flat_map(|command| command.get_subcommands())
        .collect();
    let arguments = (subcommands.into_iter().chain(deeper)).flat_map(clap::Command::get_arguments);
    let mut flags: Vec<String> = arguments
        .filter_map(|argument| Some(format!("--{}", argument.get_long()?)))
        .chain(["litmus/SB.litmus", "list", "show", "--help", "--", "-o"].map(str::to_owned))
        .collect();
    flags.sort_unstable();
    flags.dedup();
    flags
}

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
        4 => prop::sample::select(flags()),
        5 => prop::sample::select(VALUES).prop_map(str::to_owned),
        1 => "[-a-z0-9.,:x*+=]{0,12}",
        1 => any::<String>(),
    ]
}

/// A flag and a value, for a command, so that more command lines come through.
fn pairs() -> impl Strategy<Value = Vec<String>> {
    let pair = (prop::sample::select(flags()), prop::sample::select(VALUES));
    let pair = pair.prop_map(|(flag, value)| [flag, value.to_owned()]);
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
        command in prop::sample::select(commands()),
        arguments in prop::collection::vec(argument(), 0..8),
    ) {
        check(&command, &arguments)?;
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
        "validate --paper mppa --no-programs --no-large",
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
