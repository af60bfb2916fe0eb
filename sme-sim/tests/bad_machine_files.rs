//! Every message about a machine that is not: bad files, names and paths.

use std::fs;
use std::path::PathBuf;

use sme_sim::machine::Machine;

const PROTOTYPE: &str = include_str!("../../machines/sme-prototype.toml");

fn prototype() -> Machine {
    Machine::builtin("sme-prototype").expect("it is built in")
}

/// Finds `[section]` and, in it, the line that begins with `key` in the prototype's file: the byte,
/// and the line from 1. The key `""` is the section itself.
fn find(section: &str, key: &str) -> (usize, usize) {
    let from = match section {
        "" => 0,
        _ => {
            PROTOTYPE
                .find(&format!("\n[{section}]\n"))
                .expect("the section exists")
                + 1
        }
    };
    let at = match key {
        "" => from,
        _ => {
            from + PROTOTYPE[from..]
                .find(&format!("\n{key} = "))
                .expect("the key exists")
                + 1
        }
    };
    (at, 1 + PROTOTYPE[..at].matches('\n').count())
}

fn line_of(section: &str, key: &str) -> usize {
    find(section, key).1
}

/// The prototype's file with the line of `section.key` replaced by `line`, or deleted.
fn replaced(section: &str, key: &str, line: Option<&str>) -> String {
    let (from, _) = find(section, key);
    let end = PROTOTYPE[from..]
        .find('\n')
        .map_or(PROTOTYPE.len(), |end| from + end + 1);
    let line = line.map_or(String::new(), |line| format!("{line}\n"));
    format!("{}{line}{}", &PROTOTYPE[..from], &PROTOTYPE[end..])
}

/// The prototype's file with another value, in TOML's notation, for `section.key`.
fn valued(section: &str, key: &str, value: &str) -> String {
    let line = format!("{key} = {{ value = {value}, source = \"assumed\", where = \"a test\" }}");
    replaced(section, key, Some(&line))
}

fn error_of(text: &str) -> String {
    match Machine::parse("m.toml", text) {
        Ok(_) => panic!("parsed:\n{text}"),
        Err(error) => error.to_string(),
    }
}

/// Checks the message about a file with `section.key` set to each value, in TOML's notation.
fn check_values(section: &str, key: &str, cases: &[(&str, &str)]) {
    for (value, message) in cases {
        let expected = format!(
            "m.toml:{}: {section}.{key}: {message}",
            line_of(section, key)
        );
        assert_eq!(error_of(&valued(section, key, value)), expected);
    }
}

#[test]
fn every_message_about_a_bad_quantity() {
    check_values(
        "engine",
        "clock",
        &[
            (r#""156""#, r#""156" has no unit; write e.g. "156 MHz""#),
            ("156", r#""156" has no unit; write e.g. "156 MHz""#),
            (
                r#""156 Mhz""#,
                r#"unknown unit "Mhz" in "156 Mhz"; did you mean "MHz"?"#,
            ),
            (
                r#""156 ns""#,
                r#""156 ns" is a time, not a frequency; a frequency is written in Hz, kHz, MHz or GHz"#,
            ),
            (r#""-156 MHz""#, r#""-156 MHz" is negative"#),
            ("-156", r#""-156" is negative"#),
            (
                r#""0 MHz""#,
                r#""0 MHz" is not allowed: it must be from 1 MHz to 100 GHz"#,
            ),
            (
                r#""NaN""#,
                r#""NaN" does not begin with a number such as 12 or 1.5; write e.g. "1 MHz""#,
            ),
            (
                "nan",
                r#""nan" does not begin with a number such as 12 or 1.5; write e.g. "1 MHz""#,
            ),
            (r#""1.5 Hz""#, r#""1.5 Hz" is not a whole number of Hz"#),
            (
                r#""99999999999 GHz""#,
                r#""99999999999 GHz" is too large to count in Hz"#,
            ),
            (r#"" ""#, r#"the value is empty; write e.g. "1 MHz""#),
            ("true", "must be a frequency, not true or false"),
            ("1979-05-27", "must be a frequency, not a date"),
            ("[1, 2]", "must be a frequency, not a list"),
            ("{ mhz = 156 }", "must be a frequency, not a table"),
        ],
    );
}

#[test]
fn every_message_about_a_bad_count_or_word() {
    check_values(
        "engine",
        "tags",
        &[
            ("0", r#""0" is not allowed: it must be from 1 to 32"#),
            ("33", r#""33" is not allowed: it must be from 1 to 32"#),
            ("-1", r#""-1" is negative"#),
            ("2.5", r#""2.5" is not a whole number"#),
            (r#""32""#, r#""32" is a count: write it without quotes, 32"#),
            (
                r#""many""#,
                r#""many" does not begin with a number such as 12 or 1.5; write e.g. "1""#,
            ),
            (
                "99999999999999999999",
                r#""99999999999999999999" is too large to count"#,
            ),
        ],
    );
    check_values(
        "uncached",
        "arbitration",
        &[
            (
                r#""randon""#,
                r#"unknown word "randon"; did you mean "random"?"#,
            ),
            (
                r#""age""#,
                r#"unknown word "age"; it must be "random" or "fifo""#,
            ),
            (r#""""#, r#"unknown word ""; it must be "random" or "fifo""#),
            ("1", r#"must be "random" or "fifo", in quotes"#),
        ],
    );
}

/// Machines of which no simulation could be made are refused.
#[test]
fn every_message_about_an_impossible_machine() {
    for (section, key, value, message) in [
        (
            "node",
            "sockets",
            "0",
            r#""0" is not allowed: it must be from 1 to 64"#,
        ),
        (
            "node",
            "cores_per_socket",
            "1024",
            r#""1024" is not allowed: it must be from 1 to 1023"#,
        ),
        (
            "node",
            "sockets",
            "65",
            r#""65" is not allowed: it must be from 1 to 64"#,
        ),
        (
            "node",
            "cores_per_socket",
            "256",
            "4 sockets of 256 cores are 1024 cores per node; at most 1023 are simulated",
        ),
        (
            "node",
            "shared_memory",
            r#""3 GiB""#,
            r#""3 GiB" is not allowed: it must be a power of two, from 4 KiB to 1 TiB"#,
        ),
        (
            "node",
            "global_base",
            r#""16383 PiB""#,
            r#""16383 PiB" is not allowed: it must be a power of two, from 1 GiB to 1 PiB"#,
        ),
        (
            "node",
            "global_base",
            r#""1 GiB""#,
            "1 GiB lies inside a node's own RAM: 8 GiB private and 4 GiB shared",
        ),
        (
            "cache",
            "line",
            r#""128 B""#,
            r#""128 B" is not allowed: it must be a power of two, from 32 B to 64 B"#,
        ),
        (
            "uncached",
            "load_payload",
            r#""4 B""#,
            r#""4 B" is not allowed: it must be a power of two, from 8 B to 64 B"#,
        ),
        (
            "uncached",
            "load_payload",
            r#""24 B""#,
            r#""24 B" is not allowed: it must be a power of two, from 8 B to 64 B"#,
        ),
        (
            "cache",
            "l1",
            r#""0 cycles""#,
            r#""0 cycles" is not allowed: it must be from 1 cycle to 1000000 cycles"#,
        ),
        (
            "coherence",
            "dram",
            r#""78 s""#,
            r#""78 s" is not allowed: it must be from 1 ps to 1 ms"#,
        ),
        (
            "host",
            "width",
            r#""12 bit""#,
            r#""12 bit" is not allowed: it must be a power of two, from 8 bit to 512 bit"#,
        ),
        (
            "link",
            "serdes",
            r#""0 cycles""#,
            r#""0 cycles" is not allowed: it must be from 1 cycle to 1000000 cycles"#,
        ),
        (
            "link",
            "serdes",
            r#""0 ns""#,
            r#""0 ns" is not allowed: it must be from 1 ps to 1 ms"#,
        ),
        (
            "link",
            "serdes",
            r#""27 MHz""#,
            r#""27 MHz" is a frequency, not a number of cycles; a number of cycles is written in cycles or cycle"#,
        ),
    ] {
        check_values(section, key, &[(value, message)]);
    }
}

#[test]
fn every_message_about_keys_and_sections() {
    let clock = line_of("engine", "clock");
    let engine = line_of("engine", "");
    let family = line_of("", "family");
    let entry = r#"{ value = 1, source = "assumed", where = "x" }"#;
    let without = |section: &str| {
        let (from, _) = find(section, "");
        let end = PROTOTYPE[from + 1..]
            .find("\n[")
            .map_or(PROTOTYPE.len(), |end| from + 2 + end);
        format!("{}{}", &PROTOTYPE[..from], &PROTOTYPE[end..])
    };
    for (text, message) in [
        (
            replaced("engine", "clock", Some(&format!("clok = {entry}"))),
            format!(r#"m.toml:{clock}: engine: unknown key "clok"; did you mean "clock"?"#),
        ),
        (
            replaced("engine", "clock", Some(&format!("voltage = {entry}"))),
            format!(r#"m.toml:{clock}: engine: unknown key "voltage""#),
        ),
        (
            replaced("engine", "", Some("[engin]")),
            format!(r#"m.toml:{engine}: unknown section "engin"; did you mean "engine"?"#),
        ),
        (
            replaced("", "description", Some("nam = \"y\"")),
            format!(
                r#"m.toml:{}: unknown key "nam"; did you mean "name"?"#,
                line_of("", "description")
            ),
        ),
        (
            replaced("engine", "clock", None),
            format!("m.toml:{engine}: engine.clock is missing"),
        ),
        (
            replaced("os", "resume", None),
            format!("m.toml:{}: os.resume is missing", line_of("os", "")),
        ),
        (
            without("core"),
            "m.toml: core.clock is missing: there is no section [core]".to_owned(),
        ),
        (
            without("os"),
            "m.toml: os.system_call is missing: there is no section [os]".to_owned(),
        ),
        (
            replaced("", "name", None),
            "m.toml: \"name\" is missing".to_owned(),
        ),
        (
            replaced("", "family", None),
            "m.toml: \"family\" is missing".to_owned(),
        ),
        (String::new(), "m.toml: \"name\" is missing".to_owned()),
        (
            replaced("", "family", Some("family = \"sme-clustr\"")),
            format!(r#"m.toml:{family}: unknown family "sme-clustr"; did you mean "sme-cluster"?"#),
        ),
        (
            replaced("", "family", Some("family = \"mesh of trees\"")),
            format!(
                r#"m.toml:{family}: unknown family "mesh of trees"; there are sme-cluster, scc, mppa, cache-coherent and ideal"#
            ),
        ),
        (
            replaced("", "family", Some("family = 3")),
            format!("m.toml:{family}: family must be a text of one line in quotes"),
        ),
        (
            replaced("", "name", Some("name = \"my machine\"")),
            format!(
                r#"m.toml:{}: name must be a text of up to 60 letters, digits, "-", "_" and ".", not "my machine""#,
                line_of("", "name")
            ),
        ),
    ] {
        assert_eq!(error_of(&text), message);
    }
}

#[test]
fn every_message_about_provenance() {
    let figures = r#"["sme.fig3.local.16_threads"]"#;
    let sources = "it is one of published, datasheet, derived, assumed and fitted";
    for (constant, message) in [
        (
            r#""156 MHz""#,
            r#"give the value with where it comes from: { value = "156 MHz", source = "assumed", where = "why this value" }"#.to_owned(),
        ),
        (
            r#"{ value = "156 MHz", source = "publshed", where = "x" }"#,
            r#"unknown source "publshed"; did you mean "published"?"#.to_owned(),
        ),
        (r#"{ value = "156 MHz", source = "me", where = "x" }"#, format!(r#"unknown source "me"; {sources}"#)),
        // Files must not have what `--set` records.
        (r#"{ value = "156 MHz", source = "set", where = "x" }"#, format!(r#"unknown source "set"; {sources}"#)),
        (r#"{ value = "156 MHz", source = 1, where = "x" }"#, format!("unknown source 1; {sources}")),
        (r#"{ value = "156 MHz", where = "x" }"#, r#""source" is missing"#.to_owned()),
        (r#"{ value = "156 MHz" }"#, r#""source" and "where" are missing"#.to_owned()),
        ("{}", r#""value", "source" and "where" are missing"#.to_owned()),
        (
            r#"{ value = "156 MHz", source = "assumed", were = "x" }"#,
            r#"unknown field "were"; did you mean "where"?"#.to_owned(),
        ),
        (
            r#"{ value = "156 MHz", source = "assumed", where = "" }"#,
            "where must be a text of one line in quotes".to_owned(),
        ),
        (
            r#"{ value = "156 MHz", source = "assumed", where = "a\nb" }"#,
            "where must be a text of one line in quotes".to_owned(),
        ),
        (
            r#"{ value = "156 MHz", source = "fitted", where = "x" }"#,
            format!("a fitted value names the published figures it is fitted to: fitted_to = {figures}"),
        ),
        (
            r#"{ value = "156 MHz", source = "published", fitted_to = ["sme.fig4"], where = "x" }"#,
            r#"fitted_to belongs to source = "fitted" only"#.to_owned(),
        ),
        (
            r#"{ value = "156 MHz", source = "fitted", fitted_to = [], where = "x" }"#,
            format!("fitted_to is a list of ids of published figures: {figures}"),
        ),
        (
            r#"{ value = "156 MHz", source = "fitted", fitted_to = ["Figure 3"], where = "x" }"#,
            format!("fitted_to is a list of ids of published figures: {figures}"),
        ),
        (
            r#"{ value = "156 MHz", source = "fitted", fitted_to = "sme.fig4", where = "x" }"#,
            format!("fitted_to is a list of ids of published figures: {figures}"),
        ),
    ] {
        let text = replaced("engine", "clock", Some(&format!("clock = {constant}")));
        let expected = format!("m.toml:{}: engine.clock: {message}", line_of("engine", "clock"));
        assert_eq!(error_of(&text), expected);
    }
}

#[test]
fn every_message_about_what_is_not_toml() {
    let clock = line_of("engine", "clock");
    let entry = r#"clock = { value = "156 MHz", source = "assumed", where = "x" }"#;
    for (text, message) in [
        (
            replaced("engine", "clock", Some(&format!("{entry}\n{entry}"))),
            format!(
                r#"m.toml:{}: not TOML: duplicate key at "clock""#,
                clock + 1
            ),
        ),
        (
            format!("{PROTOTYPE}[engine]\n"),
            format!(
                r#"m.toml:{}: not TOML: duplicate key at "engine""#,
                1 + PROTOTYPE.matches('\n').count()
            ),
        ),
        (
            replaced("engine", "clock", Some("clock = { value = \"156 MHz")),
            format!(r#"m.toml:{clock}: not TOML: invalid basic string, expected `"`"#),
        ),
        (
            replaced("engine", "clock", Some("clock")),
            format!("m.toml:{clock}: not TOML: key with no value, expected `=`"),
        ),
    ] {
        assert_eq!(error_of(&text), message);
    }
}

#[test]
fn of_several_mistakes_the_first_in_the_file_is_reported() {
    let both = valued("engine", "clock", "\"156\"");
    let core = "\n[core]\nclock = { value = \"";
    assert!(both.contains(core));
    let both = both.replace(core, &format!("{core}x"));
    assert_eq!(
        error_of(&both).split(": ").take(2).collect::<Vec<_>>(),
        [
            format!("m.toml:{}", line_of("core", "clock")),
            "core.clock".to_owned()
        ]
    );
}

#[test]
fn an_unknown_machine_is_told_the_nearest() {
    for (name, message) in [
        (
            "sme-protoype",
            r#"unknown machine "sme-protoype"; did you mean "sme-prototype"? There are sme-prototype, sme-asic, exascale, cxl-pool, ualink, scc, scc-800, mppa256, xeon-e5-2650, opteron-6272 and ideal, and files whose name ends in .toml"#,
        ),
        (
            "cray",
            r#"unknown machine "cray"; there are sme-prototype, sme-asic, exascale, cxl-pool, ualink, scc, scc-800, mppa256, xeon-e5-2650, opteron-6272 and ideal, and files whose name ends in .toml"#,
        ),
    ] {
        assert_eq!(Machine::load(name).unwrap_err().to_string(), message);
    }
}

/// A file in the system's directory for such, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, bytes: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("sme-{}-{name}", std::process::id()));
        fs::write(&path, bytes).expect("the file can be written");
        Scratch(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("the path is UTF-8")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn a_file_is_loaded_by_its_path() {
    let file = Scratch::new("copy.toml", PROTOTYPE.as_bytes());
    assert_eq!(Machine::load(file.path()).unwrap(), prototype());

    let file = Scratch::new("latin.toml", b"name = \"x\"\nfamily = \"\xe9\"\n");
    let message = Machine::load(file.path()).unwrap_err().to_string();
    assert_eq!(message, format!("{}:2: not UTF-8 text", file.path()));

    let file = Scratch::new("large.toml", &vec![b'#'; (1 << 20) + 1]);
    let message = Machine::load(file.path()).unwrap_err().to_string();
    assert_eq!(
        message,
        format!("{}: larger than a machine file can be (1 MiB)", file.path())
    );

    let message = Machine::load("no/such/machine.toml")
        .unwrap_err()
        .to_string();
    assert!(message.starts_with("no/such/machine.toml: "), "{message}");
    assert_eq!(message.lines().count(), 1);
}
