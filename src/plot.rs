//! Charts as SVG text: curves, published points as marks, bars of errors, stacked bars, a legend.
//!
//! Called by the default job, by commands with `--figures` or `--plot`, and by
//! [`crate::cli::plot`]; works on plain numbers, in the units that the axes name. Drawing is
//! `plotters`' SVG back end; text stays text, in the viewer's fonts.
//!
//! * [`page`]: sizes and styles. `look`: shapes of marks and dashes. `text`: widths and lines.
//! * `draw`: panels. `legend`, `scale`: their parts. [`bars`]: stacked bars.
//! * `export`: SVG as PDF and PNG.

pub mod bars;
mod draw;
#[cfg(feature = "cli")]
pub mod export;
mod legend;
mod look;
pub mod page;
mod scale;
#[cfg(test)]
mod tests;
mod text;

pub use look::COLOURS;
pub use page::{Page, Size, Style};

/// Why a chart could not be drawn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the chart could not be drawn: {0}")]
pub struct PlotError(String);

/// A chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// The title: what the chart shows, in a few words.
    pub title: String,
    /// Further facts that a reader has to know: the machine, the setting.
    pub subtitle: String,
    /// Along the bottom.
    pub x: Axis,
    /// Along the left.
    pub y: Axis,
    /// Curves, in the order of the legend; later ones are drawn over earlier ones.
    pub curves: Vec<Curve>,
    /// Marks, over all curves.
    pub marks: Vec<Marks>,
    /// Lines below the plot: how it came about.
    pub caption: Vec<String>,
}

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// With the unit.
    pub label: String,
    /// Where there are grid lines and numbers; about eight round ones where this is empty, on a
    /// logarithmic axis 1, 2 and 5 of every decade.
    pub ticks: Vec<f64>,
    /// The scaling from numbers to lengths.
    pub scaling: Scaling,
}

impl Axis {
    /// A logarithmic one with a number at every power of ten around the curves' coordinates that
    /// `of` picks; what is not above 0 does not count.
    pub fn decades(label: &str, curves: &[Curve], of: fn(&(f64, f64)) -> f64) -> Self {
        let values = curves.iter().flat_map(|curve| curve.points.iter().map(of));
        let powers: Vec<f64> = values
            .filter(|&value| value > 0.0)
            .map(f64::log10)
            .collect();
        let least = powers.iter().copied().fold(f64::INFINITY, f64::min);
        let most = powers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let around = least.floor() as i32..=most.ceil() as i32;
        Self {
            label: label.into(),
            ticks: match powers.is_empty() {
                true => Vec::new(),
                false => around.map(|power| 10_f64.powi(power)).collect(),
            },
            scaling: Scaling::Logarithmic,
        }
    }
}

/// The way in which an axis turns numbers into lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scaling {
    /// Equal differences have equal lengths; the axis begins at 0.
    Linear,
    /// Equal ratios have equal lengths; what is not above 0 has no place.
    Logarithmic,
}

/// A curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Curves in a row of the same group stand under it in the legend.
    pub group: String,
    /// In the legend; curves without one are not in it.
    pub label: String,
    /// (x, y), in the order of x.
    pub points: Vec<(f64, f64)>,
    /// Red, green, blue.
    pub colour: (u8, u8, u8),
    /// The stroke of the line.
    pub stroke: Stroke,
}

/// The stroke of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stroke {
    /// Simulated.
    Solid,
    /// Simulated, at few places: with a mark at each.
    Dotted,
    /// Simulated, at many places: with marks at some of them.
    Marked,
    /// Points without an order: marks without a line.
    Points,
    /// For comparison: thin and dashed.
    Dashed,
}

impl Stroke {
    /// Returns whether there are marks on it.
    fn has_marks(self) -> bool {
        matches!(self, Self::Dotted | Self::Marked | Self::Points)
    }
}

/// Points that are no curve: published figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Marks {
    /// As a curve's.
    pub group: String,
    /// In the legend.
    pub label: String,
    /// (x, y)
    pub points: Vec<(f64, f64)>,
    /// Their symbol.
    pub symbol: Symbol,
}

/// A mark's symbol, black with a white rim, so that it shows on every curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symbol {
    /// A figure.
    Diamond,
    /// A figure that is an upper bound: a triangle that points down.
    Bound,
}

/// The band between two curves: an interval, shaded in the background.
#[derive(Clone, Debug, PartialEq)]
pub struct Band {
    /// (x, lower y, upper y), in the order of x.
    pub points: Vec<(f64, f64, f64)>,
    /// As a curve's; it is made much lighter.
    pub colour: (u8, u8, u8),
}

/// Bars of errors: an interval at each place, with ends.
#[derive(Clone, Debug, PartialEq)]
pub struct ErrorBars {
    /// (x, lower y, upper y)
    pub points: Vec<(f64, f64, f64)>,
    /// As their curve's.
    pub colour: (u8, u8, u8),
}

/// A chart with intervals; one of a sheet, or alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// Everything else.
    pub chart: Chart,
    /// Behind the curves.
    pub bands: Vec<Band>,
    /// On the curves.
    pub errors: Vec<ErrorBars>,
}

impl From<Chart> for Panel {
    fn from(chart: Chart) -> Self {
        Self {
            chart,
            bands: Vec::new(),
            errors: Vec::new(),
        }
    }
}

impl Chart {
    /// The chart as the text of an SVG file for a screen.
    ///
    /// # Errors
    /// A chart that cannot be drawn.
    pub fn to_svg(&self) -> Result<String, PlotError> {
        Panel::from(self.clone()).to_svg(Page::default())
    }
}

impl Panel {
    /// The panel alone, as the text of an SVG file.
    ///
    /// # Errors
    /// A chart that cannot be drawn.
    pub fn to_svg(&self, page: Page) -> Result<String, PlotError> {
        compared(std::slice::from_ref(self), 1, page)
    }

    /// The least and the largest of a coordinate over everything that is drawn.
    fn range(&self, of: fn(&(f64, f64)) -> f64) -> (f64, f64) {
        let curves = self.chart.curves.iter().map(|curve| &curve.points);
        let all = curves.chain(self.chart.marks.iter().map(|marks| &marks.points));
        let outlines: Vec<_> = self.bands.iter().map(|band| self.outline(band)).collect();
        let ends = self.errors.iter().map(|bars| {
            let ends = bars.points.iter();
            ends.flat_map(|&(x, low, high)| [(x, low), (x, high)])
                .collect()
        });
        let ends: Vec<Vec<(f64, f64)>> = ends.collect();
        let all = all.chain(&outlines).chain(&ends);
        let numbers = all.flat_map(|points| self.chart.drawable(points)).map(of);
        numbers.fold((f64::INFINITY, 0.0), |(least, largest), number| {
            (least.min(number), f64::max(largest, number))
        })
    }

    fn y_range(&self) -> (f64, f64) {
        self.range(|point| point.1)
    }

    /// A band's upper edge and, backwards, its lower one, which a linear axis cuts off at 0.
    fn outline(&self, band: &Band) -> Vec<(f64, f64)> {
        let least = self.chart.y.scaling.places().start.max(0.0);
        let upper = band.points.iter().map(|&(x, _, high)| (x, high));
        let lower = band.points.iter().map(|&(x, low, _)| (x, low.max(least)));
        let edges: Vec<_> = upper.chain(lower.rev()).collect();
        self.chart.drawable(&edges).copied().collect()
    }
}

/// `panels` side by side, up to `columns` in a row, as the text of one SVG file for a screen. Each
/// has scales of its own.
///
/// # Errors
/// A chart that cannot be drawn.
pub fn sheet(panels: &[Panel], columns: usize) -> Result<String, PlotError> {
    let ranges: Vec<_> = panels.iter().map(Panel::y_range).collect();
    side_by_side(panels, &ranges, columns, Page::default())
}

/// `panels` that are there to be compared, each of the size of `page`, up to `columns` in a row, as
/// the text of one SVG file. Those whose y axes have one name and scaling have one scale.
///
/// # Errors
/// A chart that cannot be drawn.
pub fn compared(panels: &[Panel], columns: usize, page: Page) -> Result<String, PlotError> {
    let shared = |panel: &Panel| {
        let alike = panels.iter().filter(|other| other.chart.y == panel.chart.y);
        let ranges = alike.map(Panel::y_range);
        ranges.fold((f64::INFINITY, 0.0), |(least, most), range| {
            (range.0.min(least), f64::max(range.1, most))
        })
    };
    let ranges: Vec<_> = panels.iter().map(shared).collect();
    side_by_side(panels, &ranges, columns, page)
}

/// `panels` whose y axes reach over `ranges`.
fn side_by_side(
    panels: &[Panel],
    ranges: &[(f64, f64)],
    columns: usize,
    page: Page,
) -> Result<String, PlotError> {
    let columns = columns.clamp(1, panels.len().max(1));
    let rows = panels.len().div_ceil(columns).max(1);
    let page = page.of_panels(columns);
    let heights = panels.iter().map(|panel| panel.frame(page).0.height);
    let height = heights.max().unwrap_or(page.plot_height());
    let size = (page.width() * columns as i32, height * rows as i32);
    draw::root(page, size, |root| {
        let areas = root.split_evenly((rows, columns));
        let mut drawn = panels.iter().zip(ranges).zip(&areas);
        drawn.try_for_each(|((panel, &y), area)| panel.draw(area, page, y))
    })
}
