//! Colours for the verdicts of `sme validate` and of the default job, on a terminal only.
//!
//! Files and pipes get the plain text, and so does a terminal where `NO_COLOR` is set or that has
//! no colours. Called by these two commands with their finished tables.

use std::io::{self, IsTerminal};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};

use crate::report::output::Output;
use crate::validate::verdict::Verdict;

/// `text`, with its verdicts in colours where `output` is a terminal that shows them.
pub fn verdicts(text: String, output: &Output) -> String {
    match output.is_stdout() && shows_colours() {
        true => text.split_inclusive('\n').map(painted).collect(),
        false => text,
    }
}

fn shows_colours() -> bool {
    let stdout = io::stdout();
    // The choice alone may be colours for a pipe, too (CLICOLOR_FORCE).
    stdout.is_terminal() && AutoStream::choice(&stdout) != ColorChoice::Never
}

/// A line with its verdict in colour: the last cell of a row, or the first one of a legend.
fn painted(line: &str) -> String {
    let ended = line.trim_end();
    let end = &line[ended.len()..];
    if let Some((before, last)) = ended.rsplit_once("  ")
        && let Some(style) = style(last)
    {
        return format!("{before}  {style}{last}{style:#}{end}");
    }
    if let Some((first, behind)) = ended.split_once("  ")
        && let Some(style) = style(first)
    {
        return format!("{style}{first}{style:#}  {behind}{end}");
    }
    line.to_owned()
}

/// The style of a cell that is a verdict.
fn style(cell: &str) -> Option<Style> {
    let (name, explained) = cell.split_once(", ").unwrap_or((cell, ""));
    let verdict = Verdict::ALL.into_iter().find(|of| of.name() == name)?;
    Some(match verdict {
        Verdict::Reproduced => AnsiColor::Green.on_default(),
        Verdict::Calibrated => AnsiColor::Cyan.on_default(),
        Verdict::Deviates if explained == "NOT EXPLAINED" => AnsiColor::Red.on_default().bold(),
        Verdict::Deviates => AnsiColor::Yellow.on_default(),
        Verdict::Failed => AnsiColor::Red.on_default().bold(),
        Verdict::FollowsFromInputs
        | Verdict::Derived
        | Verdict::Input
        | Verdict::NotChecked
        | Verdict::NotSimulated => Style::new().dimmed(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_painted_where_they_are_cells() {
        for (line, expected) in [
            (
                "a  12  reproduced\n",
                "a  12  \u{1b}[32mreproduced\u{1b}[0m\n",
            ),
            (
                "a  deviates, explained in part\n",
                "a  \u{1b}[33mdeviates, explained in part\u{1b}[0m\n",
            ),
            (
                "a  deviates, NOT EXPLAINED",
                "a  \u{1b}[1m\u{1b}[31mdeviates, NOT EXPLAINED\u{1b}[0m",
            ),
            (
                "calibrated  within the tolerance\n",
                "\u{1b}[36mcalibrated\u{1b}[0m  within the tolerance\n",
            ),
            (
                "paper  reproduced  derived  fitted\n",
                "paper  reproduced  derived  fitted\n",
            ),
            ("it deviates\n", "it deviates\n"),
            ("\n", "\n"),
        ] {
            assert_eq!(painted(line), expected);
        }
    }
}
