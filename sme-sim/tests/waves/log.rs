//! A log of an engine's inputs and outputs that knows nothing of waveforms, and what a waveform
//! must show of it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use sme_sim::families::sme::engine::{
    Counters, EngineModel, HtPacket, Input, Inspect, Output, Packet, Shortcuts,
};

use crate::decode::Seen;

/// Node, cycle, and what passed.
pub type Log = Arc<Mutex<Vec<(u32, u64, Passed)>>>;

#[derive(Clone, Copy, Debug)]
pub enum Passed {
    In(Input),
    Out(Output),
}

/// Writes down what passes.
pub struct Logged<E> {
    pub node: u32,
    pub engine: E,
    pub log: Log,
}

impl<E: EngineModel> EngineModel for Logged<E> {
    fn next_cycle(&self) -> Option<u64> {
        self.engine.next_cycle()
    }

    fn input(&mut self, cycle: u64, input: Input) {
        let entry = (self.node, cycle, Passed::In(input));
        self.log.lock().unwrap().push(entry);
        self.engine.input(cycle, input);
    }

    fn step(&mut self, cycle: u64, out: &mut Vec<Output>) {
        let mut own = Vec::new();
        self.engine.step(cycle, &mut own);
        let entries = own
            .iter()
            .map(|&output| (self.node, cycle, Passed::Out(output)));
        self.log.lock().unwrap().extend(entries);
        out.append(&mut own);
    }
}

impl<E: Shortcuts> Shortcuts for Logged<E> {}

impl<E: Inspect> Inspect for Logged<E> {
    fn counters(&self) -> Counters {
        self.engine.counters()
    }

    fn is_quiet(&self) -> bool {
        self.engine.is_quiet()
    }

    fn state_bytes(&self) -> usize {
        self.engine.state_bytes()
    }
}

/// Returns what a waveform of `nodes` shows of the log in the cycles whose edges are in a window of
/// femtoseconds.
pub fn expected(log: &Log, nodes: &[u32], window: std::ops::Range<u128>, hz: u64) -> Vec<Seen> {
    let edge = |cycle: u64| (u128::from(cycle) * 10u128.pow(15)).div_ceil(hz.into());
    let mut all: Vec<Seen> = log
        .lock()
        .unwrap()
        .iter()
        .filter(|(node, cycle, _)| nodes.contains(node) && window.contains(&edge(*cycle)))
        .map(|(node, cycle, passed)| {
            let (port, fields) = shown(passed);
            Seen {
                node: *node,
                cycle: *cycle,
                port,
                fields,
            }
        })
        .collect();
    all.sort_by(|a, b| (a.node, a.cycle, &a.port).cmp(&(b.node, b.cycle, &b.port)));
    all
}

fn shown(passed: &Passed) -> (String, BTreeMap<String, u64>) {
    let none = BTreeMap::new();
    match *passed {
        Passed::In(Input::Host(packet)) => ("host_in".into(), host(packet)),
        Passed::Out(Output::Host(packet)) => ("host_out".into(), host(packet)),
        Passed::In(Input::HostCredit(c)) => (format!("host_in_credit.{}", c as u8), none),
        Passed::Out(Output::HostCredit(c)) => (format!("host_out_credit.{}", c as u8), none),
        Passed::In(Input::Link {
            port,
            channel,
            packet,
        }) => (format!("link{port}_in"), link(channel, packet)),
        Passed::Out(Output::Link {
            port,
            channel,
            packet,
        }) => (format!("link{port}_out"), link(channel, packet)),
        Passed::In(Input::LinkCredit { port, channel }) => {
            (format!("link{port}_in_credit.{channel}"), none)
        }
        Passed::Out(Output::LinkCredit { port, channel }) => {
            (format!("link{port}_out_credit.{channel}"), none)
        }
    }
}

fn fields<const N: usize>(fields: [(&str, u64); N]) -> BTreeMap<String, u64> {
    fields.map(|(name, value)| (name.to_owned(), value)).into()
}

fn host(packet: HtPacket) -> BTreeMap<String, u64> {
    let doublewords = packet.encode();
    let mut all = fields(["kind", "address", "enables", "tag", "coherent"].map(|name| (name, 0)));
    all.extend(fields([
        ("extension", doublewords.extension.into()),
        ("command", doublewords.command),
        ("mask", doublewords.mask.into()),
        ("data", doublewords.data),
    ]));
    let carried = match packet {
        HtPacket::Read {
            address,
            enables,
            tag,
            ..
        } => fields([
            ("kind", 0),
            ("address", address),
            ("enables", enables.into()),
            ("tag", tag.into()),
        ]),
        HtPacket::Write {
            address,
            enables,
            coherent,
            ..
        } => fields([
            ("kind", 1),
            ("address", address),
            ("enables", enables.into()),
            ("coherent", coherent.into()),
        ]),
        HtPacket::Response { tag, error, .. } => {
            fields([("kind", if error { 3 } else { 2 }), ("tag", tag.into())])
        }
    };
    all.extend(carried);
    all
}

fn link(channel: u8, packet: Packet) -> BTreeMap<String, u64> {
    let encoded = packet.encode();
    let bytes = encoded.as_bytes();
    fields([
        ("channel", channel.into()),
        ("kind", packet.kind as u64),
        ("flag", packet.flag.into()),
        ("tag", packet.tag.into()),
        ("target", packet.target.into()),
        ("source", packet.source.into()),
        ("offset", packet.offset),
        ("enables", packet.enables.into()),
        ("data", packet.data),
        ("crc", u16::from_le_bytes([bytes[6], bytes[7]]).into()),
    ])
}
