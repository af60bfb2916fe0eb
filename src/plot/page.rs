//! The page of a picture: its size, and the text around the plot.
//!
//! All lengths of the room are pixels of a screen. A page for print is drawn with several units a
//! pixel, as the back end knows whole units only, and says its width in inches.

/// The size of a picture, and where its legend stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum Size {
    /// 1000 by 620 pixels, with the legend beside the plot.
    #[default]
    Screen,
    /// 3.5 inches (89 mm) wide, a column of a page with two; the legend stands below the plot.
    SingleColumn,
    /// 7.16 inches (182 mm) wide, over both columns of such a page, with the legend beside the
    /// plot.
    DoubleColumn,
}

/// The text around the plot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum Style {
    /// Title and subtitle above, and a caption below.
    #[default]
    Screen,
    /// Axes and legend alone: a paper has a caption of its own.
    Paper,
}

/// A page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The size of the page.
    pub size: Size,
    /// The text on the page.
    pub style: Style,
}

/// Pixels of an inch of print: text of 13 pixels is 7.5 points high there.
const PRINTED: f64 = 437.0 / 3.5;

impl Page {
    /// The width [pixels].
    pub(super) fn width(self) -> i32 {
        match self.size {
            Size::Screen => 1000,
            Size::SingleColumn => (3.5 * PRINTED).round() as i32,
            Size::DoubleColumn => (7.16 * PRINTED).round() as i32,
        }
    }

    /// The height without title, caption and a legend below the plot [pixels].
    pub(super) fn plot_height(self) -> i32 {
        match self.size {
            Size::Screen => 536,
            Size::SingleColumn => 280,
            Size::DoubleColumn => 340,
        }
    }

    /// The page of each of several panels in a row: of those over both columns, each has one.
    pub(super) fn of_panels(self, columns: usize) -> Self {
        match (self.size, columns) {
            (Size::DoubleColumn, 2..) => Self {
                size: Size::SingleColumn,
                ..self
            },
            _ => self,
        }
    }

    /// Dots of a PNG file in the length that SVG takes for a pixel: 300 an inch of print.
    #[cfg(feature = "cli")]
    pub(super) fn dots(self) -> f32 {
        match self.size {
            Size::Screen => 2.0,
            Size::SingleColumn | Size::DoubleColumn => 300.0 / 96.0,
        }
    }

    /// The width of a legend beside the plot [pixels]; none where it stands below.
    pub(super) fn legend_width(self) -> Option<i32> {
        match self.size {
            Size::Screen => Some(236),
            Size::SingleColumn => None,
            Size::DoubleColumn => Some(220),
        }
    }

    /// Units of the drawing in a pixel.
    pub(super) fn units(self) -> i32 {
        match self.size {
            Size::Screen => 1,
            Size::SingleColumn | Size::DoubleColumn => 3,
        }
    }

    /// The length of so many units, as SVG has it.
    pub(super) fn length(self, units: i32) -> String {
        match self.size {
            Size::Screen => units.to_string(),
            Size::SingleColumn | Size::DoubleColumn => {
                let inches = f64::from(units) / f64::from(self.units()) / PRINTED;
                format!("{inches:.3}in")
            }
        }
    }
}
