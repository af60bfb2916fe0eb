//! Random numbers that are looked up, not drawn in turn: the number of a key and an index does not
//! depend on when, where or in which order it is asked for.
//!
//! The generator is SplitMix64 (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number
//! Generators", OOPSLA 2014), whose state is a hash of key and index. Everything is integer
//! arithmetic: logarithms differ in their last digit from one host to the next, comparisons do not.

/// The odd number nearest to 2^64 over the golden ratio: SplitMix64's step.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64's mixing function: a bijection in which each bit of the result depends on all bits
/// of `bits`.
#[inline]
pub const fn mix(bits: u64) -> u64 {
    let bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ bits >> 31
}

/// The key of thread or core `number` under `seed`.
#[inline]
pub const fn key(seed: u64, number: u64) -> u64 {
    mix(mix(seed.wrapping_add(STEP)) ^ number)
}

/// The numbers that belong to one key and one index.
#[derive(Clone, Debug)]
pub struct Draws {
    state: u64,
}

/// The most means by which [`Draws::exponential`] goes up; more would occur once in 10^27 draws.
const MOST_MEANS: u64 = 63;

/// The most that [`Draws::poisson`] gives: more happens once in 10^5 draws.
pub const MOST_COUNTED: usize = 7;

/// 2^64 times the probability that the Poisson distribution with mean 1 gives at most 0, 1, … 6.
const POISSON: [u64; MOST_COUNTED] = [
    0x5e2d_58d8_b3bc_df1a,
    0xbc5a_b1b1_6779_be35,
    0xeb71_5e1d_c158_2dc2,
    0xfb23_9797_34a2_52f1,
    0xff10_25f5_9174_dc3d,
    0xffd9_0f3b_a405_5e19,
    0xfffa_8b71_fc72_c913,
];

impl Draws {
    /// The numbers of `key` and `index`.
    #[inline]
    pub const fn new(key: u64, index: u64) -> Self {
        Self {
            state: mix(key ^ mix(index.wrapping_add(STEP))),
        }
    }

    /// The next 64 bits.
    #[inline]
    pub const fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        mix(self.state)
    }

    /// Uniform among the `count` numbers from 0 on; 0 where there are none.
    #[inline]
    pub const fn below(&mut self, count: u64) -> u64 {
        ((self.bits() as u128 * count as u128) >> 64) as u64
    }

    /// Exponential with this mean, rounded down; at most 64 times the mean.
    pub const fn exponential(&mut self, mean: u64) -> u64 {
        let (means, fraction) = self.means();
        let part = ((fraction as u128 * mean as u128) >> 64) as u64;
        mean.saturating_mul(means).saturating_add(part)
    }

    /// The distance of a normal variate from its mean, rounded down, in a distribution with this
    /// standard deviation; at most 64 times that.
    pub const fn half_normal(&mut self, deviation: u64) -> u64 {
        const ONE: u64 = 1 << 32;
        loop {
            // Exponential majorant and rejection (Kahn's method): accepted with probability
            // exp(-(x - 1)²/2), which is how often another exponential variate exceeds that.
            let x = self.fixed();
            let off = x.abs_diff(ONE) as u128;
            if self.fixed() as u128 * 2 * ONE as u128 >= off * off {
                let scaled = (x as u128 * deviation as u128) >> 32;
                return if scaled > u64::MAX as u128 {
                    u64::MAX
                } else {
                    scaled as u64
                };
            }
        }
    }

    /// Draws the number of occurrences of an event whose mean is one: Poisson, at most
    /// [`MOST_COUNTED`].
    pub const fn poisson(&mut self) -> usize {
        let bits = self.bits();
        let mut count = 0;
        while count < MOST_COUNTED && bits >= POISSON[count] {
            count += 1;
        }
        count
    }

    /// Exponential with mean 1, in units of 2^-32.
    const fn fixed(&mut self) -> u64 {
        let (means, fraction) = self.means();
        means << 32 | fraction >> 32
    }

    /// Exponential with mean 1: whole, and the fraction in units of 2^-64. By comparisons alone
    /// (J. von Neumann, "Various Techniques Used in Connection with Random Digits", 1951): a
    /// uniform number is taken if the run of ever smaller ones that it begins has odd length,
    /// which has probability e^-x; each number refused adds 1.
    const fn means(&mut self) -> (u64, u64) {
        let mut means = 0;
        loop {
            let first = self.bits();
            let mut last = first;
            let mut odd = true;
            loop {
                let next = self.bits();
                if next >= last {
                    break;
                }
                last = next;
                odd = !odd;
            }
            if odd || means == MOST_MEANS {
                return (means, first);
            }
            means += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNT: u64 = 200_000;

    /// The share of `COUNT` variates, one per index, that satisfy `holds`.
    fn share(draw: impl Fn(&mut Draws) -> u64, holds: impl Fn(u64) -> bool) -> f64 {
        let key = key(7, 3);
        let found = (0..COUNT).filter(|&index| holds(draw(&mut Draws::new(key, index))));
        found.count() as f64 / COUNT as f64
    }

    /// Within five standard deviations of the probability `p`.
    fn near(share: f64, p: f64) -> bool {
        (share - p).abs() < 5.0 * (p * (1.0 - p) / COUNT as f64).sqrt() + 1e-5
    }

    #[test]
    fn distributions_are_those_of_the_textbook() {
        const UNIT: u64 = 1_000_000;
        for x in [0.05, 0.2, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0] {
            let below = |value: u64| (value as f64) < x * UNIT as f64;
            let uniform = share(|d| d.below(4 * UNIT), below);
            assert!(near(uniform, (x / 4.0).min(1.0)), "uniform {x}: {uniform}");
            let exponential = share(|d| d.exponential(UNIT), below);
            let expected = 1.0 - f64::exp(-x);
            assert!(
                near(exponential, expected),
                "exponential {x}: {exponential}"
            );
            let normal = share(|d| d.half_normal(UNIT), below);
            let expected = central(x);
            assert!(near(normal, expected), "normal {x}: {normal} {expected}");
        }
        let mut probability = f64::exp(-1.0);
        for count in 0..6 {
            let poisson = share(|d| d.poisson() as u64, |value| value == count);
            assert!(near(poisson, probability), "poisson {count}: {poisson}");
            probability /= (count + 1) as f64;
        }
    }

    /// The probability that a normal variate is within `x` deviations, by Simpson's rule.
    fn central(x: f64) -> f64 {
        let density = |t: f64| (2.0 / std::f64::consts::PI).sqrt() * f64::exp(-t * t / 2.0);
        let steps = 1_000;
        let width = x / steps as f64;
        let weight = |step| match step {
            0 => 1.0,
            s if s == steps => 1.0,
            s if s % 2 == 1 => 4.0,
            _ => 2.0,
        };
        let sum: f64 = (0..=steps)
            .map(|step| weight(step) * density(step as f64 * width))
            .sum();
        sum * width / 3.0
    }

    /// Neighbouring keys, indices and seeds have nothing to do with each other: of two numbers,
    /// each is the larger one equally often, and both are in the same eighth one time in eight.
    #[test]
    fn neighbours_are_independent() {
        type Numbered = fn(u64) -> u64;
        let neighbours: [(&str, Numbered); 4] = [
            ("index", |i| Draws::new(key(1, 2), i).bits()),
            ("key", |i| Draws::new(key(1, i), 5).bits()),
            ("seed", |i| Draws::new(key(i, 2), 5).bits()),
            ("node", |i| Draws::new(key(1, i << 32), 5).bits()),
        ];
        for (name, number) in neighbours {
            let share = |holds: &dyn Fn(u64, u64) -> bool| {
                let pairs = (0..COUNT).filter(|&i| holds(number(i), number(i + 1)));
                pairs.count() as f64 / COUNT as f64
            };
            assert!(near(share(&|a, b| a >> 61 == b >> 61), 0.125), "{name}");
            assert!(near(share(&|a, _| a < u64::MAX / 10), 0.1), "{name}");
            // Comparisons of neighbours overlap, which halves their variance and more.
            assert!(near(share(&|a, b| a < b), 0.5), "{name}");
        }
    }

    #[test]
    fn extremes_do_not_overflow() {
        for index in 0..1_000 {
            let mut draws = Draws::new(0, index);
            assert_eq!(draws.below(0), 0);
            assert_eq!(draws.below(1), 0);
            assert_eq!((draws.exponential(0), draws.half_normal(0)), (0, 0));
            draws.exponential(u64::MAX);
            draws.half_normal(u64::MAX);
            assert!(draws.exponential(1_000) < 64_000);
        }
    }
}
