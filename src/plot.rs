//! Line charts as SVG text: curves, published points as marks, a legend beside the plot.
//!
//! Called by the default job and [`crate::cli::fft_paper`]; works on plain numbers, in the units
//! that the axes name. Drawing is `plotters`' SVG back end; text stays text, in the viewer's
//! fonts.

mod scale;

use std::error::Error;

use plotters::coord::Shift;
use plotters::coord::ranged1d::ValueFormatter;
use plotters::element::{DashedPathElement, EmptyElement, PathElement, Polygon};
use plotters::prelude::{
    ChartBuilder, Circle, Color, DrawingArea, IntoDrawingArea, RGBColor, SVGBackend, ShapeStyle,
    Text, WHITE,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontDesc, FontFamily, FontStyle, TextStyle};

use scale::Scale;

/// Width and height of a chart [pixels].
const SIZE: (u32, u32) = (1000, 620);
/// Width of the legend [pixels].
const LEGEND: u32 = 236;
/// Least width of the y axis' label and numbers [pixels].
const Y_LABEL_AREA: u32 = 58;
/// What of it is not numbers [pixels].
const Y_LABEL: u32 = 36;
/// Width of a digit of a number at an axis [pixels].
const DIGIT: u32 = 8;
/// Height of a line of the caption [pixels].
const CAPTION_LINE: i32 = 18;
/// How much of its colour a band has.
const SHADE: f64 = 0.14;
/// Radius of a dot [pixels].
const DOT: i32 = 4;
/// Fonts with plain figures that most systems have, then whatever has no serifs.
const FONT: &str = "Helvetica, Arial, sans-serif";
/// Text and axes.
const INK: RGBColor = RGBColor(51, 51, 51);
/// Grid lines.
const GRID: RGBColor = RGBColor(228, 228, 228);

/// Why a chart could not be drawn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the chart could not be drawn: {0}")]
pub struct PlotError(String);

/// A chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Chart {
    /// What it shows, in a few words.
    pub title: String,
    /// What else a reader has to know: the machine, the setting.
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
    /// How numbers become lengths.
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

/// How an axis turns numbers into lengths.
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
    /// How the line is drawn.
    pub stroke: Stroke,
}

/// How a line is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stroke {
    /// Simulated.
    Solid,
    /// Simulated, at few places: with a dot at each.
    Dotted,
    /// For comparison: thin and dashed.
    Dashed,
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

/// What lies between two curves: an interval, shaded in the background.
#[derive(Clone, Debug, PartialEq)]
pub struct Band {
    /// (x, lower y, upper y), in the order of x.
    pub points: Vec<(f64, f64, f64)>,
    /// As a curve's; it is made much lighter.
    pub colour: (u8, u8, u8),
}

/// A chart of a sheet, and its bands.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// Everything else.
    pub chart: Chart,
    /// Behind the curves.
    pub bands: Vec<Band>,
}

/// `panels` side by side, up to `columns` in a row, as the text of one SVG file.
///
/// # Errors
/// A chart that cannot be drawn.
pub fn sheet(panels: &[Panel], columns: usize) -> Result<String, PlotError> {
    let columns = columns.clamp(1, panels.len().max(1));
    let rows = panels.len().div_ceil(columns).max(1);
    let size = (SIZE.0 * columns as u32, SIZE.1 * rows as u32);
    let mut svg = String::new();
    let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
    let areas = root.split_evenly((rows, columns));
    let drawn = panels
        .iter()
        .zip(&areas)
        .try_for_each(|(panel, area)| panel.chart.draw(area, &panel.bands));
    drop(areas);
    drop(root);
    match drawn {
        Ok(()) => Ok(svg),
        Err(error) => Err(PlotError(error.to_string())),
    }
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn Error>>;

impl Chart {
    /// The chart as the text of an SVG file.
    pub fn to_svg(&self) -> Result<String, PlotError> {
        let mut svg = String::new();
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        let drawn = self.draw(&root, &[]);
        drop(root);
        match drawn {
            Ok(()) => Ok(svg),
            Err(error) => Err(PlotError(error.to_string())),
        }
    }

    fn draw(&self, root: &Area, bands: &[Band]) -> Drawn {
        let x = self.x.scale(self.range(bands, |point| point.0));
        let y = self.y.scale(self.range(bands, |point| point.1));
        let (x_count, y_count) = (x.ticks.len(), y.ticks.len());
        let y_labels = y
            .ticks
            .iter()
            .map(|tick| Scale::format(tick).chars().count());
        let widest = y_labels.max().unwrap_or(0) as u32;
        let y_label_area = Y_LABEL_AREA.max(Y_LABEL + DIGIT * widest);
        root.fill(&WHITE)?;

        root.draw(&Text::new(self.title.clone(), (20, 16), bold(20)))?;
        root.draw(&Text::new(self.subtitle.clone(), (20, 44), text(13)))?;
        let lines = self.caption.len() as i32;
        for (line, below) in self.caption.iter().zip((1..=lines).rev()) {
            let at = (20, SIZE.1 as i32 - 2 - CAPTION_LINE * below);
            root.draw(&Text::new(line.clone(), at, text(12)))?;
        }
        let (left, right) = root
            .margin(72, 12 + CAPTION_LINE * lines, 12, 8)
            .split_horizontally(SIZE.0 - LEGEND);
        let mut context = ChartBuilder::on(&left)
            .x_label_area_size(46)
            .y_label_area_size(y_label_area)
            .margin_right(16)
            .margin_top(6)
            .build_cartesian_2d(x, y)?;
        context
            .configure_mesh()
            .x_labels(x_count)
            .y_labels(y_count)
            .max_light_lines(0)
            .bold_line_style(GRID)
            .axis_style(INK)
            .label_style(text(13))
            .axis_desc_style(text(15))
            .x_desc(self.x.label.clone())
            .y_desc(self.y.label.clone())
            .draw()?;
        for band in bands {
            let (red, green, blue) = band.colour;
            let outline = self.outline(band);
            let shade = RGBColor(red, green, blue).mix(SHADE).filled();
            context.draw_series([Polygon::new(outline, shade)])?;
        }
        for curve in &self.curves {
            let points = self.drawable(&curve.points).copied();
            match curve.stroke {
                Stroke::Solid | Stroke::Dotted => {
                    let path = PathElement::new(points.collect::<Vec<_>>(), curve.style());
                    context.draw_series([path])?;
                }
                Stroke::Dashed => {
                    let path = DashedPathElement::new(points, 6, 4, curve.style());
                    context.draw_series([path])?;
                }
            }
            if curve.stroke == Stroke::Dotted {
                let dot = |at: &(f64, f64)| Circle::new(*at, DOT, curve.dot());
                context.draw_series(self.drawable(&curve.points).map(dot))?;
            }
        }
        for marks in &self.marks {
            let symbol =
                |at: &(f64, f64)| EmptyElement::at(*at) + marks.symbol.rim() + marks.symbol.core();
            context.draw_series(self.drawable(&marks.points).map(symbol))?;
        }
        self.draw_legend(&right)
    }

    fn draw_legend(&self, area: &Area) -> Drawn {
        let mut legend = Legend {
            area,
            y: 12,
            group: "",
        };
        for curve in &self.curves {
            legend.entry(&curve.group, &curve.label, |area, y| {
                let ends = [(14, y), (44, y)];
                match curve.stroke {
                    Stroke::Solid | Stroke::Dotted => {
                        area.draw(&PathElement::new(ends, curve.style()))?;
                    }
                    Stroke::Dashed => {
                        area.draw(&DashedPathElement::new(ends, 6, 4, curve.style()))?;
                    }
                }
                if curve.stroke == Stroke::Dotted {
                    area.draw(&Circle::new((29, y), DOT, curve.dot()))?;
                }
                Ok(())
            })?;
        }
        for marks in &self.marks {
            legend.entry(&marks.group, &marks.label, |area, y| {
                let symbol = EmptyElement::at((29, y)) + marks.symbol.rim() + marks.symbol.core();
                Ok(area.draw(&symbol)?)
            })?;
        }
        Ok(())
    }

    /// The least and the largest of a coordinate over everything that is drawn.
    fn range(&self, bands: &[Band], of: fn(&(f64, f64)) -> f64) -> (f64, f64) {
        let curves = self.curves.iter().map(|curve| &curve.points);
        let all = curves.chain(self.marks.iter().map(|marks| &marks.points));
        let outlines: Vec<_> = bands.iter().map(|band| self.outline(band)).collect();
        let all = all.chain(&outlines);
        let numbers = all.flat_map(|points| self.drawable(points)).map(of);
        numbers.fold((f64::INFINITY, 0.0), |(least, largest), number| {
            (least.min(number), f64::max(largest, number))
        })
    }

    /// A band's upper edge and, backwards, its lower one, which a linear axis cuts off at 0.
    fn outline(&self, band: &Band) -> Vec<(f64, f64)> {
        let least = self.y.scaling.places().start;
        let upper = band.points.iter().map(|&(x, _, high)| (x, high));
        let lower = band.points.iter().map(|&(x, low, _)| (x, low.max(least)));
        let edges: Vec<_> = upper.chain(lower.rev()).collect();
        self.drawable(&edges).copied().collect()
    }

    /// The points that have a place in the chart; the others are left out.
    fn drawable<'p>(
        &self,
        points: &'p [(f64, f64)],
    ) -> impl Iterator<Item = &'p (f64, f64)> + Clone {
        let (of_x, of_y) = (self.x.scaling.places(), self.y.scaling.places());
        points
            .iter()
            .filter(move |(x, y)| of_x.contains(x) && of_y.contains(y))
    }
}

/// The legend, from top to bottom.
struct Legend<'a, 'b> {
    area: &'a Area<'b>,
    y: i32,
    group: &'a str,
}

impl<'a, 'b> Legend<'a, 'b> {
    fn entry(
        &mut self,
        group: &'a str,
        label: &str,
        symbol: impl FnOnce(&Area<'b>, i32) -> Drawn,
    ) -> Drawn {
        const LINE: i32 = 21;
        if label.is_empty() {
            return Ok(());
        }
        if group != self.group {
            self.y += if self.group.is_empty() { 0 } else { LINE / 2 };
            let heading = Text::new(group.to_owned(), (12, self.y), middle(bold(13)));
            self.area.draw(&heading)?;
            self.y += LINE;
            self.group = group;
        }
        symbol(self.area, self.y)?;
        let label = Text::new(label.to_owned(), (54, self.y), middle(text(13)));
        self.area.draw(&label)?;
        self.y += LINE;
        Ok(())
    }
}

impl Curve {
    fn style(&self) -> ShapeStyle {
        let (red, green, blue) = self.colour;
        let width = match self.stroke {
            Stroke::Solid | Stroke::Dotted => 2,
            Stroke::Dashed => 1,
        };
        RGBColor(red, green, blue).stroke_width(width)
    }

    fn dot(&self) -> ShapeStyle {
        let (red, green, blue) = self.colour;
        RGBColor(red, green, blue).filled()
    }
}

impl Symbol {
    fn core(self) -> Polygon<(i32, i32)> {
        Polygon::new(self.outline(6), INK.filled())
    }

    fn rim(self) -> Polygon<(i32, i32)> {
        Polygon::new(self.outline(8), WHITE.filled())
    }

    fn outline(self, radius: i32) -> Vec<(i32, i32)> {
        let r = radius;
        match self {
            Symbol::Diamond => vec![(-r, 0), (0, -r), (r, 0), (0, r)],
            Symbol::Bound => vec![(-r, -r * 3 / 4), (r, -r * 3 / 4), (0, r)],
        }
    }
}

/// Text of `size` pixels.
fn text(size: u32) -> TextStyle<'static> {
    styled(size, FontStyle::Normal)
}

fn bold(size: u32) -> TextStyle<'static> {
    styled(size, FontStyle::Bold)
}

fn styled(size: u32, style: FontStyle) -> TextStyle<'static> {
    // The back end divides by this again: it takes a size for the height of a line.
    const LINE_HEIGHT: f64 = 1.24;
    let size = f64::from(size) * LINE_HEIGHT;
    FontDesc::new(FontFamily::Name(FONT), size, style).color(&INK)
}

/// Anchored at the left, in the middle of its height.
fn middle(style: TextStyle) -> TextStyle {
    style.pos(Pos::new(HPos::Left, VPos::Center))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn chart(points: Vec<(f64, f64)>, ticks: Vec<f64>) -> Chart {
        scaled(Scaling::Linear, points, ticks)
    }

    fn scaled(scaling: Scaling, points: Vec<(f64, f64)>, ticks: Vec<f64>) -> Chart {
        let axis = |label: &str, ticks| Axis {
            label: label.into(),
            ticks,
            scaling,
        };
        Chart {
            title: "A <chart> & more".into(),
            subtitle: String::new(),
            x: axis("nodes", ticks),
            y: axis("latency [µs]", Vec::new()),
            curves: vec![Curve {
                group: "tree".into(),
                label: "16".into(),
                points: points.clone(),
                colour: (8, 48, 107),
                stroke: Stroke::Solid,
            }],
            marks: vec![Marks {
                group: "published".into(),
                label: "figure".into(),
                points,
                symbol: Symbol::Diamond,
            }],
            caption: Vec::new(),
        }
    }

    #[test]
    fn everything_is_in_the_picture_as_text() {
        let svg = chart(vec![(1.0, 2.0), (64.0, 14.0)], vec![1.0, 32.0, 64.0])
            .to_svg()
            .unwrap();
        for text in [
            "A &lt;chart&gt; &amp; more",
            "nodes",
            "latency [µs]",
            "tree",
            "published",
            "64",
            "14",
        ] {
            assert!(svg.lines().any(|line| line == text), "{text}\n{svg}");
        }
        assert!(svg.contains("font-family=\"Helvetica, Arial, sans-serif\""));
        assert_eq!(svg.matches("<polygon").count(), 6);
    }

    #[test]
    fn a_curve_stays_within_the_plot() {
        let svg = chart(vec![(0.0, 0.0), (64.0, 13.9)], vec![0.0, 32.0, 64.0])
            .to_svg()
            .unwrap();
        let curve = svg
            .lines()
            .find(|line| line.contains("#08306B") && line.contains("points"));
        let points = curve
            .unwrap()
            .split("points=\"")
            .nth(1)
            .unwrap()
            .split('"')
            .next()
            .unwrap();
        for point in points.split_whitespace() {
            let (x, y) = point.split_once(',').unwrap();
            let (x, y): (u32, u32) = (x.parse().unwrap(), y.parse().unwrap());
            assert!(x < SIZE.0 - LEGEND && (70..SIZE.1).contains(&y), "{points}");
        }
    }

    proptest! {
        #[test]
        fn no_figures_panic(points in prop::collection::vec((any::<f64>(), any::<f64>()), 0..6), ticks in prop::collection::vec(any::<f64>(), 0..4)) {
            for scaling in [Scaling::Linear, Scaling::Logarithmic] {
                let _ = scaled(scaling, points.clone(), ticks.clone()).to_svg();
            }
        }
    }
}
