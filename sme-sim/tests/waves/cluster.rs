//! Engines in a cluster, recorded while programs load and store across it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use sme_memory::{Memory, Place, Route};
use sme_sim::families::sme;
use sme_sim::families::sme::cluster::{Cluster, Plugged};
use sme_sim::families::sme::engine::Engine;
use sme_sim::families::sme::engine::waves::Recorder;
use sme_sim::machine::{Machine, Setup, System};
use sme_sim::observe::waves::{Format, Selection};
use sme_sim::parts::contract::ThreadMemory;
use sme_sim::time::Time;

use crate::decode::{read_fst, read_vcd};
use crate::log::{Log, Logged, expected};
use crate::random::Shared;

const NODES: u32 = 5;

/// Every thread stores to all nodes, its own too, and loads back.
fn program(memory: ThreadMemory, node: u32, core: u32) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        for turn in 0..3 {
            for other in 0..NODES {
                let place = Place {
                    node: (node + other) % NODES,
                    offset: u64::from(64 * core + 8 * node),
                };
                let word = memory.word(place, Route::Global);
                let value = u64::from(turn * 100 + core * 10 + node) << 40 | 1;
                memory.store(word, value).await;
                assert_eq!(memory.load(word).await, value);
            }
        }
    })
}

/// The file, the log, and the engines' frequency.
fn run(
    constants: &[(&str, &str)],
    selection: &Selection,
    format: Format,
    workers: usize,
) -> (Vec<u8>, Log, u64, Time) {
    let machine = Machine::builtin("sme-prototype").unwrap();
    let machine = machine.with(constants).unwrap();
    let spec = sme::of(&machine).unwrap();
    let clock = spec.engine.clock;
    let topology = "mesh:3x2".parse().unwrap();
    let design = Arc::new(sme::engine::Design::new(spec, &topology, NODES).unwrap());
    let setup = Setup::new(machine.shape(), NODES, 3).on(topology);
    let log = Log::default();
    let mut cluster = Cluster::with_plugged(spec, setup, program, |position| {
        Plugged::Other(Box::new(Logged {
            node: position,
            engine: if position < NODES {
                Engine::with_design(&design, position)
            } else {
                Engine::switch_only(&design, position)
            },
            log: Arc::clone(&log),
        }))
    });
    let file = Shared::default();
    let recorder = Recorder::new(clock, selection, format, file.clone()).unwrap();
    cluster.record_waves(&recorder);
    cluster
        .run(workers, |progress| recorder.write_until(progress.now))
        .unwrap();
    recorder.finish().unwrap();
    (file.bytes(), log, clock.hz(), cluster.end())
}

#[test]
fn a_waveform_shows_what_the_log_holds() {
    let nodes: Vec<u32> = (0..6).collect();
    for (constants, from, to) in [
        (&[][..], Time::ZERO, Time::NEVER),
        (&[], Time::from_ns(5_000), Time::from_ns(9_001)),
        // A host link that brings several packets in a cycle of the engine.
        (&[("engine.clock", "26 MHz")], Time::ZERO, Time::NEVER),
    ] {
        let selection = Selection {
            nodes: nodes.clone(),
            from,
            to,
        };
        let (vcd, log, hz, end) = run(constants, &selection, Format::Vcd, 1);
        let fs = |time: Time| match time {
            Time::NEVER => u128::MAX,
            time => u128::from(time.as_ps()) * 1_000,
        };
        let expected = expected(&log, &nodes, fs(from)..fs(to), hz);
        assert!(expected.len() > 200, "{} is little traffic", expected.len());
        let wave = read_vcd(&vcd);
        assert_eq!(wave.seen(hz), expected);
        let (fst, ..) = run(constants, &selection, Format::Fst, 1);
        assert_eq!(read_fst(&fst).changes, wave.changes);
        assert!(fst.len() < vcd.len());
        let last = fs(to).min(fs(end));
        let (first, reached) = wave.span;
        assert!(u128::from(first) >= fs(from) && u128::from(reached) >= last);
    }
}

#[test]
fn the_file_is_the_same_with_any_number_of_workers() {
    let selection = Selection {
        nodes: vec![4, 0, 3, 0],
        from: Time::from_ns(2_000),
        to: Time::NEVER,
    };
    for format in [Format::Vcd, Format::Fst] {
        let (once, ..) = run(&[], &selection, format, 1);
        for workers in [1, 2, 3] {
            let (again, ..) = run(&[], &selection, format, workers);
            assert!(again == once, "{workers} workers");
        }
    }
}
