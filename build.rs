//! Tells the program the commit that it is built from, for the manifests that it writes, and builds
//! the libraries that it carries for MPI programs.

#[path = "mpi/libmpi/generate.rs"]
mod generate;

use std::env;
use std::path::Path;
use std::process::Command;

/// The files and directories that the program is built from.
const SOURCES: [&str; 10] = [
    "Cargo.toml",
    "Cargo.lock",
    "build.rs",
    "src",
    "barrier",
    "fft-demo",
    "hdl",
    "memory",
    "mpi",
    "sme-sim",
];

fn main() {
    for source in SOURCES.iter().filter(|source| Path::new(source).exists()) {
        println!("cargo::rerun-if-changed={source}");
    }
    // It changes with every commit and every switch to another one.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"])
        && Path::new(&log).exists()
    {
        println!("cargo::rerun-if-changed={log}");
    }
    println!(
        "cargo::rustc-env=SME_COMMIT={}",
        commit().unwrap_or_default()
    );
    let is_linux = env::var("CARGO_CFG_TARGET_OS").is_ok_and(|name| name == "linux");
    if is_linux && env::var_os("CARGO_FEATURE_CLI").is_some() {
        generate::entries("mpi/facts/calls.txt");
        library("mpi", "mpi/libmpi/src/lib.rs");
        library("clocks", "mpi/libclocks/src/lib.rs");
    }
}

/// Builds a library for MPI programs, which needs nothing but the compiler: a program that carries
/// it has it wherever it is copied to.
fn library(name: &str, source: &str) {
    let variable = |name| env::var_os(name).expect("cargo sets it");
    let into = Path::new(&variable("OUT_DIR")).join(format!("lib{name}.so"));
    let mut rustc = Command::new(variable("RUSTC"));
    rustc.args([
        "--crate-type=cdylib",
        "--edition=2024",
        "--crate-name",
        name,
    ]);
    rustc.args([
        "-Copt-level=2",
        "-Cpanic=abort",
        "-Cstrip=symbols",
        "-Ccodegen-units=1",
    ]);
    rustc.arg("--target").arg(variable("TARGET"));
    rustc.arg("-o").arg(into).arg(source);
    let status = rustc.status();
    let is_built = status.as_ref().is_ok_and(|status| status.success());
    assert!(
        is_built,
        "the library {name} for MPI programs cannot be built: {status:?}"
    );
}

/// The commit, with `-modified` behind it where sources differ from it; `None` outside of this
/// project's repository.
fn commit() -> Option<String> {
    // The sources may have been unpacked within another project's repository.
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    let commit = git(&["rev-parse", "HEAD"])?;
    let status = [["status", "--porcelain", "--"].as_slice(), &SOURCES].concat();
    let modified = match git(&status)?.is_empty() {
        true => "",
        false => "-modified",
    };
    Some(commit + modified)
}

/// The output of `git`, if it is installed and succeeds.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let said = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| said.trim().to_owned())
}
