//! `--timeline`: the trace is read back, and says what other outputs of the same run say.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use prost::Message;
use sme::report::timeline::{Kind, Trace, TrackEvent};

use crate::command::{sme_in, text};

/// A stretch of a thread's time, in picoseconds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Stretch {
    thread: String,
    name: String,
    begin: u64,
    end: u64,
    depth: usize,
}

/// From thread and time to thread and time, with the names of both ends.
type Arrow = ((String, u64, String), (String, u64, String));

/// A trace, read with nothing but the knowledge of its format.
#[derive(Debug, Default)]
struct Seen {
    stretches: Vec<Stretch>,
    arrows: Vec<Arrow>,
}

fn at(event: &TrackEvent) -> u64 {
    // Calls have further figures.
    let [exact, ..] = &event.debug_annotations[..] else {
        panic!("{event:?}");
    };
    assert_eq!(exact.name.as_deref(), Some("at_ps"));
    exact.uint_value.unwrap()
}

impl Seen {
    fn read(file: &Path) -> Self {
        let trace = Trace::decode(fs::read(file).unwrap().as_slice()).unwrap();
        let mut processes: BTreeMap<u64, String> = BTreeMap::new();
        let mut threads: BTreeMap<u64, String> = BTreeMap::new();
        let mut open: BTreeMap<u64, Vec<Stretch>> = BTreeMap::new();
        let mut begun: BTreeMap<u64, (String, u64, String)> = BTreeMap::new();
        let (mut seen, mut last) = (Self::default(), 0);
        let mut tids = BTreeSet::new();
        for packet in trace.packet {
            assert_eq!(packet.trusted_packet_sequence_id, Some(1));
            if let Some(track) = packet.track_descriptor {
                let uuid = track.uuid.unwrap();
                if let Some(process) = track.process {
                    processes.insert(uuid, process.process_name.unwrap());
                } else {
                    let thread = track.thread.unwrap();
                    assert!(tids.insert(thread.tid));
                    let process = &processes[&track.parent_uuid.unwrap()];
                    threads.insert(uuid, format!("{process} {}", thread.thread_name.unwrap()));
                }
                continue;
            }
            let event = packet.track_event.unwrap();
            let (track, at) = (event.track_uuid.unwrap(), at(&event));
            assert_eq!(packet.timestamp, Some(at / 1000));
            assert!(at >= last, "in the order of time");
            last = at;
            let thread = threads[&track].clone();
            let open = open.entry(track).or_default();
            match event.r#type() {
                Kind::SliceBegin => open.push(Stretch {
                    thread,
                    name: event.name.unwrap(),
                    begin: at,
                    end: 0,
                    depth: open.len(),
                }),
                Kind::SliceEnd => {
                    let stretch = open.pop().expect("what ends has begun");
                    seen.stretches.push(Stretch { end: at, ..stretch });
                }
                Kind::Instant => {
                    let name = event.name.unwrap();
                    for flow in event.flow_ids {
                        assert!(
                            begun
                                .insert(flow, (thread.clone(), at, name.clone()))
                                .is_none()
                        );
                    }
                    for flow in event.terminating_flow_ids {
                        let from = begun.remove(&flow).expect("an arrow begins before it ends");
                        seen.arrows.push((from, (thread.clone(), at, name.clone())));
                    }
                }
                Kind::Unspecified => panic!("{event:?}"),
            }
        }
        assert!(open.values().all(Vec::is_empty) && begun.is_empty());
        seen
    }
}

/// Picoseconds of nanoseconds with three decimals.
fn ps(ns: &str) -> u64 {
    ns.replace('.', "").parse().unwrap()
}

fn succeeds(directory: &Path, arguments: &str) -> String {
    let output = sme_in(directory, arguments);
    assert_eq!(text(&output.stderr), "", "{arguments}");
    assert_eq!(output.status.code(), Some(0), "{arguments}");
    text(&output.stdout).to_owned()
}

/// On each machine the barriers are those of `--per-thread`, waits lie within them, and each arrow
/// leads forwards in time, from the thread that sets a flag to one that sees the same flag.
#[test]
fn a_barriers_trace_says_what_its_rows_say() {
    for machine in ["sme-prototype", "ideal"] {
        let directory = tempfile::tempdir().unwrap();
        let flags = "--nodes 4 --cores 2 --episodes 3 --no-host";
        let plain = succeeds(
            directory.path(),
            &format!("barrier --machine {machine} {flags}"),
        );
        let watched = succeeds(
            directory.path(),
            &format!("barrier --machine {machine} {flags} --timeline t.pftrace --per-thread t.csv"),
        );
        assert_eq!(plain, watched, "{machine}: watching changes nothing");
        let seen = Seen::read(&directory.path().join("t.pftrace"));
        let rows = fs::read_to_string(directory.path().join("t.csv")).unwrap();
        let expected: BTreeSet<_> = rows
            .lines()
            .skip(1)
            .map(|row| {
                let cells: Vec<&str> = row.split(',').collect();
                let [episode, node, core, arrive, leave] = cells[..] else {
                    panic!("{row}");
                };
                let number: u32 = episode.parse().unwrap();
                let thread = format!("node {node} thread {core}");
                (thread, number + 1, ps(arrive), ps(leave))
            })
            .collect();
        let spans = seen.stretches.iter().filter(|stretch| stretch.depth == 0);
        let spans: BTreeSet<_> = spans
            .map(|span| {
                let number = span.name.rsplit(' ').next().unwrap().parse().unwrap();
                (span.thread.clone(), number, span.begin, span.end)
            })
            .filter(|(_, number, ..)| *number > 0u32)
            .collect();
        assert_eq!(spans, expected, "{machine}");
        let waits = seen.stretches.iter().filter(|stretch| stretch.depth == 1);
        assert!(waits.clone().count() >= 8 * 4, "{machine}");
        assert!(waits.clone().all(|wait| wait.name.starts_with("waits for")));
        assert!(
            seen.arrows.len() >= 4 * 7,
            "{machine}: all but the first are told something"
        );
        for ((from, set, what), (to, seen, of)) in &seen.arrows {
            assert!(from != to && set <= seen, "{machine}: {what} {of}");
            assert_eq!(what.strip_prefix("sets "), of.strip_prefix("sees "));
        }
    }
}

/// The threads of whose arrival each thread of an episode knows when it leaves, by these `arrows`.
fn known<'a>(
    episode: &'a BTreeMap<String, (u64, u64)>,
    arrows: &[&Arrow],
) -> BTreeMap<&'a String, BTreeSet<&'a String>> {
    let mut knows: BTreeMap<_, BTreeSet<_>> = episode
        .keys()
        .map(|thread| (thread, BTreeSet::from([thread])))
        .collect();
    let begin = episode.values().map(|times| times.0).min().unwrap();
    let mut ends: Vec<_> = (0..)
        .zip(arrows)
        .flat_map(|(number, ((_, set, _), (_, seen, _)))| {
            [(*set, false, number), (*seen, true, number)]
        })
        .collect();
    ends.sort_unstable();
    let mut told: BTreeMap<usize, BTreeSet<&String>> = BTreeMap::new();
    for (at, is_seen, number) in ends {
        let ((from, set, _), (to, ..)) = arrows[number];
        if is_seen && at <= episode[to].1 {
            let news = told.remove(&number).unwrap_or_default();
            knows.get_mut(to).unwrap().extend(news);
        } else if !is_seen && *set >= begin {
            told.insert(number, knows[from].clone());
        }
    }
    knows
}

/// And without any one thread's arrows, some thread does not.
#[test]
fn every_thread_hears_of_every_other_before_it_leaves() {
    let directory = tempfile::tempdir().unwrap();
    succeeds(
        directory.path(),
        "barrier --nodes 4 --cores 2 --episodes 1 --skew 40us --no-host --timeline t.pftrace",
    );
    let seen = Seen::read(&directory.path().join("t.pftrace"));
    let spans = |number: &str| -> BTreeMap<String, (u64, u64)> {
        let name = format!(" {number}");
        let spans = seen
            .stretches
            .iter()
            .filter(|s| s.depth == 0 && s.name.ends_with(&name));
        spans
            .map(|s| (s.thread.clone(), (s.begin, s.end)))
            .collect()
    };
    let episode = spans("1");
    assert_eq!(episode.len(), 8);
    let all: Vec<_> = seen.arrows.iter().collect();
    for (thread, knows) in known(&episode, &all) {
        assert_eq!(knows.len(), 8, "{thread} knows of {knows:?}");
    }
    for silent in episode.keys() {
        let others: Vec<_> = all
            .iter()
            .copied()
            .filter(|((from, ..), _)| from != silent)
            .collect();
        let knows = known(&episode, &others);
        assert!(knows.values().any(|knows| !knows.contains(silent)));
    }
}

#[test]
fn a_programs_trace_has_its_phases() {
    let directory = tempfile::tempdir().unwrap();
    let flags = "fft --log2n 8 --nodes 2 --cores 2 --no-host";
    let plain = succeeds(directory.path(), flags);
    let watched = succeeds(directory.path(), &format!("{flags} --timeline t.pftrace"));
    assert_eq!(plain, watched);
    let seen = Seen::read(&directory.path().join("t.pftrace"));
    for phase in ["columns", "rows", "result"] {
        let of_phase = seen.stretches.iter().filter(|s| s.name.starts_with(phase));
        assert_eq!(of_phase.count(), 4, "{phase}: one of each thread");
    }
}

#[test]
fn what_cannot_be_recorded_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    for (arguments, says) in [
        (
            "barrier --form compact --timeline t.pftrace",
            "--form compact: --per-thread, --explain, --explain-to, --timeline and --waves need --form readable",
        ),
        (
            "fft --nodes 1,2 --timeline t.pftrace",
            "--timeline: of one run; --nodes and --cores are 2",
        ),
        ("barrier --timeline x/t.pftrace", "x/t.pftrace"),
        ("barrier --timeline t --per-thread t", "--timeline"),
    ] {
        let output = sme_in(directory.path(), arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments}");
        let said = text(&output.stderr);
        assert!(said.contains(says) && said.lines().count() == 1, "{said}");
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

/// The trace of a program under a manager has processes, daemons, modules and the manager, and the
/// ways of commands from one to the other; it changes nothing of the rows.
#[test]
fn a_managed_programs_trace_has_its_processes_and_signals() {
    let directory = tempfile::tempdir().unwrap();
    let line = "mpi spawn --processes 2 --no-host";
    let rows = succeeds(directory.path(), line);
    let traced = succeeds(directory.path(), &format!("{line} --timeline t.pftrace"));
    assert_eq!(rows, traced);
    let Seen { stretches, arrows } = Seen::read(&directory.path().join("t.pftrace"));
    let of = |thread: &str, name: &str| -> Vec<&Stretch> {
        let fits = |one: &&Stretch| one.thread.starts_with(thread) && one.name == name;
        stretches.iter().filter(fits).collect()
    };
    // The parent on core 0, and a process on each of the next cores: their lives have MPI calls.
    for (core, thread, calls) in [
        (0, 3, "MPI_Comm_spawn"),
        (1, 2, "MPI_Comm_disconnect"),
        (2, 2, "MPI_Comm_disconnect"),
    ] {
        let thread = format!("node {core} thread {thread}: process");
        let [life] = of(&thread, "process")[..] else {
            panic!("{thread} lives once");
        };
        let [call] = of(&thread, calls)[..] else {
            panic!("{thread} calls {calls} once");
        };
        assert!(life.begin < call.begin && call.end < life.end && call.depth > life.depth);
    }
    // Each is started by its daemon, asks six times and to meet the others, and ends.
    for core in [1, 2] {
        let daemon = format!("node {core} thread 0: daemon");
        for (name, count) in [
            ("daemon: Reserve", 1),
            ("daemon: Start", 1),
            ("daemon: request", 7),
            ("daemon: SIGCHLD", 1),
        ] {
            assert_eq!(of(&daemon, name).len(), count, "{daemon}: {name}");
        }
    }
    let manager = "node 0 thread 2: manager";
    for (name, count) in [
        ("mpiexec: Ask", 18),
        ("mpiexec: Meet", 3),
        ("mpiexec: StartAll", 1),
        ("mpiexec: Ended", 3),
    ] {
        assert_eq!(of(manager, name).len(), count, "{name}");
    }
    // The way of a command: a flag and an interrupt to the module, a signal from there.
    let has = |from: &str, to: &str, name: &str| {
        let mut arrows = arrows.iter();
        arrows.any(|((sender, ..), (taker, _, what))| {
            sender == from && taker == to && what.contains(name)
        })
    };
    let (parent, module) = ("node 0 thread 3: process", "node 1 thread 1: module");
    assert!(has(parent, module, "the interrupt of node 1"));
    assert!(has(parent, module, "core 0's command to core 1"));
    let daemon = "node 1 thread 0: daemon";
    assert!(has(module, daemon, "a signal to thread 0"));
    assert!(has(daemon, parent, "core 1's result for core 0"));
    assert!(!of(module, "waits for an interrupt").is_empty());
}
