//! Random traffic through engines that only pass on what a script says: everything that the ports
//! may carry, also what no cluster does today.

use std::io::{Cursor, Read, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use sme_sim::families::sme::engine::waves::{Recorded, Recorder};
use sme_sim::families::sme::engine::{
    EngineModel, HtChannel, HtPacket, Input, Kind, Output, Packet, Shortcuts,
};
use sme_sim::observe::waves::{Format, Selection};
use sme_sim::time::{Clock, Time};

use crate::decode::{Seen, Wave, read_fst, read_vcd};
use crate::log::{Log, Logged, expected};

/// A file that can be read after its recorder has gone.
#[derive(Clone, Default)]
pub struct Shared(Arc<Mutex<Cursor<Vec<u8>>>>);

impl Shared {
    pub fn bytes(&self) -> Vec<u8> {
        let mut file = self.0.lock().unwrap();
        let mut bytes = Vec::new();
        file.rewind().unwrap();
        file.read_to_end(&mut bytes).unwrap();
        bytes
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Seek for Shared {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.0.lock().unwrap().seek(to)
    }
}

/// Gives out the scripted outputs, regardless of its inputs.
struct Scripted {
    outputs: Vec<(u64, Output)>,
}

impl EngineModel for Scripted {
    fn next_cycle(&self) -> Option<u64> {
        None
    }

    fn input(&mut self, _: u64, _: Input) {}

    fn step(&mut self, cycle: u64, out: &mut Vec<Output>) {
        let now = self.outputs.iter().filter(|(at, _)| *at == cycle);
        out.extend(now.map(|(_, output)| *output));
    }
}

impl Shortcuts for Scripted {}

/// A mistake between the log and the recorder.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Mistake {
    None,
    Late,
    Lost,
    Twice,
    Altered,
}

struct Mistaken<E> {
    engine: E,
    mistake: Mistake,
    inputs: u32,
}

impl<E: EngineModel> EngineModel for Mistaken<E> {
    fn next_cycle(&self) -> Option<u64> {
        self.engine.next_cycle()
    }

    fn input(&mut self, cycle: u64, input: Input) {
        self.inputs += 1;
        match self.mistake {
            _ if self.inputs != 1 => self.engine.input(cycle, input),
            Mistake::None => self.engine.input(cycle, input),
            Mistake::Late => self.engine.input(cycle + 1, input),
            Mistake::Lost => {}
            Mistake::Twice => {
                self.engine.input(cycle, input);
                self.engine.input(cycle, input);
            }
            Mistake::Altered => self.engine.input(cycle, altered(input)),
        }
    }

    fn step(&mut self, cycle: u64, out: &mut Vec<Output>) {
        self.engine.step(cycle, out);
    }
}

impl<E: Shortcuts> Shortcuts for Mistaken<E> {}

fn altered(input: Input) -> Input {
    match input {
        Input::Link {
            port,
            channel,
            mut packet,
        } => {
            packet.offset ^= 1 << 39;
            Input::Link {
                port,
                channel,
                packet,
            }
        }
        Input::LinkCredit { port, channel } => Input::LinkCredit {
            port,
            channel: channel ^ 3,
        },
        Input::HostCredit(_) => Input::LinkCredit {
            port: 5,
            channel: 0,
        },
        Input::Host(HtPacket::Response { tag, trace, .. }) => Input::Host(HtPacket::Read {
            extra_words: 0,
            address: 0,
            enables: 0,
            tag,
            trace,
        }),
        Input::Host(HtPacket::Read { tag, trace, .. }) => Input::Host(HtPacket::Response {
            extra_words: 0,
            data: 0,
            single: false,
            tag,
            error: true,
            trace,
        }),
        Input::Host(HtPacket::Write { .. }) => Input::HostCredit(HtChannel::Posted),
    }
}

fn host_packet() -> impl Strategy<Value = HtPacket> {
    // Few different ones, so that equal packets follow each other.
    let word = || prop_oneof![Just(0), Just(u64::MAX), any::<u64>()];
    (0..4u8, word(), word(), any::<u8>(), 0..32u8, any::<bool>()).prop_map(
        |(kind, address, data, enables, tag, coherent)| match kind {
            0 => HtPacket::Read {
                extra_words: 0,
                address,
                enables,
                tag,
                trace: 7,
            },
            1 => HtPacket::Write {
                address,
                data,
                enables,
                coherent,
                trace: 7,
            },
            kind => HtPacket::Response {
                extra_words: 0,
                data,
                single: coherent,
                tag,
                error: kind == 3,
                trace: 7,
            },
        },
    )
}

fn packet() -> impl Strategy<Value = Packet> {
    let kinds = [
        Kind::ReadRequest,
        Kind::PostedWrite,
        Kind::ReadResponse,
        Kind::ErrorResponse,
    ];
    let place = (0..1u32 << 20, 0..1u32 << 20, 0..1u64 << 40);
    let rest = (any::<u64>(), any::<u8>(), 0..32u8, any::<bool>());
    (prop::sample::select(kinds.to_vec()), place, rest).prop_map(
        |(kind, (target, source, offset), (data, enables, tag, flag))| Packet {
            data,
            offset,
            target,
            source,
            trace: 7,
            kind,
            flag,
            tag,
            enables,
        },
    )
}

fn input() -> impl Strategy<Value = Input> {
    let (port, channel) = (0..6u16, 0..4u8);
    let plain = Just(HtPacket::Read {
        extra_words: 0,
        address: 8,
        enables: 1,
        tag: 0,
        trace: 0,
    });
    prop_oneof![
        prop_oneof![host_packet().boxed(), plain.boxed()].prop_map(Input::Host),
        prop::sample::select(&HtChannel::ALL).prop_map(Input::HostCredit),
        (port.clone(), channel.clone(), packet()).prop_map(|(port, channel, packet)| {
            Input::Link {
                port,
                channel,
                packet,
            }
        }),
        (port, channel).prop_map(|(port, channel)| Input::LinkCredit { port, channel }),
    ]
}

fn output() -> impl Strategy<Value = Output> {
    input().prop_map(|input| match input {
        Input::Host(packet) => Output::Host(packet),
        Input::HostCredit(channel) => Output::HostCredit(channel),
        Input::Link {
            port,
            channel,
            packet,
        } => Output::Link {
            port,
            channel,
            packet,
        },
        Input::LinkCredit { port, channel } => Output::LinkCredit { port, channel },
    })
}

const CYCLES: u64 = 24;

#[derive(Clone, Debug)]
struct Traffic {
    hz: u64,
    /// Of each of three nodes.
    inputs: [Vec<(u64, Input)>; 3],
    outputs: [Vec<(u64, Output)>; 3],
    recorded: Vec<u32>,
    /// In cycles.
    window: (u64, Option<u64>),
    /// Inputs are presented so many cycles ahead.
    ahead: u64,
    /// Cycles before which everything is written.
    looks: Vec<u64>,
}

fn traffic() -> impl Strategy<Value = Traffic> {
    let inputs = || prop::collection::vec((0..CYCLES, input()), 1..40);
    let outputs = || prop::collection::vec((0..CYCLES, output()), 0..40);
    (
        prop::sample::select(vec![
            1_000u64,
            156_000_000,
            800_000_000,
            333_333_333,
            1_000_000_000_000,
        ]),
        [inputs(), inputs(), inputs()],
        [outputs(), outputs(), outputs()],
        prop::collection::vec(0..3u32, 1..4),
        (0..CYCLES, prop::option::of(1..CYCLES)),
        0..4u64,
        prop::collection::vec(0..=CYCLES, 0..6),
    )
        .prop_map(
            |(hz, inputs, outputs, recorded, (from, length), ahead, looks)| Traffic {
                hz,
                inputs,
                outputs,
                recorded,
                window: (from / 3 * 2, length.map(|length| from / 3 * 2 + length)),
                ahead,
                looks,
            },
        )
}

fn run(traffic: &Traffic, format: Format, mistake: Mistake) -> (Vec<u8>, Log) {
    let clock = Clock::from_hz(traffic.hz).unwrap();
    let (from, to) = traffic.window;
    let selection = Selection {
        nodes: traffic.recorded.clone(),
        from: clock.edge(from),
        to: to.map_or(Time::NEVER, |to| clock.edge(to)),
    };
    let file = Shared::default();
    let recorder = Recorder::new(clock, &selection, format, file.clone()).unwrap();
    let log = Log::default();
    let mut scripted = traffic.outputs.clone().map(|outputs| Scripted { outputs });
    let taps = [0, 1, 2].map(|node| recorder.tap(node));
    let mut engines: Vec<_> = scripted
        .iter_mut()
        .zip(&taps)
        .enumerate()
        .map(|(node, (scripted, tap))| {
            let node = node as u32;
            let recorded = Recorded::new(scripted, tap.as_ref());
            let engine = Mistaken {
                engine: recorded,
                mistake,
                inputs: 0,
            };
            Logged {
                node,
                engine,
                log: Arc::clone(&log),
            }
        })
        .collect();
    let mut out = Vec::new();
    for cycle in 0..CYCLES {
        if traffic.looks.contains(&cycle) {
            recorder.write_until(clock.edge(cycle));
        }
        for (engine, inputs) in engines.iter_mut().zip(&traffic.inputs) {
            for (at, input) in inputs {
                // In the first cycle, all that come so early.
                let presented = at.saturating_sub(traffic.ahead);
                if presented == cycle {
                    engine.input(*at, *input);
                }
            }
            engine.step(cycle, &mut out);
        }
    }
    recorder.write_until(clock.edge(CYCLES));
    recorder.finish().unwrap();
    recorder.finish().unwrap();
    (file.bytes(), log)
}

fn window(traffic: &Traffic) -> std::ops::Range<u128> {
    let edge = |cycle: u64| (u128::from(cycle) * 10u128.pow(15)).div_ceil(traffic.hz.into());
    edge(traffic.window.0)..traffic.window.1.map_or(u128::MAX, edge)
}

fn seen(wave: &Wave, traffic: &Traffic) -> Vec<Seen> {
    wave.seen(traffic.hz)
}

proptest! {
    #[test]
    fn both_formats_show_what_passed(traffic in traffic()) {
        let (vcd, log) = run(&traffic, Format::Vcd, Mistake::None);
        let (fst, _) = run(&traffic, Format::Fst, Mistake::None);
        let (vcd, fst) = (read_vcd(&vcd), read_fst(&fst));
        let expected = expected(&log, &traffic.recorded, window(&traffic), traffic.hz);
        prop_assert_eq!(seen(&vcd, &traffic), expected);
        prop_assert_eq!(&vcd.changes, &fst.changes);
        prop_assert_eq!(&vcd.widths, &fst.widths);
        prop_assert_eq!(vcd.span.1, fst.span.1);
        prop_assert_eq!(u128::from(vcd.span.0), window(&traffic).start);
    }

    #[test]
    fn a_file_does_not_depend_on_when_it_is_written(traffic in traffic()) {
        for format in [Format::Vcd, Format::Fst] {
            let (bytes, _) = run(&traffic, format, Mistake::None);
            let at_the_end = Traffic { looks: Vec::new(), ..traffic.clone() };
            prop_assert!(run(&at_the_end, format, Mistake::None).0 == bytes);
        }
    }

    #[test]
    fn a_recorder_that_makes_a_mistake_is_caught(
        traffic in traffic(),
        mistake in prop::sample::select(&[
            Mistake::Late,
            Mistake::Lost,
            Mistake::Twice,
            Mistake::Altered,
        ][..]),
    ) {
        let traffic = Traffic { window: (0, None), ..traffic };
        let (bytes, log) = run(&traffic, Format::Vcd, mistake);
        let wave = read_vcd(&bytes);
        let expected = expected(&log, &traffic.recorded, window(&traffic), traffic.hz);
        prop_assert_ne!(seen(&wave, &traffic), expected, "{:?}", mistake);
    }

    #[test]
    fn cycles_in_which_nothing_passes_are_not_written(traffic in traffic()) {
        let (bytes, log) = run(&traffic, Format::Vcd, Mistake::None);
        let wave = read_vcd(&bytes);
        let expected = expected(&log, &traffic.recorded, window(&traffic), traffic.hz);
        let busy: std::collections::BTreeSet<u64> =
            expected.iter().map(|seen| seen.cycle).collect();
        for (_, _, signal, value) in &wave.changes {
            if signal == "cycle" {
                prop_assert!(busy.contains(value) || busy.contains(&(value - 1)), "{}", value);
            }
        }
    }
}

#[test]
fn times_never_drift() {
    // A million seconds' worth of no whole period would show any rounding that adds up.
    let clock = Clock::from_hz(156_000_000).unwrap();
    let femtoseconds = |cycle| sme_sim::observe::waves::femtoseconds(clock, cycle);
    assert_eq!(femtoseconds(1), 6_410_257);
    assert_eq!(femtoseconds(39), 250_000_000);
    assert_eq!(femtoseconds(156_000_000), 1_000_000_000_000_000);
    assert_eq!(femtoseconds(u64::MAX), u64::MAX);
}

/// A file to which nothing can be written.
struct Full;

impl Write for Full {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Seek for Full {
    fn seek(&mut self, _: SeekFrom) -> std::io::Result<u64> {
        Ok(0)
    }
}

#[test]
fn a_full_disk_is_an_error_at_the_end() {
    let clock = Clock::from_hz(156_000_000).unwrap();
    let selection = Selection {
        nodes: vec![0],
        from: Time::ZERO,
        to: Time::NEVER,
    };
    let file = std::io::BufWriter::with_capacity(1 << 20, Full);
    let recorder = Recorder::new(clock, &selection, Format::Vcd, file).unwrap();
    assert!(recorder.finish().is_err());
    assert!(Recorder::new(clock, &selection, Format::Vcd, Full).is_err());
}
