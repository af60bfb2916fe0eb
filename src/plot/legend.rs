//! The legend: a line for each curve and each kind of mark, under the names of their groups; beside
//! the plot from top to bottom, or below it in columns.

use plotters::element::{DashedPathElement, EmptyElement, PathElement};
use plotters::prelude::{Rectangle, Text};

use super::bars::{Bars, Hatch};
use super::draw::{Area, Drawn, Frame, line_style};
use super::look::{Look, looks};
use super::page::Page;
use super::text::{self, bold, bold_width, middle, plain};
use super::{Chart, Stroke, Symbol};

/// Sizes of text [pixels].
const TEXT: f64 = 13.0;
/// From line to line [pixels].
const LINE: i32 = 21;
/// From line to line of one label [pixels].
const BROKEN: i32 = 16;
/// From the left of an entry to its symbol, to the end of that, and to its label [pixels].
const SYMBOL: (i32, i32) = (14, 44);
const LABEL: i32 = 54;
/// From the left to a group's name [pixels].
const HEADING: i32 = 12;
/// The free space at the right [pixels].
const MARGIN: i32 = 8;

/// The sign before a label.
#[derive(Clone, Copy)]
enum Sign {
    Curve((u8, u8, u8), Stroke, Look),
    Mark(Symbol),
    Block((u8, u8, u8), Hatch),
    /// A group's name has none.
    Heading,
}

/// A legend, with the place of each entry [pixels].
pub(super) struct Legend {
    entries: Vec<Placed>,
    /// Its height [pixels].
    pub(super) height: i32,
}

struct Placed {
    x: i32,
    y: i32,
    lines: Vec<String>,
    sign: Sign,
}

/// An entry that has no place yet: its group, its label, its sign.
type Entry<'c> = (&'c str, &'c str, Sign);

impl Legend {
    /// The legend of a chart on a page.
    pub(super) fn of_chart(chart: &Chart, page: Page) -> Self {
        let looks = looks(&chart.curves);
        let curves = chart.curves.iter().zip(looks).map(|(curve, look)| {
            let sign = Sign::Curve(curve.colour, curve.stroke, look);
            (curve.group.as_str(), curve.label.as_str(), sign)
        });
        let marks = chart.marks.iter().map(|marks| {
            let sign = Sign::Mark(marks.symbol);
            (marks.group.as_str(), marks.label.as_str(), sign)
        });
        Self::place(curves.chain(marks).collect(), Frame::legend_width(page))
    }

    /// The legend of stacked bars.
    pub(super) fn of_bars(bars: &Bars, page: Page) -> Self {
        let parts = bars.parts.iter().enumerate().map(|(index, part)| {
            let (colour, hatch) = Bars::look(index);
            ("", part.label.as_str(), Sign::Block(colour, hatch))
        });
        Self::place(parts.collect(), Frame::legend_width(page))
    }

    fn place(entries: Vec<Entry<'_>>, (width, is_beside): (i32, bool)) -> Self {
        let entries = entries
            .into_iter()
            .filter(|(_, label, _)| !label.is_empty());
        let entries: Vec<Entry<'_>> = entries.collect();
        let heading = |group: &str, most: i32| {
            let most = f64::from(most - HEADING - MARGIN);
            text::lines(group, most, |line| bold_width(line, TEXT))
        };
        let label = |label: &str, most: i32| {
            let most = f64::from(most - LABEL - MARGIN);
            text::lines(label, most, |line| text::width(line, TEXT))
        };
        let mut placed: Vec<Placed> = Vec::new();
        let mut y = 12;
        let mut group = "";
        if is_beside {
            for (of, name, sign) in entries {
                if of != group {
                    y += if group.is_empty() { 0 } else { LINE / 2 };
                    push(&mut placed, (0, &mut y), heading(of, width), Sign::Heading);
                    group = of;
                }
                push(&mut placed, (0, &mut y), label(name, width), sign);
            }
            return Self {
                entries: placed,
                height: y,
            };
        }
        let widest = entries.iter().map(|(_, name, _)| text::width(name, TEXT));
        let widest = widest.fold(0.0, f64::max).ceil() as i32 + LABEL + MARGIN;
        let most = (width / widest.max(1)).clamp(1, 4) as usize;
        // As many columns as fit, and no more than fill the rows of the largest group.
        let of_group = |group: &str| entries.iter().filter(|(of, ..)| *of == group).count();
        let largest = entries
            .iter()
            .map(|(of, ..)| of_group(of))
            .max()
            .unwrap_or(1);
        let columns = largest.div_ceil(largest.div_ceil(most).max(1)).max(1) as i32;
        let wide = width / columns;
        let mut column = 0;
        let mut lowest = y;
        for (of, name, sign) in entries {
            if of != group {
                y = lowest;
                push(&mut placed, (0, &mut y), heading(of, width), Sign::Heading);
                (group, column, lowest) = (of, 0, y);
            }
            if column == columns {
                (column, y) = (0, lowest);
            }
            let mut end = y;
            push(
                &mut placed,
                (column * wide, &mut end),
                label(name, wide),
                sign,
            );
            lowest = lowest.max(end);
            column += 1;
        }
        Self {
            entries: placed,
            height: if group.is_empty() && column == 0 {
                0
            } else {
                lowest
            },
        }
    }

    /// Draws it at the top left of `area`, with so many units in a pixel.
    pub(super) fn draw(&self, area: &Area, units: i32) -> Drawn {
        for entry in &self.entries {
            let at = |x: i32, y: i32| (units * (entry.x + x), units * y);
            let y = entry.y;
            let ends = [at(SYMBOL.0, y), at(SYMBOL.1, y)];
            let centre = at((SYMBOL.0 + SYMBOL.1) / 2, y);
            match entry.sign {
                Sign::Heading => {}
                Sign::Curve(colour, stroke, look) => {
                    let style = line_style(colour, stroke, units);
                    match stroke {
                        Stroke::Points => {}
                        Stroke::Dashed => {
                            let (dash, gap) = look.dashes;
                            let (dash, gap) = (dash * units, gap * units);
                            area.draw(&DashedPathElement::new(ends, dash, gap, style))?;
                        }
                        Stroke::Solid | Stroke::Dotted | Stroke::Marked => {
                            area.draw(&PathElement::new(ends, style))?;
                        }
                    }
                    if stroke.has_marks() {
                        look.shape.draw(area, centre, colour, units)?;
                    }
                }
                Sign::Mark(symbol) => {
                    let sign = EmptyElement::at(centre) + symbol.rim(units) + symbol.core(units);
                    area.draw(&sign)?;
                }
                Sign::Block((red, green, blue), hatch) => {
                    let corners = [at(SYMBOL.0, y - 6), at(SYMBOL.1, y + 6)];
                    let colour = plotters::style::RGBColor(red, green, blue);
                    let block = Rectangle::new(corners, plotters::style::Color::filled(&colour));
                    area.draw(&block)?;
                    for line in hatch.lines(corners, units) {
                        area.draw(&line)?;
                    }
                }
            }
            let (x, style) = match entry.sign {
                Sign::Heading => (HEADING, bold(TEXT * f64::from(units))),
                _ => (LABEL, plain(TEXT * f64::from(units))),
            };
            for (line, text) in (0..).zip(&entry.lines) {
                let label = Text::new(
                    text.clone(),
                    at(x, y + BROKEN * line),
                    middle(style.clone()),
                );
                area.draw(&label)?;
            }
        }
        Ok(())
    }
}

/// Puts an entry at `x`, and `y` below it.
fn push(placed: &mut Vec<Placed>, (x, y): (i32, &mut i32), lines: Vec<String>, sign: Sign) {
    let broken = lines.len().saturating_sub(1) as i32;
    let is_there = !lines.is_empty();
    placed.push(Placed {
        x,
        y: *y,
        lines,
        sign,
    });
    if is_there {
        *y += LINE + BROKEN * broken;
    }
}
