//! Generates the entry points of the library from the table of calls, for its own build script and
//! for that of the program, which carries the library within itself.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

#[path = "generate_fortran.rs"]
mod fortran;

/// Calls that the library answers itself: `src/own.rs` has them, by these names.
const OWN: [&str; 10] = [
    "Aint_add",
    "Aint_diff",
    "Alloc_mem",
    "Finalized",
    "Free_mem",
    "Get_address",
    "Initialized",
    "Is_thread_main",
    "Pcontrol",
    "Address",
];

/// Writes `entries.rs` and `fortran.rs` into the directory for what is generated.
///
/// # Panics
/// If the table cannot be read, or the file not written: the build ends.
pub fn entries(table: &str) {
    println!("cargo::rerun-if-changed={table}");
    let text = fs::read_to_string(table).expect("the table of calls is there");
    let out = env::var("OUT_DIR").expect("cargo sets it");
    let (entries, fortran) = generated(&text);
    for (name, code) in [("entries.rs", entries), ("fortran.rs", fortran)] {
        let path = Path::new(&out).join(name);
        fs::write(path, code).expect("the directory is cargo's");
    }
}

/// The entry points of all calls of a table, for C and for Fortran. Calls are numbered in the
/// table's order, a call with large counts directly behind the one without.
fn generated(table: &str) -> (String, String) {
    let lines = table.lines().map(str::trim);
    let calls = lines.filter(|line| !line.is_empty() && !line.starts_with(['#', '[']));
    let (mut code, mut fortran) = (String::new(), String::new());
    let mut number = 0;
    for line in calls {
        let (head, rest) = line.split_once('(').expect("a call has arguments");
        let (arguments, returns) = rest.split_once(')').expect("they end");
        let arguments = arguments.split(',').filter(|one| !one.is_empty());
        let arguments: Vec<&str> = arguments.collect();
        let returns = match returns.trim() {
            "" => "i32",
            "-> real" => "f64",
            _ => "usize",
        };
        let (name, is_large) = match head.split_once(" +c") {
            Some((name, _)) => (name, true),
            None => (head, false),
        };
        // Large counts have other names in Fortran.
        fortran::entry(&mut fortran, (name, number), &arguments, returns);
        let mut names = vec![name.to_owned()];
        names.extend(is_large.then(|| format!("{name}_c")));
        for name in names {
            entry(&mut code, (&name, number), arguments.len(), returns);
            number += 1;
        }
    }
    (code, fortran)
}

/// The call of this number with these values, as code.
fn call(number: u32, values: &str) -> String {
    format!("crate::call::call({number}, &[{values}])")
}

/// One entry point, and its twin for profiling.
fn entry(code: &mut String, (name, number): (&str, u32), arguments: usize, returns: &str) {
    if ["Alloc_mem", "Wtime"].contains(&name) {
        // The library makes these calls itself, or tells them from others.
        let constant = name.to_uppercase();
        let _ = writeln!(
            code,
            "/// The number of MPI_{name}.\npub const {constant}: u32 = {number};"
        );
    }
    if OWN.contains(&name) {
        return;
    }
    let parameters: Vec<String> = (0..arguments).map(|i| format!("a{i}: usize")).collect();
    let values: Vec<String> = (0..arguments).map(|i| format!("a{i}")).collect();
    let (parameters, values) = (parameters.join(", "), values.join(", "));
    let result = match returns {
        "i32" => "as i32",
        "f64" => "",
        _ => "as usize",
    };
    let call = call(number, &values);
    let value = match returns {
        "f64" => format!("f64::from_bits({call})"),
        _ => format!("{call} {result}"),
    };
    for prefix in ["MPI_", "PMPI_"] {
        let _ = writeln!(
            code,
            "/// MPI_{name}.\n#[unsafe(no_mangle)]\npub extern \"C\" fn {prefix}{name}({parameters}) -> {returns} {{ {value} }}"
        );
    }
}
