//! `sme rtl verilog`: the blocks of a machine's engine as files, with what runs them.
//!
//! All text is made before anything is written, and all files are written under temporary names
//! before the first gets its own: a directory with half the files is as unlikely as the host
//! allows.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use sme_hdl::bench::Bench;
use sme_hdl::verilog::{self, Files, module_name};

use super::super::flags::{FileFlags, Heading};
use super::super::read;
use crate::report::output::{self, Output};
use crate::report::row::Cell;
use crate::report::stop::Stop;

/// The flags of `sme rtl verilog`.
#[derive(Args, Clone, Debug)]
pub struct VerilogFlags {
    /// Directory of the files; made if it does not exist
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Blocks, e.g. switch,link_port, or all
    #[arg(long, value_name = "NAME", default_value = super::ALL)]
    block: String,
    /// Cycles of the test benches' traffic
    #[arg(
        long,
        value_name = "N",
        default_value = "2000",
        allow_negative_numbers = true
    )]
    cycles: String,
    /// Seed of the test benches' traffic
    #[arg(
        long,
        value_name = "N",
        default_value = "1",
        allow_negative_numbers = true
    )]
    seed: String,
    #[command(flatten)]
    engine: super::EngineFlags,
    #[command(flatten)]
    output: FileFlags,
}

/// The most cycles of a test bench: a simulator holds all their vectors in memory.
const MAX_CYCLES: u64 = 100_000;

/// Flags that fit together.
#[derive(Debug)]
pub struct VerilogRun {
    out: PathBuf,
    blocks: Vec<&'static Bench>,
    cycles: u64,
    seed: u64,
    engine: super::MachineEngine,
    output: FileFlags,
}

impl VerilogRun {
    /// Reads the flags.
    pub fn read(flags: &VerilogFlags) -> Result<Self, Stop> {
        Ok(Self {
            out: flags.out.clone(),
            blocks: super::blocks(&flags.block)?,
            cycles: super::cycles(&flags.cycles, MAX_CYCLES)?,
            seed: read::seed(&flags.seed)?,
            engine: super::MachineEngine::read(&flags.engine)?,
            output: flags.output.clone(),
        })
    }

    /// The keys of its rows.
    pub fn heading(&self) -> Heading {
        self.output.heading(HEADING, false)
    }

    /// Writes the files, and a row for each block.
    pub fn run(&self) -> Result<(), Stop> {
        let mut rows = Output::file_or_stdout(self.output.output.as_deref())?;
        let is_new = !self.out.exists();
        fs::create_dir_all(&self.out)
            .map_err(|error| Stop::unwritable("--out", &self.out, &error))?;
        let written = self.files();
        if written.is_err() && is_new {
            // Removes the new directory; it stays if it holds files by now, which are not ours.
            let _ = fs::remove_dir(&self.out);
        }
        rows.push(&self.output.rendered(HEADING, &written?)?)?;
        rows.commit()
    }

    fn files(&self) -> Result<Vec<Vec<Cell>>, Stop> {
        let (mut texts, mut rows, mut made_of) = (Vec::new(), Vec::new(), Vec::new());
        for bench in &self.blocks {
            let pair = self.engine.part(bench);
            let origin = self.engine.origin(pair.sizes.clone());
            let made = Files::new(bench, pair, &origin, self.cycles, self.seed);
            let made = made.map_err(|error| Stop::Failed(format!("{}: {error}", bench.name)))?;
            let name = |index: usize| made.files.get(index).map(|(name, _)| Cell::text(name));
            rows.push(vec![
                Cell::text(env!("CARGO_PKG_VERSION")),
                Cell::text(bench.name),
                Cell::text(module_name(bench.name)),
                Cell::Count(self.seed),
                Cell::Count(self.cycles),
                name(0).unwrap_or(Cell::Absent),
                name(1).unwrap_or(Cell::Absent),
                name(2).unwrap_or(Cell::Absent),
            ]);
            let in_directory = |(name, text)| (self.out.join(name), text);
            texts.extend(made.files.into_iter().map(in_directory));
            made_of.push((*bench, origin));
        }
        let arguments = self.engine.arguments();
        for (name, text) in verilog::directory(&made_of, &arguments) {
            let path = self.out.join(name);
            not_others(&path)?;
            texts.push((path, text));
        }
        let rows_file = ("-o", self.output.output.as_deref());
        let mut files = Vec::with_capacity(texts.len());
        for (path, text) in &texts {
            output::distinct(&[("--out", Some(path)), rows_file])?;
            let mut file = Output::file("--out", path)?;
            file.push(text)?;
            files.push(file);
        }
        files.into_iter().try_for_each(Output::commit)?;
        Ok(rows)
    }
}

/// Refuses to replace a file that has come from elsewhere: many directories have a README.
fn not_others(path: &Path) -> Result<(), Stop> {
    match fs::read(path) {
        Ok(text) if !verilog::is_ours(&String::from_utf8_lossy(&text)) => Err(Stop::flag(
            &format!("--out {}", path.display()),
            "is there, and not of sme; choose a directory of its own",
        )),
        // What cannot be read cannot be written, or is not there.
        _ => Ok(()),
    }
}

const HEADING: &[&str] = &[
    "version", "block", "module", "seed", "cycles", "verilog", "bench", "vectors",
];
