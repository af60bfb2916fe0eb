//! Line charts as SVG text: curves, published points as marks, a legend beside the plot.
//!
//! Called by the default job; works on plain numbers, in the units that the axes name. Drawing is
//! `plotters`' SVG back end; text stays text, in the fonts of whoever looks at it.

use std::error::Error;
use std::ops::Range;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::element::{DashedPathElement, EmptyElement, PathElement, Polygon};
use plotters::prelude::{
    ChartBuilder, Color, DrawingArea, IntoDrawingArea, RGBColor, SVGBackend, ShapeStyle, Text,
    WHITE,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontDesc, FontFamily, FontStyle, TextStyle};

/// Width and height of a chart [pixels].
const SIZE: (u32, u32) = (1000, 620);
/// Width of the legend [pixels].
const LEGEND: u32 = 236;
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
    /// Along the left, from 0 up.
    pub y: Axis,
    /// Curves, in the order of the legend; later ones are drawn over earlier ones.
    pub curves: Vec<Curve>,
    /// Marks, over all curves.
    pub marks: Vec<Marks>,
}

/// An axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// With the unit.
    pub label: String,
    /// Where there are grid lines and numbers; about eight round ones where this is empty.
    pub ticks: Vec<f64>,
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

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn Error>>;

impl Chart {
    /// The chart as the text of an SVG file.
    pub fn to_svg(&self) -> Result<String, PlotError> {
        let mut svg = String::new();
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        let drawn = self.draw(&root);
        drop(root);
        match drawn {
            Ok(()) => Ok(svg),
            Err(error) => Err(PlotError(error.to_string())),
        }
    }

    fn draw(&self, root: &Area) -> Drawn {
        let x = self.x.scale(self.largest(|point| point.0));
        let y = self.y.scale(self.largest(|point| point.1));
        let (x_count, y_count) = (x.ticks.len(), y.ticks.len());
        root.fill(&WHITE)?;

        root.draw(&Text::new(self.title.clone(), (20, 16), bold(20)))?;
        root.draw(&Text::new(self.subtitle.clone(), (20, 44), text(13)))?;
        let (left, right) = root
            .margin(72, 12, 12, 8)
            .split_horizontally(SIZE.0 - LEGEND);
        let mut context = ChartBuilder::on(&left)
            .x_label_area_size(46)
            .y_label_area_size(58)
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
        for curve in &self.curves {
            let points = drawable(&curve.points).copied();
            match curve.stroke {
                Stroke::Solid => {
                    let path = PathElement::new(points.collect::<Vec<_>>(), curve.style());
                    context.draw_series([path])?;
                }
                Stroke::Dashed => {
                    let path = DashedPathElement::new(points, 6, 4, curve.style());
                    context.draw_series([path])?;
                }
            }
        }
        for marks in &self.marks {
            let symbol =
                |at: &(f64, f64)| EmptyElement::at(*at) + marks.symbol.rim() + marks.symbol.core();
            context.draw_series(drawable(&marks.points).map(symbol))?;
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
                    Stroke::Solid => area.draw(&PathElement::new(ends, curve.style()))?,
                    Stroke::Dashed => {
                        area.draw(&DashedPathElement::new(ends, 6, 4, curve.style()))?;
                    }
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

    /// The largest of a coordinate over everything that is drawn.
    fn largest(&self, of: fn(&(f64, f64)) -> f64) -> f64 {
        let curves = self.curves.iter().flat_map(|curve| drawable(&curve.points));
        let marks = self.marks.iter().flat_map(|marks| drawable(&marks.points));
        curves.chain(marks).map(of).fold(0.0, f64::max)
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

impl Axis {
    /// The scale of an axis on which `largest` still lies.
    fn scale(&self, largest: f64) -> Scale {
        let last = self.ticks.iter().copied().fold(0.0, f64::max);
        if (1e-15..1e15).contains(&last) {
            // A little more, so that the last grid line is not the frame.
            let ticks = self.ticks.iter().copied();
            return Scale {
                end: largest.max(last) * 1.015,
                ticks: ticks.filter(|tick| (0.0..=last).contains(tick)).collect(),
            };
        }
        let largest = if largest > 0.0 { largest } else { 1.0 };
        let magnitude = 10f64.powf((largest / 8.0).log10().floor());
        let round = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * magnitude);
        let step = round
            .into_iter()
            .find(|step| largest / step <= 8.0)
            .unwrap_or(largest);
        let count = (largest / step * 1.02).ceil();
        // Dividing leaves fewer odd digits than multiplying with a step below 1.
        let tick = |index: f64| match step < 1.0 {
            true => index / (1.0 / step).round(),
            false => index * step,
        };
        Scale {
            end: tick(count),
            ticks: (0..=count as u32)
                .map(|index| tick(f64::from(index)))
                .collect(),
        }
    }
}

/// A linear scale from 0 to an end, with numbers where it is told.
struct Scale {
    end: f64,
    ticks: Vec<f64>,
}

impl Ranged for Scale {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let (from, to) = (f64::from(limit.0), f64::from(limit.1));
        (from + (to - from) * value / self.end).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        match hint.weight().allow_light_points() {
            // Only the grid lines that carry numbers are drawn.
            true => Vec::new(),
            false => self.ticks.clone(),
        }
    }

    fn range(&self) -> Range<f64> {
        0.0..self.end
    }
}

impl ValueFormatter<f64> for Scale {
    fn format(value: &f64) -> String {
        value.to_string()
    }
}

impl Curve {
    fn style(&self) -> ShapeStyle {
        let (red, green, blue) = self.colour;
        let width = match self.stroke {
            Stroke::Solid => 2,
            Stroke::Dashed => 1,
        };
        RGBColor(red, green, blue).stroke_width(width)
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

/// The points that have a place in a chart; the others are left out.
fn drawable(points: &[(f64, f64)]) -> impl Iterator<Item = &(f64, f64)> + Clone {
    let within = |number: &f64| (0.0..1e15).contains(number);
    points.iter().filter(move |(x, y)| within(x) && within(y))
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
        let axis = |label: &str, ticks| Axis {
            label: label.into(),
            ticks,
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
        fn ticks_are_round_and_reach_over_everything(largest in 1e-3..1e6f64) {
            let axis = Axis { label: String::new(), ticks: Vec::new() };
            let Scale { end, ticks } = axis.scale(largest);
            prop_assert!(end >= largest && end <= 2.0 * largest + end / ticks.len() as f64);
            prop_assert!((4..=10).contains(&ticks.len()), "{ticks:?}");
            for tick in ticks {
                prop_assert!(tick.to_string().len() <= 8, "{tick}");
            }
        }

        #[test]
        fn no_figures_panic(points in prop::collection::vec((any::<f64>(), any::<f64>()), 0..6), ticks in prop::collection::vec(any::<f64>(), 0..4)) {
            let _ = chart(points, ticks).to_svg();
        }
    }
}
