//! A block's Verilog, compiled by Verilator: the third of the three that the lockstep compares,
//! and the fastest RTL there is.
//!
//! [`Toolchain`] finds Verilator and a C++ compiler; [`Toolchain::build`] makes a [`Model`] of a
//! block, a shared library with five functions (see the submodule `interface`), and
//! [`Model::device`] an instance of it, as many as are wanted. What was built is kept under the
//! user's cache directory and found there by its content. Called by the lockstep, the tests and
//! `sme rtl`; it needs [`crate::verilog`], and Verilator 5.

mod cache;
mod interface;
mod library;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use crate::device::{Device, Port};
use crate::tool::{self, ToolError};
use crate::value::Value;
use crate::verilog::VerilogError;

use cache::Cache;
use library::{Instance, Library};

/// Why there is no verilated block.
#[derive(Debug, thiserror::Error)]
pub enum VerilatedError {
    /// Verilator or the compiler is missing, or has complained.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// There is no Verilog to begin with.
    #[error("no Verilog: {0}")]
    Verilog(#[from] VerilogError),
    /// A directory or a file could not be made.
    #[error("{}: {error}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The library could not be loaded.
    #[error("the verilated block cannot be loaded: {0}")]
    Load(String),
}

/// Verilator and a C++ compiler.
#[derive(Clone, Debug)]
pub struct Toolchain {
    compiler: OsString,
    /// What they say of their versions; a part of what a build is known by.
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
    /// Finds `verilator` and the compiler: `$CXX`, else `c++`, `g++` or `clang++`.
    pub fn find() -> Result<Self, VerilatedError> {
        let verilator = tool::output(Command::new("verilator").arg("--version"))?;
        let root = tool::output(Command::new("verilator").args(["--getenv", "VERILATOR_ROOT"]))?;
        let named: Vec<OsString> = match std::env::var_os("CXX").filter(|cxx| !cxx.is_empty()) {
            Some(compiler) => vec![compiler],
            None => ["c++", "g++", "clang++"].map(OsString::from).to_vec(),
        };
        let version = |compiler: &OsString| tool::output(Command::new(compiler).arg("--version"));
        let found = named
            .iter()
            .find_map(|compiler| Some((compiler, version(compiler).ok()?)));
        let Some((compiler, version)) = found else {
            let name = named
                .first()
                .map(|name| name.to_string_lossy().into_owned());
            return Err(ToolError::Missing(name.unwrap_or_default()).into());
        };
        Ok(Self {
            compiler: compiler.clone(),
            versions: format!("{}\n{}", verilator.trim(), version.trim()),
            include: Path::new(root.trim()).join("include"),
            optimize: "-O2",
            cache: Cache::of_user(),
        })
    }

    /// With what is built kept in `directory`, which only this user should be able to write to.
    pub fn cached_in(mut self, directory: &Path) -> Self {
        self.cache = Cache::at(directory);
        self
    }

    /// For a short run: builds faster, runs slower.
    pub fn for_a_short_run(mut self) -> Self {
        self.optimize = "-O1";
        self
    }

    /// Builds the RTL `block`, or finds that it was built before.
    pub fn build(&self, block: &dyn Device) -> Result<Model, VerilatedError> {
        let (inputs, outputs) = (block.inputs(), block.outputs());
        let verilog = block.verilog(BLOCK)? + &interface::wrapper(BLOCK, &inputs, &outputs);
        let interface = interface::source(&inputs, &outputs);
        let runtime = self.runtime()?;
        let key = [
            self.versions.as_str(),
            self.optimize,
            HOW,
            &verilog,
            &interface,
        ];
        let directory = self.cache.get(&key, |directory| {
            write(&directory.join("sme_rtl.v"), &verilog)?;
            write(&directory.join("interface.cpp"), &interface)?;
            let mut verilator = Command::new("verilator");
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
            let all = directory.join("all.cpp");
            write(&all, &including(&directory.join("generated"))?)?;
            let mut compiler = self.compiler();
            compiler
                .args(["-shared", "-Wl,-Bsymbolic", "-pthread", "-I", "generated"])
                .args(["-o", LIBRARY, "all.cpp"])
                .args([
                    runtime.join("verilated.o"),
                    runtime.join("verilated_threads.o"),
                ])
                .current_dir(directory);
            tool::output(&mut compiler)?;
            Ok(())
        })?;
        Ok(Model {
            library: Library::load(&directory.join(LIBRARY), &inputs, &outputs)?,
            inputs,
            outputs,
        })
    }

    /// Verilator's own C++, compiled once for all blocks: the directory with its object files.
    fn runtime(&self) -> Result<PathBuf, VerilatedError> {
        let include = self.include.to_string_lossy();
        let key = [self.versions.as_str(), self.optimize, HOW, &include];
        self.cache.get(&key, |directory| {
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
        let mut compiler = Command::new(&self.compiler);
        compiler
            .arg(self.optimize)
            .args(COMPILE)
            .arg("-I")
            .arg(&self.include);
        compiler.arg("-I").arg(self.include.join("vltstd"));
        compiler
    }
}

/// How things are built, which is a part of what a build is known by: this file.
const HOW: &str = include_str!("verilated.rs");

/// The block's module, below the one that [`interface`] makes.
const BLOCK: &str = "sme_block";

const LIBRARY: &str = "libsme_rtl.so";

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
