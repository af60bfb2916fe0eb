//! The signals of an engine in a waveform: the ports of the RTL's top level, by name, and what the
//! host's doublewords say.
//!
//! Each engine is a scope `engine_<node>` within `cluster`:
//!
//! | Signal | What |
//! |---|---|
//! | `cycle` | the cycle in which any other last changed; in waveforms only |
//! | `host_in_…`, `host_out_…` | `valid`, and the [`Doublewords`](crate::families::sme::engine::ht::Doublewords) of a HyperTransport packet from and to the host: `extension`, `command`, `mask`, `data` |
//! | | what they say, in waveforms only: `kind` (0 read, 1 posted write, 2 response, 3 error response), `address`, `enables`, `tag`, `coherent` |
//! | `host_in_credit` | the host gives a place back; bit 0 posted, 1 non-posted, 2 response |
//! | `host_out_credit` | the engine gives a place back to the host, by channel |
//! | `link_in_valid`, `link_out_valid` | bit *p*: a packet on link port *p* |
//! | `link<p>_in_…`, `link<p>_out_…` | its `channel`, `kind` (as [`Kind`](crate::families::sme::engine::Kind)), `flag` (a write is coherent, a response one doubleword, a read long), `tag`, `target`, `source`, `offset`, `enables`, `data`, `crc` |
//! | `link<p>_in_credit` | the receiver at the other end gives a place back; a bit for each virtual channel |
//! | `link<p>_out_credit` | the engine gives a place back to the sender at the other end; a bit for each virtual channel |
//!
//! Fields that a packet's kind does not carry are 0. On a link a long read and its response
//! ([`packet`](crate::families::sme::engine::packet)) have the number of their extra words in
//! `enables`; the extra words themselves are not recorded.

use super::recorded::Passed;
use crate::families::sme::engine::{HtPacket, Input, Output, Packet};
use crate::observe::waves::Signal;
use crate::parts::fabric::{CHANNELS, LINK_PORTS};

/// Signals of an engine.
const SIGNALS: usize = LINKS + LINK_PORTS * LINK_SIGNALS;

const HOST_FIELDS: [(&str, u32); 10] = [
    ("valid", 1),
    ("extension", 32),
    ("command", 64),
    ("mask", 32),
    ("data", 64),
    ("kind", 2),
    ("address", 64),
    ("enables", 8),
    ("tag", 5),
    ("coherent", 1),
];

const LINK_FIELDS: [(&str, u32); 10] = [
    ("channel", 2),
    ("kind", 2),
    ("flag", 1),
    ("tag", 5),
    ("target", 20),
    ("source", 20),
    ("offset", 40),
    ("enables", 8),
    ("data", 64),
    ("crc", 16),
];

// Numbers of signals, in the order of `all`; the first is `cycle`.
const HOST_IN: usize = 1;
const HOST_IN_CREDIT: usize = HOST_IN + HOST_FIELDS.len();
const HOST_OUT: usize = HOST_IN_CREDIT + 1;
const HOST_OUT_CREDIT: usize = HOST_OUT + HOST_FIELDS.len();
const LINK_IN_VALID: usize = HOST_OUT_CREDIT + 1;
const LINK_OUT_VALID: usize = LINK_IN_VALID + 1;
const LINKS: usize = LINK_OUT_VALID + 1;
/// Of a port: fields of packets in, credits in, fields of packets out, credits out.
const LINK_SIGNALS: usize = 2 * LINK_DIRECTION;
const LINK_DIRECTION: usize = LINK_FIELDS.len() + 1;

/// All signals of an engine, in the order in which a waveform has them.
pub fn all() -> Vec<Signal> {
    let mut all = Vec::with_capacity(SIGNALS);
    let mut add = |name: String, width| all.push(Signal { name, width });
    add("cycle".to_owned(), 64);
    for direction in ["in", "out"] {
        for (field, width) in HOST_FIELDS {
            add(format!("host_{direction}_{field}"), width);
        }
        add(format!("host_{direction}_credit"), 3);
    }
    for direction in ["in", "out"] {
        add(format!("link_{direction}_valid"), LINK_PORTS as u32);
    }
    for port in 0..LINK_PORTS {
        for direction in ["in", "out"] {
            for (field, width) in LINK_FIELDS {
                add(format!("link{port}_{direction}_{field}"), width);
            }
            add(format!("link{port}_{direction}_credit"), CHANNELS as u32);
        }
    }
    all
}

/// Nothing passes: every valid and every credit is 0.
pub(super) fn release(values: &mut [u64]) {
    for single in [HOST_IN, HOST_IN_CREDIT, HOST_OUT, HOST_OUT_CREDIT] {
        values[single] = 0;
    }
    values[LINK_IN_VALID] = 0;
    values[LINK_OUT_VALID] = 0;
    for port in 0..LINK_PORTS {
        values[link_credit(port, false)] = 0;
        values[link_credit(port, true)] = 0;
    }
}

/// Shows what passes in `values`.
pub(super) fn present(values: &mut [u64], passed: &Passed) {
    match *passed {
        Passed::In(Input::Host(packet)) => host(values, HOST_IN, &packet),
        Passed::Out(Output::Host(packet)) => host(values, HOST_OUT, &packet),
        Passed::In(Input::HostCredit(channel)) => values[HOST_IN_CREDIT] |= 1 << channel as u8,
        Passed::Out(Output::HostCredit(channel)) => values[HOST_OUT_CREDIT] |= 1 << channel as u8,
        Passed::In(Input::Link {
            port,
            channel,
            packet,
        }) => {
            values[LINK_IN_VALID] |= 1 << port;
            link(values, link_fields(port.into(), false), channel, &packet);
        }
        Passed::Out(Output::Link {
            port,
            channel,
            packet,
        }) => {
            values[LINK_OUT_VALID] |= 1 << port;
            link(values, link_fields(port.into(), true), channel, &packet);
        }
        Passed::In(Input::LinkCredit { port, channel }) => {
            values[link_credit(port.into(), false)] |= 1 << channel;
        }
        Passed::Out(Output::LinkCredit { port, channel }) => {
            values[link_credit(port.into(), true)] |= 1 << channel;
        }
    }
}

fn host(values: &mut [u64], first: usize, packet: &HtPacket) {
    let doublewords = packet.encode();
    let [kind, address, enables, tag, coherent] = match *packet {
        HtPacket::Read {
            address,
            enables,
            tag,
            ..
        } => [0, address, enables.into(), tag.into(), 0],
        HtPacket::Write {
            address,
            enables,
            coherent,
            ..
        } => [1, address, enables.into(), 0, coherent.into()],
        HtPacket::Response { tag, error, .. } => [2 + u64::from(error), 0, 0, tag.into(), 0],
    };
    // As HOST_FIELDS.
    let fields = [
        1,
        doublewords.extension.into(),
        doublewords.command,
        doublewords.mask.into(),
        doublewords.data,
        kind,
        address,
        enables,
        tag,
        coherent,
    ];
    values[first..first + HOST_FIELDS.len()].copy_from_slice(&fields);
}

fn link(values: &mut [u64], first: usize, channel: u8, packet: &Packet) {
    // As LINK_FIELDS.
    let fields = [
        channel.into(),
        packet.kind as u64,
        packet.flag.into(),
        packet.tag.into(),
        packet.target.into(),
        packet.source.into(),
        packet.offset,
        packet.enables.into(),
        packet.data,
        packet.crc().into(),
    ];
    values[first..first + LINK_FIELDS.len()].copy_from_slice(&fields);
}

const fn link_fields(port: usize, out: bool) -> usize {
    LINKS + port * LINK_SIGNALS + out as usize * LINK_DIRECTION
}

const fn link_credit(port: usize, out: bool) -> usize {
    link_fields(port, out) + LINK_FIELDS.len()
}

/// The port that `passed` passes, as a number: the host's packets and credits, the links' packets
/// and credits, in either direction.
pub(super) fn port(passed: &Passed) -> usize {
    let wire = match *passed {
        Passed::In(Input::Host(_)) | Passed::Out(Output::Host(_)) => 0,
        Passed::In(Input::HostCredit(channel)) | Passed::Out(Output::HostCredit(channel)) => {
            1 + channel as usize
        }
        Passed::In(Input::Link { port, .. }) | Passed::Out(Output::Link { port, .. }) => {
            4 + usize::from(port)
        }
        Passed::In(Input::LinkCredit { port, channel })
        | Passed::Out(Output::LinkCredit { port, channel }) => {
            4 + LINK_PORTS + usize::from(port) * CHANNELS + usize::from(channel)
        }
    };
    2 * wire + usize::from(matches!(passed, Passed::Out(_)))
}
