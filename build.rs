//! Tells the program the commit that it is built from, for the manifests that it writes.

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
