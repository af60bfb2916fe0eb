//! An engine with a fault, which the test bench must find out.

use crate::families::sme::engine::HtChannel;
use crate::families::sme::engine::model::{EngineModel, Input, Output, Shortcuts, Transit};
use crate::families::sme::engine::packet::Packet;

/// A fault that a broken engine makes, once if nothing else is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Drop,
    Duplicate,
    Alter,
    Swap,
    LeakLinkCredit,
    LeakHostCredit,
    DoubleCredit,
    /// The engine always foresees the end of a packet a cycle too early.
    ForeseesEarly,
    /// A packet that passes at once leaves a cycle too early.
    PassesEarly,
    /// The engine never says that it awaits credits of links.
    AwaitsNothing,
}

/// An engine that makes one fault.
pub(crate) struct Faulty<E> {
    engine: E,
    fault: Option<Fault>,
    /// Outputs of the kind that go well before.
    countdown: u64,
    kept: Option<Output>,
}

impl<E> Faulty<E> {
    pub fn new(engine: E, fault: Option<Fault>, countdown: u64) -> Self {
        Self {
            engine,
            fault,
            countdown,
            kept: None,
        }
    }

    fn pass(&mut self, output: Output, out: &mut Vec<Output>) {
        let concerned = match self.fault {
            None | Some(Fault::ForeseesEarly | Fault::PassesEarly | Fault::AwaitsNothing) => false,
            Some(Fault::LeakLinkCredit | Fault::DoubleCredit) => {
                matches!(output, Output::LinkCredit { .. })
            }
            Some(Fault::LeakHostCredit) => matches!(output, Output::HostCredit(HtChannel::Posted)),
            Some(_) => matches!(output, Output::Link { .. }),
        };
        if !concerned {
            return out.push(output);
        }
        if self.countdown > 0 {
            self.countdown -= 1;
            return out.push(output);
        }
        match (self.fault, output, self.kept.take()) {
            (Some(Fault::Duplicate | Fault::DoubleCredit), ..) => out.extend([output, output]),
            (
                Some(Fault::Alter),
                Output::Link {
                    port,
                    channel,
                    mut packet,
                },
                _,
            ) => {
                packet.data ^= 1 << 63;
                out.push(Output::Link {
                    port,
                    channel,
                    packet,
                });
            }
            // Keep one back until another of the same flow has passed.
            (Some(Fault::Swap), _, None) => return self.kept = Some(output),
            (Some(Fault::Swap), Output::Link { packet, .. }, Some(first)) => {
                let same = matches!(first, Output::Link { packet: kept, .. }
                    if kept.target == packet.target && kept.source == packet.source && kept.kind == packet.kind);
                out.push(output);
                if !same {
                    return self.kept = Some(first);
                }
                out.push(first);
            }
            _ => {}
        }
        self.fault = None;
    }
}

impl<E: EngineModel> EngineModel for Faulty<E> {
    fn next_cycle(&self) -> Option<u64> {
        self.engine.next_cycle()
    }

    fn input(&mut self, cycle: u64, input: Input) {
        self.engine.input(cycle, input);
    }

    fn step(&mut self, cycle: u64, out: &mut Vec<Output>) {
        let mut sound = Vec::new();
        self.engine.step(cycle, &mut sound);
        for output in sound {
            self.pass(output, out);
        }
    }
}

impl<E: Shortcuts> Shortcuts for Faulty<E> {
    fn foresee(&mut self, out: &mut Vec<(u64, Output)>) {
        let before = out.len();
        self.engine.foresee(out);
        let early = u64::from(self.fault == Some(Fault::ForeseesEarly));
        out[before..]
            .iter_mut()
            .for_each(|(cycle, _)| *cycle -= early);
    }

    fn transit(&mut self, cycle: u64, port: u16, channel: u8, packet: &Packet) -> Option<Transit> {
        let mut transit = self.engine.transit(cycle, port, channel, packet)?;
        transit.delivered -= u64::from(self.fault == Some(Fault::PassesEarly));
        Some(transit)
    }

    fn late_credit(&mut self, port: u16, channel: u8) -> bool {
        self.engine.late_credit(port, channel)
    }

    fn awaits_link_credits(&self) -> bool {
        self.fault != Some(Fault::AwaitsNothing) && self.engine.awaits_link_credits()
    }
}
