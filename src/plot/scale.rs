//! Scales: they turn numbers into lengths along an axis, and choose the numbers on it.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

use super::{Axis, Scaling};

impl Axis {
    /// The scale of an axis on which all from `least` to `largest` lies.
    pub(super) fn scale(&self, (least, largest): (f64, f64)) -> Scale {
        match self.scaling {
            Scaling::Linear => self.linear(least.min(0.0), largest),
            Scaling::Logarithmic => self.logarithmic(least, largest),
        }
    }

    fn logarithmic(&self, least: f64, largest: f64) -> Scale {
        let places = self.scaling.places();
        let (least, largest) = match least <= largest {
            true => (least, largest),
            false => (1.0, 10.0),
        };
        let given = self
            .ticks
            .iter()
            .copied()
            .filter(|tick| places.contains(tick));
        let mut ticks: Vec<f64> = given.collect();
        if ticks.is_empty() {
            let decades = least.log10().floor() as i32..=largest.log10().ceil() as i32;
            let ladder = decades.flat_map(|decade| [1, 2, 5].map(|digit| power(digit, decade)));
            let ladder: Vec<f64> = ladder.collect();
            let below = ladder.iter().filter(|tick| **tick <= least).count();
            let above = ladder.iter().filter(|tick| **tick >= largest).count();
            let from = below.saturating_sub(1);
            let to = (ladder.len() + 1).saturating_sub(above.max(1));
            ticks = ladder.into_iter().take(to).skip(from).collect();
        }
        let begin = ticks.iter().copied().fold(least, f64::min);
        let end = ticks.iter().copied().fold(largest, f64::max);
        // One place needs an axis, too.
        let end = if end > begin { end } else { 2.0 * begin };
        Scale {
            begin,
            end,
            ticks,
            scaling: Scaling::Logarithmic,
        }
    }

    fn linear(&self, least: f64, largest: f64) -> Scale {
        let last = self.ticks.iter().copied().fold(0.0, f64::max);
        if least == 0.0 && (1e-15..1e15).contains(&last) {
            // A little more, so that the last grid line is not the frame.
            let ticks = self.ticks.iter().copied();
            return Scale {
                begin: 0.0,
                end: largest.max(last) * 1.015,
                scaling: Scaling::Linear,
                ticks: ticks.filter(|tick| (0.0..=last).contains(tick)).collect(),
            };
        }
        let largest = match largest > 0.0 || least < 0.0 {
            true => largest.max(0.0),
            false => 1.0,
        };
        let span = largest - least;
        let magnitude = 10f64.powf((span / 8.0).log10().floor());
        let round = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * magnitude);
        let step = round
            .into_iter()
            .find(|step| span / step <= 8.0)
            .unwrap_or(span);
        let count = (largest / step * 1.02).ceil();
        let below = (least / step * 1.02).floor();
        // Dividing leaves fewer odd digits than multiplying with a step below 1.
        let tick = |index: f64| match step < 1.0 {
            true => index / (1.0 / step).round(),
            false => index * step,
        };
        Scale {
            begin: tick(below),
            end: tick(count),
            scaling: Scaling::Linear,
            ticks: (below as i32..=count as i32)
                .map(|index| tick(f64::from(index)))
                .collect(),
        }
    }
}

/// `digit` times 10 to the `decade`, as near as a number can be.
fn power(digit: u32, decade: i32) -> f64 {
    let ten = 10f64.powi(decade.abs());
    match decade < 0 {
        true => f64::from(digit) / ten,
        false => f64::from(digit) * ten,
    }
}

impl Scaling {
    /// The numbers that have a place on such an axis.
    pub(super) fn places(self) -> Range<f64> {
        match self {
            Scaling::Linear => -1e15..1e15,
            Scaling::Logarithmic => 1e-15..1e15,
        }
    }
}

/// A scale from a begin to an end, with numbers where it is told.
#[derive(Clone, Debug)]
pub(super) struct Scale {
    begin: f64,
    end: f64,
    pub(super) ticks: Vec<f64>,
    scaling: Scaling,
}

/// The free space between two numbers [pixels].
const GAP: f64 = 8.0;

impl Scale {
    /// A linear scale from 0 to `end` without numbers.
    pub(super) fn bare(end: f64) -> Self {
        Self {
            begin: 0.0,
            end,
            ticks: Vec::new(),
            scaling: Scaling::Linear,
        }
    }

    /// Leaves numbers out until those that remain have room side by side on an axis of this length,
    /// each as wide as `width` says of it [pixels].
    pub(super) fn thin(&mut self, length: i32, width: impl Fn(&str) -> f64) {
        let crowded = |ticks: &[f64]| {
            let places = ticks.iter().map(|tick| {
                let half = width(&Self::format(tick)) / 2.0;
                let at = f64::from(self.map(tick, (0, length)));
                (at - half, at + half)
            });
            let places: Vec<(f64, f64)> = places.collect();
            places.windows(2).any(|pair| pair[0].1 + GAP > pair[1].0)
        };
        let mut ticks = self.ticks.clone();
        ticks.sort_by(f64::total_cmp);
        while ticks.len() > 1 && crowded(&ticks) {
            let is_power = |tick: &f64| tick.log10().fract() == 0.0;
            let powers: Vec<f64> = ticks.iter().copied().filter(is_power).collect();
            ticks = match self.scaling == Scaling::Logarithmic
                && (2..ticks.len()).contains(&powers.len())
            {
                true => powers,
                false => ticks.into_iter().step_by(2).collect(),
            };
        }
        self.ticks = ticks;
    }

    /// The width of the last number, as `width` says.
    pub(super) fn last_label(&self, width: impl Fn(&str) -> f64) -> f64 {
        let last = self.ticks.iter().copied().reduce(f64::max);
        last.map_or(0.0, |last| width(&Self::format(&last)))
    }

    /// The numbers from the begin to the end.
    pub(super) fn holds(&self) -> std::ops::RangeInclusive<f64> {
        self.begin..=self.end
    }
}

impl Ranged for Scale {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let (from, to) = (f64::from(limit.0), f64::from(limit.1));
        let along = match self.scaling {
            Scaling::Linear => (value - self.begin) / (self.end - self.begin),
            Scaling::Logarithmic => (value / self.begin).ln() / (self.end / self.begin).ln(),
        };
        (from + (to - from) * along).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        match hint.weight().allow_light_points() {
            // Only the grid lines that carry numbers are drawn.
            true => Vec::new(),
            false => self.ticks.clone(),
        }
    }

    fn range(&self) -> Range<f64> {
        self.begin..self.end
    }
}

impl ValueFormatter<f64> for Scale {
    fn format(value: &f64) -> String {
        let decade = value.log10();
        if *value < LONG || decade.fract() != 0.0 {
            return value.to_string();
        }
        let exponent = decade.to_string();
        let raised = exponent
            .bytes()
            .map(|digit| RAISED[usize::from(digit - b'0')]);
        "10".chars().chain(raised).collect()
    }
}

/// Powers of ten from here on are written as such: with all their zeros they would not fit.
const LONG: f64 = 1e6;
/// The digits as exponents.
const RAISED: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn long_powers_of_ten_are_written_as_such() {
        let written = [0.001, 20.0, 1e5, 1e6, 2e6, 1e12].map(|value| Scale::format(&value));
        assert_eq!(written, ["0.001", "20", "100000", "10⁶", "2000000", "10¹²"]);
    }

    #[test]
    fn numbers_that_would_overlap_are_left_out() {
        let axis = |ticks: Vec<f64>, scaling| Axis {
            label: String::new(),
            ticks,
            scaling,
        };
        let seven = |label: &str| 7.0 * label.len() as f64;
        let mut scale = axis(Vec::new(), Scaling::Logarithmic).scale((1.0, 1000.0));
        scale.thin(1000, seven);
        assert_eq!(scale.ticks.len(), 10);
        scale.thin(200, seven);
        assert_eq!(scale.ticks, [1.0, 10.0, 100.0, 1000.0]);
        let mut scale = axis(Vec::new(), Scaling::Linear).scale((0.0, 8.0));
        scale.thin(100, seven);
        assert_eq!(scale.ticks, [0.0, 2.0, 4.0, 6.0, 8.0]);
        scale.thin(0, seven);
        assert_eq!(scale.ticks.len(), 1);
    }

    #[test]
    fn a_linear_axis_reaches_below_0_where_numbers_are() {
        let axis = Axis {
            label: String::new(),
            ticks: Vec::new(),
            scaling: Scaling::Linear,
        };
        let scale = axis.scale((-3.0, 5.0));
        assert_eq!((scale.begin, scale.end), (-4.0, 6.0));
        assert!(scale.ticks.contains(&0.0), "{:?}", scale.ticks);
        let scale = axis.scale((-3.0, 0.0));
        assert!(scale.begin <= -3.0 && scale.end == 0.0, "{:?}", scale.ticks);
    }

    proptest! {
        #[test]
        fn ticks_are_round_and_reach_over_everything(largest in 1e-3..1e6f64) {
            let axis = Axis { label: String::new(), ticks: Vec::new(), scaling: Scaling::Linear };
            let Scale { end, ticks, .. } = axis.scale((0.0, largest));
            prop_assert!(end >= largest && end <= 2.0 * largest + end / ticks.len() as f64);
            prop_assert!((4..=10).contains(&ticks.len()), "{ticks:?}");
            for tick in ticks {
                prop_assert!(tick.to_string().len() <= 8, "{tick}");
            }
        }

        #[test]
        fn a_logarithmic_axis_reaches_around_everything(least in 1e-6..1e6f64, factor in 1.0..1e6f64) {
            let axis = Axis { label: String::new(), ticks: Vec::new(), scaling: Scaling::Logarithmic };
            let largest = least * factor;
            let scale = axis.scale((least, largest));
            prop_assert!(scale.begin <= least && scale.begin * 2.6 >= least, "{:?}", scale.ticks);
            prop_assert!(scale.end >= largest && scale.end <= largest * 2.6, "{:?}", scale.ticks);
            for tick in &scale.ticks {
                prop_assert!(tick.to_string().len() <= 13, "{tick}");
            }
            // Equal ratios have equal lengths.
            let place = |part: f64| scale.map(&(scale.begin * (scale.end / scale.begin).powf(part)), (0, 1000));
            prop_assert_eq!([0.0, 0.25, 0.5, 1.0].map(place), [0, 250, 500, 1000]);
        }
    }
}
