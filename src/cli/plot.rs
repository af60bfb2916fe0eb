//! `sme plot`: rows of a file, those that a command wrote or others, as a picture.
//!
//! Called by [`super::main`]. Files are read by [`crate::report::records`] and drawn by
//! [`crate::plot`]; here is only which fields go where. Nothing is simulated.

mod choose;
mod picture;
mod table;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use crate::plot::export::Kind;
use crate::plot::{Page, Size, Style};
use crate::report::output::Output;
use crate::report::stop::{Stop, to_stderr};

use choose::{Chosen, Named};
use picture::Picture;
use table::{SOURCE, Table};

/// The flags of `sme plot`.
#[derive(Args, Clone, Debug)]
pub struct PlotFlags {
    /// Rows as CSV or JSON lines; - is standard input. Of several files, source_file is a field
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Field along the bottom; of bars their names, which several fields may make
    #[arg(long, value_name = "FIELD", help_heading = "Fields")]
    x: Option<String>,
    /// Fields along the left, all of one unit
    #[arg(long, value_name = "FIELD,…", help_heading = "Fields")]
    y: Option<String>,
    /// Fields that tell curves apart, or the parts of bars; "" for none
    #[arg(long, value_name = "FIELD,…", help_heading = "Fields")]
    series: Option<String>,
    /// Take only the rows whose field has this value; if repeated, the rows that match all
    #[arg(long = "where", value_name = "FIELD=VALUE", help_heading = "Fields")]
    only: Vec<String>,
    /// Bars of errors from one field to another, such as two percentiles
    #[arg(long, value_name = "LOW,HIGH", help_heading = "Fields")]
    errors: Option<String>,
    /// Field with published values, drawn as marks; may be repeated
    #[arg(long, value_name = "FIELD", help_heading = "Fields")]
    published: Vec<String>,
    /// A panel for each value of this field, with one scale along the left
    #[arg(long, value_name = "FIELD", help_heading = "Fields")]
    panels: Option<String>,
    /// Stacked bars in the place of curves; rows of one bar and part are added up
    #[arg(long, help_heading = "Picture")]
    bars: bool,
    /// Logarithmic axes
    #[arg(long, value_name = "AXES", help_heading = "Picture")]
    log: Option<Logarithmic>,
    /// Width: screen, single-column or double-column; 1000 pixels, 3.5 or 7.16 inches
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "screen",
        hide_possible_values = true,
        help_heading = "Picture"
    )]
    size: Size,
    /// Style: screen has title and subtitle, paper has none
    #[arg(
        long,
        value_name = "STYLE",
        default_value = "screen",
        hide_possible_values = true,
        help_heading = "Picture"
    )]
    style: Style,
    /// Title [default: the fields in words]
    #[arg(long, value_name = "TEXT", help_heading = "Picture")]
    title: Option<String>,
    /// Write the picture to FILE.svg, FILE.pdf or FILE.png [default: SVG on stdout]
    #[arg(
        short = 'o',
        long = "output",
        value_name = "FILE",
        help_heading = "Output"
    )]
    output: Option<PathBuf>,
}

/// The axes that are logarithmic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Logarithmic {
    /// The one along the bottom.
    X,
    /// The one along the left.
    Y,
    /// Both.
    Xy,
}

impl PlotFlags {
    fn is_paper(&self) -> bool {
        self.style == Style::Paper
    }
}

/// A picture whose flags fit together.
#[derive(Debug)]
pub struct PlotRun {
    flags: PlotFlags,
    only: Vec<(String, String)>,
    kind: Kind,
}

impl PlotRun {
    /// Reads the flags; no file is opened.
    pub fn read(flags: &PlotFlags) -> Result<Self, Stop> {
        let is_stdin = |file: &&PathBuf| file.as_path() == Path::new("-");
        if flags.files.iter().filter(is_stdin).count() > 1 {
            return Err(Stop::flag("-", "standard input can be read once"));
        }
        for (number, file) in flags.files.iter().enumerate() {
            let is_same = |other: &PathBuf| match (other.canonicalize(), file.canonicalize()) {
                (Ok(other), Ok(file)) => other == file,
                _ => other == file,
            };
            if flags.files[..number].iter().any(is_same) {
                return Err(Stop::flag(&file.display().to_string(), "is given twice"));
            }
        }
        let kind = match flags.output.as_deref() {
            None => Kind::Svg,
            Some(path) if path == Path::new("-") => Kind::Svg,
            Some(path) => Kind::of_file(path).ok_or_else(|| {
                let flag = format!("-o {}", path.display());
                Stop::flag(&flag, "pictures are written as .svg, .pdf or .png")
            })?,
        };
        let only = flags.only.iter().map(|text| {
            let (key, value) = text
                .split_once('=')
                .ok_or_else(|| Stop::flag(&format!("--where {text}"), "FIELD=VALUE"))?;
            Ok((key.trim().to_owned(), value.to_owned()))
        });
        Ok(Self {
            only: only.collect::<Result<_, Stop>>()?,
            flags: flags.clone(),
            kind,
        })
    }

    /// Refuses fields that rows with these keys do not have; the files need not be there.
    ///
    /// # Errors
    /// [`Stop::Input`] that names the flag.
    pub fn check(&self, keys: impl IntoIterator<Item = String>) -> Result<(), Stop> {
        let source = (self.flags.files.len() > 1).then(|| SOURCE.to_owned());
        let fields: Vec<String> = source.into_iter().chain(keys).collect();
        for (key, _) in &self.only {
            table::find(&fields, "--where", key)?;
        }
        Named::new(&fields, &self.flags).map(drop)
    }

    /// Reads the files, draws the picture and writes it.
    pub fn run(&self) -> Result<(), Stop> {
        let mut output = Output::file_or_stdout(self.flags.output.as_deref())?;
        let drawn = self.draw()?;
        output.push_bytes(&drawn.bytes)?;
        output.commit()?;
        if let Some(told) = &drawn.told {
            to_stderr(&format!("plotted: {told}\n"));
        }
        for warning in drawn.warnings() {
            to_stderr(&format!("{warning}\n"));
        }
        Ok(())
    }

    /// Reads the files and draws the picture in the format of its file.
    ///
    /// # Errors
    /// [`Stop::Input`] for files without such rows, and for fields that cannot be drawn.
    pub fn draw(&self) -> Result<Drawn, Stop> {
        self.drawn_as(self.kind)
    }

    /// The same picture as SVG.
    ///
    /// # Errors
    /// As [`Self::draw`].
    pub fn svg(&self) -> Result<String, Stop> {
        let bytes = self.drawn_as(Kind::Svg)?.bytes;
        String::from_utf8(bytes).map_err(|error| Stop::Failed(error.to_string()))
    }

    fn drawn_as(&self, kind: Kind) -> Result<Drawn, Stop> {
        let flags = &self.flags;
        let table = Table::read(&flags.files, &self.only)?;
        let chosen = Chosen::new(&table, flags)?;
        let picture = Picture::new(&table, &chosen, flags)?;
        let page = Page {
            size: flags.size,
            style: flags.style,
        };
        let bytes = picture.to_svg(page).and_then(|svg| kind.bytes(svg, page));
        let bytes = bytes.map_err(|error| match &flags.output {
            Some(path) => Stop::flag(&format!("-o {}", path.display()), error),
            None => Stop::Input(error.to_string()),
        })?;
        Ok(Drawn {
            bytes,
            told: chosen.told,
            left_out: picture.left_out,
            doubled: picture.doubled,
        })
    }
}

/// A picture as it goes to its file.
#[derive(Debug)]
pub struct Drawn {
    /// The file's contents.
    pub bytes: Vec<u8>,
    /// The fields that were chosen, in words, where flags left any open.
    told: Option<String>,
    /// Rows without numbers to draw.
    left_out: usize,
    doubled: Option<String>,
}

impl Drawn {
    /// Lines about rows that are not in the picture, or not as a reader expects.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        let left_out = match self.left_out {
            0 => None,
            1 => Some("left out: 1 row without these numbers".to_owned()),
            count => Some(format!("left out: {count} rows without these numbers")),
        };
        let doubled = self.doubled.iter();
        left_out
            .into_iter()
            .chain(doubled.map(|why| format!("warning: {why}")))
    }
}
