//! Disturbances that keep threads from arriving together: work between barriers, late arrivals, and
//! the operating system's noise, under the names that they have on the command line.
//!
//! Called by the commands for [`Disturbance`] and by the runs for `Skews`; the noise itself is the
//! machine's, [`sme_sim::parts::noise`].

use rand_core::Rng;
use rand_pcg::Pcg32;
use sme_barrier::Member;
use sme_sim::kernel::draw::{self, Draws};
use sme_sim::parts::noise::{Gaps, Lengths};
pub use sme_sim::parts::noise::{Noise, NoiseError};
use sme_sim::time::Time;

/// The distribution of the random part of arrivals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SkewDistribution {
    /// Uniform from 0 to the skew.
    #[default]
    Uniform,
    /// Exponential; the skew is the mean.
    Exponential,
    /// Normal around 0, of which only what is late counts; the skew is the standard deviation.
    Normal,
}

sme_barrier::names!(SkewDistribution, "distribution", {
    Uniform => "uniform",
    Exponential => "exponential",
    Normal => "normal",
});

/// When detours begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum NoiseGaps {
    /// One period after another.
    #[default]
    Periodic,
    /// One in each period, anywhere in it.
    Uniform,
    /// Exponential gaps with the period as mean.
    Exponential,
}

sme_barrier::names!(NoiseGaps, "distribution", {
    Periodic => "periodic",
    Uniform => "uniform",
    Exponential => "exponential",
});

/// The distribution of the lengths of detours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum NoiseLengths {
    /// All of the given duration.
    #[default]
    Constant,
    /// Exponential with it as mean.
    Exponential,
}

sme_barrier::names!(NoiseLengths, "distribution", {
    Constant => "constant",
    Exponential => "exponential",
});

/// The disturbance of the threads of an experiment, `--skew` apart; none by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disturbance {
    /// `--work`: what every thread computes before each barrier.
    pub work: Time,
    /// `--skew-distribution`
    pub skew_distribution: SkewDistribution,
    /// `--noise-period` and what belongs to it.
    pub noise: Option<Noise>,
}

/// The noise of `--noise-period`, `--noise-duration`, `--noise-distribution` (`gaps`) and
/// `--noise-duration-distribution` (`lengths`).
///
/// # Errors
/// [`NoiseError`] if there is no such noise.
pub fn noise(
    period: Time,
    duration: Time,
    gaps: NoiseGaps,
    lengths: NoiseLengths,
    seed: u64,
) -> Result<Noise, NoiseError> {
    let gaps = match gaps {
        NoiseGaps::Periodic => Gaps::Periodic,
        NoiseGaps::Uniform => Gaps::Uniform,
        NoiseGaps::Exponential => Gaps::Exponential,
    };
    let lengths = match lengths {
        NoiseLengths::Constant => Lengths::Constant,
        NoiseLengths::Exponential => Lengths::Exponential,
    };
    Noise::new(period, duration, gaps, lengths, seed)
}

/// The name of when the detours of `noise` begin.
pub fn gaps_of(noise: &Noise) -> NoiseGaps {
    match noise.gaps() {
        Gaps::Periodic => NoiseGaps::Periodic,
        Gaps::Uniform => NoiseGaps::Uniform,
        Gaps::Exponential => NoiseGaps::Exponential,
    }
}

/// The name of how long they are.
pub fn lengths_of(noise: &Noise) -> NoiseLengths {
    match noise.lengths() {
        Lengths::Constant => NoiseLengths::Constant,
        Lengths::Exponential => NoiseLengths::Exponential,
    }
}

/// The delays between a barrier's end and the threads' arrivals at the next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Skews {
    pub(super) work: Time,
    pub(super) skew: Time,
    pub(super) distribution: SkewDistribution,
    pub(super) seed: u64,
}

/// Keeps the numbers of arrivals and of noise apart, which both have keys from 0 on.
const ARRIVALS: u64 = 0x6172_7269_7661_6c73;

impl Skews {
    /// Returns whether no thread computes, and none is late.
    pub(super) fn none(&self) -> bool {
        self.work == Time::ZERO && self.skew == Time::ZERO
    }

    /// The work, and what is drawn anew for every thread and episode.
    pub(super) fn of(&self, me: Member, episode: u32) -> Time {
        self.work + self.late(me, episode)
    }

    fn late(&self, me: Member, episode: u32) -> Time {
        let thread = u64::from(me.node) << 32 | u64::from(me.core);
        let skew = self.skew.as_ps();
        let draws = || Draws::new(draw::key(self.seed ^ ARRIVALS, thread), episode.into());
        Time::from_ps(match self.distribution {
            SkewDistribution::Uniform => {
                let mut random = Pcg32::new(self.seed ^ u64::from(episode) << 32, thread);
                let draw = u128::from(random.next_u64());
                ((draw * (u128::from(skew) + 1)) >> 64) as u64
            }
            SkewDistribution::Exponential => draws().exponential(skew),
            SkewDistribution::Normal => draws().half_normal(skew),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_are_distributed_as_asked_for() {
        let (work, skew) = (Time::from_ns(1_000), Time::from_ns(10_000));
        for (distribution, mean, median) in [
            (SkewDistribution::Uniform, 0.5, 0.5),
            (SkewDistribution::Exponential, 1.0, std::f64::consts::LN_2),
            (SkewDistribution::Normal, 0.7979, 0.6745),
        ] {
            let of = |work| Skews {
                work,
                skew,
                distribution,
                seed: 3,
            };
            let mut late: Vec<f64> = Vec::new();
            for (node, core, episode) in (0..20_000).map(|n| (n % 50, n / 50 % 20, n / 1_000)) {
                let me = Member { node, core };
                let drawn = of(Time::ZERO).of(me, episode);
                assert_eq!(of(work).of(me, episode), work + drawn);
                late.push(drawn.as_us() / skew.as_us());
            }
            late.sort_by(f64::total_cmp);
            let found = late.iter().sum::<f64>() / late.len() as f64;
            assert!(
                (found / mean - 1.0).abs() < 0.03,
                "{distribution}: mean {found}"
            );
            let found = late[late.len() / 2];
            assert!(
                (found / median - 1.0).abs() < 0.03,
                "{distribution}: median {found}"
            );
        }
    }

    #[test]
    fn names_are_those_of_the_noise() {
        let [period, duration] = [10_000, 1_000].map(Time::from_ns);
        for &gaps in NoiseGaps::ALL {
            for &lengths in NoiseLengths::ALL {
                let noise = noise(period, duration, gaps, lengths, 1).unwrap();
                assert_eq!((gaps_of(&noise), lengths_of(&noise)), (gaps, lengths));
            }
        }
    }
}
