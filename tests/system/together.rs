//! Processes that compute at the same time: they meet outside MPI.

use std::path::Path;

use crate::command::text;
use crate::unmodified::{compiled, directory, run};

/// Lets the ranks of a program meet in these meetings; the times that they have printed.
fn meet(program: &Path, flags: &str, meetings: &str) -> Vec<String> {
    let place = tempfile::tempdir_in(directory()).unwrap();
    let place = place.path().to_str().unwrap();
    let output = run(flags, program, &[place, meetings]);
    let (said, printed) = (text(&output.stderr), text(&output.stdout));
    assert_eq!(output.status.code(), Some(0), "{flags}: {said}");
    assert!(!printed.contains("WRONG"), "{flags}: {printed}");
    let mut lines: Vec<String> = printed.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn processes_compute_at_the_same_time() {
    let Some(program) = compiled("together.c") else {
        return;
    };
    for (flags, meetings) in [
        // The work of entering a call passes meanwhile,
        ("--machine scc -n 2", "012"),
        ("--machine scc -n 5", "012"),
        // or the time that it is told,
        ("--machine sme-prototype -n 3 --compute fixed:50us", "012"),
        ("--machine sme-prototype -n 3 --compute declared", "3"),
        // or that it takes.
        ("--machine sme-prototype -n 3 --compute measured", "0123"),
        ("--machine mppa256 -n 2 --compute measured:0.5", "0123"),
    ] {
        let times = meet(&program, flags, meetings);
        // It makes no difference to simulated time, unless that is measured.
        if !flags.contains("measured") {
            assert_eq!(times, meet(&program, flags, ""), "{flags}");
        }
    }
}

#[test]
fn a_fixed_time_follows_each_call() {
    let Some(program) = compiled("together.c") else {
        return;
    };
    let us = |compute: &str| {
        let times = meet(
            &program,
            &format!("--machine scc -n 1 --compute {compute}"),
            "",
        );
        let seconds = times[0].split_whitespace().skip(1);
        let us = seconds.map(|number| number.parse::<f64>().unwrap() * 1e6);
        <[f64; 3]>::try_from(us.collect::<Vec<f64>>()).unwrap()
    };
    let (none, fixed) = (us("zero"), us("fixed:10us"));
    // From a look at the clock to the next one; with one call between them; and the same.
    for (between, expected_us) in [(0, 10.0), (1, 20.0), (2, 20.0)] {
        let more_us = fixed[between] - none[between];
        assert!((more_us - expected_us).abs() < 0.01, "{between}: {more_us}");
    }
}

#[test]
fn every_reading_of_the_clock_is_later() {
    let Some(program) = compiled("readings.c") else {
        return;
    };
    for machine in ["scc", "sme-prototype", "xeon-e5-2650"] {
        meet(&program, &format!("--machine {machine} -n 3"), "");
    }
}

/// The call after a computation that the program has declared begins when that is over.
#[test]
fn a_call_begins_behind_what_comes_before_it() {
    let Some(program) = compiled("declared.c") else {
        return;
    };
    let place = tempfile::tempdir_in(directory()).unwrap();
    let timeline = place.path().join("timeline.csv");
    let flags = format!(
        "--machine scc -n 1 --compute declared --timeline {}",
        timeline.display()
    );
    let output = run(&flags, &program, &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let rows = std::fs::read_to_string(&timeline).unwrap();
    let last = rows.lines().last().unwrap();
    let numbers = last.split(',').skip(2).take(2);
    let numbers: Vec<f64> = numbers.map(|number| number.parse().unwrap()).collect();
    let [begin_ns, end_ns] = numbers[..] else {
        panic!("{last}");
    };
    assert!(last.contains("MPI_Finalize"), "{last}");
    assert!(begin_ns >= 0.25e9 && end_ns - begin_ns < 10_000.0, "{last}");
}
