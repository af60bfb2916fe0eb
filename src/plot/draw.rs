//! Draws a panel onto its part of a picture: title and caption around, axes, and on them bands,
//! curves, bars of errors and marks, in this order.

use std::error::Error;

use plotters::coord::Shift;
use plotters::coord::ranged1d::ValueFormatter;
use plotters::element::{DashedPathElement, EmptyElement, PathElement, Polygon};
use plotters::prelude::{
    ChartBuilder, Color, DrawingArea, IntoDrawingArea, RGBColor, SVGBackend, ShapeStyle, Text,
    WHITE,
};

use super::legend::Legend;
use super::look::{looks, spaced};
use super::page::{Page, Style};
use super::scale::Scale;
use super::text::{self, INK, bold, bold_width, plain};
use super::{Chart, Curve, Panel, PlotError, Stroke, Symbol};

/// Least width of the y axis' label and numbers, and what of it is not numbers [pixels].
const Y_LABEL_AREA: i32 = 58;
const Y_LABEL: i32 = 36;
/// Width of a digit of a number at an axis [pixels].
const DIGIT: i32 = 8;
/// Free at the left and right of a picture's text [pixels].
const MARGIN: i32 = 20;
/// Free at the left and right of plot and legend [pixels].
const LEFT: i32 = 12;
const RIGHT: i32 = 8;
/// Height of a line of the caption, of the subtitle and of the title [pixels].
const CAPTION_LINE: i32 = 18;
const SUBTITLE_LINE: i32 = 18;
const TITLE_LINE: i32 = 26;
/// The share of its colour that a band has.
const SHADE: f64 = 0.14;
/// Half the width of the ends of a bar of errors [pixels].
const CAP: i32 = 3;
/// Grid lines.
pub(super) const GRID: RGBColor = RGBColor(228, 228, 228);

pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub(super) type Drawn = Result<(), Box<dyn Error>>;

/// A picture of so many pixels, as SVG.
pub(super) fn root(
    page: Page,
    (width, height): (i32, i32),
    draw: impl FnOnce(&Area) -> Drawn,
) -> Result<String, PlotError> {
    let (width, height) = (width * page.units(), height * page.units());
    let mut svg = String::new();
    let root = SVGBackend::with_string(&mut svg, (width as u32, height as u32));
    let root = root.into_drawing_area();
    let drawn = root
        .fill(&WHITE)
        .map_err(Into::into)
        .and_then(|()| draw(&root));
    drop(root);
    drawn.map_err(|error| PlotError(error.to_string()))?;
    // The back end knows no unit of length.
    let size = format!("<svg width=\"{width}\" height=\"{height}\" ");
    let with_unit = format!(
        "<svg width=\"{}\" height=\"{}\" ",
        page.length(width),
        page.length(height)
    );
    let svg = svg.replacen(&size, &with_unit, 1);
    // What XML has no character for, in a text from a file or a command line.
    let is_none = |c: char| c.is_control() && c != '\n' || matches!(c, '\u{fffe}' | '\u{ffff}');
    Ok(svg.replace(is_none, "\u{fffd}"))
}

/// The surroundings of a plot, and the height of all of it.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    title: Vec<String>,
    subtitle: Vec<String>,
    caption: Vec<String>,
    /// Of title and subtitle, and of the caption [pixels].
    above: i32,
    below: i32,
    /// Of the legend, if it stands below the plot [pixels].
    legend: i32,
    /// The whole [pixels].
    pub(super) height: i32,
}

impl Frame {
    /// Makes the frame of a plot of so many pixels: title, subtitle and caption, and the legend.
    pub(super) fn new(
        (title, subtitle, caption): (&str, &str, &[String]),
        page: Page,
        plot_height: i32,
        legend: &Legend,
    ) -> Self {
        let most = f64::from(page.width() - 2 * MARGIN);
        let (mut frame, is_told) = (
            Self {
                title: Vec::new(),
                subtitle: Vec::new(),
                caption: Vec::new(),
                above: 8,
                below: 8,
                legend: 0,
                height: 0,
            },
            page.style == Style::Screen,
        );
        if is_told {
            frame.title = text::lines(title, most, |line| bold_width(line, 20.0));
            frame.subtitle = text::lines(subtitle, most, |line| text::width(line, 13.0));
            let lines = caption.iter();
            let lines = lines.flat_map(|line| text::lines(line, most, |l| text::width(l, 12.0)));
            frame.caption = lines.collect();
            let more = |lines: &[String], height: i32| height * (lines.len() as i32 - 1).max(0);
            frame.above =
                72 + more(&frame.title, TITLE_LINE) + more(&frame.subtitle, SUBTITLE_LINE);
            frame.below = 12 + CAPTION_LINE * frame.caption.len() as i32;
        }
        let plot_height = match page.legend_width() {
            Some(_) => plot_height.max(legend.height),
            None => {
                frame.legend = legend.height;
                plot_height
            }
        };
        frame.height = frame.above + plot_height + frame.legend + frame.below;
        frame
    }

    /// The width in which a legend stands, and whether that is beside the plot [pixels].
    pub(super) fn legend_width(page: Page) -> (i32, bool) {
        match page.legend_width() {
            // The plot has its width from the left edge of the picture.
            Some(width) => (width - LEFT - RIGHT, true),
            None => (page.width() - LEFT - RIGHT, false),
        }
    }

    /// The parts of a picture for the plot and the legend.
    pub(super) fn areas<'a>(&self, root: &Area<'a>, page: Page) -> (Area<'a>, Area<'a>) {
        let units = page.units();
        let inner = root.margin(
            self.above * units,
            self.below * units,
            LEFT * units,
            RIGHT * units,
        );
        match page.legend_width() {
            Some(width) => inner.split_horizontally((page.width() - width) * units),
            None => {
                let (_, height) = root.dim_in_pixel();
                let around = (self.above + self.below + self.legend) * units;
                inner.split_vertically(height as i32 - around)
            }
        }
    }

    /// Draws title, subtitle and caption.
    pub(super) fn draw(&self, root: &Area, units: i32) -> Drawn {
        let line = |text: &String, y: i32, style| {
            Text::new(text.clone(), (MARGIN * units, y * units), style)
        };
        let size = |pixels: f64| pixels * f64::from(units);
        for (index, text) in (0..).zip(&self.title) {
            root.draw(&line(text, 16 + TITLE_LINE * index, bold(size(20.0))))?;
        }
        let first = 44 + TITLE_LINE * (self.title.len() as i32 - 1).max(0);
        for (index, text) in (0..).zip(&self.subtitle) {
            root.draw(&line(
                text,
                first + SUBTITLE_LINE * index,
                plain(size(13.0)),
            ))?;
        }
        let (_, height) = root.dim_in_pixel();
        let height = height as i32 / units;
        let lines = self.caption.len() as i32;
        for (text, below) in self.caption.iter().zip((1..=lines).rev()) {
            let y = height - 2 - CAPTION_LINE * below;
            root.draw(&line(text, y, plain(size(12.0))))?;
        }
        Ok(())
    }
}

/// The style of a curve's line.
pub(super) fn line_style(
    (red, green, blue): (u8, u8, u8),
    stroke: Stroke,
    units: i32,
) -> ShapeStyle {
    let width = match stroke {
        Stroke::Solid | Stroke::Dotted | Stroke::Marked | Stroke::Points => 2,
        Stroke::Dashed => 1,
    };
    // A dash of one pixel is thin enough on a screen, and too thin on paper.
    let width = match (stroke, units) {
        (Stroke::Dashed, 2..) => width * units * 3 / 2,
        _ => width * units,
    };
    RGBColor(red, green, blue).stroke_width(width as u32)
}

impl Panel {
    /// Returns the frame of the plot on a page.
    pub(super) fn frame(&self, page: Page) -> (Frame, Legend) {
        let chart = &self.chart;
        let legend = Legend::of_chart(chart, page);
        let told = (&*chart.title, &*chart.subtitle, &*chart.caption);
        (Frame::new(told, page, page.plot_height(), &legend), legend)
    }

    /// Draws it onto its part of a picture; its y axis reaches at least over `y`.
    pub(super) fn draw(&self, root: &Area, page: Page, y: (f64, f64)) -> Drawn {
        let chart = &self.chart;
        let units = page.units();
        let size = |pixels: f64| pixels * f64::from(units);
        let (frame, legend) = self.frame(page);
        frame.draw(root, units)?;
        let (plot, beside) = frame.areas(root, page);

        let mut x = chart.x.scale(self.range(|point| point.0));
        let mut y = chart.y.scale(y);
        let (wide, high) = plot.dim_in_pixel();
        let (wide, high) = (wide as i32 / units, high as i32 / units);
        let length = high - 52;
        y.thin(length, |_| 14.0);
        let labels = y
            .ticks
            .iter()
            .map(|tick| Scale::format(tick).chars().count());
        let widest = labels.max().unwrap_or(0) as i32;
        let least = if units == 1 { Y_LABEL_AREA } else { 0 };
        let y_area = least.max(Y_LABEL + DIGIT * widest);
        let number = |label: &str| text::width(label, 13.0);
        x.thin(wide - y_area - 16, number);
        let right = ((x.last_label(number) / 2.0) as i32 + 4).max(16);
        // A name that is longer than its axis is written smaller, and the other one with it.
        let names = [
            (&chart.x.label, wide - y_area - right),
            (&chart.y.label, length),
        ];
        let fits = names
            .map(|(name, length)| 15.0 * f64::from(length - 4) / text::width(name, 15.0).max(1.0));
        let name_size = fits[0].min(fits[1]).clamp(6.0, 15.0);
        let (x_count, y_count) = (x.ticks.len(), y.ticks.len());
        let shown = (x.holds(), y.holds());
        let mut context = ChartBuilder::on(&plot)
            .x_label_area_size(46 * units)
            .y_label_area_size(y_area * units)
            .margin_right(right * units)
            .margin_top(6 * units)
            .build_cartesian_2d(x, y)?;
        context
            .configure_mesh()
            .x_labels(x_count)
            .y_labels(y_count)
            .max_light_lines(0)
            .bold_line_style(GRID.stroke_width(units as u32))
            .axis_style(INK.stroke_width(units as u32))
            .set_all_tick_mark_size(5 * units)
            .label_style(plain(size(13.0)))
            .axis_desc_style(plain(size(name_size)))
            .x_desc(chart.x.label.clone())
            .y_desc(chart.y.label.clone())
            .draw()?;
        for band in &self.bands {
            let (red, green, blue) = band.colour;
            let shade = RGBColor(red, green, blue).mix(SHADE).filled();
            context.draw_series([Polygon::new(self.outline(band), shade)])?;
        }
        let looks = looks(&chart.curves);
        for (curve, look) in chart.curves.iter().zip(&looks) {
            let style = line_style(curve.colour, curve.stroke, units);
            let points = chart.drawable(&curve.points).copied();
            match curve.stroke {
                Stroke::Points => {}
                Stroke::Solid | Stroke::Dotted | Stroke::Marked => {
                    let path = PathElement::new(points.collect::<Vec<_>>(), style);
                    context.draw_series([path])?;
                }
                Stroke::Dashed => {
                    let (dash, gap) = (look.dashes.0 * units, look.dashes.1 * units);
                    context.draw_series([DashedPathElement::new(points, dash, gap, style)])?;
                }
            }
        }
        for bars in &self.errors {
            let (red, green, blue) = bars.colour;
            let style = RGBColor(red, green, blue).stroke_width(units as u32);
            for &(x, low, high) in &bars.points {
                // On a logarithmic axis an end that is not above 0 is cut off.
                let low = low.max(*shown.1.start());
                if !shown.0.contains(&x) || !shown.1.contains(&high) || low > high {
                    continue;
                }
                let cap = CAP * units;
                let ends = [low, high].map(|y| {
                    EmptyElement::at((x, y)) + PathElement::new([(-cap, 0), (cap, 0)], style)
                });
                context.draw_series([PathElement::new([(x, low), (x, high)], style)])?;
                context.draw_series(ends)?;
            }
        }
        let base = root.get_base_pixel();
        for (curve, look, index) in indexed(&chart.curves, &looks) {
            let count = chart.drawable(&curve.points).count();
            let is_shown = spaced(count, index);
            let all = curve.stroke != Stroke::Marked;
            let points = chart.drawable(&curve.points).enumerate();
            for (_, at) in points.filter(|(point, _)| all || is_shown(*point)) {
                let (x, y) = context.backend_coord(at);
                let place = (x - base.0, y - base.1);
                look.shape.draw(root, place, curve.colour, units)?;
            }
        }
        for marks in &chart.marks {
            let symbol = |at: &(f64, f64)| {
                EmptyElement::at(*at) + marks.symbol.rim(units) + marks.symbol.core(units)
            };
            context.draw_series(chart.drawable(&marks.points).map(symbol))?;
        }
        legend.draw(&beside, units)
    }
}

/// The curves that have marks, with their looks, and which of how many each is.
fn indexed<'c>(
    curves: &'c [Curve],
    looks: &'c [super::look::Look],
) -> impl Iterator<Item = (&'c Curve, &'c super::look::Look, (usize, usize))> {
    let marked = move || {
        let all = curves.iter().zip(looks);
        all.filter(|(curve, _)| curve.stroke.has_marks())
    };
    let count = marked().count();
    (0..)
        .zip(marked())
        .map(move |(index, (curve, look))| (curve, look, (index, count)))
}

impl Symbol {
    pub(super) fn core(self, units: i32) -> Polygon<(i32, i32)> {
        Polygon::new(self.outline(6 * units), INK.filled())
    }

    pub(super) fn rim(self, units: i32) -> Polygon<(i32, i32)> {
        Polygon::new(self.outline(8 * units), WHITE.filled())
    }

    fn outline(self, radius: i32) -> Vec<(i32, i32)> {
        let r = radius;
        match self {
            Symbol::Diamond => vec![(-r, 0), (0, -r), (r, 0), (0, r)],
            Symbol::Bound => vec![(-r, -r * 3 / 4), (r, -r * 3 / 4), (0, r)],
        }
    }
}

impl Chart {
    /// The points that have a place in the chart; the others are left out.
    pub(super) fn drawable<'p>(
        &self,
        points: &'p [(f64, f64)],
    ) -> impl Iterator<Item = &'p (f64, f64)> + Clone + use<'p> {
        let (of_x, of_y) = (self.x.scaling.places(), self.y.scaling.places());
        points
            .iter()
            .filter(move |(x, y)| of_x.contains(x) && of_y.contains(y))
    }
}
