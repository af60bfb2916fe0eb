//! The report of an experiment: one page for a browser, which loads nothing else.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use maud::{DOCTYPE, Markup, PreEscaped, html};
use pulldown_cmark::{Event, Parser, Tag, TagEnd};
use sme_sim::machine::{Constant, Machine, Source};

use super::file::ExperimentFile;
use super::manifest::{MachineText, Manifest, RunRecord};
use super::results::POINT;
use super::words;
use crate::cli::Job;
use crate::report::records::{self, Record};

/// The most rows of a run that the page shows.
const MAX_ROWS: usize = 200;

/// The simulator's limits, as the documentation has them.
const LIMITS: &str = include_str!("../../../docs/limits.md");

const STYLE: &str = include_str!("page.css");

/// The page. Rows are in `directory`; `pictures` are those of the file as SVG, by name, and `paths`
/// the critical paths of points.
pub fn page(
    file: &ExperimentFile,
    manifest: &Manifest,
    directory: &Path,
    pictures: &BTreeMap<String, String>,
    paths: &BTreeMap<usize, PathBuf>,
) -> String {
    let name = &manifest.experiment.file;
    let question = file.question.as_deref().map(str::trim);
    let title = question.filter(|text| !text.is_empty()).unwrap_or(name);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { (title) }
                    p.source { (name) ", experiment " code { (manifest.experiment_id) } }
                }
                main {
                    (failures(manifest))
                    (notes(file))
                    @for plot in &manifest.plots {
                        @if let Some(svg) = pictures.get(&plot.picture) {
                            (figure(svg, &plot.picture))
                        }
                    }
                    @for run in &manifest.runs {
                        (rows(run, directory, file.plots.is_empty()))
                        (critical_paths(run, paths))
                    }
                    section {
                        h2 { "Machines" }
                        @for machine in &manifest.machines {
                            (machine_section(machine))
                        }
                        (variants(file))
                    }
                    (limits(manifest))
                    (repetition(manifest))
                }
            }
        }
    };
    page.into_string()
}

/// The failures of points and pictures, if there are any.
fn failures(manifest: &Manifest) -> Markup {
    let points = manifest.runs.iter().flat_map(|run| &run.points);
    let failed = points.filter_map(|point| {
        let why = point.failed.as_ref()?;
        Some((format!("point {}", point.point), why))
    });
    let pictures = manifest.plots.iter().filter_map(|plot| {
        let why = plot.failed.as_ref()?;
        Some((plot.picture.clone(), why))
    });
    let failed: Vec<_> = failed.chain(pictures).collect();
    html! {
        @if !failed.is_empty() {
            section.failed {
                h2 { "Failures" }
                ul { @for (place, why) in failed { li { (place) ": " (why) } } }
            }
        }
    }
}

fn notes(file: &ExperimentFile) -> Markup {
    let notes = file.notes.as_deref().unwrap_or_default();
    let notes = notes.replace("\r\n", "\n");
    html! {
        @for paragraph in notes.split("\n\n").filter(|text| !text.trim().is_empty()) {
            p { (paragraph.trim()) }
        }
    }
}

/// Draws these files with these flags as `sme plot` does, as SVG; none where it refuses them.
fn draw(files: &[PathBuf], flags: &[&str]) -> Option<String> {
    let files = files.iter().map(|path| path.to_string_lossy().into_owned());
    let flags = flags.iter().map(|flag| (*flag).to_owned());
    let line: Vec<String> = ["plot".to_owned()]
        .into_iter()
        .chain(files)
        .chain(flags)
        .collect();
    match Job::read(words(&line)).ok()? {
        Job::Plot(plot) => plot.svg().ok(),
        _ => None,
    }
}

fn figure(svg: &str, caption: &str) -> Markup {
    html! {
        figure {
            div role="img" aria-label=(caption) { (PreEscaped(svg)) }
            figcaption { (caption) }
        }
    }
}

/// The rows of `run`: above the table what is equal in all of them, in it what differs.
fn rows(run: &RunRecord, directory: &Path, is_drawn: bool) -> Markup {
    let path = directory.join(&run.rows);
    let text = fs::read(&path).unwrap_or_default();
    let read = records::read_all(&run.rows, text.as_slice());
    let all = read.as_deref().unwrap_or_default();
    let mut keys: Vec<&str> = Vec::new();
    for (key, _) in all.iter().flatten() {
        if !keys.contains(&key.as_str()) {
            keys.push(key);
        }
    }
    let text = |record: &Record, key: &str| {
        let cell = record.iter().find(|(known, _)| known == key);
        cell.map(|(_, cell)| cell.to_text()).unwrap_or_default()
    };
    let is_number = |key: &&str| {
        let cells = all.iter().flatten().filter(|(known, _)| known == *key);
        let mut cells = cells.map(|(_, cell)| cell);
        cells.all(|cell| cell.is_number() || cell.to_text().is_empty())
    };
    let (varying, equal): (Vec<&str>, Vec<&str>) = keys.iter().partition(|key| {
        let first = all.first().map(|record| text(record, key));
        all.iter().any(|record| Some(text(record, key)) != first)
    });
    // Of a single row everything is equal. The point, by which pictures know it, stands first.
    let (mut shown, equal) = match all.len() {
        0 | 1 => (Vec::new(), equal),
        _ => (varying, equal),
    };
    shown.sort_by_key(|key| *key != POINT);
    let shown: Vec<(&str, bool)> = shown.iter().map(|key| (*key, is_number(key))).collect();
    let default_picture = match is_drawn && all.len() > 1 {
        true => draw(&[path], &[]),
        false => None,
    };
    html! {
        section {
            h2 { (run.rows) }
            @if let Err(error) = &read { p.failed { (error) } }
            @if let Some(svg) = default_picture {
                (figure(&svg, &format!("{}, fields chosen by sme plot", run.rows)))
            }
            @if let Some(first) = all.first() {
                dl.equal {
                    @for key in &equal {
                        @let value = text(first, key);
                        @if !value.is_empty() { div { dt { (key) } dd { (value) } } }
                    }
                }
            }
            @if !shown.is_empty() {
                div.wide {
                    table {
                        thead { tr { @for (key, _) in &shown { th scope="col" { (key) } } } }
                        tbody {
                            @for record in all.iter().take(MAX_ROWS) {
                                tr {
                                    @for (key, is_number) in &shown {
                                        td.number[*is_number] { (text(record, key)) }
                                    }
                                }
                            }
                        }
                    }
                }
            }
            @if all.len() > MAX_ROWS {
                p { "The first " (MAX_ROWS) " of " (all.len()) " rows; all are in " (run.rows) "." }
            }
            @if all.is_empty() { p { "There are no rows." } }
        }
    }
}

/// The critical paths of the points of `run`, a bar for each.
fn critical_paths(run: &RunRecord, paths: &BTreeMap<usize, PathBuf>) -> Markup {
    let of_run = run
        .points
        .iter()
        .filter_map(|point| paths.get(&point.point));
    let files: Vec<PathBuf> = of_run.cloned().collect();
    let drawn = match files.is_empty() {
        true => None,
        false => draw(&files, &["--title", "critical paths"]),
    };
    let left_out = run.points.len() - files.len();
    html! {
        @if let Some(svg) = drawn {
            section {
                h3 { "Where the time goes: critical paths of " (run.rows) }
                p {
                    "A bar is the critical path of a point's last episode, the chain of events that "
                    "decided when it ended, and its parts add up to the whole."
                    @if left_out > 0 { " " (left_out) " points are not shown." }
                }
                (figure(&svg, "critical path"))
            }
        }
    }
}

fn machine_section(text: &MachineText) -> Markup {
    let Ok(machine) = Machine::parse(&text.machine, &text.text) else {
        return html! { p.failed { (text.machine) ": cannot be shown" } };
    };
    let row = |constant: &Constant| {
        html! {
            tr {
                td { code { (constant.name()) } }
                td.number { (constant.value) }
                td { (constant.source.name()) }
                td { (constant.meaning) }
                td { (constant.reason) }
            }
        }
    };
    html! {
        h3 { (text.machine) }
        p { (machine.description()) ". Its hash in rows is " code { (text.machine_hash) } "." }
        details {
            summary { (machine.constants().len()) " constants" }
            div.wide {
                table {
                    thead {
                        tr {
                            @for name in ["constant", "value", "source", "meaning", "where from"] {
                                th scope="col" { (name) }
                            }
                        }
                    }
                    tbody { @for constant in machine.constants() { (row(constant)) } }
                }
            }
        }
        details {
            summary { "The machine file" }
            pre { (text.text) }
        }
    }
}

fn variants(file: &ExperimentFile) -> Markup {
    html! {
        @for (name, variant) in &file.machines {
            h3 { (name) }
            p {
                code { (variant.get_ref().base) } " with "
                @for (at, (key, value)) in variant.get_ref().overrides().unwrap_or_default().iter().enumerate() {
                    @if at > 0 { ", " }
                    code { (key) "=" (value) }
                }
                "."
            }
        }
    }
}

/// Lists what results rest on, and what the simulator leaves out.
fn limits(manifest: &Manifest) -> Markup {
    let of = |text: &MachineText, wanted: Source| -> Vec<String> {
        let Ok(machine) = Machine::parse(&text.machine, &text.text) else {
            return Vec::new();
        };
        let constants = machine.constants().iter();
        let wanted = constants.filter(|constant| constant.source == wanted);
        wanted.map(Constant::name).collect()
    };
    html! {
        section {
            h2 { "Limits" }
            ul {
                @for machine in &manifest.machines {
                    @for (source, what) in [
                        (Source::Assumed, "assumed: nothing is published"),
                        (Source::Fitted, "fitted to published figures"),
                    ] {
                        @let names = of(machine, source);
                        @if !names.is_empty() {
                            li {
                                (machine.machine) ", constants that are " (what) ": "
                                (names.join(", ")) "."
                            }
                        }
                    }
                }
            }
            details {
                summary { "What the simulator leaves out or simplifies" }
                (PreEscaped(limits_of_the_simulator()))
            }
        }
    }
}

/// The chapter on limits without its title, and without links, which would lead nowhere.
fn limits_of_the_simulator() -> String {
    let body = LIMITS.split_once("\n## ").map_or(LIMITS, |(_, body)| body);
    let body = format!("## {body}");
    let is_link = |event: &Event<'_>| {
        matches!(
            event,
            Event::Start(Tag::Link { .. }) | Event::End(TagEnd::Link)
        )
    };
    let mut text = String::new();
    let events = Parser::new(&body).filter(|event| !is_link(event));
    pulldown_cmark::html::push_html(&mut text, events);
    text.replace("<h2>", "<h3>").replace("</h2>", "</h3>")
}

/// The way to repeat the experiment.
fn repetition(manifest: &Manifest) -> Markup {
    let host = &manifest.host;
    html! {
        section {
            h2 { "Repetition" }
            p {
                code { "sme run manifest.json" }
                " repeats the experiment and compares every file. These results are of "
                (manifest.program) ", begun at " (manifest.began) "; they took "
                (format!("{:.1}", manifest.wall_s)) " s on "
                (host.processor) ", " (host.threads) " threads, " (host.system) "."
            }
            details {
                summary { "The experiment file" }
                pre { (manifest.experiment.text) }
            }
            details {
                summary { "The command of every point" }
                div.wide {
                    table {
                        thead { tr { th { "point" } th { "rows" } th { "command" } } }
                        tbody {
                            @for point in manifest.runs.iter().flat_map(|run| &run.points) {
                                tr {
                                    td.number { (point.point) }
                                    td.number { (point.rows) }
                                    td { code { "sme " (point.arguments.join(" ")) } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}
