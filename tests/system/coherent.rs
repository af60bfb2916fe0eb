//! Cache-coherent multiprocessors as users meet them: microbenchmarks, transfers, latencies that
//! nothing was fitted to.

use std::sync::Arc;

use sme::coherence::bench::{Bench, round_trip};
use sme::coherence::table::Table;
use sme::coherence::transition::Holder;
use sme_memory::{Memory, Place, Register, Route, TestAndSet, Until};
use sme_sim::machine::{Machine, Setup};
use sme_sim::parts::contract::ThreadMemory;

use crate::command::{sme, text};

/// The core-to-core latency of two Xeon E5-2690, the same microarchitecture at 2.9 to 3.3 GHz, as
/// the medians of a public table have it: half of a compare-and-swap's round trip.
#[test]
fn core_to_core_latencies_are_those_of_the_microarchitecture() {
    for clock in ["2900 MHz", "3300 MHz"] {
        let machine = Machine::builtin("xeon-e5-2650").unwrap();
        let machine = machine.with(&[("core.clock", clock)]).unwrap();
        let bench = Bench::new(Arc::new(machine)).unwrap();
        for (holder, measured_ns) in [(Holder::Socket, 32.4), (Holder::Remote, 114.3)] {
            let simulated_ns = round_trip(&bench, holder).unwrap().as_ns();
            let error = simulated_ns / measured_ns - 1.0;
            assert!(error.abs() < 0.15, "{clock}, {holder}: {simulated_ns} ns");
        }
    }
}

/// The JSON lines that `bench` prints are a table that `predict` takes, the same for any number of
/// workers, and two runs of it are the same.
#[test]
fn a_table_of_a_simulated_machine_is_read_back() {
    let of = |workers: u32| {
        let command =
            "coherence bench --machine opteron-6272 --transitions SHO,LMM --sizes 4096,65536";
        let output = sme(&format!("{command} --workers {workers} --format json"));
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stdout).to_owned()
    };
    let rows = of(1);
    assert_eq!(rows, of(2));
    let table = Table::parse("rows", rows.as_bytes()).unwrap();
    assert_eq!(table.machine(), "opteron-6272");
    // Each within a socket and across, plain, and loads flushed before; stores past the caches and
    // flushed after, too.
    assert_eq!(table.curves().count(), 2 * 2 + 2 * 3);
}

#[test]
fn what_a_machine_does_not_have_is_refused() {
    for (command, reason) in [
        (
            "coherence bench --machine scc",
            "--machine scc: machine scc is not coherent between its nodes",
        ),
        (
            "coherence bench --transitions SHO",
            "--transitions: machine xeon-e5-2650 has no SHO",
        ),
        ("coherence bench --sizes 100", "--sizes"),
        ("coherence transfer --chunk 100", "--chunk"),
        ("coherence transfer --ring 0", "--ring"),
        ("coherence transfer --chunk 268435456 --ring 2", "--ring"),
        (
            "coherence transfer --set machine.sockets=1 --placement remote",
            "second socket",
        ),
        ("coherence bench --set cache.l3_ways=3", "cache.l3_ways"),
    ] {
        let output = sme(command);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{command}: {}",
            text(&output.stderr)
        );
        let stderr = text(&output.stderr);
        assert_eq!(
            (stderr.lines().count(), text(&output.stdout)),
            (1, ""),
            "{command}: {stderr}"
        );
        assert!(stderr.contains(reason), "{command}: {stderr}");
    }
}

/// Ways that cost more take longer.
#[test]
fn a_transfer_takes_its_time_by_any_way() {
    let time = |flags: &str| {
        let output = sme(&format!(
            "coherence transfer --sizes 131072 --format csv {flags}"
        ));
        assert_eq!(
            output.status.code(),
            Some(0),
            "{flags}: {}",
            text(&output.stderr)
        );
        let stdout = text(&output.stdout);
        let row = stdout.lines().nth(1).unwrap();
        row.rsplit(',').nth(1).unwrap().parse::<f64>().unwrap()
    };
    let plain = time("");
    assert!(time("--placement remote") > plain);
    assert!(time("--flush sender") > plain);
    assert!(time("--flush receiver") > plain);
    assert!(time("--reuse none") > plain);
    assert!(time("--ring 1") > plain, "nothing overlaps");
}

/// A ring as long as the third level evicts its first chunks by itself, which the other die then
/// loads from memory (Sec. IV-C: 640 buffers of 32 KiB for 20 MiB, 192 for 6 MiB). With a level of
/// 768 KiB those are 24; a longer ring gains nothing.
#[test]
fn as_many_chunks_as_the_third_level_holds_flush_themselves() {
    let rate = |ring: u32| {
        let output = sme(&format!(
            "coherence transfer --machine opteron-6272 --placement remote --sizes 2097152 \
             --set cache.l2_size=128KiB --set cache.l3_size=768KiB --ring {ring} --format csv"
        ));
        let complaint = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{complaint}");
        let row = text(&output.stdout).lines().nth(1).unwrap();
        row.rsplit(',').next().unwrap().parse::<f64>().unwrap()
    };
    let [short, enough, longer] = [8, 24, 64].map(rate);
    assert!(enough > 1.3 * short, "{enough} {short}");
    assert!((longer / enough - 1.0).abs() < 0.01, "{longer} {enough}");
}

/// Threads of both sockets take a register that is never cleared, and one waits for a flag that a
/// thread of the other socket has set to another value: the run ends, and the report names all of
/// it.
#[test]
fn a_register_that_is_never_cleared_ends_with_the_deadlock_report() {
    let machine = Machine::builtin("xeon-e5-2650").unwrap();
    let place = Place {
        node: 0,
        offset: 64,
    };
    let program = move |memory: ThreadMemory, node, core| async move {
        let flag = memory.flag(place, Route::Nearest);
        match (node, core) {
            (1, 0) => memory.set(flag, 2).await,
            (0, 0) => drop(memory.wait(flag, Until::Is(1)).await),
            _ => memory.take(Register { node: 1, number: 0 }).await,
        }
    };
    let mut run = machine
        .build(Setup::new(machine.shape(), 2, 3), program)
        .unwrap();
    let report = run.run(1, |_| {}).unwrap_err().to_string();
    assert!(report.starts_with("deadlock"), "{report}");
    // One of the four has the register.
    assert!(report.contains("4 threads wait"), "{report}");
    run_again(&machine, place, program);
}

/// The report of a second run, which keeps the last writes.
fn run_again<F: Future<Output = ()> + Send + 'static>(
    machine: &Machine,
    place: Place,
    program: impl Fn(ThreadMemory, u32, u32) -> F,
) {
    let mut run = machine
        .build(Setup::new(machine.shape(), 2, 3), program)
        .unwrap();
    run.keep_last_writes(&[place]);
    let report = run.run(1, |_| {}).unwrap_err().to_string();
    assert!(report.contains("last written by node 1 core 0"), "{report}");
}

/// Nodes that are coherent need no coherence points, and programs have none there unless they are
/// asked for.
#[test]
fn coherent_nodes_need_no_coherence_points() {
    for (machine, point) in [("xeon-e5-2650", "none"), ("sme-prototype", "barrier")] {
        let of = |more: &str| {
            let flags = "fft --log2n 6 --nodes 2 --cores 2 --stale --format json --no-host";
            let output = sme(&format!("{flags} --machine {machine} {more}"));
            assert_eq!(output.status.code(), Some(0), "{output:?}");
            text(&output.stdout).to_owned()
        };
        let usual = of("");
        assert!(
            usual.contains(&format!("\"coherence_point\":\"{point}\"")),
            "{usual}"
        );
        assert!(
            usual.contains("\"stale_reads\":0,\"not_written_back\":0,\"correct\":true"),
            "{usual}"
        );
        assert_eq!(usual, of(&format!("--coherence-point {point}")));
    }
}
