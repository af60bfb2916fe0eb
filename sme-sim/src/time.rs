//! Time: integer picoseconds, exact for every clock domain.
//!
//! A clock's period need not be a whole number of picoseconds (156 MHz is not). So an edge is
//! always computed from its number, never by adding up a rounded period.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

use serde::{Deserialize, Serialize};

/// A point in simulated time, or a span of it, in picoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Time(u64);

impl Time {
    /// The beginning, or no time at all.
    pub const ZERO: Time = Time(0);
    /// Later than everything that happens.
    pub const NEVER: Time = Time(u64::MAX);

    /// `ps` picoseconds.
    pub const fn from_ps(ps: u64) -> Self {
        Time(ps)
    }

    /// `ns` nanoseconds.
    pub const fn from_ns(ns: u64) -> Self {
        Time(ns * 1_000)
    }

    /// In picoseconds.
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// In nanoseconds, for people to read.
    pub fn as_ns(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// In microseconds, for people to read.
    pub fn as_us(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The span since `earlier`, zero where that is later.
    pub const fn since(self, earlier: Time) -> Time {
        Time(self.0.saturating_sub(earlier.0))
    }

    /// `count` times this span.
    pub const fn times(self, count: u64) -> Time {
        Time(self.0 * count)
    }

    /// This span by `to / of`, which is not 0, rounded up to a picosecond.
    pub const fn scaled(self, to: u32, of: u32) -> Time {
        if to == of {
            return self;
        }
        Time((self.0 as u128 * to as u128).div_ceil(of as u128) as u64)
    }
}

impl Add for Time {
    type Output = Time;
    fn add(self, span: Time) -> Time {
        Time(self.0 + span.0)
    }
}

impl AddAssign for Time {
    fn add_assign(&mut self, span: Time) {
        self.0 += span.0;
    }
}

impl Sub for Time {
    type Output = Time;
    fn sub(self, span: Time) -> Time {
        Time(self.0 - span.0)
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Time::NEVER {
            return f.write_str("never");
        }
        write!(f, "{}.{:03} ns", self.0 / 1_000, self.0 % 1_000)
    }
}

/// A clock domain: edges numbered from 0, edge 0 at time zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Clock {
    hz: u64,
    /// The period is `numerator / denominator` picoseconds, in lowest terms.
    numerator: u64,
    denominator: u64,
}

impl Clock {
    /// A clock of `hz` Hertz; at least 1 kHz and at most 1 THz (`None` otherwise), so that a
    /// product below cannot overflow within 10 hours of simulated time.
    pub const fn from_hz(hz: u64) -> Option<Self> {
        if hz < 1_000 || hz > 1_000_000_000_000 {
            return None;
        }
        let shared = greatest_common_divisor(1_000_000_000_000, hz);
        Some(Self {
            hz,
            numerator: 1_000_000_000_000 / shared,
            denominator: hz / shared,
        })
    }

    /// In Hertz.
    pub const fn hz(self) -> u64 {
        self.hz
    }

    /// Returns the time of edge number `cycle`, rounded up to a picosecond.
    pub const fn edge(self, cycle: u64) -> Time {
        match cycle.checked_mul(self.numerator) {
            Some(product) => Time(product.div_ceil(self.denominator)),
            None => {
                let exact =
                    (cycle as u128 * self.numerator as u128).div_ceil(self.denominator as u128);
                Time(exact as u64)
            }
        }
    }

    /// Returns the duration of `cycles`, rounded up to a picosecond.
    pub const fn span(self, cycles: u64) -> Time {
        self.edge(cycles)
    }

    /// The first edge that is not before `time`.
    pub const fn first_edge_from(self, time: Time) -> u64 {
        // edge(c) = ceil(c·n/d) >= t  <=>  c·n/d > t - 1  <=>  c > (t - 1)·d/n
        if time.0 == 0 {
            return 0;
        }
        match (time.0 - 1).checked_mul(self.denominator) {
            Some(product) => product / self.numerator + 1,
            None => {
                let exact = (time.0 - 1) as u128 * self.denominator as u128;
                (exact / self.numerator as u128) as u64 + 1
            }
        }
    }
}

const fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_second_at_156_mhz_is_exact() {
        let engine = Clock::from_hz(156_000_000).unwrap();
        assert_eq!(engine.edge(156_000_000), Time::from_ps(1_000_000_000_000));
        assert_eq!(engine.edge(1), Time::from_ps(6_411));
        assert_eq!(engine.edge(39), Time::from_ps(250_000));
    }

    proptest! {
        #[test]
        fn edges_are_the_exact_quotient_rounded_up(hz in 1_000u64..1_000_000_000_000, cycle in 0u64..1 << 45) {
            let clock = Clock::from_hz(hz).unwrap();
            let exact = (u128::from(cycle) * 1_000_000_000_000).div_ceil(u128::from(hz));
            prop_assume!(exact < u128::from(u64::MAX));
            prop_assert_eq!(u128::from(clock.edge(cycle).as_ps()), exact);
        }

        #[test]
        fn the_first_edge_from_a_time_is_the_first(hz in 1_000u64..1_000_000_000_000, ps in 0u64..1 << 55) {
            let clock = Clock::from_hz(hz).unwrap();
            let cycle = clock.first_edge_from(Time::from_ps(ps));
            prop_assert!(clock.edge(cycle) >= Time::from_ps(ps));
            prop_assert!(cycle == 0 || clock.edge(cycle - 1) < Time::from_ps(ps));
        }
    }
}
