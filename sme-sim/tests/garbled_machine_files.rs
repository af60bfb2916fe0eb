//! Machine files and overrides garbled at random, huge files and pipes: never a panic, and either a
//! machine that can be simulated or one line that says where the mistake is.

use proptest::prelude::*;
use sme_sim::machine::{Machine, ValueDomain};
use sme_sim::time::Time;

const PROTOTYPE: &str = include_str!("../../machines/sme-prototype.toml");

fn prototype() -> Machine {
    Machine::builtin("sme-prototype").expect("it is built in")
}

/// One thing done to a file.
#[derive(Clone, Debug)]
enum Mutation {
    DeleteLine(usize),
    DuplicateLine(usize),
    SwapLines(usize, usize),
    /// Of the line's tokens (words, numbers, signs), one is deleted.
    DeleteToken(usize, usize),
    /// One is replaced.
    ReplaceToken(usize, usize, String),
    /// The rest is missing.
    Truncate(usize),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let token = prop_oneof![
        "\\PC{0,6}",
        "[0-9]{1,25}",
        "-?[0-9]{1,3}(\\.[0-9]{0,30})?( ?(ns|us|MHz|GHz|B|GiB|MB/s|cycles|bit))?",
        "[\"'{}\\[\\]=,.#\\n\\\\]{1,3}",
        Just("nan".to_owned()),
        Just("value".to_owned()),
        Just("fitted".to_owned()),
        Just("\u{0}".to_owned()),
    ];
    let line = 0usize..80;
    let place = 0usize..40;
    prop_oneof![
        1 => line.clone().prop_map(Mutation::DeleteLine),
        1 => line.clone().prop_map(Mutation::DuplicateLine),
        1 => (line.clone(), line.clone()).prop_map(|(a, b)| Mutation::SwapLines(a, b)),
        1 => (line.clone(), place.clone()).prop_map(|(line, at)| Mutation::DeleteToken(line, at)),
        4 => (line, place, token).prop_map(|(line, at, token)| Mutation::ReplaceToken(line, at, token)),
        1 => (0usize..6000).prop_map(Mutation::Truncate),
    ]
}

/// Words, runs of digits and points, single other characters; together they are the line.
fn tokens(line: &str) -> Vec<String> {
    let kind = |c: char| match c {
        c if c.is_alphabetic() || c == '_' => 0,
        c if c.is_ascii_digit() || c == '.' => 1,
        _ => 2,
    };
    let mut tokens: Vec<String> = Vec::new();
    let mut last = 2;
    for c in line.chars() {
        match tokens.last_mut() {
            Some(token) if kind(c) == last && last != 2 => token.push(c),
            _ => tokens.push(c.to_string()),
        }
        last = kind(c);
    }
    tokens
}

fn mutate(text: &str, mutation: &Mutation) -> String {
    let mut lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
    let count = lines.len();
    let edit = |line: &mut String, edit: &dyn Fn(&mut Vec<String>)| {
        let mut parts = tokens(line);
        if !parts.is_empty() {
            edit(&mut parts);
        }
        *line = parts.concat();
    };
    match mutation {
        Mutation::DeleteLine(line) => {
            lines.remove(line % count);
        }
        Mutation::DuplicateLine(line) => lines.insert(line % count, lines[line % count].clone()),
        Mutation::SwapLines(a, b) => lines.swap(a % count, b % count),
        Mutation::DeleteToken(line, at) => edit(&mut lines[line % count], &|parts| {
            parts.remove(at % parts.len());
        }),
        Mutation::ReplaceToken(line, at, token) => edit(&mut lines[line % count], &|parts| {
            let at = at % parts.len();
            parts[at].clone_from(token);
        }),
        Mutation::Truncate(bytes) => {
            let end = (0..=*bytes.min(&text.len()))
                .rev()
                .find(|end| text.is_char_boundary(*end))
                .unwrap_or(0);
            return text[..end].to_owned();
        }
    }
    lines.join("\n")
}

fn is_one_line_that_starts_with(start: &str, message: &str) -> bool {
    message.starts_with(start) && !message.contains(char::is_control)
}

/// Checks the promises of the limits on the description itself.
fn is_possible(machine: &Machine) -> bool {
    let spec = sme_sim::families::sme::of(machine).expect("an SME cluster");
    let cores = spec.node.sockets * spec.node.cores_per_socket;
    let delays = [
        spec.cache.l3,
        spec.coherence.dram,
        spec.uncached.turnaround,
        spec.host.delay,
        spec.link.wire,
    ];
    (1..=1023).contains(&cores)
        && spec.node.shared_bytes.is_power_of_two()
        && spec.node.global_base >= spec.node.private_bytes + spec.node.shared_bytes
        && [32, 64].contains(&spec.cache.private.line().bytes())
        && spec.cache.l1_cycles > 0
        && spec.link.crossing_cycles(spec.engine.clock) > 0
        && (1..=32).contains(&spec.engine.tags)
        && spec.link.bytes_per_second <= spec.longest_packet_bytes() * spec.engine.clock.hz()
        && delays
            .iter()
            .all(|delay| *delay <= Time::from_ns(1_000_000))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_garbled_file_is_read_or_refused_in_one_line(mutations in prop::collection::vec(mutation(), 1..4)) {
        let text = mutations.iter().fold(PROTOTYPE.to_owned(), |text, mutation| mutate(&text, mutation));
        match Machine::parse("machines/x.toml", &text) {
            Ok(machine) => {
                prop_assert!(is_possible(&machine));
                prop_assert!(machine.show().lines().count() > machine.constants().len());
            }
            Err(error) => {
                let message = error.to_string();
                prop_assert!(is_one_line_that_starts_with("machines/x.toml:", &message), "{:?}", message);
                if let Some(line) = message["machines/x.toml:".len()..].split(':').next().and_then(|line| line.parse().ok()) {
                    prop_assert!((1..=text.matches('\n').count() + 1).contains(&line), "{}", message);
                }
            }
        }
    }

    #[test]
    fn a_garbled_override_is_taken_or_refused_in_one_line(
        known in 0usize..60,
        section in "[a-z_]{0,8}",
        key in "\\PC{0,10}",
        use_known: bool,
        value in prop_oneof![
            "\\PC{0,12}",
            "[\\x00-\\x7f]{0,8}",
            "-?[0-9]{1,12}(\\.[0-9]{0,8})? ?(ns|us|s|MHz|GHz|B|KiB|GiB|TiB|MB/s|cycles|bit)?",
        ],
    ) {
        let machine = prototype();
        let constants = machine.constants();
        let name = if use_known { constants[known % constants.len()].name() } else { format!("{section}.{key}") };
        match machine.with(&[(&name, &value)]) {
            Ok(changed) => {
                prop_assert!(is_possible(&changed));
                let (recorded, text) = &changed.overrides()[0];
                prop_assert_eq!(recorded, name.trim());
                // The recorded settings, given again, make the same machine.
                let again = machine.with(&[(recorded, text)]).unwrap();
                prop_assert_eq!(again.hash(), changed.hash());
                prop_assert_eq!(sme_sim::families::sme::of(&again).unwrap(), sme_sim::families::sme::of(&changed).unwrap());
            }
            Err(error) => prop_assert!(is_one_line_that_starts_with("--set ", &error.to_string()), "{:?}", error),
        }
    }

    #[test]
    fn every_allowed_amount_is_accepted_and_no_other(which in 0usize..60, amount: u64, shift in 0u32..64) {
        let machine = prototype();
        let constant = &machine.constants()[which % machine.constants().len()];
        let ValueDomain::Quantity(limits) = &constant.domain else { return Ok(()); };
        let amount = if limits.power_of_two { 1 << shift } else { amount >> shift };
        let text = limits.dimension.write(amount);
        let allowed = (limits.least..=limits.most).contains(&amount);
        // Amounts that must fit others besides.
        let rule = match constant.section {
            "node" => true,
            "cache" => constant.key.ends_with("_size") || constant.key.ends_with("_ways"),
            "link" => constant.key == "bandwidth",
            "engine" => constant.key == "clock",
            _ => false,
        };
        let taken = machine.with(&[(constant.name(), text)]);
        match taken {
            Ok(changed) => {
                prop_assert!(allowed);
                prop_assert_eq!(changed.constant(&constant.name()).unwrap().amount, Some(amount));
            }
            Err(error) => prop_assert!(!allowed || rule, "{}", error),
        }
    }
}

#[test]
fn of_many_thousand_mistakes_the_first_is_told() {
    // Just below the size that is read; where each cost a walk through the file, this took minutes.
    let unknown: String = (0..100_000).map(|key| format!("k{key}=1\n")).collect();
    for (text, line) in [
        (unknown.clone(), r#"1: unknown key "k0""#),
        (
            format!("{PROTOTYPE}{unknown}"),
            "k0: give the value with where it comes from",
        ),
    ] {
        let message = Machine::parse("x.toml", &text).unwrap_err().to_string();
        assert!(message.contains(line), "{message}");
    }
}

#[cfg(unix)]
#[test]
fn a_pipe_is_refused_and_not_waited_for() {
    let directory = std::env::temp_dir().join(format!("sme-pipe-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let path = directory.join("x.toml");
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    let made = made.is_ok_and(|status| status.success());
    let message = Machine::load(path.to_str().unwrap())
        .unwrap_err()
        .to_string();
    std::fs::remove_dir_all(&directory).unwrap();
    assert!(
        !made || message.contains("is no file but a pipe or a device"),
        "{message}"
    );
}
