//! A block's Verilog, compiled by Verilator: the third of the three that the lockstep compares,
//! and the fastest RTL there is.
//!
//! [`Toolchain`] finds Verilator and a C++ compiler; [`Toolchain::build`] makes a [`Model`] of a
//! block, a shared library with five functions (see the submodule `interface`), and
//! [`Model::device`] an instance of it, as many as are wanted. Builds are kept under the user's
//! cache directory and found there by their content. Called by the lockstep, the tests and
//! `sme rtl`; it needs [`crate::verilog`], and Verilator 5.

mod cache;
mod compiler;
mod interface;
mod library;

use std::cell::Cell;
use std::env::consts::{ARCH, OS};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use crate::device::{Device, Port};
use crate::netlist::VerilogError;
use crate::tool::{self, ToolError};
use crate::value::Value;

use cache::{Build, Cache};
use compiler::Compiler;
use library::{Instance, Library};

/// The reason why there is no verilated block.
#[derive(Debug, thiserror::Error)]
pub enum VerilatedError {
    /// Verilator or the compiler is missing, or has complained.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// Verilator is too old: it lacks options or features of the language that are needed here.
    #[error("needs Verilator {OLDEST}, found {0}")]
    Old(String),
    /// There is no Verilog to begin with.
    #[error("no Verilog: {0}")]
    Verilog(#[from] VerilogError),
    /// A directory or a file could not be made.
    #[error("{}: {error}", path.display())]
    File {
        /// The file or directory.
        path: PathBuf,
        /// The reason.
        error: io::Error,
    },
    /// The library could not be loaded.
    #[error("the verilated block cannot be loaded: {0}")]
    Load(String),
}

/// Verilator and a C++ compiler.
#[derive(Clone, Debug)]
pub struct Toolchain {
    verilator: OsString,
    compiler: Compiler,
    /// For which machine, and what the tools say of their versions; a part of what a build is
    /// known by.
    versions: String,
    /// Where Verilator's C++ is.
    include: PathBuf,
    optimize: &'static str,
    cache: Cache,
}

/// The flags that make a library of its own of generated C++: nothing of it is seen by other
/// libraries, not even what C++ would share between all (`-fno-gnu-unique`), for each has classes
/// of the same names.
const COMPILE: &[&str] = &[
    "-std=gnu++17",
    "-fPIC",
    "-fvisibility=hidden",
    "-fno-gnu-unique",
    "-w",
    "-DVM_SC=0",
    "-DVM_TRACE=0",
    "-DVM_COVERAGE=0",
    "-DVL_TIME_CONTEXT",
    "-DVERILATOR=1",
];

impl Toolchain {
    /// Finds `verilator` and the compiler: `$CXX`, which may have arguments behind blanks, else
    /// `c++`, `g++` or `clang++`.
    pub fn find() -> Result<Self, VerilatedError> {
        Self::of(OsStr::new("verilator"), Compiler::find)
    }

    /// Of a program that is Verilator, and a compiler.
    fn of(
        verilator: &OsStr,
        compiler: impl FnOnce() -> Result<Compiler, VerilatedError>,
    ) -> Result<Self, VerilatedError> {
        let version = tool::stdout(Command::new(verilator).arg("--version"))?;
        if let Some(version) = too_old(&version) {
            return Err(VerilatedError::Old(version.to_owned()));
        }
        let root = tool::stdout(Command::new(verilator).args(["--getenv", "VERILATOR_ROOT"]))?;
        let compiler = compiler()?;
        Ok(Self {
            verilator: verilator.to_owned(),
            versions: format!("{ARCH} {OS}\n{}\n{}", version.trim(), compiler.identity()),
            compiler,
            include: Path::new(root.trim()).join("include"),
            optimize: "-O2",
            cache: Cache::of_user(),
        })
    }

    /// With what is built kept in `directory`. Where that is another user's, or others may write
    /// to it, nothing is kept.
    pub fn cached_in(mut self, directory: &Path) -> Self {
        self.cache = Cache::at(directory);
        self
    }

    /// For a short run: builds faster, runs slower.
    pub fn for_a_short_run(mut self) -> Self {
        self.optimize = "-O0";
        self
    }

    /// Builds the RTL `block`, or finds that it was built before.
    pub fn build(&self, block: &dyn Device) -> Result<Model, VerilatedError> {
        let (inputs, outputs) = (block.inputs(), block.outputs());
        let verilog = block.verilog(BLOCK)? + &interface::wrapper(BLOCK, &inputs, &outputs);
        let interface = interface::source(&inputs, &outputs);
        let key = [
            self.versions.as_str(),
            self.optimize,
            HOW,
            &verilog,
            &interface,
        ];
        let found = Cell::new(false);
        let load = |cache: &Cache| {
            let runtime = self.runtime(cache)?;
            let build = cache.get(&key, |directory| {
                found.set(runtime.found);
                self.verilate(directory, &verilog, &interface)?;
                self.link(directory, runtime.path())
            })?;
            found.set(found.get() || build.found);
            Library::load(&build.path().join(LIBRARY), &inputs, &outputs)
        };
        // A build that was found may be broken, as after a loss of power: then it is built once
        // more.
        let library = load(&self.cache).or_else(|error| {
            if found.get() && self.is_of_what_was_found(&error) {
                load(&self.cache.renewing())
            } else {
                Err(error)
            }
        })?;
        Ok(Model {
            library,
            inputs,
            outputs,
        })
    }

    /// Returns whether builds that were found, but are broken, can be the reason of `error`.
    fn is_of_what_was_found(&self, error: &VerilatedError) -> bool {
        match error {
            VerilatedError::Load(_) => true,
            VerilatedError::Tool(ToolError::Failed { tool, .. }) => self.compiler.is_called(tool),
            _ => false,
        }
    }

    /// Makes the block's C++, all of it in the file [`ALL`] of `directory`.
    fn verilate(
        &self,
        directory: &Path,
        verilog: &str,
        interface: &str,
    ) -> Result<(), VerilatedError> {
        write(&directory.join("sme_rtl.v"), verilog)?;
        write(&directory.join("interface.cpp"), interface)?;
        let mut verilator = Command::new(&self.verilator);
        verilator
            .args(["--cc", "-O3", "--no-timing", "--x-assign", "fast"])
            .args([
                "--x-initial",
                "fast",
                "-Wno-lint",
                "-Wno-style",
                "-Wno-fatal",
            ])
            .args(["--top-module", interface::TOP, "--prefix", "Vsme_rtl"])
            .args(["--Mdir", "generated", "sme_rtl.v"])
            .current_dir(directory);
        tool::output(&mut verilator)?;
        // One translation unit: Verilator's headers take longer than what it generates.
        write(
            &directory.join(ALL),
            &including(&directory.join("generated"))?,
        )
    }

    /// Makes the library of the C++ in `directory` and of Verilator's own in `runtime`.
    fn link(&self, directory: &Path, runtime: &Path) -> Result<(), VerilatedError> {
        let mut compiler = self.compiler();
        compiler
            .args(["-shared", "-Wl,-Bsymbolic", "-pthread", "-I", "generated"])
            .args(["-o", LIBRARY, ALL])
            .args([
                runtime.join("verilated.o"),
                runtime.join("verilated_threads.o"),
            ])
            .current_dir(directory);
        tool::output(&mut compiler)?;
        Ok(())
    }

    /// Verilator's own C++, compiled once for all blocks: its object files.
    fn runtime(&self, cache: &Cache) -> Result<Build, VerilatedError> {
        let include = self.include.to_string_lossy();
        let key = [self.versions.as_str(), self.optimize, HOW, &include];
        cache.get(&key, |directory| {
            let mut compiler = self.compiler();
            compiler
                .args(["-pthread", "-c"])
                .arg(self.include.join("verilated.cpp"))
                .arg(self.include.join("verilated_threads.cpp"))
                .current_dir(directory);
            tool::output(&mut compiler)?;
            Ok(())
        })
    }

    fn compiler(&self) -> Command {
        let mut compiler = self.compiler.command();
        compiler
            .arg(self.optimize)
            .args(COMPILE)
            .arg("-I")
            .arg(&self.include);
        compiler.arg("-I").arg(self.include.join("vltstd"));
        compiler
    }
}

/// The first version of Verilator that will do.
const OLDEST: u32 = 5;

/// The version that `said` tells of, such as "Verilator 4.038 2020-07-11", if it is too old.
fn too_old(said: &str) -> Option<&str> {
    let mut words = said.split_whitespace();
    words.find(|word| *word == "Verilator")?;
    let version = words.next()?;
    let major: u32 = version.split('.').next()?.parse().ok()?;
    (major < OLDEST).then_some(version)
}

/// The recipe of a build, which is a part of its key: this file.
const HOW: &str = include_str!("verilated.rs");

/// The block's module, below the one that [`interface`] makes.
const BLOCK: &str = "sme_block";

const LIBRARY: &str = "libsme_rtl.so";

/// The C++ of a block.
const ALL: &str = "all.cpp";

fn write(path: &Path, text: &str) -> Result<(), VerilatedError> {
    std::fs::write(path, text).map_err(|error| file_error(path, error))
}

fn file_error(path: &Path, error: io::Error) -> VerilatedError {
    let path = path.to_owned();
    VerilatedError::File { path, error }
}

/// C++ that includes every C++ file of `directory`, in the order of their names, and after them
/// the interface.
fn including(directory: &Path) -> Result<String, VerilatedError> {
    let failed = |error| file_error(directory, error);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        files.push(
            entry
                .map_err(failed)?
                .file_name()
                .to_string_lossy()
                .into_owned(),
        );
    }
    files.retain(|file| file.ends_with(".cpp"));
    files.sort();
    let lines = files
        .iter()
        .map(|file| format!("#include \"generated/{file}\"\n"));
    Ok(lines
        .chain(["#include \"interface.cpp\"\n".to_owned()])
        .collect())
}

/// A block, compiled.
#[derive(Clone, Debug)]
pub struct Model {
    library: Arc<Library>,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
}

impl Model {
    /// An instance, as it is after power-on.
    pub fn device(&self) -> Verilated {
        Verilated {
            instance: Instance::new(&self.library),
            model: self.clone(),
        }
    }
}

/// An instance of a compiled block.
#[derive(Debug)]
pub struct Verilated {
    instance: Instance,
    model: Model,
}

impl Verilated {
    /// One cycle with reset high and all inputs zero.
    pub fn reset(&mut self) {
        self.instance.reset();
    }
}

impl Device for Verilated {
    fn inputs(&self) -> Vec<Port> {
        self.model.inputs.clone()
    }

    fn outputs(&self) -> Vec<Port> {
        self.model.outputs.clone()
    }

    fn cycle(&mut self, inputs: &[Value], outputs: &mut Vec<Value>) {
        self.instance.cycle(inputs, outputs);
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::find;

    /// Writes an executable shell script, in a process of its own: what a program that another
    /// thread starts still has open for writing could not be run.
    pub(super) fn write_script(path: &Path, script: &str) {
        let mut shell = Command::new("sh");
        shell.args([
            "-c",
            "echo '#!/bin/sh' > $0; echo \"$1\" >> $0; chmod 700 $0",
        ]);
        assert!(shell.arg(path).arg(script).status().unwrap().success());
    }

    /// Verilator and a compiler that make empty files, and write into the file `calls` of
    /// `directory` what is compiled.
    fn fakes(directory: &Path) -> Toolchain {
        let verilator = directory.join("verilator");
        let here = directory.display();
        let script = format!(
            "echo 'perl: warning: Setting locale failed.' >&2
            case $1 in
            --version) echo 'Verilator 5.0' ;;
            --getenv) echo {here}/root ;;
            *) mkdir generated ;;
            esac"
        );
        write_script(&verilator, &script);
        let script = format!(
            "echo 'c++: warning: Setting locale failed.' >&2
            case $* in
            *--version) echo 'c++ 12' ;;
            *-shared*) : > {LIBRARY}; echo block >> {here}/calls ;;
            *) : > verilated.o; echo runtime >> {here}/calls ;;
            esac"
        );
        write_script(&directory.join("compiler"), &script);
        let compiler = format!("sh {here}/compiler");
        let compiler = || Compiler::named(OsStr::new(&compiler)).unwrap();
        let toolchain = Toolchain::of(verilator.as_os_str(), compiler).unwrap();
        toolchain.cached_in(&directory.join("cache"))
    }

    #[test]
    fn warnings_of_the_tools_are_not_taken_for_answers() {
        let directory = tempfile::tempdir().unwrap();
        let toolchain = fakes(directory.path());
        assert_eq!(toolchain.include, directory.path().join("root/include"));
        let versions = &toolchain.versions;
        assert!(versions.contains("Verilator 5.0") && versions.contains("c++ 12"));
        assert!(!versions.contains("warning"), "{versions}");
    }

    #[test]
    fn an_old_verilator_is_told_of_by_its_version() {
        assert_eq!(
            too_old("Verilator 4.038 2020-07-11 rev v4.036\n"),
            Some("4.038")
        );
        assert_eq!(too_old("Verilator 5.006 2023-01-22 rev\n"), None);
        assert_eq!(too_old("something else"), None);
        let directory = tempfile::tempdir().unwrap();
        let verilator = directory.path().join("verilator");
        write_script(&verilator, "echo Verilator 4.0");
        let unasked = || panic!("the compiler does not matter any more");
        let error = Toolchain::of(verilator.as_os_str(), unasked).unwrap_err();
        assert_eq!(error.to_string(), "needs Verilator 5, found 4.0");
    }

    #[test]
    fn a_build_is_known_by_its_machine() {
        let directory = tempfile::tempdir().unwrap();
        let toolchain = fakes(directory.path());
        let runtime = toolchain.runtime(&toolchain.cache).unwrap();
        let made_from = std::fs::read_to_string(runtime.path().join("made-from")).unwrap();
        let machine = format!("{ARCH} {OS}\n");
        assert!(made_from.starts_with(&machine), "{made_from}");
    }

    #[test]
    fn what_was_found_and_cannot_be_loaded_is_built_once_more() {
        let directory = tempfile::tempdir().unwrap();
        let toolchain = fakes(directory.path());
        let block = (find("fifo").unwrap().build)(0, None).rtl;
        let build = || {
            let error = toolchain.build(&*block).unwrap_err();
            assert!(matches!(error, VerilatedError::Load(_)), "{error}");
            std::fs::read_to_string(directory.path().join("calls")).unwrap()
        };
        assert_eq!(build(), "runtime\nblock\n");
        assert_eq!(build(), "runtime\nblock\nruntime\nblock\n");
    }
}
