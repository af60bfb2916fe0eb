//! The checker against an engine that does not wait for its credits.

use super::*;
use crate::families::sme::engine::testbench::machine;

/// Gives what its second link brings to its first, in every cycle and without regard to credits.
struct Hasty;

impl EngineModel for Hasty {
    fn next_cycle(&self) -> Option<u64> {
        None
    }

    fn input(&mut self, _: u64, _: Input) {}

    fn step(&mut self, _: u64, out: &mut Vec<Output>) {
        let channel = 0;
        out.push(Output::LinkCredit { port: 1, channel });
        out.push(Output::Link {
            port: 0,
            channel,
            packet: packet(),
        });
    }
}

impl Shortcuts for Hasty {}

fn packet() -> Packet {
    Packet {
        data: 0,
        offset: 0,
        target: 2,
        source: 0,
        trace: 0,
        kind: Kind::PostedWrite,
        flag: false,
        tag: 0,
        enables: 0xff,
    }
}

/// Returns whether a credit that is sampled at edge `at` serves the packet of edge `at + later`,
/// all others being used.
fn serves(at: u64, later: u64) -> bool {
    let spec = machine(32, [4; 3], 4);
    let mut engine = Checked::new(Hasty, &spec, 1, 3);
    let places = u64::from(spec.link.channel_credits);
    let arrives = Input::Link {
        port: 1,
        channel: 0,
        packet: packet(),
    };
    let mut out = Vec::new();
    for cycle in 0..=places {
        engine.input(cycle, arrives);
        if cycle == places {
            let (port, channel) = (0, 0);
            engine.input(at, Input::LinkCredit { port, channel });
        }
        let cycle = if cycle == places { at + later } else { cycle };
        engine.step(cycle, &mut out);
    }
    engine.violation().is_none()
}

#[test]
fn a_credit_that_is_not_sampled_yet_serves_nobody() {
    assert!(serves(1_000, 1));
    assert!(!serves(1_000, 0));
}
