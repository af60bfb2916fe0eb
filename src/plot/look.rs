//! Looks of curves, by which they are told apart: by marks of different shapes and by dashes as
//! well as by colours, so that a picture can be read without any colour.

use plotters::element::{PathElement, Polygon};
use plotters::prelude::{Circle, Color, RGBColor, WHITE};

use super::draw::{Area, Drawn};
use super::{Curve, Stroke};

/// Radius of a mark [pixels].
const MARK: i32 = 4;

/// Colours that every eye tells apart (Okabe and Ito's palette), from dark to light and again.
pub const COLOURS: [(u8, u8, u8); 7] = [
    (0, 114, 178),
    (213, 94, 0),
    (0, 158, 115),
    (204, 121, 167),
    (80, 80, 80),
    (86, 180, 233),
    (230, 159, 0),
];

/// The shape of a curve's marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Circle,
    Square,
    Triangle,
    Star,
    Cross,
    OpenCircle,
    OpenSquare,
    OpenTriangle,
    OpenStar,
    Plus,
}

const SHAPES: [Shape; 10] = [
    Shape::Circle,
    Shape::Square,
    Shape::Triangle,
    Shape::Star,
    Shape::Cross,
    Shape::OpenCircle,
    Shape::OpenSquare,
    Shape::OpenTriangle,
    Shape::OpenStar,
    Shape::Plus,
];

/// Lengths of a dash and of the gap behind it [pixels].
const DASHES: [(i32, i32); 5] = [(6, 4), (2, 3), (12, 4), (4, 8), (18, 8)];

/// The look of a curve besides its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) shape: Shape,
    pub(super) dashes: (i32, i32),
}

/// A look for each of `curves`. One without a label continues the curve before it.
pub(super) fn looks(curves: &[Curve]) -> Vec<Look> {
    let (mut marked, mut dashed) = (0, 0);
    let mut looks: Vec<Look> = Vec::with_capacity(curves.len());
    for curve in curves {
        let continued = looks.last().copied().filter(|_| curve.label.is_empty());
        looks.push(continued.unwrap_or(Look {
            shape: SHAPES[marked % SHAPES.len()],
            dashes: DASHES[dashed % DASHES.len()],
        }));
        match curve.stroke {
            _ if curve.label.is_empty() => {}
            Stroke::Dotted | Stroke::Marked | Stroke::Points => marked += 1,
            Stroke::Dashed => dashed += 1,
            Stroke::Solid => {}
        }
    }
    looks
}

/// Which of `count` points carry marks, where so many would hide the line; curve `index` of
/// `curves` has its own at other places than the others have theirs.
pub(super) fn spaced(
    count: usize,
    (index, curves): (usize, usize),
) -> impl Fn(usize) -> bool + Clone {
    const MARKS: usize = 8;
    let step = count.div_ceil(MARKS).max(1);
    let first = step * index / curves.max(1);
    move |point| point % step == first
}

impl Shape {
    /// Draws the shape around a place of `area`, in a colour, with so many units in a pixel.
    pub(super) fn draw(
        self,
        area: &Area,
        (x, y): (i32, i32),
        (red, green, blue): (u8, u8, u8),
        units: i32,
    ) -> Drawn {
        let colour = RGBColor(red, green, blue);
        let r = MARK * units;
        let line = colour.stroke_width((3 * units as u32).div_ceil(2));
        let moved = |places: Vec<(i32, i32)>| -> Vec<(i32, i32)> {
            places
                .into_iter()
                .map(|(dx, dy)| (x + dx, y + dy))
                .collect()
        };
        match self {
            Shape::Circle => area.draw(&Circle::new((x, y), r, colour.filled()))?,
            Shape::OpenCircle => {
                area.draw(&Circle::new((x, y), r, WHITE.filled()))?;
                area.draw(&Circle::new((x, y), r, line))?;
            }
            Shape::Cross => {
                area.draw(&PathElement::new(moved(vec![(-r, -r), (r, r)]), line))?;
                area.draw(&PathElement::new(moved(vec![(-r, r), (r, -r)]), line))?;
            }
            Shape::Plus => {
                let s = r + units;
                area.draw(&PathElement::new(moved(vec![(-s, 0), (s, 0)]), line))?;
                area.draw(&PathElement::new(moved(vec![(0, -s), (0, s)]), line))?;
            }
            Shape::Square | Shape::Triangle | Shape::Star => {
                area.draw(&Polygon::new(moved(self.outline(r)), colour.filled()))?;
            }
            Shape::OpenSquare | Shape::OpenTriangle | Shape::OpenStar => {
                let outline = moved(self.outline(r));
                let closed: Vec<_> = outline.iter().chain(outline.first()).copied().collect();
                area.draw(&Polygon::new(outline, WHITE.filled()))?;
                area.draw(&PathElement::new(closed, line))?;
            }
        }
        Ok(())
    }

    fn outline(self, r: i32) -> Vec<(i32, i32)> {
        match self {
            Shape::Triangle | Shape::OpenTriangle => {
                let wide = r * 5 / 4;
                vec![(-wide, r), (0, -wide), (wide, r)]
            }
            Shape::Star | Shape::OpenStar => {
                let corner = |index: i32| {
                    let radius = f64::from(r) * if index % 2 == 0 { 1.5 } else { 0.6 };
                    let angle = std::f64::consts::PI * (f64::from(index) / 5.0 - 0.5);
                    let place = |part: f64| (radius * part).round() as i32;
                    (place(angle.cos()), place(angle.sin()))
                };
                (0..10).map(corner).collect()
            }
            _ => vec![(-r, -r), (r, -r), (r, r), (-r, r)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(label: &str, stroke: Stroke) -> Curve {
        Curve {
            group: String::new(),
            label: label.into(),
            points: Vec::new(),
            colour: (0, 0, 0),
            stroke,
        }
    }

    #[test]
    fn curves_of_one_colour_have_different_shapes_and_dashes() {
        let marked: Vec<Curve> = (0..10)
            .map(|n| curve(&n.to_string(), Stroke::Dotted))
            .collect();
        let looks = looks(&marked);
        for (index, look) in looks.iter().enumerate() {
            assert!(looks[..index].iter().all(|other| other.shape != look.shape));
        }
        let dashed: Vec<Curve> = (0..5)
            .map(|n| curve(&n.to_string(), Stroke::Dashed))
            .collect();
        let looks = super::looks(&dashed);
        for (index, look) in looks.iter().enumerate() {
            assert!(
                looks[..index]
                    .iter()
                    .all(|other| other.dashes != look.dashes)
            );
        }
    }

    #[test]
    fn a_curve_without_a_label_continues_the_one_before() {
        let curves = [
            curve("a", Stroke::Dashed),
            curve("", Stroke::Dashed),
            curve("b", Stroke::Dashed),
        ];
        let looks = looks(&curves);
        assert_eq!(looks[0], looks[1]);
        assert_ne!(looks[1], looks[2]);
    }

    #[test]
    fn every_curve_keeps_some_marks() {
        for count in 1..200 {
            for index in 0..10 {
                let marks = spaced(count, (index, 10));
                let kept = (0..count).filter(|&point| marks(point)).count();
                assert!((1..=8).contains(&kept), "{kept} of {count}, curve {index}");
            }
        }
    }
}
