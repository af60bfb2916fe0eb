//! Jobs shared by threads of this process: the same files as from one.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};

use sme_sim::kernel::peers::{Connected, connected};
use sme_sim::time::Time;

use super::*;
use crate::cli::Job;

/// A process that is a thread.
struct Thread {
    peers: Connected,
    to: Vec<Sender<(usize, Vec<u8>)>>,
    from: Receiver<(usize, Vec<u8>)>,
}

fn crew(count: usize) -> Vec<Thread> {
    let (to, from): (Vec<_>, Vec<_>) = (0..count).map(|_| channel()).unzip();
    let peers = connected(count).into_iter().zip(from);
    let thread = |(peers, from)| Thread {
        peers,
        to: to.clone(),
        from,
    };
    peers.map(thread).collect()
}

impl Peers for Thread {
    fn count(&self) -> usize {
        self.peers.count()
    }

    fn me(&self) -> usize {
        self.peers.me()
    }

    fn exchange(&mut self, letters: &mut [Vec<u8>], earliest: Time) -> Result<Time, PeerError> {
        self.peers.exchange(letters, earliest)
    }

    fn all_gather(&mut self, mine: Vec<u8>) -> Result<Vec<Vec<u8>>, PeerError> {
        self.peers.all_gather(mine)
    }
}

impl Crew for Thread {
    fn send(&mut self, to: usize, message: Vec<u8>) -> Result<(), PeerError> {
        let sent = self.to[to].send((self.me(), message));
        sent.map_err(|_| PeerError::Gone { process: to })
    }

    fn receive(&mut self) -> Result<Option<(usize, Vec<u8>)>, PeerError> {
        Ok(self.from.try_recv().ok())
    }

    fn abandon(&mut self, _reason: &str) {}

    fn peers(&mut self) -> &mut dyn Peers {
        self
    }
}

fn words(line: &str) -> Vec<OsString> {
    line.split_whitespace().map(OsString::from).collect()
}

/// Returns the result of each of `count` processes for `line`.
fn among(count: usize, line: &str) -> Vec<Result<(), Stop>> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = crew(count)
            .into_iter()
            .map(|mut one| scope.spawn(move || run(words(line), &mut one, Job::run_shared)))
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    })
}

/// The files under `directory` by name, with their content.
fn files(directory: &Path) -> Vec<(OsString, String)> {
    let mut files: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            let text = fs::read_to_string(&path).unwrap();
            (path.file_name().unwrap().to_owned(), text)
        })
        .collect();
    files.sort();
    files
}

/// Runs `line`, in which `DIR` is a directory for the files, in one process and in several.
fn same(line: &str) {
    let written = |count| {
        let directory = tempfile::tempdir().unwrap();
        let line = line.replace("DIR", directory.path().to_str().unwrap());
        let ended = match count {
            1 => vec![Job::read(words(&line)).and_then(Job::run)],
            _ => among(count, &line),
        };
        let place = directory.path().to_str().unwrap();
        let ended: Vec<_> = ended
            .into_iter()
            .map(|end| end.map_err(|stop| format!("{stop:?}").replace(place, "DIR")))
            .collect();
        (files(directory.path()), ended)
    };
    let (alone, ended) = written(1);
    for count in 2..5 {
        let (files, all_ended) = written(count);
        assert_eq!(files, alone, "{line}, {count} processes");
        for end in all_ended {
            assert_eq!(end, ended[0], "{line}, {count} processes");
        }
    }
}

#[test]
fn a_barrier_writes_the_same_files() {
    let files = "--no-host --format json -o DIR/row.json --per-thread DIR/threads.csv \
                 --link-load DIR/links.csv";
    for flags in [
        "--nodes 9 --cores 4 --episodes 2",
        "--nodes 12 --cores 2 --algorithm dissemination --skew 300ns --workers 2",
        "--nodes 6 --cores 2 --topology torus:2x2x2 --algorithm flat",
        "--nodes 2 --cores 16 --algorithm flag-phase --placement remote",
    ] {
        same(&format!("sme barrier {flags} {files}"));
    }
}

#[test]
fn the_compact_form_too() {
    let files = "--no-host --format csv -o DIR/row.csv --link-load DIR/links.csv --form compact";
    for flags in [
        "--nodes 9 --cores 4 --episodes 2",
        "--nodes 30 --cores 5 --algorithm dissemination --skew 300ns --workers 2",
    ] {
        same(&format!("sme barrier {flags} {files}"));
    }
}

#[test]
fn a_sweep_writes_the_same_rows_in_the_same_order() {
    let points = "--nodes 1,4,9 --cores 1..3 --no-host --episodes 1";
    same(&format!(
        "sme sweep {points} --format csv -o DIR/rows.csv --jobs 2"
    ));
    same(&format!(
        "sme sweep {points} --format table -o DIR/rows.txt --jobs 1"
    ));
    // More processes than points.
    same("sme sweep --nodes 4 --cores 1,2 --no-host --format json -o DIR/rows.json --resume");
}

#[test]
fn what_cannot_be_done_is_said_alike() {
    same("sme barrier --nodes 0");
    same("sme barrier --nodes 4 -o DIR/none/row.csv");
    same("sme sweep --nodes 4 --no-host --format csv -o DIR/none/rows.csv");
    for (line, reason) in [
        ("sme fft", "only sme barrier and sme sweep can be shared"),
        (
            "sme barrier --nodes 4 --explain",
            "--explain: not with several processes",
        ),
    ] {
        for end in among(2, line) {
            assert!(end.unwrap_err().to_string().starts_with(reason), "{line}");
        }
    }
}

#[test]
fn processes_that_are_not_alike_do_not_begin() {
    let lines = [
        "sme barrier --nodes 4",
        "sme barrier --nodes 4",
        "sme barrier --nodes 5",
    ];
    let ends: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = crew(3)
            .into_iter()
            .zip(lines)
            .map(|(mut one, line)| scope.spawn(move || run(words(line), &mut one, Job::run_shared)))
            .collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    for end in ends {
        let reason = end.unwrap_err().to_string();
        assert_eq!(reason, "process 2 has other arguments than process 0");
    }
}
