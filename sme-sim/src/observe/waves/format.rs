//! The two file formats of waveforms: VCD (IEEE 1364, value change dump) and FST, GTKWave's own,
//! which is compressed. Both hold the same scopes, signals, times and values, and nothing that
//! depends on the host or the date.

use std::io::{self, Seek, Write};
use std::str::FromStr;

use fst_writer::{
    FstBodyWriter, FstFileType, FstHeaderWriter, FstInfo, FstScopeType, FstSignalId, FstSignalType,
    FstVarDirection, FstVarType, FstWriteError,
};
use vcd::{IdCode, ReferenceIndex, SimulationCommand, TimescaleUnit, Value, VarType};

use super::Signal;

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Value change dump, text.
    Vcd,
    /// Fast signal trace, compressed.
    Fst,
}

impl Format {
    /// A file of this format in which all signals are 0 at `from` femtoseconds. A VCD begins there;
    /// an FST, as its library writes it, at zero.
    pub(super) fn sink<W: Write + Seek + Send + 'static>(
        self,
        shown: Shown,
        from: u64,
        file: W,
    ) -> io::Result<Box<dyn Sink>> {
        Ok(match self {
            Format::Vcd => Box::new(Vcd::new(shown, from, file)?),
            Format::Fst => Box::new(Fst::new(shown, from, file)?),
        })
    }
}

/// From a file name's ending.
impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(ending: &str) -> Result<Self, UnknownFormat> {
        match ending.to_ascii_lowercase().as_str() {
            "vcd" => Ok(Format::Vcd),
            "fst" => Ok(Format::Fst),
            _ => Err(UnknownFormat),
        }
    }
}

/// No format has this ending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a waveform's file ends in .vcd or .fst")]
pub struct UnknownFormat;

/// The content of a waveform: blocks that all have the same signals.
pub(super) struct Shown {
    /// The scope around all.
    pub(super) top: &'static str,
    /// The scope of each block.
    pub(super) blocks: Vec<String>,
    /// The signals of a block.
    pub(super) signals: Vec<Signal>,
}

/// Takes changes in the order of time.
pub(super) trait Sink: Send {
    /// Sets the time of what follows: `at`, in femtoseconds, later than everything before.
    fn time(&mut self, at: u64) -> io::Result<()>;

    /// `signal` of the `block`-th block becomes `value`.
    fn change(&mut self, block: usize, signal: usize, value: u64) -> io::Result<()>;

    /// The waveform ends at `end`; everything is handed to the file.
    fn finish(self: Box<Self>, end: u64) -> io::Result<()>;
}

const VERSION: &str = concat!("sme ", env!("CARGO_PKG_VERSION"));
const FEMTO: i8 = -15;

/// The bits of `value`, the highest first.
fn bits(value: u64, width: u32) -> impl Iterator<Item = bool> {
    (0..width).rev().map(move |bit| value >> bit & 1 == 1)
}

struct Vcd<W: Write> {
    writer: vcd::Writer<W>,
    signals: Vec<Signal>,
    /// By block, then signal.
    codes: Vec<IdCode>,
    last: u64,
}

impl<W: Write + Send> Vcd<W> {
    fn new(shown: Shown, from: u64, file: W) -> io::Result<Self> {
        let (blocks, signals) = (shown.blocks, shown.signals);
        let mut writer = vcd::Writer::new(file);
        writer.version(VERSION)?;
        writer.timescale(1, TimescaleUnit::FS)?;
        writer.add_module(shown.top)?;
        let mut codes = Vec::with_capacity(blocks.len() * signals.len());
        for block in &blocks {
            writer.add_module(block)?;
            for Signal { name, width } in &signals {
                let range = (*width > 1).then(|| ReferenceIndex::Range(*width as i32 - 1, 0));
                codes.push(writer.add_var(VarType::Wire, *width, name, range)?);
            }
            writer.upscope()?;
        }
        writer.upscope()?;
        writer.enddefinitions()?;
        writer.timestamp(from)?;
        let mut vcd = Self {
            writer,
            signals,
            codes,
            last: from,
        };
        vcd.writer.begin(SimulationCommand::Dumpvars)?;
        for block in 0..blocks.len() {
            for signal in 0..vcd.signals.len() {
                vcd.change(block, signal, 0)?;
            }
        }
        vcd.writer.end()?;
        Ok(vcd)
    }
}

impl<W: Write + Send> Sink for Vcd<W> {
    fn time(&mut self, at: u64) -> io::Result<()> {
        self.last = at;
        self.writer.timestamp(at)
    }

    fn change(&mut self, block: usize, signal: usize, value: u64) -> io::Result<()> {
        let code = self.codes[block * self.signals.len() + signal];
        match self.signals[signal].width {
            1 => self.writer.change_scalar(code, value & 1 == 1),
            // Readers extend a vector with zeros.
            width => {
                let width = width.min(64 - value.leading_zeros()).max(1);
                self.writer
                    .change_vector(code, bits(value, width).map(Value::from))
            }
        }
    }

    fn finish(mut self: Box<Self>, end: u64) -> io::Result<()> {
        if end > self.last {
            self.time(end)?;
        }
        self.writer.flush()
    }
}

/// An FST block is written when it has grown to so many bytes.
const BLOCK_BYTES: usize = 1 << 24;

struct Fst<W: Write + Seek> {
    writer: FstBodyWriter<W>,
    signals: Vec<Signal>,
    /// By block, then signal.
    codes: Vec<FstSignalId>,
    last: u64,
    /// The characters of a value.
    text: Vec<u8>,
}

impl<W: Write + Seek + Send> Fst<W> {
    fn new(shown: Shown, from: u64, file: W) -> io::Result<Self> {
        let (blocks, signals) = (shown.blocks, shown.signals);
        let info = FstInfo {
            start_time: 0,
            timescale_exponent: FEMTO,
            version: VERSION.to_owned(),
            date: String::new(),
            file_type: FstFileType::Verilog,
        };
        let mut header = FstHeaderWriter::new(file, &info).map_err(plain)?;
        let scope = |header: &mut FstHeaderWriter<W>, name: &str| {
            let module = FstScopeType::Module;
            header.scope(name, "", module).map_err(plain)
        };
        scope(&mut header, shown.top)?;
        let mut codes = Vec::with_capacity(blocks.len() * signals.len());
        for block in &blocks {
            scope(&mut header, block)?;
            for Signal { name, width } in &signals {
                let name = match width {
                    1 => name.clone(),
                    _ => format!("{name} [{}:0]", width - 1),
                };
                let of_width = FstSignalType::bit_vec(*width);
                let direction = FstVarDirection::Implicit;
                let code = header.var(name, of_width, FstVarType::Wire, direction, None);
                codes.push(code.map_err(plain)?);
            }
            header.up_scope().map_err(plain)?;
        }
        header.up_scope().map_err(plain)?;
        let mut fst = Self {
            writer: header.finish().map_err(plain)?,
            signals,
            codes,
            last: 0,
            text: Vec::new(),
        };
        for block in 0..blocks.len() {
            for signal in 0..fst.signals.len() {
                fst.change(block, signal, 0)?;
            }
        }
        if from > 0 {
            fst.time(from)?;
        }
        Ok(fst)
    }
}

impl<W: Write + Seek + Send> Sink for Fst<W> {
    fn time(&mut self, at: u64) -> io::Result<()> {
        // The library takes no change between a flush and the next time.
        if self.writer.size() > BLOCK_BYTES && at > self.last {
            self.writer.flush().map_err(plain)?;
        }
        self.last = at;
        self.writer.time_change(at).map_err(plain)
    }

    fn change(&mut self, block: usize, signal: usize, value: u64) -> io::Result<()> {
        let width = self.signals[signal].width;
        self.text.clear();
        let digits = bits(value, width).map(|one| if one { b'1' } else { b'0' });
        self.text.extend(digits);
        let code = self.codes[block * self.signals.len() + signal];
        self.writer.signal_change(code, &self.text).map_err(plain)
    }

    fn finish(mut self: Box<Self>, end: u64) -> io::Result<()> {
        if end > self.last {
            self.time(end)?;
        }
        let mut file = self.writer.finish().map_err(plain)?;
        file.flush()
    }
}

fn plain(error: FstWriteError) -> io::Error {
    match error {
        FstWriteError::Io(error) => error,
        other => io::Error::other(other),
    }
}
