//! Verdicts have colours on a terminal, and nowhere else.

use std::process::{Command, Stdio};

use crate::command::text;
use crate::terminal::{Terminal, plain};

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

/// Returns what the command shows on a terminal of any width.
fn shown(mut command: Command) -> String {
    command.stderr(Stdio::null());
    Terminal::new(None).stdout_of(command)
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
