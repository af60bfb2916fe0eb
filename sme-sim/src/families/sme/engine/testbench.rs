//! Test bench: engines joined by links of constant delay, with hosts that make random traffic,
//! answer reads from a memory of their own, and return credits when they please.
//!
//! Every write of a host carries the next number of its (source, target) pair, so the target sees
//! at once whether one was lost, came twice or overtook another; and a read must find what its
//! own node wrote before.

mod faulty;

pub(crate) use faulty::{Fault, Faulty};

use super::checker::{Checked, Violation};
use super::ht::HtPacket;
use super::model::{EngineModel, Input, Output, Shortcuts};
use crate::families::sme::spec::ClusterSpec;
use crate::machine::Machine;
use crate::parts::fabric::Topology;
use std::collections::BTreeMap;

/// The prototype with so many tags and credits, and the address map that the tests count on.
pub(crate) fn machine(tags: u32, host_credits: [u32; 3], channel_credits: u32) -> ClusterSpec {
    let prototype = Machine::builtin("sme-prototype").expect("it is built in");
    let mut spec = crate::families::sme::of(&prototype).unwrap().clone();
    spec.node.private_bytes = 3 << 30;
    spec.node.shared_bytes = 1 << 30;
    spec.node.global_base = 1 << 40;
    [
        spec.host.posted_credits,
        spec.host.nonposted_credits,
        spec.host.response_credits,
    ] = host_credits;
    spec.engine.tags = tags;
    spec.link.channel_credits = channel_credits;
    spec
}

/// A small generator of random numbers (SplitMix64, by S. Vigna).
#[derive(Clone, Debug)]
pub(crate) struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound
    }

    fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }
}

/// The traffic of the hosts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traffic {
    /// Cycles in which hosts make new accesses; then all must drain.
    pub cycles: u64,
    /// Chance in percent that a host makes an access in a cycle.
    pub load: u64,
    /// Share of reads in percent.
    pub reads: u64,
    /// Share of accesses to addresses where nothing is, in percent.
    pub faults: u64,
    /// Share of accesses to node 0 in percent; the others go anywhere.
    pub hot: u64,
    /// Hosts return a credit, and answer a read, after up to so many cycles.
    pub sluggish: u64,
    /// Delay of a link in cycles.
    pub delay: u64,
    /// Seed of everything random.
    pub seed: u64,
}

struct Host {
    random: Random,
    credits: [u32; 3],
    free_tags: Vec<u8>,
    /// Own reads under way: extra words, and target, number of the last own write before (or a
    /// fault).
    reads: BTreeMap<u8, (u8, Option<(u32, u64)>)>,
    /// Number of the last write to each target.
    written: BTreeMap<u32, u64>,
    /// Number of the last write that came, by source.
    memory: BTreeMap<u64, u64>,
    answers: Vec<(u64, HtPacket)>,
    read_errors: u64,
}

/// The cycles in which a bench steps its engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// They are stepped in every cycle.
    Every,
    /// Only when they say that something can happen.
    Skipping,
    /// And now and then asked what they foresee, and whether a packet passes at once; and given
    /// credits of links that they do not await only when they are stepped.
    Ahead,
}

/// Engines, links, hosts.
pub(crate) struct Bench<E> {
    spec: ClusterSpec,
    topology: Topology,
    hosts_count: u32,
    pub nodes: Vec<Checked<E>>,
    hosts: Vec<Host>,
    due: BTreeMap<u64, Vec<(usize, Input)>>,
    /// Everything that came out: cycle, node, output.
    pub log: Vec<(u64, usize, Output)>,
    /// The steps of engines.
    pub steps: u64,
    pub faults: u64,
}

impl<E: Shortcuts> Bench<E> {
    pub fn new(
        spec: &ClusterSpec,
        topology: &Topology,
        hosts: u32,
        seed: u64,
        engine: impl Fn(u32) -> E,
    ) -> Self {
        let host = |node| Host {
            random: Random(seed ^ (u64::from(node) << 32)),
            credits: [
                spec.host.posted_credits,
                spec.host.nonposted_credits,
                spec.host.response_credits,
            ],
            free_tags: (0..32).collect(),
            reads: BTreeMap::new(),
            written: BTreeMap::new(),
            memory: BTreeMap::new(),
            answers: Vec::new(),
            read_errors: 0,
        };
        Self {
            spec: spec.clone(),
            topology: topology.clone(),
            hosts_count: hosts,
            nodes: (0..topology.positions())
                .map(|node| Checked::new(engine(node), spec, node, hosts))
                .collect(),
            hosts: (0..hosts).map(host).collect(),
            due: BTreeMap::new(),
            log: Vec::new(),
            steps: 0,
            faults: 0,
        }
    }

    /// Runs until nothing is under way, or a violation, or `limit` cycles; whether all drained.
    pub fn run(&mut self, traffic: &Traffic, pace: Pace, limit: u64) -> bool {
        let mut out = Vec::new();
        let mut foreseen = Vec::new();
        let mut withheld: Vec<Vec<(u64, Input)>> = vec![Vec::new(); self.nodes.len()];
        let mut random = Random(!traffic.seed);
        for cycle in 0..limit {
            for node in 0..self.hosts.len() {
                self.host_acts(node, cycle, traffic);
            }
            let due = self.due.remove(&cycle).unwrap_or_default();
            for (number, &(node, input)) in due.iter().enumerate() {
                if pace != Pace::Ahead {
                    self.nodes[node].input(cycle, input);
                    continue;
                }
                let can_wait = matches!(input, Input::LinkCredit { .. });
                if can_wait && !self.nodes[node].awaits_link_credits() {
                    withheld[node].push((cycle, input));
                    continue;
                }
                let others = &due[number + 1..];
                if random.percent(80)
                    && let Some(outputs) =
                        self.transit(node, cycle, input, others, &mut withheld[node])
                {
                    for (cycle, output) in outputs {
                        self.log.push((cycle, node, output));
                        self.deliver(node, cycle, output, traffic);
                    }
                    continue;
                }
                self.nodes[node].input(cycle, input);
            }
            let mut idle = self.due.is_empty() && cycle >= traffic.cycles;
            for (node, withheld) in withheld.iter_mut().enumerate() {
                if pace != Pace::Every
                    && self.nodes[node]
                        .next_cycle()
                        .is_none_or(|next| next > cycle)
                {
                    continue;
                }
                self.steps += 1;
                self.hand_over(node, cycle, withheld);
                self.nodes[node].step(cycle, &mut out);
                for output in out.drain(..) {
                    idle = false;
                    self.log.push((cycle, node, output));
                    self.deliver(node, cycle, output, traffic);
                }
                if pace == Pace::Ahead && random.percent(60) {
                    self.nodes[node].foresee(&mut foreseen);
                }
                for (cycle, output) in foreseen.drain(..) {
                    idle = false;
                    self.log.push((cycle, node, output));
                    self.deliver(node, cycle, output, traffic);
                }
            }
            idle &= self.hosts.iter().all(|host| host.answers.is_empty());
            idle &= self.nodes.iter().all(|node| node.next_cycle().is_none());
            if idle {
                for (node, credits) in withheld.into_iter().enumerate() {
                    credits
                        .into_iter()
                        .for_each(|(at, credit)| self.nodes[node].input(at, credit));
                }
                return true;
            }
            if self.nodes.iter().any(|node| node.violation().is_some()) {
                return false;
            }
        }
        false
    }

    /// Gives an engine the credits that were withheld.
    fn hand_over(&mut self, node: usize, cycle: u64, withheld: &mut Vec<(u64, Input)>) {
        for (at, credit) in withheld.drain(..) {
            let taken = match credit {
                Input::LinkCredit { port, channel } if at < cycle => {
                    self.nodes[node].late_credit(port, channel)
                }
                _ => false,
            };
            if !taken {
                self.nodes[node].input(at, credit);
            }
        }
    }

    /// Lets the packet of a link that is `input` pass at once, if it is the last at this edge and
    /// the engine takes it so; what then comes out, and when.
    fn transit(
        &mut self,
        node: usize,
        cycle: u64,
        input: Input,
        others: &[(usize, Input)],
        withheld: &mut Vec<(u64, Input)>,
    ) -> Option<[(u64, Output); 2]> {
        let Input::Link {
            port,
            channel,
            packet,
        } = input
        else {
            return None;
        };
        let of_link =
            |&(to, input): &(usize, Input)| to == node && matches!(input, Input::Link { .. });
        if others.iter().any(of_link) {
            return None;
        }
        self.hand_over(node, cycle, withheld);
        let transit = self.nodes[node].transit(cycle, port, channel, &packet)?;
        let credit = Output::LinkCredit { port, channel };
        let leaves = Output::Link {
            port: transit.port,
            channel: transit.channel,
            packet,
        };
        Some([(transit.freed, credit), (transit.delivered, leaves)])
    }

    /// The first violation that any engine's checker found, in the end.
    pub fn finish(&self) -> Result<(), Violation> {
        self.nodes.iter().try_for_each(Checked::finish)
    }

    /// Every read answered and every write arrived, by the hosts' own account.
    pub fn assert_complete(&self) {
        for (node, host) in self.hosts.iter().enumerate() {
            assert!(
                host.reads.is_empty(),
                "node {node} waits for {:?}",
                host.reads
            );
            for (&target, &number) in &host.written {
                assert_eq!(
                    self.hosts[target as usize].memory.get(&(node as u64)),
                    Some(&number),
                    "{node} to {target}"
                );
            }
        }
        assert_eq!(
            self.faults,
            self.hosts.iter().map(|host| host.read_errors).sum::<u64>()
        );
    }

    fn host_acts(&mut self, node: usize, cycle: u64, traffic: &Traffic) {
        let (hosts, base, bytes) = (
            u64::from(self.hosts_count),
            self.spec.node.global_base,
            self.spec.node.shared_bytes,
        );
        let host = &mut self.hosts[node];
        let mut inputs = Vec::new();
        if let Some(index) = host.answers.iter().position(|answer| answer.0 <= cycle)
            && host.credits[2] > 0
        {
            host.credits[2] -= 1;
            inputs.push(Input::Host(host.answers.remove(index).1));
        }
        if cycle < traffic.cycles && host.random.percent(traffic.load) {
            let fault = host.random.percent(traffic.faults);
            let hot = host.random.percent(traffic.hot);
            let target = if hot { 0 } else { host.random.below(hosts) };
            let read = host.random.percent(traffic.reads);
            let address = match fault {
                true if host.random.percent(50) => base - 8,
                true => base + hosts * bytes,
                false => base + target * bytes + node as u64 * 8,
            };
            let trace = host.random.below(1 << 32) as u32;
            let target = target as u32;
            if read && host.credits[1] > 0 && !host.free_tags.is_empty() {
                host.credits[1] -= 1;
                let tag = host
                    .free_tags
                    .remove(host.random.below(host.free_tags.len() as u64) as usize);
                let before = host.written.get(&target).copied().unwrap_or(0);
                // As a machine's fills read, or a core past its caches.
                let extra_words = match (self.spec.uncached.load_bytes / 8 - 1) as u8 {
                    0 => 0,
                    most => most * u8::from(host.random.percent(50)),
                };
                (host.reads).insert(tag, (extra_words, (!fault).then_some((target, before))));
                self.faults += u64::from(fault);
                inputs.push(Input::Host(HtPacket::Read {
                    extra_words,
                    address,
                    enables: 0xff,
                    tag,
                    trace,
                }));
            } else if !read && host.credits[0] > 0 {
                host.credits[0] -= 1;
                let data = if fault {
                    0
                } else {
                    let number = host.written.entry(target).or_default();
                    *number += 1;
                    *number
                };
                let coherent = host.random.percent(50);
                inputs.push(Input::Host(HtPacket::Write {
                    address,
                    data,
                    enables: 0xff,
                    coherent,
                    trace,
                }));
            }
        }
        self.due
            .entry(cycle)
            .or_default()
            .extend(inputs.into_iter().map(|input| (node, input)));
    }

    fn deliver(&mut self, node: usize, cycle: u64, output: Output, traffic: &Traffic) {
        let (there, at, input) = match output {
            Output::Link {
                port,
                channel,
                packet,
            } => {
                let (there, port) = self
                    .topology
                    .neighbour(node as u32, port)
                    .expect("a link leads somewhere");
                (
                    there as usize,
                    cycle + traffic.delay,
                    Input::Link {
                        port,
                        channel,
                        packet,
                    },
                )
            }
            Output::LinkCredit { port, channel } => {
                let (there, port) = self
                    .topology
                    .neighbour(node as u32, port)
                    .expect("a link leads somewhere");
                (
                    there as usize,
                    cycle + traffic.delay,
                    Input::LinkCredit { port, channel },
                )
            }
            Output::HostCredit(channel) => {
                self.hosts[node].credits[channel as usize] += 1;
                return;
            }
            Output::Host(packet) => {
                let host = &mut self.hosts[node];
                let delay = 1 + host.random.below(traffic.sluggish);
                host.takes(packet, cycle + delay, self.spec.node.private_bytes);
                (node, cycle + delay, Input::HostCredit(packet.channel()))
            }
        };
        self.due.entry(at).or_default().push((there, input));
    }
}

impl Host {
    fn takes(&mut self, packet: HtPacket, answer_at: u64, private_bytes: u64) {
        match packet {
            HtPacket::Write { address, data, .. } => {
                let last = self
                    .memory
                    .entry((address - private_bytes) / 8)
                    .or_default();
                assert_eq!(
                    data,
                    *last + 1,
                    "a write was lost, came twice or overtook another"
                );
                *last = data;
            }
            HtPacket::Read {
                address,
                extra_words,
                tag,
                ..
            } => {
                let data = self
                    .memory
                    .get(&((address - private_bytes) / 8))
                    .copied()
                    .unwrap_or(0);
                let answer = HtPacket::Response {
                    extra_words,
                    data,
                    single: false,
                    tag,
                    error: false,
                    trace: 0,
                };
                self.answers.push((answer_at, answer));
            }
            HtPacket::Response {
                data,
                extra_words,
                tag,
                error,
                ..
            } => {
                let (asked, read) = self.reads.remove(&tag).expect("a response answers a read");
                assert_eq!(extra_words, asked, "as many words as were asked for");
                self.free_tags.push(tag);
                match read {
                    Some((target, before)) => {
                        let written = self.written.get(&target).copied().unwrap_or(0);
                        assert!(
                            !error && (before..=written).contains(&data),
                            "read {data}, wrote {before}..={written}"
                        );
                    }
                    None => {
                        assert!(error, "nothing is there");
                        self.read_errors += 1;
                    }
                }
            }
        }
    }
}
