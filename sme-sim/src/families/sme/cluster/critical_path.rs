//! The critical path of a span or a call ([`crate::observe::path`]) over the nodes'
//! [`trace`](super::trace)s, and what each of its steps is called. Called for `--explain` of
//! `sme barrier` and of the commands of `sme mpi`.

use sme_memory::Place;

use super::core::{Request, Wants};
use super::mark::{Access, Carries, Cause, Key, Mark, MissStage, Stage, What};
use super::node::Node;
use super::trace::Trace;
use super::transaction::Kind;
use crate::families::sme::address::Target;
use crate::observe::path::{self, End, Part, PathStep, Position, Role};
use crate::observe::words;
use crate::time::Time;

/// The critical path that ends where the last thread reaches `end` and begins at `start`;
/// empty where nothing was traced. `name` names the variable at a place.
pub(super) fn critical_path(
    nodes: &[Node],
    end: End,
    start: Time,
    name: &dyn Fn(Place) -> String,
) -> Vec<PathStep> {
    let traces: Vec<&Trace> = nodes.iter().filter_map(|n| n.here.agenda.trace()).collect();
    if traces.len() != nodes.len() {
        return Vec::new();
    }
    let mut last: Option<(Time, Position)> = None;
    for (node, trace) in traces.iter().enumerate() {
        if let Some(&(at, mark)) = trace.ends.get(&end)
            && last.is_none_or(|(latest, _)| at > latest)
        {
            last = Some((at, (node, mark)));
        }
    }
    match last {
        Some(end) => path::critical_path(&Traced { nodes, traces }, end, start, name),
        None => Vec::new(),
    }
}

/// Nodes and their traces.
struct Traced<'a> {
    nodes: &'a [Node],
    traces: Vec<&'a Trace>,
}

impl Traced<'_> {
    fn mark(&self, (node, mark): Position) -> &Mark {
        &self.traces[node].marks[mark]
    }
}

impl path::Traces for Traced<'_> {
    fn stage(&self, position: Position) -> path::Stage {
        let mark = self.mark(position);
        path::Stage {
            at: mark.at,
            part: mark.part,
            role: match mark.what {
                What::Operation(..) if mark.part == Part::Core => Role::OwnEnd,
                What::Takes => Role::Takes,
                _ => Role::Other,
            },
            value: mark.value,
        }
    }

    fn cause(&self, position: Position) -> Option<Position> {
        let (node, _) = position;
        match self.mark(position).cause {
            Cause::Here(cause) => Some((node, cause)),
            Cause::Sent { from, key, cycle } => {
                let sent = &self.traces.get(from as usize)?.sent;
                Some((from as usize, *sent.get(&(key, node as u32, cycle))?))
            }
        }
    }

    fn node(&self, place: usize) -> u32 {
        self.nodes[place].here.me
    }

    fn queued_for(&self, position: Position) -> Option<&'static str> {
        let mark = self.mark(position);
        let busy = mark.what.queued_for();
        busy.filter(|_| mark.part == Part::Queueing)
    }

    fn words(&self, position: Position, name: &dyn Fn(Place) -> String) -> String {
        words(&self.nodes[position.0], &self.mark(position).what, name)
    }
}

/// `what` happened at `node`, for people.
fn words(node: &Node, what: &What, name: &dyn Fn(Place) -> String) -> String {
    let at_address = |address: u64| match node.here.constants.map.target(address) {
        Ok(Target::Global(place) | Target::Cached(place)) => name(place),
        _ => name(Place {
            node: node.here.me,
            offset: address.saturating_sub(node.here.constants.map.private_bytes),
        }),
    };
    let variable =
        |access: &Access| at_address(node.domain.address_of(access.line) + u64::from(access.byte));
    match what {
        What::Unknown => "before the trace".to_owned(),
        What::Takes => "sees the value".to_owned(),
        What::Operation(core, operation) => words::done(*core, operation, &at_address),
        What::Buffered(core) => format!("core {core}'s store waits in its store buffer"),
        What::Slot(core) => format!("core {core} waits for its socket's slot for uncached loads"),
        What::Asks(access) => match access.kind {
            Kind::Read => format!("core {} asks for {}", access.agent, variable(access)),
            Kind::Own | Kind::Update(_) => {
                format!("core {} asks to own {}", access.agent, variable(access))
            }
            _ => format!("{} goes to memory", doing(access, &variable(access))),
        },
        What::RunsAhead(core) => format!("core {core} computes and hits its caches"),
        What::Misses(miss, stage) => missed(miss, stage, &at_address(miss.address)),
        What::LosesCopy(core) => format!("core {core} loses the copy on which it spins"),
        What::PostedLeave(core) => format!("write-backs for core {core} leave the node"),
        What::Probed(access) => {
            let variable = variable(access);
            format!(
                "core {} loses its copy of {variable} to the write",
                access.agent
            )
        }
        What::Waits(access) => format!("{} waits for the line", doing(access, &variable(access))),
        What::Served(access) => format!("{} is served", doing(access, &variable(access))),
        What::Packet(key, stage) => {
            let place = name(key.place);
            let me = node.here.me;
            let is_switch = node.here.constants.topology.is_switch(me);
            let packet = packet(key, &place);
            match stage {
                Stage::ToHostLink => format!("{packet} goes to the host link"),
                Stage::HostLinkBusy => format!("{packet} waits for the host link or a credit"),
                Stage::HostLink => format!("{packet} crosses the host link"),
                Stage::IntoEngine => format!("{packet} enters the engine"),
                Stage::Blocks if is_switch => format!("{packet} passes the switch"),
                Stage::BlocksBusy if is_switch => format!("{packet} waits inside the switch"),
                Stage::Blocks => format!("{packet} passes the engine's blocks"),
                Stage::BlocksBusy => format!("{packet} waits inside the engine"),
                Stage::LinkBusy(to) => format!("{packet} waits for link {me} -> {to} or a credit"),
                Stage::Serializes(to) => format!("{packet} leaves over link {me} -> {to}"),
                Stage::Crosses => format!("{packet} crosses between the engine's clocks"),
                Stage::Link(to) => format!("{packet} crosses link {me} -> {to}"),
                Stage::OutOfEngine => format!("{packet} leaves the engine"),
                Stage::FromHostLinkBusy => format!("{packet} waits for the host link"),
                Stage::FromHostLink => format!("{packet} comes over the host link"),
                Stage::BridgeBusy => format!("{packet} waits for the bridge"),
                Stage::Bridge => format!("{packet} crosses the bridge"),
            }
        }
        What::Calls(core) => format!("core {core} calls the system"),
        What::Sleeps(core) => format!("core {core}'s thread goes to sleep"),
        What::Wakes(waker, core) => {
            format!("core {waker} wakes sleepers until it is core {core}'s turn")
        }
        What::Resumes(core) => format!("core {core}'s thread is scheduled"),
    }
}

fn missed(miss: &Request, stage: &MissStage, variable: &str) -> String {
    let core = miss.core;
    let wants = match miss.wants {
        Wants::Load => "load",
        Wants::Store => "store",
        Wants::Flush => "flush",
    };
    let of = format!("{wants} of {variable} by core {core}");
    match stage {
        MissStage::LooksUp => format!("{of} misses all its caches"),
        MissStage::Asks => format!("{of} asks at the first socket"),
        MissStage::Waits => format!("{of} waits for the line"),
        MissStage::Slot => format!("{of} waits for its socket's slot"),
        MissStage::Comes => format!("the line comes to core {core} for its {wants} of {variable}"),
        MissStage::Settles => format!("{of} takes the line for itself"),
    }
}

fn doing(access: &Access, variable: &str) -> String {
    let (node, core) = access.origin;
    match access.kind {
        Kind::Read => format!("read of {variable} by core {core}"),
        Kind::Own => format!("store of {variable} by core {core}"),
        Kind::Update(_) => format!("update of {variable} by core {core}"),
        Kind::Write { .. } => format!("{variable} written by node {node} core {core}"),
        Kind::Fetch { .. } => format!("load of {variable} by node {node} core {core}"),
    }
}

fn packet(key: &Key, variable: &str) -> String {
    let (node, core) = key.thread;
    match key.carries {
        Carries::Read => format!("load of {variable} by node {node} core {core}"),
        Carries::Write => format!("{variable} written by node {node} core {core}"),
        Carries::Response => format!("answer to node {node} core {core}"),
    }
}
