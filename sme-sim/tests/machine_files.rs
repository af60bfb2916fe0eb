//! Machine files through the public interface: the built-in ones, other forms of the same file,
//! overrides, the table. Messages about bad ones are in `bad_machine_files.rs` and
//! `bad_overrides.rs`, files garbled at random in `garbled_machine_files.rs`.

use std::collections::BTreeSet;

use sme_sim::families::sme;
use sme_sim::families::sme::spec::Arbitration;
use sme_sim::machine::{Machine, Source, ValueDomain, declared, family_names};
use sme_sim::time::Time;

const PROTOTYPE: &str = include_str!("../../machines/sme-prototype.toml");

fn prototype() -> Machine {
    Machine::builtin("sme-prototype").expect("it is built in")
}

fn asic() -> Machine {
    Machine::builtin("sme-asic").expect("it is built in")
}

// ------------------------------------------------------------------------------- what is built in

#[test]
fn the_built_in_machines_load_under_their_names() {
    for builtin in Machine::builtins() {
        let machine = Machine::load(builtin.name).unwrap();
        assert_eq!(machine.name(), builtin.name);
        assert!(family_names().any(|family| family == machine.family_name()));
        assert!(!machine.description().is_empty());
    }
    assert!(
        Machine::builtins()
            .iter()
            .any(|builtin| builtin.name == "sme-prototype")
    );
}

/// The prototype has the inputs that the paper states, in the paper's units.
#[test]
fn the_prototype_has_the_published_inputs() {
    let machine = prototype();
    let spec = sme::of(&machine).unwrap();
    assert_eq!((spec.node.sockets, spec.node.cores_per_socket), (4, 4));
    assert_eq!(spec.node.global_base, 1 << 40);
    assert_eq!(spec.core.clock.hz(), 2_200_000_000);
    assert_eq!(spec.engine.clock.hz(), 156_000_000);
    assert_eq!(spec.uncached.outstanding_loads_per_socket, 1);
    assert_eq!(spec.uncached.load_bytes, 8);
    assert_eq!(spec.link.bytes_per_second, 624_000_000);
    // 1.6 GB/s: two transfers per cycle.
    assert_eq!(
        spec.host.clock.hz() * 2 * u64::from(spec.host.width_bits) / 8,
        1_600_000_000
    );
    // 100 ns to local memory, 130 ns over one hop and back.
    assert_eq!(spec.cache.l3 + spec.coherence.dram, Time::from_ns(100));
    assert_eq!(
        spec.cache.l3 + spec.coherence.dram + spec.coherence.hop.times(2),
        Time::from_ns(130)
    );
}

/// Sec. IV-C changes the two clocks and nothing else.
#[test]
fn the_asic_differs_from_the_prototype_in_two_clocks() {
    let (prototype, asic) = (prototype(), asic());
    let pairs = prototype.constants().iter().zip(asic.constants());
    let different: Vec<(String, &str, &str)> = pairs
        .filter(|(fpga, asic)| fpga.amount != asic.amount || fpga.value != asic.value)
        .map(|(fpga, asic)| (fpga.name(), fpga.value.as_str(), asic.value.as_str()))
        .collect();
    let expected = [
        ("host.clock".to_owned(), "400 MHz", "2000 MHz"),
        ("engine.clock".to_owned(), "156 MHz", "800 MHz"),
    ];
    assert_eq!(different, expected);
    assert_ne!(prototype.hash(), asic.hash());
}

/// Sec. VI-C gives the size of a node; the network's shape is the one other difference.
#[test]
fn the_exascale_machine_is_the_asic_in_larger_nodes_on_a_torus() {
    let (asic, exascale) = (asic(), Machine::builtin("exascale").unwrap());
    let different: Vec<(String, &str)> = exascale
        .constants()
        .iter()
        .filter(|c| {
            let other = asic.constant(&c.name());
            other.is_none_or(|other| (other.amount, &other.value) != (c.amount, &c.value))
        })
        .map(|c| (c.name(), c.value.as_str()))
        .collect();
    let expected = [
        ("node.sockets", "13"),
        ("node.cores_per_socket", "57"),
        ("fabric.topology", "torus3d"),
    ];
    assert_eq!(
        different,
        expected.map(|(name, value)| (name.to_owned(), value))
    );
    assert_eq!(sme::of(&exascale).unwrap().node.cores(), 741);
    for constant in exascale.fitted() {
        let other = asic.constant(&constant.name()).unwrap();
        assert_eq!(constant.fitted_to, other.fitted_to, "{}", constant.name());
    }
}

/// Nodes stand on the network whose shape the file gives, or an override in its stead.
#[test]
fn the_network_may_be_left_to_the_machine() {
    let on = |machine: &Machine| machine.shape().topology(27).to_string();
    assert_eq!(on(&prototype()), "mesh:6x5");
    assert_eq!(on(&Machine::builtin("exascale").unwrap()), "torus:3x3x3");
    let set = prototype().with(&[("fabric.topology", "mesh3d")]).unwrap();
    assert_eq!(on(&set), "mesh:3x3x3");
    let overrides = [("fabric.topology".to_owned(), "mesh3d".to_owned())];
    assert_eq!(set.overrides(), overrides);
    assert_ne!(set.hash(), prototype().hash());
    let constant = set.constant("fabric.topology").unwrap();
    assert_eq!(
        (constant.source, constant.value.as_str()),
        (Source::Set, "mesh3d")
    );
    let again = set.with(&[("fabric.topology", "torus2d")]).unwrap();
    assert_eq!(on(&again), "torus:6x5");
    let message =
        |key: &str, value: &str| prototype().with(&[(key, value)]).unwrap_err().to_string();
    assert_eq!(
        message("fabric.topology", "torus3"),
        "--set fabric.topology=torus3: fabric.topology: unknown word \"torus3\"; did you mean \"torus3d\"?"
    );
    assert_eq!(
        message("fabric.topologie", "torus3d"),
        "--set fabric.topologie=torus3d: unknown constant \"fabric.topologie\"; did you mean \"fabric.topology\"?"
    );
}

/// Rows of earlier runs name these.
#[test]
fn the_hashes_of_the_machines_of_the_paper_stay() {
    assert_eq!(prototype().hash(), "4681e87f53c86fa8");
    assert_eq!(asic().hash(), "43847bcda025a8d6");
}

#[test]
fn every_constant_says_why() {
    for builtin in Machine::builtins() {
        let machine = Machine::builtin(builtin.name).unwrap();
        for constant in machine.constants() {
            let name = constant.name();
            assert!(
                constant.reason.len() > 2 && !constant.meaning.is_empty(),
                "{name}"
            );
            assert_eq!(
                constant.source == Source::Fitted,
                !constant.fitted_to.is_empty(),
                "{name}"
            );
        }
        // The others model no published machine, or one whose figures have to come out of constants
        // that other sources give.
        let is_fitted = machine.fitted().count() > 0;
        let published = [
            "sme-prototype",
            "sme-asic",
            "exascale",
            "scc",
            "scc-800",
            "mppa256",
        ];
        let is_published = published.contains(&builtin.name);
        assert_eq!(is_fitted, is_published, "{}", builtin.name);
    }
}

/// A figure that a constant is fitted to is judged as calibrated, so its id has to be right.
#[test]
fn fitted_constants_name_figures_that_exist() {
    let published: toml::Table = include_str!("../../reference/published.toml")
        .parse()
        .unwrap();
    let figures = published["figure"].as_array().unwrap();
    let ids: BTreeSet<&str> = figures
        .iter()
        .map(|figure| figure["id"].as_str().unwrap())
        .collect();
    for builtin in Machine::builtins() {
        let machine = Machine::builtin(builtin.name).unwrap();
        for constant in machine.fitted() {
            for id in &constant.fitted_to {
                assert!(ids.contains(id.as_str()), "{}: {id}", constant.name());
            }
        }
    }
}

/// A family lists without a file the constants that its files have, in the same order; those that
/// may be left out come last.
#[test]
fn the_declared_constants_are_those_of_the_files() {
    let families: Vec<_> = family_names().collect();
    assert_eq!(
        families,
        ["sme-cluster", "scc", "mppa", "cache-coherent", "ideal"]
    );
    assert_eq!(declared("coherent"), None);
    // Optional constants of the SME cluster; the other families have none.
    let optional = [
        "coherence.homes",
        "uncached.coherent_stores",
        "host.bridge_writes",
        "link.forwarding",
        "os.start",
        "os.switch",
        "os.quantum",
        "process.fork",
        "process.exec",
        "process.init",
        "process.serve",
        "process.serve_socket",
        "process.login",
        "fabric.topology",
        "fabric.switch",
        "pool.devices",
        "pool.dram",
    ];
    for builtin in Machine::builtins() {
        let machine = Machine::builtin(builtin.name).unwrap();
        let declared: Vec<String> = declared(machine.family_name())
            .unwrap()
            .iter()
            .map(|c| c.name())
            .collect();
        let constants = machine.constants().iter().map(|c| c.name());
        let has_optional = machine.family_name() == "sme-cluster";
        let may_be_left_out = |name: &String| optional.contains(&name.as_str());
        let (last, mut constants): (Vec<String>, Vec<String>) =
            constants.partition(|name| has_optional && may_be_left_out(name));
        constants.extend(last);
        let is_there = |name: &&String| match (builtin.name, name.as_str()) {
            _ if !has_optional => true,
            ("exascale", "fabric.topology") => true,
            ("cxl-pool" | "ualink", "fabric.topology" | "fabric.switch" | "host.bridge_writes") => {
                true
            }
            ("cxl-pool", "pool.devices" | "pool.dram") => true,
            (_, name) => !optional.contains(&name),
        };
        assert!(
            constants.iter().eq(declared.iter().filter(is_there)),
            "{}",
            builtin.name
        );
        assert_eq!(
            declared.iter().collect::<BTreeSet<_>>().len(),
            declared.len(),
            "each is declared once"
        );
    }
}

/// Changing a constant changes the one field of the description that is named like it (but for
/// the unit: `private_memory` is `private_bytes`), and no other.
#[test]
fn every_constant_reaches_its_field() {
    let machine = prototype();
    for constant in machine.constants() {
        let name = constant.name();
        let value = match (&constant.domain, constant.amount) {
            (ValueDomain::Words(words), _) => {
                let other = words.iter().find(|word| **word != constant.value);
                other.unwrap().to_string()
            }
            (ValueDomain::Quantity(limits), Some(amount)) => {
                let other = [amount / 2, amount * 2, amount + 1]
                    .into_iter()
                    .find(|other| *other != amount && limits.check(*other, "").is_ok());
                limits.dimension.write(other.unwrap())
            }
            (ValueDomain::Quantity(_), None) => panic!("{name} has no amount"),
        };
        let changed = machine.with(&[(&name, &value)]).unwrap();
        let fields = changed_fields(&machine, &changed);
        let stem = |name: &str| name.split('_').next().map(str::to_owned);
        let expected = match name.as_str() {
            "link.bandwidth" => stem("bytes_per_second"),
            "cache.line" | "cache.l1_size" | "cache.l1_ways" | "cache.l2_size"
            | "cache.l2_ways" => stem("private"),
            _ => stem(constant.key),
        };
        let found: Vec<_> = fields
            .iter()
            .map(|(section, field)| (section.as_str(), stem(field)))
            .collect();
        assert_eq!(found, [(constant.section, expected)], "{name} = {value}");
    }
}

/// Section and field of everything that differs between two descriptions, by their printed form:
/// a section is indented once, a field twice, and what a field consists of more.
fn changed_fields(before: &Machine, after: &Machine) -> BTreeSet<(String, String)> {
    let printed = |machine| format!("{:#?}", sme::of(machine).expect("an SME cluster"));
    let (before, after) = (printed(before), printed(after));
    let (mut section, mut field) = (String::new(), String::new());
    let mut changed = BTreeSet::new();
    for (before, after) in before.lines().zip(after.lines()) {
        let indent = before.len() - before.trim_start().len();
        let name = before
            .trim()
            .split(':')
            .next()
            .unwrap_or_default()
            .to_owned();
        match indent {
            4 => section = name,
            8 => field = name,
            _ => {}
        }
        if before != after {
            changed.insert((section.clone(), field.clone()));
        }
    }
    changed
}

// ------------------------------------------------------------------------------------ other forms

/// TOML has several ways to write the same table; the messages find the line in each.
#[test]
fn a_constant_may_be_a_section_of_its_own() {
    let clock = PROTOTYPE
        .lines()
        .find(|line| line.contains("\"156 MHz\""))
        .unwrap();
    let own =
        "\n[engine.clock]\nvalue = \"156 MHz\"\nsource = \"published\"\nwhere = \"Sec. IV-C\"\n";
    let moved = format!("{}{own}", PROTOTYPE.replace(&format!("{clock}\n"), ""));
    let machine = Machine::parse("m.toml", &moved).unwrap();
    assert_eq!(sme::of(&machine).unwrap(), sme::of(&prototype()).unwrap());

    let wrong = moved.replace("value = \"156 MHz\"", "value = \"156\"");
    let line = wrong
        .lines()
        .position(|line| line == "value = \"156\"")
        .unwrap()
        + 1;
    assert_eq!(
        Machine::parse("m.toml", &wrong).unwrap_err().to_string(),
        format!("m.toml:{line}: engine.clock: \"156\" has no unit; write e.g. \"156 MHz\"")
    );
}

#[test]
fn counts_may_be_hexadecimal_and_a_description_may_be_missing() {
    let tags = "\ntags = { value = 32,";
    assert!(PROTOTYPE.contains(tags));
    let text = PROTOTYPE.replace(tags, "\ntags = { value = 0x1_0,");
    let description = PROTOTYPE
        .lines()
        .find(|line| line.starts_with("description = "))
        .unwrap();
    let text = text.replace(description, "");
    let machine = Machine::parse("m.toml", &text).unwrap();
    assert_eq!(sme::of(&machine).unwrap().engine.tags, 16);
    assert_eq!(machine.description(), "");
    assert!(machine.show().lines().nth(1).unwrap().is_empty());
}

// --------------------------------------------------------------------------------------- overrides

#[test]
fn an_override_changes_the_machine_and_is_recorded() {
    let machine = prototype();
    let faster = machine
        .with(&[("uncached.arbitration", "fifo"), ("engine.clock", "200MHz")])
        .unwrap();
    assert_eq!(sme::of(&faster).unwrap().engine.clock.hz(), 200_000_000);
    assert_eq!(
        sme::of(&faster).unwrap().uncached.arbitration,
        Arbitration::Fifo
    );
    let recorded = [
        ("uncached.arbitration", "fifo"),
        ("engine.clock", "200 MHz"),
    ];
    assert_eq!(
        faster.overrides(),
        recorded.map(|(key, value)| (key.to_owned(), value.to_owned()))
    );
    assert_eq!(machine.overrides(), []);

    let clock = faster.constant("engine.clock").unwrap();
    assert_eq!(
        (clock.value.as_str(), clock.source),
        ("200 MHz", Source::Set)
    );
    let small = faster.with(&[("node.sockets", "2")]).unwrap();
    assert_eq!(small.shape().sockets, 2);
}

#[test]
fn a_figure_stays_calibrated_when_its_constant_is_set() {
    let machine = prototype();
    let fitted = machine
        .fitted()
        .find(|constant| constant.amount.is_some())
        .unwrap();
    let (name, value) = (fitted.name(), fitted.value.clone());
    // Any new value is chosen, and not predicted.
    let changed = machine.with(&[(&name, &value)]).unwrap();
    let set = changed.constant(&name).unwrap();
    assert_eq!(set.source, Source::Set);
    assert_eq!(set.fitted_to, fitted.fitted_to);
    assert_eq!(changed.fitted().count(), machine.fitted().count());
    assert_eq!(sme::of(&changed).unwrap(), sme::of(&machine).unwrap());
}

#[test]
fn the_hash_tells_machines_apart_and_the_same_machine_not() {
    let machine = prototype();
    let hash = |overrides: &[(&str, &str)]| machine.with(overrides).unwrap().hash().to_owned();
    assert_eq!(machine.hash().len(), 16);
    assert_eq!(hash(&[]), machine.hash());
    assert_ne!(hash(&[("engine.clock", "200 MHz")]), machine.hash());
    assert_eq!(
        hash(&[("engine.clock", "200 MHz")]),
        hash(&[("engine.clock", "0.2GHz")])
    );
    assert_ne!(
        hash(&[("engine.clock", "200 MHz")]),
        hash(&[("engine.clock", "201 MHz")])
    );
    // The order does not matter, nor whether it is done in two steps or over an earlier value.
    let both = hash(&[("engine.clock", "200 MHz"), ("core.clock", "3 GHz")]);
    assert_eq!(
        hash(&[("core.clock", "3 GHz"), ("engine.clock", "200 MHz")]),
        both
    );
    let steps = machine.with(&[("core.clock", "4 GHz")]).unwrap();
    let steps = steps
        .with(&[("engine.clock", "200 MHz"), ("core.clock", "3 GHz")])
        .unwrap();
    assert_eq!(steps.hash(), both);
    // Line ends and a byte order mark do not count, anything else in the text does.
    let lines = PROTOTYPE.replace('\n', "\r\n");
    for windows in [&lines, &format!("\u{feff}{lines}")] {
        let windows = Machine::parse("m.toml", windows).unwrap();
        assert_eq!(windows.hash(), machine.hash());
    }
    let comment = Machine::parse("m.toml", &format!("{PROTOTYPE}# Mine.\n")).unwrap();
    assert_ne!(comment.hash(), machine.hash());
}

// ------------------------------------------------------------------------------------------ shown

#[test]
fn the_table_has_a_line_for_every_constant() {
    let machine = prototype().with(&[("engine.clock", "200 MHz")]).unwrap();
    let shown = machine.show();
    let table: Vec<&str> = shown
        .lines()
        .skip_while(|line| !line.starts_with("constant"))
        .collect();
    assert_eq!(table.len(), 1 + machine.constants().len());
    let column = table[0].find("source").unwrap();
    for (line, constant) in table.iter().skip(1).zip(machine.constants()) {
        assert!(line.starts_with(&constant.name()), "{line}");
        assert!(line[column..].starts_with(constant.source.name()), "{line}");
        assert!(
            line.contains(&constant.value) && line.contains(&constant.reason),
            "{line}"
        );
        assert!(
            constant
                .fitted_to
                .iter()
                .all(|figure| line.contains(figure)),
            "{line}"
        );
    }
    assert!(shown.contains(machine.hash()));
    assert!(
        shown
            .lines()
            .any(|line| line
                .split_whitespace()
                .take(4)
                .eq(["engine.clock", "200", "MHz", "set"])),
        "{shown}"
    );
}
