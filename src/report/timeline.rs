//! `--timeline`: the spans, calls and waits of every thread, and an arrow from the write of a flag
//! to each thread that saw it, as a trace for the Perfetto UI (<https://ui.perfetto.dev>) in
//! protobuf: a `Trace` of `TrackEvent`s.
//!
//! Called by the commands; what is drawn is recorded by [`sme_sim::observe::timeline`]. Nodes are
//! the processes of the trace. Timestamps are nanoseconds, rounded down; the annotation `at_ps` of
//! each event is its time in picoseconds.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use prost::Message;
use sme_sim::observe::calls::ThreadCall;
use sme_sim::observe::spans::ThreadSpan;
use sme_sim::observe::timeline::{Arrow, Recorded, Thread, Wait};
use sme_sim::time::Time;

use super::output::Output;
use super::stop::Stop;

/// The flag.
pub const FLAG: &str = "--timeline";

/// Bytes that are written at once.
const AT_ONCE: usize = 1 << 16;

/// Writes `recorded` to `output`.
pub fn write(mut output: Output, recorded: &Recorded) -> Result<(), Stop> {
    let mut buffer = Vec::with_capacity(2 * AT_ONCE);
    for packet in packets(recorded) {
        // Encoded traces may be concatenated: their packets are then those of one trace.
        let piece = Trace {
            packet: vec![packet],
        };
        piece.encode_raw(&mut buffer);
        if buffer.len() >= AT_ONCE {
            output.push_all(&mut buffer.as_slice())?;
            buffer.clear();
        }
    }
    output.push_all(&mut buffer.as_slice())?;
    output.commit()
}

// ------------------------------------------------------------------------------- the format
// Numbers of fields and types are those of perfetto/protos/perfetto/trace/.

/// `Trace`
#[derive(Clone, PartialEq, Message)]
pub struct Trace {
    /// Tracks and events.
    #[prost(message, repeated, tag = "1")]
    pub packet: Vec<TracePacket>,
}

/// `TracePacket`
#[derive(Clone, PartialEq, Message)]
pub struct TracePacket {
    /// In nanoseconds.
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    /// The writer of this packet.
    #[prost(uint32, optional, tag = "10")]
    pub trusted_packet_sequence_id: Option<u32>,
    /// Something that happened on a track.
    #[prost(message, optional, tag = "11")]
    pub track_event: Option<TrackEvent>,
    /// A track.
    #[prost(message, optional, tag = "60")]
    pub track_descriptor: Option<TrackDescriptor>,
}

/// `TrackEvent`
#[derive(Clone, PartialEq, Message)]
pub struct TrackEvent {
    /// Further figures.
    #[prost(message, repeated, tag = "4")]
    pub debug_annotations: Vec<DebugAnnotation>,
    /// One of [`Kind`].
    #[prost(enumeration = "Kind", optional, tag = "9")]
    pub r#type: Option<i32>,
    /// Its track.
    #[prost(uint64, optional, tag = "11")]
    pub track_uuid: Option<u64>,
    /// `span`, `call`, `wait` or `flag`.
    #[prost(string, repeated, tag = "22")]
    pub categories: Vec<String>,
    /// Its name.
    #[prost(string, optional, tag = "23")]
    pub name: Option<String>,
    /// Arrows that begin here.
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    pub flow_ids: Vec<u64>,
    /// Arrows that end here.
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    pub terminating_flow_ids: Vec<u64>,
}

/// `TrackEvent.Type`
#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub enum Kind {
    /// None.
    Unspecified = 0,
    /// A stretch begins.
    SliceBegin = 1,
    /// The innermost stretch ends.
    SliceEnd = 2,
    /// A moment.
    Instant = 3,
}

/// `DebugAnnotation`
#[derive(Clone, PartialEq, Message)]
pub struct DebugAnnotation {
    /// Its value.
    #[prost(uint64, optional, tag = "3")]
    pub uint_value: Option<u64>,
    /// Its name.
    #[prost(string, optional, tag = "10")]
    pub name: Option<String>,
}

/// `TrackDescriptor`
#[derive(Clone, PartialEq, Message)]
pub struct TrackDescriptor {
    /// The track.
    #[prost(uint64, optional, tag = "1")]
    pub uuid: Option<u64>,
    /// Set for the track of a process.
    #[prost(message, optional, tag = "3")]
    pub process: Option<ProcessDescriptor>,
    /// Set for the track of a thread.
    #[prost(message, optional, tag = "4")]
    pub thread: Option<ThreadDescriptor>,
    /// The track of its process.
    #[prost(uint64, optional, tag = "5")]
    pub parent_uuid: Option<u64>,
}

/// `ProcessDescriptor`
#[derive(Clone, PartialEq, Message)]
pub struct ProcessDescriptor {
    /// The node's number plus 1: there is no process 0.
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    /// Its name.
    #[prost(string, optional, tag = "6")]
    pub process_name: Option<String>,
}

/// `ThreadDescriptor`
#[derive(Clone, PartialEq, Message)]
pub struct ThreadDescriptor {
    /// Its process.
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    /// A number that no other thread and no process has.
    #[prost(int32, optional, tag = "2")]
    pub tid: Option<i32>,
    /// Its name.
    #[prost(string, optional, tag = "5")]
    pub thread_name: Option<String>,
}

// ------------------------------------------------------------------------------- what is drawn

/// The number of the first thread: above those of all processes, which share a range with threads.
const FIRST_TID: i32 = 1 << 20;

/// A stretch of a thread's time.
#[derive(Clone, Copy)]
struct Stretch<'a> {
    begin: Time,
    end: Time,
    what: What<'a>,
}

/// The activity of a thread in a stretch.
#[derive(Clone, Copy)]
enum What<'a> {
    Span(&'a ThreadSpan),
    Call(&'a ThreadCall),
    Wait(&'a Wait),
}

/// Something to be drawn on the track of a thread.
#[derive(Clone, Copy)]
enum Mark<'a> {
    Begins(What<'a>),
    Ends,
    /// An arrow, and its number.
    Sets(&'a Arrow, u64),
    Sees(&'a Arrow, u64),
}

/// Marks on tracks, in the order of time.
type Marks<'a> = Vec<(Time, Thread, Mark<'a>)>;

/// The trace of `recorded`: its tracks, then its events, in the order of time.
fn packets(recorded: &Recorded) -> impl Iterator<Item = TracePacket> {
    let mut tracks = Vec::new();
    let mut marks = Marks::new();
    let mut of_node = None;
    for (tid, (thread, stretches)) in (FIRST_TID..).zip(stretches(recorded)) {
        if of_node != Some(thread.0) {
            of_node = Some(thread.0);
            tracks.push(node_track(thread.0));
        }
        tracks.push(thread_track(thread, tid, recorded.roles.get(&thread)));
        nest(thread, stretches, &mut marks);
    }
    for (number, arrow) in (1..).zip(&recorded.arrows) {
        let ((from, set), (to, seen)) = (arrow.from, arrow.to);
        marks.push((set, from, Mark::Sets(arrow, number)));
        marks.push((seen, to, Mark::Sees(arrow, number)));
    }
    marks.sort_by_key(|(at, ..)| *at);
    let descriptors = tracks.into_iter().map(|track| TracePacket {
        trusted_packet_sequence_id: Some(1),
        track_descriptor: Some(track),
        ..TracePacket::default()
    });
    let events = marks.into_iter().map(|(at, thread, mark)| TracePacket {
        timestamp: Some(at.as_ps() / 1000),
        trusted_packet_sequence_id: Some(1),
        track_event: Some(event((at, thread, mark), recorded)),
        ..TracePacket::default()
    });
    descriptors.chain(events)
}

/// The spans, calls and waits of each thread that has any, or is at an end of an arrow.
fn stretches(recorded: &Recorded) -> BTreeMap<Thread, Vec<Stretch<'_>>> {
    let mut all: BTreeMap<Thread, Vec<Stretch<'_>>> = BTreeMap::new();
    for (node, span) in &recorded.spans {
        all.entry((*node, span.thread)).or_default().push(Stretch {
            begin: span.begin,
            end: span.end,
            what: What::Span(span),
        });
    }
    for (node, call) in &recorded.calls {
        all.entry((*node, call.thread)).or_default().push(Stretch {
            begin: call.begin,
            end: call.end,
            what: What::Call(call),
        });
    }
    for wait in &recorded.waits {
        all.entry(wait.thread).or_default().push(Stretch {
            begin: wait.begin,
            end: wait.end,
            what: What::Wait(wait),
        });
    }
    for arrow in &recorded.arrows {
        for (thread, _) in [arrow.from, arrow.to] {
            all.entry(thread).or_default();
        }
    }
    all
}

/// Stretches nest: of those that begin together, the longest is the outermost.
fn nest<'a>(thread: Thread, mut stretches: Vec<Stretch<'a>>, marks: &mut Marks<'a>) {
    stretches.sort_by_key(|stretch| (stretch.begin, Reverse(stretch.end)));
    let mut open: Vec<Time> = Vec::new();
    for Stretch { begin, end, what } in stretches {
        while let Some(over) = open.pop_if(|over| *over <= begin) {
            marks.push((over, thread, Mark::Ends));
        }
        marks.push((begin, thread, Mark::Begins(what)));
        open.push(end);
    }
    while let Some(over) = open.pop() {
        marks.push((over, thread, Mark::Ends));
    }
}

fn event((at, thread, mark): (Time, Thread, Mark<'_>), recorded: &Recorded) -> TrackEvent {
    let event = |kind: Kind, category: &str, name: Option<String>| TrackEvent {
        r#type: Some(kind.into()),
        track_uuid: Some(track_of(thread)),
        categories: name.iter().map(|_| category.to_owned()).collect(),
        name,
        debug_annotations: vec![DebugAnnotation {
            name: Some("at_ps".to_owned()),
            uint_value: Some(at.as_ps()),
        }],
        ..TrackEvent::default()
    };
    let instant = |does: &str, Arrow { flag, value, .. }: &Arrow| {
        let name = format!("{does} {} = {value}", recorded.names[flag]);
        event(Kind::Instant, "flag", Some(name))
    };
    match mark {
        Mark::Begins(What::Span(ThreadSpan { span, .. })) => {
            let name = format!("{} {}", span.name, span.number);
            event(Kind::SliceBegin, "span", Some(name))
        }
        Mark::Begins(What::Call(ThreadCall { call, .. })) => {
            let mut begins = event(Kind::SliceBegin, "call", Some(call.name.to_owned()));
            let peer = call.peer().map(|peer| ("peer", u64::from(peer)));
            let bytes = Some(("bytes", call.bytes)).filter(|(_, bytes)| *bytes > 0);
            let figures = peer.into_iter().chain(bytes);
            let figures = figures.map(|(name, value)| DebugAnnotation {
                name: Some(name.to_owned()),
                uint_value: Some(value),
            });
            begins.debug_annotations.extend(figures);
            begins
        }
        Mark::Begins(What::Wait(wait)) => {
            let name = wait.on.name().to_owned();
            event(Kind::SliceBegin, "wait", Some(name))
        }
        Mark::Ends => event(Kind::SliceEnd, "", None),
        Mark::Sets(arrow, number) => TrackEvent {
            flow_ids: vec![number],
            ..instant("sets", arrow)
        },
        Mark::Sees(arrow, number) => TrackEvent {
            terminating_flow_ids: vec![number],
            ..instant("sees", arrow)
        },
    }
}

/// The number of a thread's track; 0 is no track, and a node's ends with zeros.
fn track_of((node, thread): Thread) -> u64 {
    track_of_node(node) + 1 + u64::from(thread)
}

fn track_of_node(node: u32) -> u64 {
    (u64::from(node) + 1) << 20
}

fn pid(node: u32) -> Option<i32> {
    i32::try_from(node).ok()?.checked_add(1)
}

fn node_track(node: u32) -> TrackDescriptor {
    TrackDescriptor {
        uuid: Some(track_of_node(node)),
        process: Some(ProcessDescriptor {
            pid: pid(node),
            process_name: Some(format!("node {node}")),
        }),
        ..TrackDescriptor::default()
    }
}

fn thread_track((node, thread): Thread, tid: i32, role: Option<&String>) -> TrackDescriptor {
    let name = match role {
        Some(role) => format!("thread {thread}: {role}"),
        None => format!("thread {thread}"),
    };
    TrackDescriptor {
        uuid: Some(track_of((node, thread))),
        parent_uuid: Some(track_of_node(node)),
        thread: Some(ThreadDescriptor {
            pid: pid(node),
            tid: Some(tid),
            thread_name: Some(name),
        }),
        ..TrackDescriptor::default()
    }
}
