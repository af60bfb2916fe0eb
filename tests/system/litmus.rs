//! Litmus tests: the verdicts that docs/litmus.md gives, what the models of memory allow, and the
//! command's output, complaints and exit status.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;

use proptest::prelude::*;
use sme::litmus::{Exploration, MemoryKind, Setting, Spread};
use sme_fft_demo::litmus::{
    FinalState, Instruction, Model, Register, Source, Test, outcomes, parse,
};
use sme_sim::machine::Machine;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Runs `sme litmus` with these arguments, separated by blanks, where the tests lie.
fn litmus(arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sme"))
        .arg("litmus")
        .args(arguments.split_whitespace())
        .current_dir(root())
        .output()
        .unwrap()
}

fn stdout(arguments: &str) -> String {
    let output = litmus(arguments);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, "", "{arguments}");
    assert_eq!(output.status.code(), Some(0), "{arguments}");
    String::from_utf8(output.stdout).unwrap()
}

/// The files that are shipped, by the names of their tests.
fn shipped() -> BTreeMap<String, Arc<Test>> {
    let files = fs::read_dir(root().join("litmus")).unwrap();
    files
        .map(|file| {
            let test = parse(&fs::read_to_string(file.unwrap().path()).unwrap()).unwrap();
            (test.name.clone(), Arc::new(test))
        })
        .collect()
}

/// The kinds of memory, in the order of the columns of docs/litmus.md.
const KINDS: [(&str, MemoryKind, Spread); 5] = [
    ("--memory local", MemoryKind::Local, Spread::OneNode),
    (
        "--memory engine --spread one-node",
        MemoryKind::Engine,
        Spread::OneNode,
    ),
    (
        "--memory engine --spread one-per-node",
        MemoryKind::Engine,
        Spread::OnePerNode,
    ),
    (
        "--memory cached --spread one-node",
        MemoryKind::Cached,
        Spread::OneNode,
    ),
    (
        "--memory cached --spread one-per-node",
        MemoryKind::Cached,
        Spread::OnePerNode,
    ),
];

/// The verdicts of docs/litmus.md: a row for each test, a column for each of [`KINDS`].
fn documented() -> BTreeMap<String, Vec<String>> {
    let document = fs::read_to_string(root().join("docs/litmus.md")).unwrap();
    let rows = document.lines().filter_map(|line| {
        let mut cells = line.split('|').map(str::trim).skip(1);
        let name = cells.next()?.strip_prefix('`')?.strip_suffix('`')?;
        let verdicts: Vec<String> = cells.map(str::to_owned).filter(|c| !c.is_empty()).collect();
        let is_verdict = |cell: &String| ["Never", "Sometimes", "Always"].contains(&cell.as_str());
        let is_row = verdicts.len() == KINDS.len() && verdicts.iter().all(is_verdict);
        is_row.then(|| (name.to_owned(), verdicts))
    });
    rows.collect()
}

#[test]
fn the_verdicts_are_those_of_the_document() {
    let (documented, shipped) = (documented(), shipped());
    assert!(documented.keys().eq(shipped.keys()), "{documented:?}");
    let files: Vec<String> = shipped
        .keys()
        .map(|name| format!("litmus/{name}.litmus"))
        .collect();
    for (column, (flags, ..)) in KINDS.iter().enumerate() {
        let printed = stdout(&format!("{} {flags}", files.join(" ")));
        let observed: BTreeMap<&str, &str> = printed
            .lines()
            .filter_map(|line| {
                let mut words = line.strip_prefix("Observation ")?.split(' ');
                Some((words.next()?, words.next()?))
            })
            .collect();
        for (name, verdicts) in &documented {
            assert_eq!(
                observed[name.as_str()],
                verdicts[column],
                "{name} with {flags}"
            );
        }
    }
}

/// The models say the same: what is never observed with the shipped tests is what they forbid, what
/// is always observed is all that they allow.
#[test]
fn the_verdicts_are_those_of_the_models() {
    let (documented, shipped) = (documented(), shipped());
    for (column, (flags, memory, spread)) in KINDS.into_iter().enumerate() {
        for (name, test) in &shipped {
            let setting = setting(memory, spread, 0, 1);
            let states = outcomes(test, &setting.model(test)).unwrap();
            let proposition = &test.condition.proposition;
            let held: BTreeSet<bool> = states
                .iter()
                .map(|state| proposition.holds(state))
                .collect();
            let verdict = match (held.contains(&true), held.contains(&false)) {
                (true, true) => "Sometimes",
                (true, false) => "Always",
                _ => "Never",
            };
            assert_eq!(documented[name][column], verdict, "{name} with {flags}");
        }
    }
}

pub(crate) fn setting(memory: MemoryKind, spread: Spread, runs: u32, seed: u64) -> Setting {
    Setting {
        machine: Arc::new(Machine::builtin("sme-prototype").unwrap()),
        memory,
        spread,
        nodes: None,
        homes: None,
        runs,
        seed,
    }
}

/// The states that runs show and `model` does not allow.
fn forbidden(test: &Arc<Test>, setting: &Setting, model: &Model) -> BTreeSet<FinalState> {
    let allowed = outcomes(test, model).unwrap();
    let exploration = Exploration::new(setting, test).unwrap();
    let seen = (0..setting.runs).map(|run| exploration.run(run).unwrap());
    seen.filter(|state| !allowed.contains(state)).collect()
}

/// Any test of up to three threads, two locations and three instructions per thread.
fn any_test() -> impl Strategy<Value = Arc<Test>> {
    let instruction = prop_oneof![
        3 => (0usize..2, 0usize..2).prop_map(|(to, from)| Instruction::Load {
            to: Register::named(["EAX", "EBX"][to]).unwrap(),
            from,
        }),
        3 => (0usize..2, 1i32..4).prop_map(|(to, value)| Instruction::Store {
            to,
            value: Source::Immediate(value),
        }),
        1 => Just(Instruction::Fence),
    ];
    let thread = prop::collection::vec(instruction, 1..4);
    prop::collection::vec(thread, 2..4).prop_map(|threads| {
        let text = "X86 any\n{ x=0; y=7; }\n P0 ;\nlocations [x; y;]";
        Arc::new(Test {
            registers: vec![Vec::new(); threads.len()],
            threads,
            ..parse(text).unwrap()
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, ..ProptestConfig::default() })]

    #[test]
    fn no_run_shows_what_its_memory_does_not_allow(test in any_test(), seed: u64) {
        for (flags, memory, spread) in KINDS {
            let setting = setting(memory, spread, 40, seed);
            let found = forbidden(&test, &setting, &setting.model(&test));
            prop_assert!(found.is_empty(), "{}{}: {:?}", test, flags, found);
        }
    }
}

/// The search would notice memory that is weaker than its model.
#[test]
fn a_model_that_allows_too_little_is_caught() {
    let shipped = shipped();
    for (name, memory, spread, model) in [
        (
            "SB",
            MemoryKind::Local,
            Spread::OneNode,
            Model::SequentiallyConsistent,
        ),
        (
            "SB+mfences",
            MemoryKind::Engine,
            Spread::OnePerNode,
            Model::TotalStoreOrder,
        ),
        (
            "dekker-sec7",
            MemoryKind::Cached,
            Spread::OnePerNode,
            Model::SequentiallyConsistent,
        ),
    ] {
        let setting = setting(memory, spread, 300, 1);
        let found = forbidden(&shipped[name], &setting, &model);
        assert!(!found.is_empty(), "{name}");
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_does_not() {
    let flags = "litmus/SB.litmus litmus/IRIW.litmus --memory engine --runs 200";
    let once = stdout(&format!("{flags} --seed 3"));
    assert_eq!(stdout(&format!("{flags} --seed 3")), once);
    assert_ne!(stdout(&format!("{flags} --seed 4")), once);
}

#[test]
fn it_prints_what_litmus7_prints() {
    let printed = stdout("litmus/SB+mfences.litmus --memory cached --runs 50");
    assert_eq!(
        printed,
        "Test SB+mfences Allowed\n\
         Histogram (1 states)\n\
         50    *>0:EAX=0; 1:EAX=0; allowed\n\
         Ok\n\
         \n\
         Witnesses\n\
         Positive: 50, Negative: 0\n\
         Condition exists (0:EAX=0 /\\ 1:EAX=0) is validated\n\
         Observation SB+mfences Always 50 0\n\
         Model incoherent: 1 outcomes allowed, 1 seen, 0 unseen; 0 forbidden seen\n"
    );
}

#[test]
fn rows_say_what_the_text_says() {
    // So few runs leave allowed outcomes unseen.
    let flags = "litmus/SB.litmus litmus/2+2W.litmus --memory engine --homes 1,0 --runs 2";
    let csv = stdout(&format!("{flags} --format csv"));
    let json = stdout(&format!("{flags} --format json"));
    assert_eq!(csv.lines().count(), json.lines().count() + 1);
    let text = stdout(flags);
    let (mut runs, mut unseen_rows) = (BTreeMap::new(), 0);
    for line in json.lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let count = row["count"].as_u64().unwrap();
        *runs.entry(row["test"].to_string()).or_insert(0) += count;
        let state = row["state"].as_str().unwrap();
        let mark = row["mark"].as_str().unwrap();
        let verdict = row["model_verdict"].as_str().unwrap();
        assert_eq!((verdict, &row["model"]), ("allowed", &"posted".into()));
        let said = match count {
            0 => format!("Unseen {mark}>{state}\n"),
            _ => format!("{count:<6}{mark}>{state} {verdict}\n"),
        };
        assert!(text.contains(&said), "{line}");
        let outcomes = ["allowed", "unseen"].map(|which| &row[format!("outcomes_{which}")]);
        let [allowed, unseen] = outcomes.map(|outcomes| outcomes.as_u64().unwrap());
        unseen_rows += u64::from(count == 0);
        assert!(allowed == 4 && (2..4).contains(&unseen), "{line}");
        assert_eq!(row["homes"], "1 0");
    }
    assert!(runs.values().all(|&sum| sum == 2) && runs.len() == 2);
    assert!((4..8).contains(&unseen_rows), "{json}");
}

#[test]
fn what_cannot_be_run_is_a_line_and_status_2() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &[u8]| {
        let path = directory.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let exchange = file("a", b"X86 a\n{ }\n P0 ;\n XCHG [x],EAX ;\n");
    let binary = file("b", b"\xff\xfe");
    let large = file("c", &vec![b'\n'; 2 << 20]);
    let columns: Vec<String> = (0..20).map(|n| format!("P{n}")).collect();
    let wide = file(
        "d",
        format!("X86 d\n{{ }}\n{};\n", columns.join("|")).as_bytes(),
    );
    for (arguments, named) in [
        ("", "FILE"),
        ("no-such.litmus", "no-such.litmus: cannot be read"),
        ("litmus", "litmus: cannot be read"),
        (
            &exchange,
            "line 4, column 2: XCHG is not supported: the subset is",
        ),
        (&binary, "is no text"),
        (&large, "at most 1048576"),
        (&wide, "20 threads"),
        ("litmus/SB.litmus --memory locl", "did you mean 'local'"),
        (
            "litmus/SB.litmus --spread one-per-node",
            "use --spread one-node, or --memory engine",
        ),
        ("litmus/SB.litmus --homes 0", "--homes"),
        ("litmus/SB.litmus --memory engine --homes 0,2", "node 2"),
        ("litmus/IRIW.litmus --memory engine --nodes 3", "--nodes"),
        ("litmus/SB.litmus --runs 0", "--runs 0"),
        ("litmus/SB.litmus --machine no-such", "--machine"),
        (
            "--cycle PodWR,Rfe,PodWR,Fre",
            "--cycle 'PodWR,Rfe,PodWR,Fre': Rfe cannot follow PodWR",
        ),
        ("--cycle Pod\u{1b}", "`Pod\\u{1b}` is no edge"),
        ("--cycles 4", "--cycles 4"),
        ("--cycles 2 --memory engine --nodes 1", "PodWW"),
        // Nothing of the first is printed when the second is refused.
        ("litmus/SB.litmus no-such.litmus", "no-such.litmus"),
    ] {
        let output = litmus(arguments);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments}: {said}");
        assert!(output.stdout.is_empty(), "{arguments}");
        assert_eq!(said.lines().count(), 1, "{arguments}: {said}");
        assert!(said.contains(named), "{arguments}: {said}");
    }
}

/// The test of a cycle is printed in the format, and runs as the file of the same test does.
#[test]
fn a_cycle_is_a_test() {
    let printed = stdout("--cycle PodWW,Coe,PodWR,Fre --print");
    let (made, known) = (parse(&printed).unwrap(), &shipped()["R"]);
    assert_eq!(made.threads, known.threads, "{printed}");
    let flags = "--runs 300 --seed 2";
    let histogram = |text: String| {
        let lines = text.lines().filter(|line| line.contains('>'));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let of_cycle = histogram(stdout(&format!("--cycle PodWW,Coe,PodWR,Fre {flags}")));
    assert_eq!(
        of_cycle,
        histogram(stdout(&format!("litmus/R.litmus {flags}")))
    );
    assert!(
        of_cycle.iter().any(|line| line.contains("*>")),
        "{of_cycle:?}"
    );

    let all = stdout("--cycles 2 --runs 20");
    let tests = all.lines().filter(|line| line.starts_with("Test ")).count();
    let last = all.lines().last().unwrap();
    let begins = format!("All {tests} tests, model x86-TSO: ");
    assert!(last.starts_with(&begins), "{last}");
    assert!(last.ends_with("; 0 forbidden seen"), "{last}");
    let row = stdout("--cycle PodWW,Coe,PodWR,Fre --runs 1 --format json");
    assert!(
        row.contains("\"file\":null,\"test\":\"PodWW+Coe+PodWR+Fre\""),
        "{row}"
    );
}

#[test]
fn helps_with_examples() {
    let help = stdout("--help");
    assert!(help.contains("sme litmus litmus/SB.litmus"));
}

#[test]
fn a_pool_has_no_local_memory() {
    let cycle = "--cycle PodWR,Fre,PodWR,Fre --runs 10 --machine cxl-pool";
    let output = litmus(cycle);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("use --memory engine or cached"), "{said}");
    stdout(&format!("{cycle} --memory engine"));
}
