//! README.md is a front door: short, its commands run, its table counts the pinned verdicts, and
//! its dependencies are the crates of this workspace. Links of all documents lead somewhere.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::command::{sme_in, text};

/// Bytes that README.md may have.
const README_BYTES: usize = 9 * 1024;
/// Lines that docs/speed.md may have: history belongs in commits.
const SPEED_LINES: usize = 60;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub fn read(document: impl AsRef<Path>) -> String {
    fs::read_to_string(root().join(document)).unwrap()
}

/// The cells of the rows of a table under `heading`, without the line of dashes.
fn table(document: &str, heading: &str) -> Vec<Vec<String>> {
    let from = document.lines().skip_while(|line| *line != heading).skip(2);
    let rows = from.take_while(|line| line.starts_with('|'));
    let cells = |row: &str| -> Vec<String> {
        let row = row.trim_matches('|').split(" | ");
        row.map(|cell| cell.trim().to_owned()).collect()
    };
    rows.map(cells).collect()
}

#[test]
fn the_readme_and_the_chapter_on_speed_are_short() {
    let bytes = read("README.md").len();
    assert!(bytes <= README_BYTES, "README.md has {bytes} bytes");
    let lines = read("docs/speed.md").lines().count();
    assert!(lines <= SPEED_LINES, "docs/speed.md has {lines} lines");
}

#[test]
fn the_commands_of_the_readme_run() {
    let rows = table(&read("README.md"), "| Question | Command | More |");
    assert!(rows.len() >= 12, "{rows:?}");
    for row in rows {
        let command = row[1].trim_matches('`');
        let arguments = command.strip_prefix("sme ").unwrap();
        // A program of the reader's own.
        let arguments = arguments.replace("./a.out", "/bin/echo");
        let output = sme_in(root(), &arguments);
        assert!(
            output.status.success() && !output.stdout.is_empty(),
            "{command}: {}",
            text(&output.stderr)
        );
    }
}

/// The table has a row for each paper, which counts its figures by the verdicts that are pinned.
#[test]
fn the_readme_counts_the_pinned_verdicts() {
    let mut counts: BTreeMap<String, BTreeMap<&str, usize>> = BTreeMap::new();
    let pinned = read("reference/verdicts.txt");
    for line in pinned.lines() {
        let (id, verdict) = line.split_once(' ').unwrap();
        let paper = id.split('.').next().unwrap().to_owned();
        *counts.entry(paper).or_default().entry(verdict).or_default() += 1;
    }
    let readme = read("README.md");
    let figures = format!("{} published figures", pinned.lines().count());
    assert!(readme.contains(&figures), "{figures}");
    let heading = "| Paper | Figures | Reproduced | Calibrated | Deviates | Inputs | Other |";
    let rows = table(&readme, heading);
    assert_eq!(rows.len(), counts.len(), "a row for each paper");
    for row in rows {
        let paper = row[0].split('`').nth(1).unwrap();
        let of_paper = &counts[paper];
        let of = |verdict| of_paper.get(verdict).copied().unwrap_or(0);
        let judged = ["reproduced", "calibrated", "deviates", "input"].map(of);
        let all: usize = of_paper.values().sum();
        let other = all - judged.iter().sum::<usize>();
        let counted: Vec<usize> = row[1..].iter().map(|cell| cell.parse().unwrap()).collect();
        assert_eq!(counted, [&[all], &judged[..], &[other]].concat(), "{paper}");
    }
}

/// Dependencies by path on the clone `../sme` are the crates of those names, with these features.
fn crates_exist(document: &str, count: usize) {
    let text = read(document);
    let (_, block) = text.split_once("```toml\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let manifest: toml::Table = block.parse().unwrap();
    let patched = &manifest["patch"]["crates-io"];
    let mut seen = 0;
    for (name, value) in [&manifest["dependencies"], patched]
        .iter()
        .flat_map(|table| table.as_table().unwrap())
    {
        let path = value["path"].as_str().unwrap();
        let within = path.strip_prefix("../sme").unwrap().trim_start_matches('/');
        let of_crate: toml::Table = read(Path::new(within).join("Cargo.toml")).parse().unwrap();
        assert_eq!(of_crate["package"]["name"].as_str(), Some(name.as_str()));
        seen += 1;
    }
    assert_eq!(seen, count, "{document}");
}

#[test]
fn the_dependencies_of_a_crate_of_ones_own_exist() {
    crates_exist("README.md", 2);
    crates_exist("docs/tutorial.md", 2);
}

/// Each constant of the tutorial's table counts so many times in a load of a neighbour's memory:
/// one that is made longer by 20 cycles or 200 ns makes the load longer by as much each time.
#[test]
fn a_remote_load_takes_its_constants_as_often_as_the_tutorial_says() {
    const ENGINE_CYCLE_NS: f64 = 1e3 / 156.0;
    let load_ns = |set: &str| -> f64 {
        let arguments = ["latency --nodes 2 --hops 1 --format csv", set].join(" ");
        let output = crate::command::stdout(&arguments);
        let (heading, rows) = output.split_once('\n').unwrap();
        let column = heading
            .split(',')
            .position(|key| key == "total_ns")
            .unwrap();
        let row = rows
            .lines()
            .find(|row| row.contains(",remote-load,"))
            .unwrap();
        row.split(',').nth(column).unwrap().parse().unwrap()
    };
    let usual = load_ns("");
    let heading = "| Constant | In the prototype | Times | Contribution | What it is |";
    let rows = table(&read("docs/tutorial.md"), heading);
    assert_eq!(rows.len(), 8);
    let machine = sme_sim::machine::Machine::builtin("sme-prototype").unwrap();
    let mut sum = 0.0;
    for row in rows {
        let (name, shown) = (row[0].trim_matches('`'), &row[1]);
        let constant = machine
            .constants()
            .iter()
            .find(|of| of.name() == name)
            .unwrap();
        assert_eq!(&constant.value.to_string(), shown, "{name}");
        let (value, unit) = shown.split_once(' ').unwrap();
        let value: f64 = value.parse().unwrap();
        let (more, unit_ns) = match unit {
            "ns" => (200.0, 1.0),
            "cycles" if name.starts_with("host.") => (20.0, 2.5),
            "cycles" => (20.0, ENGINE_CYCLE_NS),
            other => panic!("{other}"),
        };
        let times: f64 = row[2].parse().unwrap();
        let longer = load_ns(&format!("--set {name}={}{unit}", value + more)) - usual;
        let expected = times * more * unit_ns;
        // What is no whole cycle waits for the engine's next edge, each time.
        let slack = times.max(2.0) * ENGINE_CYCLE_NS;
        assert!(
            (longer - expected).abs() <= slack,
            "{name}: {longer} ns for {expected}"
        );
        let contribution: f64 = row[3].trim_end_matches(" ns").parse().unwrap();
        assert!(
            (contribution - times * value * unit_ns).abs() <= 0.6,
            "{name}: {contribution}"
        );
        sum += times * value * unit_ns;
    }
    assert!(sum < usual && sum > 0.8 * usual, "{sum} of {usual} ns");
}

/// The documents of the project: in its root, in `docs/`, and beside code.
pub fn documents() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in ["", "docs"] {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|end| end == "md") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// `document` without its blocks of code.
pub fn prose(document: &str) -> String {
    let mut in_block = false;
    let outside = document.lines().filter(|line| {
        let fence = line.starts_with("```");
        in_block ^= fence;
        !in_block && !fence
    });
    outside.collect::<Vec<_>>().join("\n")
}

/// The anchors of a document's headings.
fn anchors(document: &str) -> Vec<String> {
    let headings = prose(document);
    let headings = headings.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| {
        let words = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = words
            .chars()
            .filter(|&c| c.is_alphanumeric() || " -_".contains(c));
        kept.collect::<String>().replace(' ', "-")
    };
    headings.map(anchor).collect()
}

/// Returns the mistake in the link `target` of the document `from`; nothing where it leads
/// somewhere.
fn broken(from: &Path, target: &str) -> Option<String> {
    if target.contains("://") {
        return None;
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = match file {
        "" => from.to_owned(),
        file => from.parent().unwrap().join(file),
    };
    let named = || format!("{}: {target}", from.display());
    if !path.exists() {
        return Some(named());
    }
    let is_there = anchor.is_empty()
        || anchors(&fs::read_to_string(&path).unwrap())
            .iter()
            .any(|of| of == anchor);
    (!is_there).then(named)
}

#[test]
fn links_lead_to_files_and_headings() {
    let (mut seen, mut wrong) = (0, Vec::new());
    for document in documents() {
        let text = prose(&fs::read_to_string(&document).unwrap());
        for link in text.split("](").skip(1) {
            let target = link.split(')').next().unwrap();
            seen += 1;
            wrong.extend(broken(&document, target));
        }
    }
    assert!(seen > 100, "only {seen} links are followed");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_broken_link_is_noticed() {
    let readme = root().join("README.md");
    assert_eq!(broken(&readme, "docs/limits.md#networks"), None);
    for target in [
        "docs/limit.md",
        "docs/limits.md#network",
        "#no-such-heading",
    ] {
        assert!(broken(&readme, target).is_some(), "{target}");
    }
}

/// CITATION.cff cites this version, and the papers whose figures are validated.
#[test]
fn the_citation_names_the_papers_of_the_readme() {
    let citation = read("CITATION.cff");
    let version = env!("CARGO_PKG_VERSION");
    assert!(citation.starts_with("cff-version: 1.2.0\n"));
    assert!(citation.contains(&format!("\nversion: {version}\n")));
    let readme = read("README.md").replace("\n   ", " ");
    let titles: Vec<&str> = citation
        .lines()
        .filter_map(|line| line.strip_prefix("    title: "))
        .map(|title| title.trim_matches('"'))
        .collect();
    assert_eq!(titles.len(), 5);
    for title in titles {
        assert!(readme.contains(title), "README.md has no {title}");
    }
    for doi in citation
        .lines()
        .filter_map(|line| line.strip_prefix("    doi: "))
    {
        assert!(readme.contains(doi.trim_matches('"')), "{doi}");
    }
}
