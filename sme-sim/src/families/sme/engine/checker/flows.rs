//! The packets inside an engine that must come out of it, flow by flow.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::families::sme::engine::model::Output;
use crate::families::sme::engine::packet::{Kind, Packet};

/// The properties of a packet that decide which others it must not overtake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FlowKey {
    source: u32,
    target: u32,
    response: bool,
}

/// The packets that must come out of a flow, in order. Where requests enter or leave the network,
/// writes may overtake reads, never the other way round; all else of a flow stays in line.
#[derive(Clone, Debug, Default)]
struct Flow {
    in_line: VecDeque<Expected>,
    /// Reads that enter or leave the network here, each with the number of packets in line that
    /// must come out before.
    reads: VecDeque<(Expected, u64)>,
    asked: u64,
    done: u64,
}

impl Flow {
    fn expect(&mut self, expected: Expected) {
        if expected.reader.is_some() {
            self.reads.push_back((expected, self.asked));
        } else {
            self.asked += 1;
            self.in_line.push_back(expected);
        }
    }

    /// Takes `output` out, if it is next; returns the reader, if it is a read. If another packet is
    /// next, that is the error.
    fn take(&mut self, output: Output) -> Result<Option<Reader>, Option<Output>> {
        let mut expected = None;
        if let Some(&first) = self.in_line.front() {
            if first.output == output {
                self.in_line.pop_front();
                self.done += 1;
                return Ok(first.reader);
            }
            expected = Some(first.output);
        }
        if let Some(&(first, before)) = self.reads.front() {
            if first.output == output && self.done >= before {
                self.reads.pop_front();
                return Ok(first.reader);
            }
            expected = expected.or(Some(first.output));
        }
        Err(expected)
    }

    fn expected(&self) -> impl Iterator<Item = Output> {
        let reads = self.reads.iter().map(|(expected, _)| expected);
        self.in_line
            .iter()
            .chain(reads)
            .map(|expected| expected.output)
    }
}

/// A packet that must come out, and what its source tag will stand for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Expected {
    pub(super) output: Output,
    /// The reader: the host's own tag, or a node and its tag.
    pub(super) reader: Option<Reader>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reader {
    Host { tag: u8, trace: u32 },
    Node { source: u32, tag: u8, trace: u32 },
}

impl FlowKey {
    /// The flow of `packet`.
    pub(super) fn of(packet: &Packet) -> Self {
        Self {
            source: packet.source,
            target: packet.target,
            response: matches!(packet.kind, Kind::ReadResponse | Kind::ErrorResponse),
        }
    }
}

/// All flows through an engine.
#[derive(Debug, Default)]
pub(super) struct Flows {
    /// Requests to the engine's own host, which do not show whose they are.
    to_host: FxHashMap<FlowKey, Flow>,
    /// All that leave over links.
    onward: FxHashMap<FlowKey, Flow>,
}

impl Flows {
    /// A packet of this flow must leave over a link.
    pub(super) fn expect(&mut self, key: FlowKey, expected: Expected) {
        self.onward.entry(key).or_default().expect(expected);
    }

    /// A request of this flow must reach the host.
    pub(super) fn expect_at_host(&mut self, key: FlowKey, expected: Expected) {
        self.to_host.entry(key).or_default().expect(expected);
    }

    /// Takes `output` out of its flow; returns the reader, if it is a read. If another packet is
    /// next, that is the error.
    pub(super) fn take(
        &mut self,
        output: Output,
        key: FlowKey,
    ) -> Result<Option<Reader>, Option<Output>> {
        let flow = self.onward.get_mut(&key);
        flow.map_or(Err(None), |flow| flow.take(output))
    }

    /// The same of a request to the host, which may be of any flow.
    pub(super) fn take_at_host(
        &mut self,
        output: Output,
    ) -> Result<Option<Reader>, Option<Output>> {
        let mut expected = None;
        for flow in self.to_host.values_mut() {
            match flow.take(output) {
                Ok(reader) => return Ok(reader),
                Err(next) => expected = next.or(expected),
            }
        }
        Err(expected)
    }

    /// All that must still come out.
    pub(super) fn expected(&self) -> impl Iterator<Item = Output> {
        let flows = self.to_host.values().chain(self.onward.values());
        flows.flat_map(Flow::expected)
    }
}
