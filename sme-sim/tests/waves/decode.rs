//! Waveform files to what passed the ports, by the rules that `engine::waves` states.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Cursor;

use fst_reader::{FstFilter, FstHierarchyEntry, FstReader, FstSignalValue};
use vcd::{Command, ReferenceIndex, ScopeItem, TimescaleUnit, Value};

/// A change of a signal: time in femtoseconds, scope, signal, value.
pub type Change = (u64, String, String, u64);

/// A waveform file.
pub struct Wave {
    /// Width of each signal by scope and name.
    pub widths: BTreeMap<(String, String), u32>,
    /// The actual changes, from all signals zero, by time, scope, signal.
    pub changes: Vec<Change>,
    /// The first and last time of the file.
    pub span: (u64, u64),
}

/// Something that passed a port of an engine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seen {
    pub node: u32,
    pub cycle: u64,
    /// `host_in`, `link3_out`, or a credit and its bit: `link3_out_credit.2`.
    pub port: String,
    /// A packet's fields by name.
    pub fields: BTreeMap<String, u64>,
}

pub fn read_vcd(bytes: &[u8]) -> Wave {
    let mut parser = vcd::Parser::new(bytes);
    let header = parser.parse_header().unwrap();
    assert_eq!(header.timescale, Some((1, TimescaleUnit::FS)));
    assert_eq!(header.date, None, "the same run gives the same bytes");
    let [ScopeItem::Scope(top)] = &header.items[..] else {
        panic!("one scope holds all");
    };
    assert_eq!(top.identifier, "cluster");
    let mut names = BTreeMap::new();
    let mut widths = BTreeMap::new();
    for scope in &top.items {
        let ScopeItem::Scope(scope) = scope else {
            panic!("only engines in the cluster");
        };
        for item in &scope.items {
            let ScopeItem::Var(var) = item else {
                panic!("only signals in an engine");
            };
            let range = (var.size > 1).then(|| ReferenceIndex::Range(var.size as i32 - 1, 0));
            assert_eq!(var.index, range);
            let name = (scope.identifier.clone(), var.reference.clone());
            names.insert(var.code, name.clone());
            assert_eq!(widths.insert(name, var.size), None, "{}", var.reference);
        }
    }
    let bit = |value| match value {
        Value::V0 => 0,
        Value::V1 => 1,
        other => panic!("a value is {other}"),
    };
    let mut times = Vec::new();
    let mut raw = Vec::new();
    for command in parser {
        let (code, value) = match command.unwrap() {
            Command::Timestamp(at) => {
                assert!(times.last().is_none_or(|last| *last < at), "{at}");
                times.push(at);
                continue;
            }
            Command::ChangeScalar(code, value) => (code, bit(value)),
            Command::ChangeVector(code, bits) => (
                code,
                bits.iter().fold(0, |sum, value| sum << 1 | bit(value)),
            ),
            _ => continue,
        };
        let (scope, signal) = names[&code].clone();
        raw.push((*times.last().unwrap(), scope, signal, value));
    }
    let span = (times[0], *times.last().unwrap());
    Wave::new(widths, raw, span)
}

pub fn read_fst(bytes: &[u8]) -> Wave {
    let mut reader = FstReader::open(Cursor::new(bytes)).unwrap();
    let header = reader.get_header();
    assert_eq!(header.timescale_exponent, -15);
    assert_eq!(header.date.trim(), "");
    let mut scopes = Vec::new();
    let mut names = BTreeMap::new();
    let mut widths = BTreeMap::new();
    reader
        .read_hierarchy(|entry| match entry {
            FstHierarchyEntry::Scope { name, .. } => scopes.push(name),
            FstHierarchyEntry::UpScope => drop(scopes.pop()),
            FstHierarchyEntry::Var {
                name,
                length,
                handle,
                ..
            } => {
                let [top, scope] = &scopes[..] else {
                    panic!("{name} is in {scopes:?}");
                };
                assert_eq!(top, "cluster");
                let bare = name.split(' ').next().unwrap().to_owned();
                names.insert(handle.get_index(), (scope.clone(), bare.clone()));
                widths.insert((scope.clone(), bare), length);
            }
            _ => {}
        })
        .unwrap();
    let mut raw = Vec::new();
    let take = |at, handle: fst_reader::FstSignalHandle, value: FstSignalValue<'_>| {
        let FstSignalValue::String(text) = value else {
            panic!("no real numbers");
        };
        let value = u64::from_str_radix(std::str::from_utf8(text).unwrap(), 2).unwrap();
        let (scope, signal) = names[&handle.get_index()].clone();
        raw.push((at, scope, signal, value));
        Ok::<(), ()>(())
    };
    assert!(reader.read_signals(&FstFilter::all(), take).is_ok());
    Wave::new(widths, raw, (header.start_time, header.end_time))
}

impl Wave {
    fn new(
        widths: BTreeMap<(String, String), u32>,
        mut raw: Vec<Change>,
        span: (u64, u64),
    ) -> Self {
        // Stable: a signal's changes keep their order.
        raw.sort_by(|a, b| (a.0, &a.1, &a.2).cmp(&(b.0, &b.1, &b.2)));
        let mut values: BTreeMap<(String, String), u64> = BTreeMap::new();
        raw.retain(|(_, scope, signal, value)| {
            let value_before = values.insert((scope.clone(), signal.clone()), *value);
            value_before.unwrap_or(0) != *value
        });
        Self {
            widths,
            changes: raw,
            span,
        }
    }

    /// Returns what passed the ports, by node, cycle and port; in the order of time at one port in
    /// one cycle. Times are checked against the cycles' numbers for a clock of `hz`.
    pub fn seen(&self, hz: u64) -> Vec<Seen> {
        let edge = |cycle: u64| (u128::from(cycle) * 10u128.pow(15)).div_ceil(hz.into());
        let scopes: BTreeSet<&String> = self.widths.keys().map(|(scope, _)| scope).collect();
        let mut seen = Vec::new();
        for scope in scopes {
            let node = scope.strip_prefix("engine_").unwrap().parse().unwrap();
            let own: Vec<&Change> = self.changes.iter().filter(|c| c.1 == *scope).collect();
            let mut values: BTreeMap<&str, u64> = BTreeMap::new();
            for together in own.chunk_by(|a, b| a.0 == b.0) {
                let at = u128::from(together[0].0);
                let before = values.clone();
                for (_, _, signal, value) in together.iter().copied() {
                    values.insert(signal, *value);
                }
                let of = |values: &BTreeMap<&str, u64>, name: &str| {
                    values.get(name).copied().unwrap_or(0)
                };
                let cycle = of(&values, "cycle");
                let new_cycle = cycle != of(&before, "cycle");
                assert!(edge(cycle) <= at && at < edge(cycle + 1), "cycle {cycle}");
                assert!(!new_cycle || edge(cycle) == at, "cycle {cycle}");
                let mut add = |port: String, fields| {
                    seen.push(Seen {
                        node,
                        cycle,
                        port,
                        fields,
                    });
                };
                let marks = values.iter().filter(|(name, _)| is_mark(name));
                for (name, value) in marks {
                    let fresh = if new_cycle {
                        *value
                    } else {
                        value & !of(&before, name)
                    };
                    for bit in (0..64).filter(|bit| fresh >> bit & 1 == 1) {
                        if name.ends_with("_credit") {
                            add(format!("{name}.{bit}"), BTreeMap::new());
                            continue;
                        }
                        let port = name.strip_suffix("_valid").unwrap();
                        let port = port.replace("link_", &format!("link{bit}_"));
                        let prefix = format!("{port}_");
                        let fields = self.widths.keys().filter(|(of, _)| of == scope);
                        let fields = fields.filter_map(|(_, name)| {
                            let field = name.strip_prefix(&prefix)?;
                            (!is_mark(name)).then(|| (field.to_owned(), of(&values, name)))
                        });
                        add(port, fields.collect());
                    }
                }
            }
        }
        seen.sort_by(|a, b| (a.node, a.cycle, &a.port).cmp(&(b.node, b.cycle, &b.port)));
        seen
    }
}

fn is_mark(signal: &str) -> bool {
    signal.ends_with("_valid") || signal.ends_with("_credit")
}
