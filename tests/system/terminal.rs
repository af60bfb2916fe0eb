//! What a person at a terminal sees: tables no wider than it, and a line of progress that fits,
//! moves and tells the time that is left.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::command::{stdout, text};

/// A pseudo terminal.
pub struct Terminal {
    ours: File,
    name: PathBuf,
}

impl Terminal {
    /// A terminal of so many columns, or one that does not tell.
    pub fn new(columns: Option<u16>) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        let ours = openpt(flags).unwrap();
        grantpt(&ours).unwrap();
        unlockpt(&ours).unwrap();
        if let Some(columns) = columns {
            let size = Winsize {
                ws_row: 50,
                ws_col: columns,
                ws_xpixel: 0,
                ws_ypixel: 0,
            };
            tcsetwinsize(&ours, size).unwrap();
        }
        let name = ptsname(&ours, Vec::new()).unwrap();
        Self {
            ours: File::from(ours),
            name: PathBuf::from(name.to_str().unwrap()),
        }
    }

    /// The end that a command writes to.
    fn end(&self) -> File {
        let mut options = OpenOptions::new();
        options.read(true).write(true).open(&self.name).unwrap()
    }

    /// All that `command` writes to stdout, on this terminal.
    pub fn stdout_of(self, mut command: Command) -> String {
        command.stdout(self.end());
        self.read(command)
    }

    /// The first lines of progress, at least `count`, that `command` draws on this terminal. The
    /// command is killed then.
    fn progress_of(mut self, mut command: Command, count: usize) -> Vec<String> {
        command.stdin(Stdio::null()).stderr(self.end());
        let mut child = command.spawn().unwrap();
        // The command itself keeps the other end open.
        drop(command);
        let mut said = Vec::new();
        let lines = loop {
            let mut part = [0; 4096];
            // An error when the last end of the other side is closed.
            let length = self.ours.read(&mut part).unwrap_or(0);
            said.extend_from_slice(&part[..length]);
            let text = String::from_utf8_lossy(&said);
            // Behind the last return the line may not be whole.
            let (whole, _) = text.rsplit_once('\r').unwrap_or_default();
            let lines = whole.split('\r').map(plain_line);
            let lines: Vec<String> = lines.filter(|line| !line.is_empty()).collect();
            if lines.len() >= count || length == 0 {
                break lines;
            }
        };
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(lines.len() >= count, "{lines:?}");
        lines
    }

    fn read(mut self, mut command: Command) -> String {
        let mut child = command.stdin(Stdio::null()).spawn().unwrap();
        // The command itself keeps the other end open.
        drop(command);
        let mut said = Vec::new();
        // Ends with an error when the last end of the other side is closed.
        let _ = self.ours.read_to_end(&mut said);
        assert!(child.wait().unwrap().success());
        String::from_utf8(said).unwrap().replace("\r\n", "\n")
    }
}

/// `text` without the sequences that set colours.
pub fn plain(text: &str) -> String {
    let (first, others) = text.split_once('\u{1b}').unwrap_or((text, ""));
    let others = others.split('\u{1b}').map(|part| {
        let (_, behind) = part.split_once('m').unwrap_or(("", part));
        behind
    });
    [first].into_iter().chain(others).collect()
}

fn sme(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sme"));
    command.args(arguments.split_whitespace());
    command.env("TERM", "xterm").env_remove("COLUMNS");
    command
}

/// A table that is too wide becomes several with the same words in them; where it fits, or is no
/// terminal's, it is one.
#[test]
fn tables_are_no_wider_than_the_terminal() {
    let columns = "operation,hops,total_ns,cache_ns,memory_ns,engine_ns,link_ns,queueing_ns";
    for arguments in [
        "latency --nodes 2".to_owned(),
        format!("latency --nodes 2 --columns {columns}"),
        "sweep --nodes 2,4 --cores 1 --episodes 2 --no-host".to_owned(),
        "network --topology mesh:2x2 --load 0.1,0.2 --measure 2us --no-host".to_owned(),
    ] {
        let whole = stdout(&arguments);
        let widest = |text: &str| text.lines().map(str::len).max().unwrap();
        assert!(widest(&whole) > 80, "{arguments}");
        let on = |columns| Terminal::new(columns).stdout_of(sme(&arguments));
        assert_eq!(on(None), whole);
        assert_eq!(on(Some(500)), whole);
        let folded = on(Some(80));
        assert!(widest(&folded) <= 80, "{folded}");
        let words = |text: &str| {
            let mut words: Vec<String> = text.split_whitespace().map(String::from).collect();
            words.sort();
            words.dedup();
            words
        };
        assert_eq!(words(&folded), words(&whole));
    }
}

/// Every barrier's line of progress fits, moves and tells the time that is left.
#[test]
fn progress_fits_moves_and_tells_the_time_left() {
    for (algorithm, flags) in [
        ("flat", "--nodes 8"),
        ("tree", "--nodes 8"),
        ("tree", "--nodes 8 --form compact"),
        ("dissemination", "--nodes 8"),
        ("butterfly", "--nodes 8"),
        ("pthread", "--nodes 1"),
        ("flag-phase", ""),
    ] {
        // More than are simulated until enough lines are drawn.
        let arguments = format!(
            "barrier --algorithm {algorithm} {flags} --cores 2 --episodes 10000000 --no-host"
        );
        let mut command = sme(&arguments);
        command.stdout(Stdio::null());
        let lines = Terminal::new(Some(80)).progress_of(command, 8);
        for line in &lines {
            assert!(line.chars().count() <= 80, "{algorithm}: {line}");
            assert!(line.starts_with("episodes "), "{algorithm}: {line}");
        }
        let done = |line: &String| -> u64 {
            let (done, _) = line["episodes ".len()..].split_once('/').unwrap();
            done.parse().unwrap()
        };
        let (first, last) = (done(&lines[0]), done(lines.last().unwrap()));
        assert!(first < last, "{algorithm}: {lines:?}");
        assert!(
            lines.last().unwrap().contains(" left, at "),
            "{algorithm}: {lines:?}"
        );
    }
}

/// A line without the sequences that move the cursor.
fn plain_line(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        text.push_str(before);
        let end = after.find(|c: char| c.is_ascii_alphabetic());
        rest = end.map_or("", |end| &after[end + 1..]);
    }
    (text + rest).trim().to_owned()
}

/// Rows that are not for people appear before the last of them is simulated.
#[test]
fn rows_appear_as_they_are_simulated() {
    let plan = "network --topology mesh:4x4 --traffic uniform,tornado --load 0.1,0.2 --no-host";
    for format in ["json", "csv"] {
        let arguments = format!("{plan} --measure 300us --format {format}");
        let mut child = sme(&arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut rows = BufReader::new(child.stdout.take().unwrap());
        let mut first = String::new();
        rows.read_line(&mut first).unwrap();
        assert!(child.try_wait().unwrap().is_none(), "{arguments}: {first}");
        let mut rest = Vec::new();
        rows.read_to_end(&mut rest).unwrap();
        assert!(child.wait().unwrap().success(), "{arguments}");
        let header = text(&rest).lines().filter(|line| *line == first.trim_end());
        assert_eq!(header.count(), 0, "{arguments}");
    }
}
