//! Import rules: each room of `sme-sim` imports only the rooms below it, and a family of machines
//! is named outside its folder only in the files listed here, each with its reason.
//!
//! Sources are taken apart into tokens, so that a comment is no import, and an import in a macro or
//! a path in the middle of an expression is one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use sme_sim::machine::family_names;

/// The rooms that each room of `sme-sim` may import.
const BELOW: [(&str, &[&str]); 4] = [
    ("kernel", &["time"]),
    ("parts", &["time", "kernel"]),
    ("observe", &["time", "kernel", "parts"]),
    ("machine", &["time", "kernel", "parts", "observe"]),
];

/// The one list of families in `sme-sim`.
const CATALOG: &str = "sme-sim/src/machine/catalog.rs";

/// The other files that name a family, and why.
const NAME_A_FAMILY: [(&str, &str); 12] = [
    (
        "barrier/runs/src/extras/compact.rs",
        "nodes in compact form",
    ),
    ("barrier/runs/src/extras/engines.rs", "engines in RTL"),
    (
        "barrier/runs/src/extras/mod.rs",
        "what only engines make possible",
    ),
    ("src/network.rs", "the engines' network by itself"),
    ("src/cli/network.rs", "its flags"),
    ("src/cli/rtl.rs", "the engine in RTL"),
    ("src/cli/waves.rs", "waveforms of the engine's ports"),
    (
        "src/cli/validate.rs",
        "the built-in machine of each family with figures",
    ),
    (
        "src/validate/papers/mod.rs",
        "the keys of the papers, some of which are families' names",
    ),
    (
        "src/validate/papers/mppa.rs",
        "machines whose figures were measured",
    ),
    (
        "src/validate/papers/scc/mod.rs",
        "machines whose figures were measured",
    ),
    (
        "src/validate/papers/sme/simulator.rs",
        "constants that a figure of the paper is about",
    ),
];

/// The same, where a machine without engines is refused.
const REFUSES: &str = "src/cli/args.rs";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The Rust files under `folder`, by their paths from the root.
pub fn files(folder: &str) -> Vec<String> {
    fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.extension() {
                _ if path.is_dir() => collect(&path, found),
                Some(end) if end == "rs" => found.push(path),
                _ => {}
            }
        }
    }
    let mut found = Vec::new();
    collect(&root().join(folder), &mut found);
    let name = |path: PathBuf| {
        path.strip_prefix(root())
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned()
    };
    let mut files: Vec<String> = found.into_iter().map(name).collect();
    files.sort();
    assert!(!files.is_empty(), "{folder}");
    files
}

/// The paths and texts of a source.
#[derive(Debug, Default)]
struct Named {
    /// Paths, from their first segment on; those in the braces of an import each by itself.
    paths: BTreeSet<Vec<String>>,
    /// Texts in quotes.
    texts: BTreeSet<String>,
}

impl Named {
    fn of(source: &str) -> Self {
        let mut named = Self::default();
        named.read(source.parse().unwrap(), &[]);
        named
    }

    fn of_file(file: &str) -> Self {
        Self::of(&fs::read_to_string(root().join(file)).unwrap())
    }

    /// Of tokens, those before which stands `prefix::`.
    fn read(&mut self, tokens: TokenStream, prefix: &[String]) {
        let mut path = prefix.to_vec();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.ends(&mut path, prefix);
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => {
                    let continues = colons == 2 && group.delimiter() == Delimiter::Brace;
                    let within: &[String] = if continues { &path } else { &[] };
                    self.read(group.stream(), within);
                    self.ends(&mut path, prefix);
                    colons = 0;
                }
                TokenTree::Punct(_) => {
                    self.ends(&mut path, prefix);
                    colons = 0;
                }
                TokenTree::Literal(text) => {
                    self.texts
                        .insert(text.to_string().trim_matches('"').to_owned());
                }
            }
        }
        self.ends(&mut path, prefix);
    }

    fn ends(&mut self, path: &mut Vec<String>, prefix: &[String]) {
        if path.len() > prefix.len() {
            self.paths.insert(std::mem::replace(path, prefix.to_vec()));
        }
    }

    /// The segments that follow upon `name`.
    fn after(&self, name: &str) -> BTreeSet<&str> {
        let pairs = self.paths.iter().flat_map(|path| path.windows(2));
        let after = pairs.filter(|pair| pair[0] == name);
        after.map(|pair| pair[1].as_str()).collect()
    }
}

#[test]
fn imports_are_found_in_braces_macros_and_expressions() {
    let source = r#"
        // use crate::comment;
        use crate::{one::Thing, two::{self, three}};
        fn f() -> crate::four::T { print!("{}", crate::five::g(crate::six::H)) }
        const NAME: &str = "sme-cluster";
    "#;
    let named = Named::of(source);
    let expected = ["five", "four", "one", "six", "two"];
    assert!(named.after("crate").into_iter().eq(expected), "{named:?}");
    assert_eq!(named.after("two").len(), 2);
    assert!(named.texts.contains("sme-cluster"));
}

/// The forbidden imports of `file`, which lies in `room`.
fn wrong(room: &str, below: &[&str], file: &str, named: &Named) -> Vec<String> {
    let allowed = |name: &str| {
        name == room || below.contains(&name) || (file == CATALOG && name == "families")
    };
    // A macro of this crate is no room.
    let rooms = named.after("crate").into_iter().filter(|name| {
        let path = root().join("sme-sim/src").join(name);
        path.is_dir() || path.with_extension("rs").is_file()
    });
    let wrong = rooms.filter(|name| !allowed(name));
    wrong.map(|name| format!("{file} imports {name}")).collect()
}

#[test]
fn rooms_import_only_what_lies_below_them() {
    let mut found = Vec::new();
    for (room, below) in BELOW {
        for file in files(&format!("sme-sim/src/{room}")) {
            found.extend(wrong(room, below, &file, &Named::of_file(&file)));
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn a_wrong_import_is_found() {
    for (room, below, source) in [
        (
            "kernel",
            &["time"][..],
            "use crate::parts::fabric::Topology;",
        ),
        (
            "parts",
            BELOW[1].1,
            "use crate::{time::Time, observe::log};",
        ),
        (
            "observe",
            BELOW[2].1,
            "fn f() { crate::families::sme::of(m) }",
        ),
        ("machine", BELOW[3].1, "use crate::families::ideal;"),
    ] {
        let found = wrong(room, below, "some.rs", &Named::of(source));
        assert_eq!(found.len(), 1, "{source}");
    }
}

/// Modules at the top of a crate that import each other in a circle. ARCHITECTURE.md says why: a
/// family needs what `machine` says of families, and the one list of them is in `machine`; the
/// server of a channel sends for the device of its rank.
const CIRCLES: [(&str, &[&str]); 2] = [
    ("sme-sim/src", &["families", "machine"]),
    ("mpi/src", &["channel", "device"]),
];

/// The source without its tests, which may import anything.
fn without_tests(source: &str) -> &str {
    let tests = source
        .find("#[cfg(test)]\nmod tests {")
        .or_else(|| source.find("#[cfg(test)]\n#[cfg(feature = \"cli\")]\nmod tests {"))
        .or_else(|| source.find("#[cfg(test)]\npub(crate) mod testing"));
    &source[..tests.unwrap_or(source.len())]
}

/// The modules at the top of `folder`, which is a crate's or that of a module, each with those that
/// it imports.
fn imports_of(folder: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut graph: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in files(folder) {
        let name = file.strip_prefix(folder).unwrap().trim_start_matches('/');
        let module = name.split('/').next().unwrap().trim_end_matches(".rs");
        let is_test = name.ends_with("tests.rs") || name.contains("tests/");
        if is_test || ["lib", "main", "mod"].contains(&module) {
            continue;
        }
        let source = fs::read_to_string(root().join(&file)).unwrap();
        let named = Named::of(without_tests(&source));
        let imports = graph.entry(module.to_owned()).or_default();
        let mut roots = match folder.ends_with("src") {
            true => vec!["crate"],
            false => vec![folder.rsplit('/').next().unwrap()],
        };
        // The module itself, or the crate, is the one above what is in it.
        if !name.contains('/') || name.split('/').nth(1) == Some("mod.rs") {
            roots.push("super");
        }
        for root in roots {
            imports.extend(named.after(root).into_iter().map(str::to_owned));
        }
    }
    let modules: BTreeSet<String> = graph.keys().cloned().collect();
    for (module, imports) in &mut graph {
        imports.retain(|import| import != module && modules.contains(import));
    }
    graph
}

/// Modules that import each other, each circle's in order.
fn circles(graph: &BTreeMap<String, BTreeSet<String>>) -> BTreeSet<Vec<String>> {
    let reached = |from: &String| {
        let mut reached = BTreeSet::new();
        let mut next: Vec<&String> = graph[from].iter().collect();
        while let Some(module) = next.pop() {
            if reached.insert(module) {
                next.extend(&graph[module]);
            }
        }
        reached
    };
    let reached: BTreeMap<&String, BTreeSet<&String>> = graph
        .keys()
        .map(|module| (module, reached(module)))
        .collect();
    let circle = |module: &&String| {
        let both = |other: &&&String| {
            reached[*module].contains(**other) && reached[**other].contains(*module)
        };
        let circle = reached.keys().filter(both);
        circle.map(|other| (*other).clone()).collect::<Vec<_>>()
    };
    let found = reached.keys().map(circle);
    found.filter(|circle| circle.len() > 1).collect()
}

#[test]
fn no_modules_import_each_other_in_a_circle() {
    for folder in [
        "src",
        "sme-sim/src",
        "barrier/src",
        "barrier/runs/src",
        "fft-demo/src",
        "memory/src",
        "hdl/src",
        "mpi/src",
        "mpi/jobs/src",
        "sme-sim/src/families/sme/cluster",
    ] {
        let expected = CIRCLES.iter().filter(|(of, _)| *of == folder);
        let expected: BTreeSet<Vec<String>> = expected
            .map(|(_, circle)| circle.iter().map(|&name| name.to_owned()).collect())
            .collect();
        assert_eq!(circles(&imports_of(folder)), expected, "{folder}");
    }
}

/// Imports from modules beside a module are found, in every form in which they are written.
#[test]
fn imports_within_a_module_are_found() {
    let imports = imports_of("sme-sim/src/families/sme/cluster");
    let of = |module: &str| imports[module].iter().map(String::as_str);
    assert!(of("bridge").any(|import| import == "domain"), "super::");
    assert!(
        of("caches").any(|import| import == "slots"),
        "from a file below"
    );
    assert!(
        !of("caches").any(|import| import == "miss"),
        "which are not beside it"
    );
    assert!(imports_of("src")["report"].contains("program"), "crate::");
    assert!(
        imports_of("mpi/jobs/src")["borrow"].contains("programs"),
        "super:: at the top of a crate"
    );
}

/// A family imports no other.
#[test]
fn families_do_not_know_each_other() {
    let folders = fs::read_dir(root().join("sme-sim/src/families")).unwrap();
    let names = folders.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let families: BTreeSet<String> = names.filter(|name| name != "mod.rs").collect();
    assert_eq!(families.len(), family_names().count());
    for family in &families {
        for file in files(&format!("sme-sim/src/families/{family}")) {
            let named = Named::of_file(&file);
            let others = named.after("families").into_iter();
            let others: Vec<_> = others.filter(|other| families.contains(*other)).collect();
            assert!(
                others.iter().all(|other| other == family),
                "{file}: {others:?}"
            );
        }
    }
}

#[test]
fn no_family_is_named_outside_its_folder() {
    let may = |file: &str| {
        let listed = NAME_A_FAMILY.iter().any(|(listed, _)| *listed == file);
        listed || [CATALOG, REFUSES].contains(&file)
    };
    let mut found = BTreeSet::new();
    for folder in [
        "src",
        "barrier/src",
        "barrier/runs/src",
        "fft-demo/src",
        "memory/src",
        "sme-sim/src",
    ] {
        for file in files(folder) {
            if file.starts_with("sme-sim/src/families/") || file == "sme-sim/src/lib.rs" {
                continue;
            }
            let named = Named::of_file(&file);
            let texts = family_names().any(|family| named.texts.contains(family));
            if !named.after("families").is_empty() || texts {
                found.insert(file);
            }
        }
    }
    let wrong: Vec<&String> = found.iter().filter(|file| !may(file)).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    for (listed, why) in NAME_A_FAMILY {
        assert!(
            found.contains(listed),
            "{listed} ({why}) need not be listed"
        );
    }
}

/// The rooms of MPI that are about its arguments, and what they may import.
const OF_ARGUMENTS: [(&str, &[&str]); 3] = [
    ("datatype", &["error"]),
    ("op", &["datatype", "error"]),
    ("topology", &["error", "properties"]),
];

#[test]
fn arguments_of_mpi_know_no_channel() {
    for (room, may) in OF_ARGUMENTS {
        for file in files(&format!("mpi/src/{room}")) {
            let source = fs::read_to_string(root().join(&file)).unwrap();
            let named = Named::of(without_tests(&source));
            let is_module = |name: &&str| {
                let path = root().join("mpi/src").join(name);
                path.is_dir() || path.with_extension("rs").is_file()
            };
            let imports = named.after("crate").into_iter().filter(is_module);
            let wrong: Vec<_> = imports
                .filter(|name| *name != room && !may.contains(name))
                .collect();
            assert!(wrong.is_empty(), "{file} imports {wrong:?}");
        }
    }
}

/// The folders that are rooms: those at the top of each crate, and the families.
fn rooms() -> Vec<String> {
    let mut rooms = Vec::new();
    for parent in [
        "src",
        "memory/src",
        "barrier/src",
        "mpi/src",
        "sme-sim/src",
        "sme-sim/src/families",
    ] {
        for entry in fs::read_dir(root().join(parent)).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                let name = path.file_name().unwrap().to_str().unwrap();
                rooms.push(format!("{parent}/{name}/"));
            }
        }
    }
    rooms.sort();
    rooms
}

/// A folder that is added has to say what always holds in it.
#[test]
fn every_room_has_its_invariant() {
    let document = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let (_, invariants) = document.split_once("\n## Invariants\n").unwrap();
    let (invariants, _) = invariants.split_once("\n## ").unwrap();
    // The suite of the contract is a test, and has a document of its own.
    let exempt = ["memory/src/conformance/"];
    let is_there = |room: &String| {
        let opens = |paragraph: &str| {
            let (bold, _) = paragraph
                .strip_prefix("**")
                .and_then(|text| text.split_once("**"))?;
            bold.replace('\n', " ")
                .contains(&format!("`{room}`"))
                .then_some(())
        };
        invariants
            .split("\n\n")
            .any(|paragraph| opens(paragraph).is_some())
    };
    let rooms = rooms();
    assert!(rooms.len() > 30, "{rooms:?}");
    let wrong: Vec<&String> = rooms
        .iter()
        .filter(|room| !exempt.contains(&room.as_str()) && !is_there(room))
        .collect();
    assert!(
        wrong.is_empty(),
        "ARCHITECTURE.md has no invariant of {wrong:?}"
    );
}
