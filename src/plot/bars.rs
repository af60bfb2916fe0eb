//! Stacked bars: what a time was spent on, a bar for each case. Bars lie, so that their names can
//! be read however long they are.

use plotters::element::PathElement;
use plotters::prelude::{ChartBuilder, Color, RGBColor, Rectangle, Text, WHITE};

use super::draw::{Area, Drawn, Frame, GRID, root};
use super::legend::Legend;
use super::look::COLOURS;
use super::page::Page;
use super::scale::Scale;
use super::text::{self, INK, plain, right};
use super::{Axis, PlotError};

/// From bar to bar at least, and the height of one [pixels].
const STEP: i32 = 34;
const BAR: i32 = 22;
/// From line to line of a name that is broken [pixels].
const NAME_LINE: i32 = 16;
/// Beside a name [pixels].
const BESIDE: i32 = 14;
/// Above the bars, and below them, where the axis has its numbers and its name [pixels].
const ABOVE: i32 = 6;
const BELOW: i32 = 46;
/// Size of names and numbers [pixels].
const TEXT: f64 = 13.0;

/// Stacked bars.
#[derive(Clone, Debug, PartialEq)]
pub struct Bars {
    /// The title: what the bars show, in a few words.
    pub title: String,
    /// Further facts that a reader has to know.
    pub subtitle: String,
    /// The axis of the lengths.
    pub axis: Axis,
    /// The bars, from top to bottom.
    pub names: Vec<String>,
    /// The parts of each bar, from left to right.
    pub parts: Vec<BarPart>,
    /// A length that all bars are compared with: a line over them.
    pub reference: Option<f64>,
    /// Lines below: how it came about.
    pub caption: Vec<String>,
}

/// A part of all bars.
#[derive(Clone, Debug, PartialEq)]
pub struct BarPart {
    /// In the legend.
    pub label: String,
    /// Its length in each of the bars, 0 or more.
    pub lengths: Vec<f64>,
}

/// Lines over a colour, by which parts differ without colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hatch {
    None,
    Upright,
    Lying,
    Crossed,
}

/// The names of bars, in lines.
struct Names {
    lines: Vec<Vec<String>>,
    /// The width of all [pixels].
    width: i32,
    /// From bar to bar [pixels].
    step: i32,
}

impl Names {
    /// At most two fifths of the plot are names.
    fn new(names: &[String], page: Page) -> Self {
        let plot = page.width() - page.legend_width().unwrap_or(0);
        let widest = names.iter().map(|name| text::width(name, TEXT));
        let widest = widest.fold(0.0, f64::max).ceil() as i32;
        let width = (widest + BESIDE).min(plot * 2 / 5);
        let most = f64::from(width - 10);
        let lines = |name: &String| text::lines(name, most, |line| text::width(line, TEXT));
        let lines: Vec<_> = names.iter().map(lines).collect();
        let longest = lines.iter().map(Vec::len).max().unwrap_or(0) as i32;
        Self {
            lines,
            width,
            step: STEP.max(NAME_LINE * longest + NAME_LINE / 2),
        }
    }
}

impl Bars {
    /// The bars as the text of an SVG file.
    ///
    /// # Errors
    /// Bars that cannot be drawn.
    pub fn to_svg(&self, page: Page) -> Result<String, PlotError> {
        let legend = Legend::of_bars(self, page);
        let names = Names::new(&self.names, page);
        let plot_height = names.step * self.names.len().max(1) as i32 + ABOVE + BELOW;
        let frame = Frame::new(
            (&self.title, &self.subtitle, &self.caption),
            page,
            plot_height,
            &legend,
        );
        root(page, (page.width(), frame.height), |area| {
            self.draw(area, page, (&frame, &legend, &names))
        })
    }

    /// Colour and hatch of the part of this index.
    pub(super) fn look(index: usize) -> ((u8, u8, u8), Hatch) {
        let hatches = [Hatch::None, Hatch::Upright, Hatch::Lying, Hatch::Crossed];
        // In each round of colours every one gets another hatch.
        let (round, place) = (index / COLOURS.len(), index % COLOURS.len());
        (COLOURS[place], hatches[(place + round) % hatches.len()])
    }

    fn draw(
        &self,
        root: &Area,
        page: Page,
        (frame, legend, names): (&Frame, &Legend, &Names),
    ) -> Drawn {
        let units = page.units();
        let size = TEXT * f64::from(units);
        frame.draw(root, units)?;
        let (plot, beside) = frame.areas(root, page);
        let total = |bar: usize| {
            let lengths = self.parts.iter().filter_map(|part| part.lengths.get(bar));
            lengths.sum::<f64>()
        };
        let most = (0..self.names.len()).map(total);
        let most = most.chain(self.reference).fold(0.0, f64::max);
        let mut scale = self.axis.scale((0.0, most));
        let (width, height) = plot.dim_in_pixel();
        let room = width as i32 / units - names.width - 40;
        scale.thin(room, |label| text::width(label, TEXT));
        let margin = scale.last_label(|label| text::width(label, TEXT)) / 2.0 + 4.0;
        let count = scale.ticks.len();
        // Where the legend is higher than the bars need, they stand further apart.
        let bars = self.names.len().max(1) as i32;
        let step = names
            .step
            .max((height as i32 / units - BELOW - ABOVE) / bars);
        let mut context = ChartBuilder::on(&plot)
            .x_label_area_size(BELOW * units)
            .y_label_area_size(names.width * units)
            .margin_right(margin.max(16.0) as i32 * units)
            .margin_top(ABOVE * units)
            .build_cartesian_2d(scale, Scale::bare(f64::from(bars * step)))?;
        context
            .configure_mesh()
            .x_labels(count)
            .max_light_lines(0)
            .disable_y_mesh()
            .y_labels(0)
            .bold_line_style(GRID.stroke_width(units as u32))
            .axis_style(INK.stroke_width(units as u32))
            .set_all_tick_mark_size(5 * units)
            .label_style(plain(size))
            .axis_desc_style(plain(15.0 * f64::from(units)))
            .x_desc(self.axis.label.clone())
            .draw()?;
        let base = root.get_base_pixel();
        let place = |at: f64, y: i32| {
            let (x, y) = context.backend_coord(&(at, f64::from(bars * step - y)));
            (x - base.0, y - base.1)
        };
        for (bar, lines) in names.lines.iter().enumerate() {
            let middle = bar as i32 * step + step / 2;
            let mut from = 0.0;
            for (index, part) in self.parts.iter().enumerate() {
                let length = part.lengths.get(bar).copied().unwrap_or(0.0);
                if length <= 0.0 {
                    continue;
                }
                let [(left, y), (right, _)] = [from, from + length].map(|at| place(at, middle));
                let half = BAR / 2 * units;
                let corners = [(left, y - half), (right, y + half)];
                let ((red, green, blue), hatch) = Self::look(index);
                root.draw(&Rectangle::new(
                    corners,
                    RGBColor(red, green, blue).filled(),
                ))?;
                for line in hatch.lines(corners, units) {
                    root.draw(&line)?;
                }
                from += length;
            }
            let (x, y) = place(0.0, middle);
            let first = y - NAME_LINE / 2 * units * (lines.len() as i32 - 1);
            for (index, line) in (0..).zip(lines) {
                let at = (x - 8 * units, first + NAME_LINE * units * index);
                root.draw(&Text::new(line.clone(), at, right(plain(size))))?;
            }
        }
        if let Some(reference) = self.reference {
            let ends = [0, bars * step].map(|y| place(reference, y));
            root.draw(&PathElement::new(ends, INK.stroke_width(units as u32)))?;
        }
        legend.draw(&beside, units)
    }
}

impl Hatch {
    /// White lines over a rectangle with these corners, and one at its right end.
    pub(super) fn lines(
        self,
        [(left, top), (right, bottom)]: [(i32, i32); 2],
        units: i32,
    ) -> Vec<PathElement<(i32, i32)>> {
        let style = WHITE.stroke_width(units as u32);
        let step = 5 * units as usize;
        let upright = (left + 4 * units..right).step_by(step);
        let upright = upright.map(|x| PathElement::new([(x, top), (x, bottom)], style));
        let lying = (top + 5 * units..bottom).step_by(step + units as usize);
        let lying = lying.map(|y| PathElement::new([(left, y), (right, y)], style));
        let mut lines: Vec<_> = match self {
            Hatch::None => Vec::new(),
            Hatch::Upright => upright.collect(),
            Hatch::Lying => lying.collect(),
            Hatch::Crossed => upright.chain(lying).collect(),
        };
        lines.push(PathElement::new([(right, top), (right, bottom)], style));
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_parts_look_the_same() {
        let all: Vec<_> = (0..4 * COLOURS.len()).map(Bars::look).collect();
        for (index, look) in all.iter().enumerate() {
            assert!(!all[..index].contains(look), "part {index}");
        }
    }
}
