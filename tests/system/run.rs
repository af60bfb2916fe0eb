//! Experiment files: their rows are those of the commands, every row leads to the command that
//! wrote it, a manifest repeats its experiment alone, and nothing is lost or half-written.

mod refused;

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::command::{WRITING, sme_in, text};

/// Two axes, points of their own, a machine beside the file and one within it, a timeline for each
/// point and a picture.
const EXPERIMENT: &str = r#"
question = "Does a flat barrier suffer from <long> links?"

[machines.long]
base = "mine.toml"
set.link.wire = "100ns"

[[runs]]
rows = "latency.csv"
command = "barrier"
flags = { machine = ["mine.toml", "long"], nodes = [2, 4], cores = 2, episodes = 2, timeline = "t{point}.pftrace" }
points = [{ algorithm = "flat" }, { algorithm = "tree", seed = 7 }]

[[runs]]
rows = "ping.jsonl"
command = "mpi pingpong"
flags = { machine = "scc", sizes = "32,64" }

[[plots]]
picture = "latency.svg"
rows = ["latency.csv"]
flags = { x = "nodes", y = ["latency_mean_us", "latency_max_us"], series = ["algorithm", "set"] }
"#;

/// The columns that rows of an experiment have behind those of their command.
const COLUMNS: &str = "experiment_id,point";

/// A directory with [`EXPERIMENT`] as `e.toml`, and its machine.
fn prepared() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let machine = Path::new(env!("CARGO_MANIFEST_DIR")).join("machines/sme-prototype.toml");
    fs::copy(machine, directory.path().join("mine.toml")).unwrap();
    fs::write(directory.path().join("e.toml"), EXPERIMENT).unwrap();
    directory
}

/// What the command says on stdout, which succeeds.
fn done(directory: &Path, arguments: &str) -> String {
    let output = sme_in(directory, arguments);
    assert_eq!(text(&output.stderr), "", "{arguments}");
    assert_eq!(output.status.code(), Some(0), "{arguments}");
    text(&output.stdout).to_owned()
}

/// What it says on stderr, which must be a line, when it ends with `status`.
fn complaint(directory: &Path, arguments: &str, status: i32) -> String {
    let output = sme_in(directory, arguments);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{arguments}: {said}");
    assert_eq!(said.lines().count(), 1, "{arguments}: {said}");
    said.to_owned()
}

fn manifest(file: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

/// The names in `directory`, in their order.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// The words of a JSON array.
fn words(list: &Value) -> String {
    let words = list.as_array().unwrap().iter();
    let words: Vec<&str> = words.map(|word| word.as_str().unwrap()).collect();
    words.join(" ")
}

#[test]
fn every_row_is_that_of_the_command_of_its_point() {
    let directory = prepared();
    let root = directory.path();
    let said = done(root, "run e.toml");
    assert!(said.contains("8 rows of 8 points"), "{said}");
    let manifest = manifest(&root.join("e/manifest.json"));
    let id = manifest["experiment_id"].as_str().unwrap();

    let mut points = 0;
    for run in manifest["runs"].as_array().unwrap() {
        let file = run["rows"].as_str().unwrap();
        let rows = fs::read_to_string(root.join("e").join(file)).unwrap();
        let is_csv = file.ends_with(".csv");
        let mut rows = rows.lines().skip(usize::from(is_csv));
        for point in run["points"].as_array().unwrap() {
            let number = point["point"].as_u64().unwrap();
            assert_eq!(number, points);
            points += 1;
            let format = if is_csv { "csv" } else { "json" };
            let line = format!("{} --no-host --format {format}", words(&point["arguments"]));
            let printed = done(root, &line);
            let mut printed = printed.lines().skip(usize::from(is_csv));
            for _ in 0..point["rows"].as_u64().unwrap() {
                let row = rows.next().unwrap();
                let own = match is_csv {
                    true => row
                        .strip_suffix(&format!(",{id},{number}"))
                        .unwrap()
                        .to_owned(),
                    false => {
                        let end = format!(",\"experiment_id\":\"{id}\",\"point\":{number}}}");
                        row.strip_suffix(&end).unwrap().to_owned() + "}"
                    }
                };
                // The machine of the file has its name there.
                let own = match line.contains("--set link.wire=100ns") {
                    true => own.replacen(",long,", ",sme-prototype,", 1),
                    false => own.replacen(",long,", ",wrong,", 1),
                };
                assert_eq!(Some(own.as_str()), printed.next(), "{line}");
            }
            assert_eq!(printed.next(), None, "{line}");
        }
        assert_eq!(rows.next(), None, "{file}");
    }
    assert_eq!(points, 9);
    let header = fs::read_to_string(root.join("e/latency.csv")).unwrap();
    assert!(header.lines().next().unwrap().ends_with(COLUMNS));
    let seeds: Vec<&str> = (manifest["runs"][0]["points"].as_array().unwrap().iter())
        .map(|point| point["seed"].as_str().unwrap())
        .collect();
    assert_eq!(seeds, ["1", "1", "1", "1", "7", "7", "7", "7"]);
}

#[test]
fn a_manifest_repeats_its_experiment_alone() {
    let directory = prepared();
    let root = directory.path();
    done(root, "run e.toml --out first");
    let expected = names(&root.join("first"));
    assert_eq!(expected.len(), 8 + 4, "{expected:?}");

    // The file and its machine are gone, and the manifest is somewhere else.
    let other = tempfile::tempdir().unwrap();
    fs::copy(
        root.join("first/manifest.json"),
        other.path().join("m.json"),
    )
    .unwrap();
    done(other.path(), "run m.json");
    assert_eq!(names(&other.path().join("e-again")), expected);
    for name in expected.iter().filter(|name| *name != "manifest.json") {
        let [before, now] = [root.join("first"), other.path().join("e-again")]
            .map(|directory| fs::read(directory.join(name)).unwrap());
        assert!(before == now, "{name} differs");
    }
    let [before, now] = [root.join("first"), other.path().join("e-again")]
        .map(|directory| manifest(&directory.join("manifest.json")));
    for key in [
        "experiment_id",
        "experiment",
        "inputs",
        "machines",
        "files",
        "plots",
    ] {
        assert_eq!(before[key], now[key], "{key}");
    }

    // A result that was another one is told, after all was written.
    let said = fs::read_to_string(root.join("first/manifest.json")).unwrap();
    let hash = before["files"]["latency.csv"].as_str().unwrap();
    fs::write(other.path().join("m.json"), said.replace(hash, "00")).unwrap();
    let told = complaint(other.path(), "run m.json", 1);
    assert_eq!(told, "sme: latency.csv is not what it was before\n");

    // Texts that are not those of the hashes are no experiment.
    let forged = said.replace("Does a flat", "Does no flat");
    fs::write(other.path().join("m.json"), forged).unwrap();
    let told = complaint(other.path(), "run m.json", 2);
    assert!(told.contains("does not have the SHA-256"), "{told}");
}

/// Fields of pictures are those of the rows: of several files, of rows of another kind below, and
/// the ones that an experiment adds.
#[test]
fn pictures_may_have_every_field_of_their_rows() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let experiment = "[[runs]]\nrows = 'ping.json'\ncommand = 'mpi pingpong'\n\
         flags = { machine = 'mppa256', ranks = 2, sizes = '8,64,512', rounds = 1 }\n\
         [[runs]]\nrows = 'budget.csv'\ncommand = 'latency'\n\
         flags = { nodes = [2, 4], columns = 'operation,hops,total_ns' }\n\
         [[plots]]\npicture = 'lines.svg'\nrows = ['ping.json']\n\
         flags = { x = 'k_cycles_per_byte', y = 'h_cycles', series = 'between' }\n\
         [[plots]]\npicture = 'hops.svg'\nrows = ['budget.csv', 'ping.json']\n\
         flags = { x = 'hops', y = 'total_ns', series = ['source_file', 'point', 'operation'] }\n";
    fs::write(root.join("x.toml"), experiment).unwrap();
    let output = sme_in(root, "run x.toml");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stdout).matches("picture").count(), 2);
    // As the command says of the same picture: rows of the one file have no field of the other.
    let lines = fs::read_to_string(root.join("x/ping.json")).unwrap();
    let left_out = lines
        .lines()
        .filter(|row| !row.contains("k_cycles"))
        .count();
    let said = text(&output.stderr);
    let expected = format!("lines.svg: left out: {left_out} rows without these numbers\n");
    assert!(said.contains(&expected), "{said}");
    assert!(said.contains("hops.svg: left out: "), "{said}");
    assert_eq!(said.lines().count(), 2, "{said}");
}

/// The report shows critical paths that points write for themselves, too.
#[test]
fn the_report_has_paths_that_are_results() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    for flag in ["", ", explain-to = 'path-{point}.csv'"] {
        let experiment = format!(
            "[[runs]]\nrows = 'r.csv'\ncommand = 'barrier'\n\
             flags = {{ nodes = [2, 4], episodes = 1{flag} }}\n"
        );
        fs::write(root.join("x.toml"), experiment).unwrap();
        done(root, "run x.toml --report x.html");
        let page = fs::read_to_string(root.join("x.html")).unwrap();
        let heading = "critical paths of r.csv";
        assert!(page.contains(heading), "{flag}");
        assert_eq!(root.join("x/path-1.csv").exists(), !flag.is_empty());
    }
}

#[test]
fn files_of_others_stay() {
    let directory = prepared();
    let root = directory.path();
    fs::create_dir(root.join("out")).unwrap();
    fs::write(root.join("out/latency.csv"), "mine").unwrap();
    let told = complaint(root, "run e.toml --out out", 2);
    assert!(
        told.contains("manifest.json there does not list it"),
        "{told}"
    );
    assert_eq!(
        fs::read_to_string(root.join("out/latency.csv")).unwrap(),
        "mine"
    );
    let told = complaint(root, "run e.toml --out e.toml", 2);
    assert!(told.contains("is no directory"), "{told}");
    let told = complaint(root, "run e.toml --report mine.html/x.html", 2);
    assert!(told.contains("cannot be written"), "{told}");

    // Those of an experiment are replaced, and no others are touched.
    done(root, "run e.toml");
    fs::write(root.join("e/notes.txt"), "mine").unwrap();
    done(root, "run e.toml");
    assert_eq!(
        fs::read_to_string(root.join("e/notes.txt")).unwrap(),
        "mine"
    );
    let told = complaint(root, "run e/manifest.json --out e", 2);
    assert!(told.contains("is a file that is read"), "{told}");

    // A machine that is read is no result, nor is the experiment.
    let text = "[[runs]]\nrows = 'a.csv'\ncommand = 'latency'\nflags = { machine = 'a.toml' }";
    fs::write(root.join("x.toml"), text.replace("a.csv", "x.json")).unwrap();
    fs::rename(root.join("mine.toml"), root.join("a.toml")).unwrap();
    done(root, "run x.toml --out .");
    assert!(root.join("x.json").exists());
}

/// What would lose results is known before anything is simulated, and what cannot be foreseen keeps
/// them.
#[test]
fn no_result_is_lost() {
    let directory = prepared();
    let root = directory.path();
    fs::write(root.join("file"), "").unwrap();
    for (out, named) in [
        ("file/sub", "file is no directory"),
        ("file", "file is no directory"),
    ] {
        let told = complaint(root, &format!("run e.toml --out {out}"), 2);
        assert!(told.contains(named), "{out}: {told}");
    }
    done(root, "run e.toml");
    // A result that somebody has changed, or that is a directory now, stays.
    fs::write(root.join("e/latency.csv"), "mine").unwrap();
    let told = complaint(root, "run e.toml", 2);
    assert!(told.contains("is not what the experiment wrote"), "{told}");
    assert_eq!(
        fs::read_to_string(root.join("e/latency.csv")).unwrap(),
        "mine"
    );
    fs::remove_file(root.join("e/latency.csv")).unwrap();
    fs::remove_file(root.join("e/latency.svg")).unwrap();
    fs::create_dir(root.join("e/latency.svg")).unwrap();
    let told = complaint(root, "run e.toml", 2);
    assert!(told.contains("is not a regular file"), "{told}");
    assert!(
        !root.join("e/latency.csv").exists(),
        "nothing was published"
    );
    fs::remove_dir(root.join("e/latency.svg")).unwrap();

    // The page may be among the results, also the first time; a report that cannot be written
    // costs no result.
    done(root, "run e.toml --out new --report new/r.html");
    assert!(root.join("new/r.html").exists());
    #[cfg(target_os = "linux")]
    {
        let told = complaint(root, "run e.toml --report /dev/full", 2);
        assert!(told.contains("cannot be written"), "{told}");
        assert!(root.join("e/manifest.json").exists() && root.join("e/latency.csv").exists());
    }
    let left: Vec<String> = names(root);
    assert!(left.iter().all(|name| !name.starts_with('.')), "{left:?}");
}

/// Names of flags lead to no file, and files of machines are found from the experiment by every
/// command.
#[test]
fn an_experiment_writes_its_results_alone() {
    let directory = prepared();
    let root = directory.path();
    fs::create_dir(root.join("sub,dir")).unwrap();
    fs::rename(root.join("mine.toml"), root.join("sub,dir/mine.toml")).unwrap();
    let run = |flags: &str| {
        let text = format!("[[runs]]\nrows = 'a.csv'\ncommand = 'barrier'\nflags = {{ {flags} }}");
        fs::write(root.join("sub,dir/x.toml"), text).unwrap();
    };
    for flags in [
        "'timeline=../evil' = ''",
        "'timeline=/evil' = '-.pftrace'",
        "help = true",
        "'' = true",
    ] {
        run(flags);
        let told = complaint(root, "run sub,dir/x.toml", 2);
        assert!(
            told.starts_with("sme: sub,dir/x.toml: line 1: "),
            "{flags}: {told}"
        );
    }
    run("nodes = 2, cores = 1, episodes = 1, machine = 'mine.toml'");
    done(root, "run sub,dir/x.toml");
    let machines = |file: &str| manifest(&root.join(file))["machines"].clone();
    assert_eq!(machines("x/manifest.json")[0]["machine"], "mine.toml");

    fs::create_dir(root.join("plain")).unwrap();
    fs::rename(root.join("sub,dir/mine.toml"), root.join("plain/mine.toml")).unwrap();
    fs::write(
        root.join("plain/c.toml"),
        "[[runs]]\nrows = 'c.csv'\ncommand = 'mpi compare'\n\
         flags = { machines = 'mine.toml,scc', ranks = 2, rounds = 1 }",
    )
    .unwrap();
    done(root, "run plain/c.toml");
    assert_eq!(machines("c/manifest.json").as_array().unwrap().len(), 2);
    fs::remove_dir_all(root.join("plain")).unwrap();
    done(root, "run c/manifest.json");
    assert_eq!(names(root), ["c", "c-again", "e.toml", "sub,dir", "x"]);
}

/// A machine of the file that no point takes is told, and one line says which.
#[test]
fn a_machine_that_no_run_takes_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let machine = |name: &str| format!("[machines.{name}]\nbase = 'ideal'\n");
    let run = "[[runs]]\nrows = 'a.csv'\ncommand = 'barrier'\n\
               flags = { nodes = 2, cores = 1, episodes = 1, machine = 'near' }";
    let all = [machine("near"), machine("far"), run.to_owned()].concat();
    fs::write(root.join("m.toml"), all).unwrap();
    let output = sme_in(root, "run m.toml");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(
        text(&output.stderr),
        "warning: machines.far: no run takes it\n"
    );
}

/// A failure is told though nobody reads stdout.
#[cfg(unix)]
#[test]
fn a_closed_stdout_hides_no_failure() {
    let directory = prepared();
    let root = directory.path();
    done(root, "run e.toml");
    let said = fs::read_to_string(root.join("e/manifest.json")).unwrap();
    let hash = manifest(&root.join("e/manifest.json"))["files"]["latency.csv"].clone();
    fs::write(
        root.join("m.json"),
        said.replace(hash.as_str().unwrap(), "00"),
    )
    .unwrap();
    let line = format!("{} run m.json >&-; echo $?", env!("CARGO_BIN_EXE_sme"));
    let output = std::process::Command::new("sh")
        .args(["-c", &line])
        .current_dir(root)
        .output()
        .unwrap();
    assert_eq!(text(&output.stdout), "1\n", "{}", text(&output.stderr));
}

/// A point that fails is told, in the manifest and on the page; the others have their rows.
#[test]
fn a_point_that_fails_costs_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    fs::write(
        root.join("f.toml"),
        "[[runs]]\nrows = 'fft.csv'\ncommand = 'fft'\n\
         flags = { log2n = 8, nodes = 4, cores = 1, coherence-point = ['barrier', 'none'] }",
    )
    .unwrap();
    let output = sme_in(root, "run f.toml --report f.html");
    assert_eq!(output.status.code(), Some(1));
    // The program itself tells of the words that were not written back.
    let told = text(&output.stderr).lines().last().unwrap().to_owned();
    assert!(told.starts_with("sme: fft.csv: point 1: "), "{told}");
    let manifest = manifest(&root.join("f/manifest.json"));
    let points = manifest["runs"][0]["points"].as_array().unwrap();
    assert!(points[0]["failed"].is_null() && points[1]["failed"].is_string());
    let rows = fs::read_to_string(root.join("f/fft.csv")).unwrap();
    assert!(rows.lines().nth(1).unwrap().ends_with(",0"), "{rows}");
    let page = fs::read_to_string(root.join("f.html")).unwrap();
    assert!(page.contains("<h2>Failures</h2>"));
}

/// Writes an experiment into a directory, and begins it there.
#[cfg(unix)]
fn begun(root: &Path, file: &str, experiment: &str) -> std::process::Child {
    use std::process::{Command, Stdio};

    fs::write(root.join(file), experiment).unwrap();
    Command::new(env!("CARGO_BIN_EXE_sme"))
        .args(["run", file])
        .current_dir(root)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// An experiment that is ended by a signal leaves neither results nor unfinished files.
#[cfg(unix)]
#[test]
fn a_signal_leaves_nothing() {
    use crate::command::ends;

    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let mut child = begun(
        root,
        "long.toml",
        "[[runs]]\nrows = 'a.csv'\ncommand = 'barrier'\n\
         flags = { episodes = 100, seed = [1, 2, 3, 4, 5, 6, 7, 8], nodes = [8, 16, 32, 64], \
         timeline = 't{point}.pftrace' }",
    );
    // Until it writes there.
    let is_writing = || {
        names(root).iter().any(|name| {
            name.starts_with('.')
                && !names(&root.join(name)).contains(&"a.csv".to_owned())
                && names(&root.join(name))
                    .iter()
                    .any(|name| name.starts_with('t'))
        })
    };
    while !is_writing() {
        assert!(child.try_wait().unwrap().is_none(), "it has ended");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert!(ends(&child));
    assert!(!child.wait().unwrap().success());
    assert_eq!(names(root), ["long.toml"]);
}

/// Nor does one whose points, which miss their files then, end at once: whenever the signal comes.
#[cfg(unix)]
#[test]
fn a_signal_between_short_points_leaves_nothing() {
    use std::time::Duration;

    use crate::command::ends;

    for delay in 0..12 {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let mut child = begun(
            root,
            "short.toml",
            "[[runs]]\nrows = 'a.csv'\ncommand = 'barrier'\n\
             flags = { episodes = 1, nodes = [2, 3, 4], seed = [1, 2, 3, 4, 5, 6, 7, 8, 9], \
             timeline = 't{point}.pftrace' }",
        );
        let has_begun = || names(root).iter().any(|name| name.starts_with('.'));
        while !has_begun() && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_micros(100));
        }
        std::thread::sleep(Duration::from_millis(3 * delay));
        let was_there = ends(&child);
        let ended = child.wait().unwrap();
        match names(root).contains(&"short".to_owned()) {
            // It was too late.
            true => assert!(root.join("short/manifest.json").exists(), "{delay}"),
            false => assert!(was_there && ended.code().is_none(), "{delay}: {ended}"),
        }
        assert!(!has_begun(), "{delay}: {:?}", names(root));
    }
}

/// The chapter shows the example as it is.
#[test]
fn the_chapter_shows_the_example() {
    let update = std::env::var_os("UPDATE").is_some();
    let _alone = update.then(|| WRITING.lock().unwrap());
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let [chapter, example] = ["docs/experiments.md", "examples/tree-or-flat.toml"]
        .map(|file| fs::read_to_string(root.join(file)).unwrap());
    let (before, rest) = chapter.split_once("```toml\n").unwrap();
    let (shown, after) = rest.split_once("```\n").unwrap();
    if update {
        let chapter = format!("{before}```toml\n{example}```\n{after}");
        return fs::write(root.join("docs/experiments.md"), chapter).unwrap();
    }
    assert!(shown == example, "docs/experiments.md (.ci/refresh)");
}
