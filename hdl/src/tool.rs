//! The tools of other people that look at the Verilog: Verilator, iverilog, Yosys, a compiler.
//!
//! Called by [`crate::verilated`], [`crate::synthesis`] and the tests. None is needed to simulate.

use std::io;
use std::process::{Command, Output, Stdio};

/// A failure of a tool.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// There is no such program.
    #[error("{0} is not installed")]
    Missing(String),
    /// The tool could not be run.
    #[error("{tool} cannot be run: {error}")]
    NotRun {
        /// The tool.
        tool: String,
        /// The reason.
        error: io::Error,
    },
    /// The tool has failed.
    #[error("{tool} failed: {}", first_complaint(said))]
    Failed {
        /// The tool.
        tool: String,
        /// All that it printed.
        said: String,
    },
}

/// Runs a tool to its end; what it printed on stdout, and after that on stderr.
pub fn output(command: &mut Command) -> Result<String, ToolError> {
    run(command).map(|output| all_said(&output))
}

/// Runs a tool to its end; what it printed on stdout alone, where that is an answer, not a report:
/// on stderr there may be warnings that have nothing to do with it, as of a locale that is missing.
pub fn stdout(command: &mut Command) -> Result<String, ToolError> {
    run(command).map(|output| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a tool to its end, which must be a good one.
fn run(command: &mut Command) -> Result<Output, ToolError> {
    let tool = command.get_program().to_string_lossy().into_owned();
    let output = match command.stdin(Stdio::null()).output() {
        Ok(output) => output,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(ToolError::Missing(tool));
        }
        Err(error) => return Err(ToolError::NotRun { tool, error }),
    };
    if output.status.success() {
        Ok(output)
    } else {
        let said = all_said(&output);
        Err(ToolError::Failed { tool, said })
    }
}

/// Stdout, and after that stderr.
fn all_said(output: &Output) -> String {
    let said = [output.stdout.as_slice(), &output.stderr].concat();
    String::from_utf8_lossy(&said).into_owned()
}

/// Returns whether a tool can be run at all.
pub fn is_installed(tool: &str, version_flag: &str) -> bool {
    let run = output(Command::new(tool).arg(version_flag));
    !matches!(run, Err(ToolError::Missing(_)))
}

/// The line of `said` that tells most: the first with an error in it, else the last.
fn first_complaint(said: &str) -> &str {
    let mut lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let complains = |line: &&str| line.contains("rror") || line.contains("FAIL");
    let first = lines.clone().find(complains);
    first
        .or_else(|| lines.next_back())
        .unwrap_or("it printed nothing")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_tool_is_said_to_be_missing() {
        let error = output(&mut Command::new("no-such-tool-anywhere")).unwrap_err();
        assert_eq!(error.to_string(), "no-such-tool-anywhere is not installed");
        assert!(!is_installed("no-such-tool-anywhere", "--version"));
    }

    #[cfg(unix)]
    #[test]
    fn an_answer_is_what_is_on_stdout_and_a_complaint_what_is_on_either() {
        let shell = |script| {
            let mut shell = Command::new("sh");
            shell.args(["-c", script]);
            shell
        };
        let mut warns = shell("echo warning >&2; echo answer");
        assert_eq!(stdout(&mut warns).unwrap(), "answer\n");
        assert_eq!(output(&mut warns).unwrap(), "answer\nwarning\n");
        let error = stdout(&mut shell("echo answer; echo an error >&2; exit 1")).unwrap_err();
        assert_eq!(error.to_string(), "sh failed: an error");
    }

    #[test]
    fn of_what_a_tool_says_the_first_error_is_shown() {
        let said = "reading a.v\n%Error: a.v:3: no\n%Error: exiting\n";
        assert_eq!(first_complaint(said), "%Error: a.v:3: no");
        assert_eq!(first_complaint(" \n"), "it printed nothing");
    }
}
