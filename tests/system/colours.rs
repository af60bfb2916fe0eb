//! Verdicts have colours on a terminal, and nowhere else.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::command::text;

/// The figures of one paper, which are simulated in a blink.
const VALIDATE: [&str; 4] = ["validate", "--paper", "rcce", "--no-programs"];

fn validate() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sme"));
    command.args(VALIDATE);
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CI"] {
        command.env_remove(name);
    }
    command.env("TERM", "xterm-256color");
    command
}

/// What the command shows on a terminal.
fn shown(mut command: Command) -> String {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
    let ours = openpt(flags).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let theirs = OpenOptions::new()
        .read(true)
        .write(true)
        .open(Path::new(name.to_str().unwrap()))
        .unwrap();
    let mut child = command
        .stdout(theirs)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // The command itself keeps the other end open.
    drop(command);
    let mut said = Vec::new();
    // Ends with an error when the last end of the other side is closed.
    let _ = File::from(ours).read_to_end(&mut said);
    assert!(child.wait().unwrap().success());
    String::from_utf8(said).unwrap().replace("\r\n", "\n")
}

/// `text` without the sequences that set colours.
fn plain(text: &str) -> String {
    let (first, others) = text.split_once('\u{1b}').unwrap_or((text, ""));
    let others = others.split('\u{1b}').map(|part| {
        let (_, behind) = part.split_once('m').unwrap_or(("", part));
        behind
    });
    [first].into_iter().chain(others).collect()
}

#[test]
fn verdicts_have_colours_on_a_terminal_only() {
    let piped = validate().output().unwrap();
    let piped = text(&piped.stdout);
    assert!(
        piped.contains("  calibrated\n") && !piped.contains('\u{1b}'),
        "{piped}"
    );

    let coloured = shown(validate());
    assert!(
        coloured.contains("\u{1b}[36mcalibrated\u{1b}[0m"),
        "{coloured}"
    );
    assert_eq!(plain(&coloured), piped);

    for (name, value) in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let mut command = validate();
        command.env(name, value);
        assert_eq!(shown(command), piped, "{name}={value}");
    }
    let mut forced = validate();
    let forced = forced.env("CLICOLOR_FORCE", "1").output().unwrap();
    assert_eq!(text(&forced.stdout), piped);

    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("v.txt");
    let mut written = validate();
    written.arg("-o").arg(&file);
    assert_eq!(shown(written), "");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), piped);
}
