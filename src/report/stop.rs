//! Why a command stops before its end, and the exit status that says so.
//!
//! Returned by every command to [`crate::cli::main`].

use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use serde::{Deserialize, Serialize};

/// Why a command stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Stop {
    /// A request that cannot be met; one line that names the flag or the file. Nothing
    /// was simulated. Exit status 2.
    #[error("{0}")]
    Input(String),
    /// The run failed: a deadlock, a wrong result, a row out of tolerance. Exit status 1.
    #[error("{0}")]
    Failed(String),
    /// Help or the version was asked for: this text, on stdout. Exit status 0.
    #[error("{0}")]
    Help(String),
    /// The reader of the results has closed the pipe: no more are wanted. Exit status 0.
    #[error("nobody reads the results")]
    Unread,
}

impl Stop {
    /// Bad input at `flag`, because of `reason`; always a single line.
    pub fn flag(flag: &str, reason: impl Display) -> Self {
        Self::Input(one_line(&format!("{flag}: {reason}")))
    }

    /// `path` of `flag` cannot be written; either is empty where there is none.
    pub fn unwritable(flag: &str, path: &Path, error: &io::Error) -> Self {
        let what = format!("{flag} {}", path.display());
        Self::flag(what.trim(), format!("cannot be written: {error}"))
    }

    /// The same, with `place` in front.
    pub fn at(self, place: &str) -> Self {
        self.map(|reason| format!("{place}: {reason}"))
    }

    /// The same with another text of the reason.
    pub fn map(self, text: impl FnOnce(String) -> String) -> Self {
        match self {
            Self::Input(reason) => Self::Input(text(reason)),
            Self::Failed(reason) => Self::Failed(text(reason)),
            other => other,
        }
    }

    /// The exit status.
    pub fn status(&self) -> u8 {
        match self {
            Self::Input(_) => 2,
            Self::Failed(_) => 1,
            Self::Help(_) | Self::Unread => 0,
        }
    }
}

/// `text` with its line breaks and other control characters made blanks, and cut to a length
/// that a terminal still shows.
pub fn one_line(text: &str) -> String {
    const LONGEST: usize = 400;
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    let line: String = text.trim().chars().map(clean).take(LONGEST).collect();
    if text.trim().chars().nth(LONGEST).is_some() {
        line + "…"
    } else {
        line
    }
}

/// Writes to stderr; where that is closed, nothing happens (`eprint!` would panic).
pub fn to_stderr(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes());
}

/// Ends a program of one's own: returns the exit status, 0 or 1, for `main` to return, after it has
/// written an error to stderr as `error: …`, the way it is displayed. What a `main` returns as an
/// error is shown as `Debug` has it.
pub fn exit_code(done: Result<(), impl Display>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            to_stderr(&format!("error: {error}\n"));
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complaint_is_one_line() {
        let Stop::Input(line) = Stop::flag("--nodes a\nb", "x".repeat(1_000)) else {
            panic!("bad input")
        };
        assert!(line.starts_with("--nodes a b: xxx"));
        assert!(line.ends_with('…') && line.chars().count() == 401);
    }
}
