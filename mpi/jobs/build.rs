//! Builds the libraries that the crate carries for MPI programs.

#[path = "../libmpi/generate.rs"]
mod generate;

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is_linux = env::var("CARGO_CFG_TARGET_OS").is_ok_and(|name| name == "linux");
    if is_linux && env::var_os("CARGO_FEATURE_LAUNCH").is_some() {
        println!("cargo::rerun-if-changed=../libmpi");
        println!("cargo::rerun-if-changed=../libclocks");
        generate::entries("../facts/calls.txt");
        library("mpi", "../libmpi/src/lib.rs");
        library("clocks", "../libclocks/src/lib.rs");
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
