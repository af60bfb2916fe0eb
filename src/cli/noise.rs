//! The flags for what disturbs threads: work between barriers, how arrivals are spread, noise.
//!
//! Called by [`super::args`]. Every combination of their lists is a [`Draft`], which becomes a
//! [`Disturbance`] once its point's seed is known.

use clap::Args;
use sme_sim::observe::failure::LONGEST;
use sme_sim::time::Time;

use super::read::{Values, names, times};
use crate::experiment::noise::{
    self, Disturbance, Noise, NoiseError, NoiseGaps, NoiseLengths, SkewDistribution,
};
use crate::report::stop::Stop;

/// The disturbances of threads, `--skew` apart.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "What disturbs threads")]
pub struct DisturbanceFlags {
    /// How arrivals are spread: uniform up to --skew, exponential with it as mean, or normal with
    /// it as standard deviation, cut at 0 [default: uniform]
    #[arg(long, value_name = "NAME")]
    pub skew_distribution: Option<String>,
    /// Time that each thread computes before each barrier (such as 1ms); it counts as latency
    #[arg(
        long,
        value_name = "TIME",
        default_value = "0ns",
        allow_hyphen_values = true
    )]
    pub work: String,
    /// Noise.
    #[command(flatten)]
    pub noise: NoiseFlags,
}

/// The operating system's noise.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "What disturbs threads")]
pub struct NoiseFlags {
    /// Mean time between detours: the operating system takes each core away from its thread once in
    /// this time [default: never]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub noise_period: Option<String>,
    /// Mean duration of a detour; 0 is no noise
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub noise_duration: Option<String>,
    /// When: periodic, uniform (once in every period, at any time in it) or exponential (gaps),
    /// each core out of step with the others [default: periodic]
    #[arg(long, value_name = "NAME")]
    pub noise_distribution: Option<String>,
    /// For how long: constant or exponential [default: constant]
    #[arg(long, value_name = "NAME")]
    pub noise_duration_distribution: Option<String>,
}

/// One value of each flag.
#[derive(Clone, Copy, Debug, Default)]
pub struct Draft {
    skew_distribution: SkewDistribution,
    work: Time,
    period: Time,
    duration: Time,
    gaps: NoiseGaps,
    lengths: NoiseLengths,
}

/// Every combination of what the flags list, the last flag varying fastest. `skewed` says whether
/// any thread is late at all.
pub fn drafts(
    flags: &DisturbanceFlags,
    skewed: bool,
    values: Values,
    most: usize,
) -> Result<Vec<Draft>, Stop> {
    let (skew_distribution, work, flags) = (&flags.skew_distribution, &flags.work, &flags.noise);
    let noisy = "--noise-period and --noise-duration";
    let is_noisy = flags.noise_period.is_some() && flags.noise_duration.is_some();
    for (flag, given, needs, there) in [
        (
            "--skew-distribution",
            skew_distribution.is_some(),
            "--skew",
            skewed,
        ),
        (
            "--noise-period",
            flags.noise_period.is_some(),
            "--noise-duration",
            is_noisy,
        ),
        (
            "--noise-duration",
            flags.noise_duration.is_some(),
            "--noise-period",
            is_noisy,
        ),
        (
            "--noise-distribution",
            flags.noise_distribution.is_some(),
            noisy,
            is_noisy,
        ),
        (
            "--noise-duration-distribution",
            flags.noise_duration_distribution.is_some(),
            noisy,
            is_noisy,
        ),
    ] {
        if given && !there {
            return Err(Stop::flag(flag, format!("there is none without {needs}")));
        }
    }
    let time = |flag, text: &Option<String>| match text {
        None => Ok(vec![Time::ZERO]),
        Some(text) => times(flag, text, values),
    };
    let (skew, gaps, lengths) = (
        skew_distribution.as_deref(),
        flags.noise_distribution.as_deref(),
        flags.noise_duration_distribution.as_deref(),
    );
    let mut drafts = Product {
        drafts: vec![Draft::default()],
        most,
    };
    if let Some(text) = skew {
        let list: Vec<SkewDistribution> = names("--skew-distribution", text, values)?;
        drafts.times(&list, |draft, &value| draft.skew_distribution = value)?;
    }
    let list = times("--work", work, values)?;
    drafts.times(&list, |draft, &value| draft.work = value)?;
    let list = time("--noise-period", &flags.noise_period)?;
    drafts.times(&list, |draft, &value| draft.period = value)?;
    let list = time("--noise-duration", &flags.noise_duration)?;
    drafts.times(&list, |draft, &value| draft.duration = value)?;
    if let Some(text) = gaps {
        let list: Vec<NoiseGaps> = names("--noise-distribution", text, values)?;
        drafts.times(&list, |draft, &value| draft.gaps = value)?;
    }
    if let Some(text) = lengths {
        let list: Vec<NoiseLengths> = names("--noise-duration-distribution", text, values)?;
        drafts.times(&list, |draft, &value| draft.lengths = value)?;
    }
    Ok(drafts.drafts)
}

/// The noise of a run with this `seed` that nothing else disturbs, where every flag has one value.
pub fn only_noise(flags: &NoiseFlags, seed: u64) -> Result<Option<Noise>, Stop> {
    let flags = DisturbanceFlags {
        skew_distribution: None,
        work: "0ns".to_owned(),
        noise: flags.clone(),
    };
    let drafts = drafts(&flags, false, Values::One, 1)?;
    let draft = drafts.first().copied().unwrap_or_default();
    Ok(draft.build(seed, Time::ZERO, 1)?.noise)
}

/// Combinations, of which there may be so many.
struct Product {
    drafts: Vec<Draft>,
    most: usize,
}

impl Product {
    fn times<T>(&mut self, values: &[T], assign: impl Fn(&mut Draft, &T)) -> Result<(), Stop> {
        if self.drafts.len().saturating_mul(values.len()) > self.most {
            return Err(Stop::Input(format!(
                "a sweep of more than {} points: shorten its lists",
                self.most
            )));
        }
        let mut longer = Vec::with_capacity(self.drafts.len() * values.len());
        for draft in &self.drafts {
            for value in values {
                let mut draft = *draft;
                assign(&mut draft, value);
                longer.push(draft);
            }
        }
        self.drafts = longer;
        Ok(())
    }
}

/// The most that a thread can be late, as a multiple of --skew.
const LATEST: u128 = 64;
/// The largest factor by which noise can lengthen anything.
const SLOWEST: u128 = 8;

impl Draft {
    /// The disturbance of a point with this `seed`, whose threads come late by `skew` to
    /// each of `episodes` barriers.
    pub fn build(&self, seed: u64, skew: Time, episodes: u32) -> Result<Disturbance, Stop> {
        let noise = match self.duration {
            Time::ZERO => None,
            duration => {
                let noise = noise::noise(self.period, duration, self.gaps, self.lengths, seed);
                Some(noise.map_err(|error| Stop::flag(flag_of(error), error))?)
            }
        };
        let latest = match self.skew_distribution {
            SkewDistribution::Uniform => 1,
            SkewDistribution::Exponential | SkewDistribution::Normal => LATEST,
        };
        let slowest = if noise.is_some() { SLOWEST } else { 1 };
        let [work, skew] = [self.work, skew].map(|time| u128::from(time.as_ps()));
        let longest = u128::from(LONGEST.as_ps());
        if (work + latest * skew) * slowest * (u128::from(episodes) + 1) > longest {
            return Err(Stop::flag(
                &format!("--episodes {episodes}"),
                "with this --work, --skew and noise the run could last for more than 53 days of \
                 simulated time",
            ));
        }
        Ok(Disturbance {
            work: self.work,
            skew_distribution: self.skew_distribution,
            noise,
        })
    }
}

/// The flag to blame.
fn flag_of(error: NoiseError) -> &'static str {
    match error {
        NoiseError::Period(_) => "--noise-period",
        NoiseError::Nothing | NoiseError::Duration { .. } => "--noise-duration",
    }
}

#[cfg(test)]
mod tests {
    use crate::cli::args;
    use crate::cli::testing;
    use crate::report::row;

    fn refused(flags: &str) -> String {
        let flags: Vec<&str> = flags.split_whitespace().collect();
        let points = args::points(&testing::sweep_flags(&flags).experiment);
        points.expect_err("bad input").to_string()
    }

    #[test]
    fn each_mistake_is_one_line_that_names_the_flag() {
        let noise = "--noise-period 1ms --noise-duration";
        for (flags, line) in [
            (
                "--noise-period 1ms",
                "--noise-period: there is none without --noise-duration",
            ),
            (
                "--noise-duration 0",
                "--noise-duration: there is none without --noise-period",
            ),
            (
                "--noise-distribution periodic",
                "--noise-distribution: there is none without --noise-period and --noise-duration",
            ),
            (
                "--noise-duration-distribution constant",
                "--noise-duration-distribution: there is none without --noise-period and \
                 --noise-duration",
            ),
            (
                "--skew-distribution normal",
                "--skew-distribution: there is none without --skew",
            ),
            (
                "--noise-period 0 --noise-duration 1us",
                "--noise-period: a period of 0.000 ns is too short; at least 1000.000 ns",
            ),
            (
                &format!("{noise} 1ms"),
                "--noise-duration: a duration of 1000000.000 ns is too long; at most 500000.000 ns, \
                 half of the period",
            ),
            (
                &format!("{noise} 500us --noise-distribution exponential"),
                "--noise-duration: a duration of 500000.000 ns is too long; at most 125000.000 ns, \
                 an eighth of the period",
            ),
            (
                &format!("{noise} 1us --noise-distribution periodical"),
                "--noise-distribution: 'periodical' is not known; did you mean 'periodic'? \
                 (one of periodic, uniform, exponential)",
            ),
            (
                "--work 1s --episodes 10000000 --skew 1s --skew-distribution exponential",
                "--episodes 10000000: with this --work, --skew and noise the run could last for \
                 more than 53 days of simulated time",
            ),
        ] {
            assert_eq!(refused(flags), line, "{flags}");
        }
        assert!(refused("--work 2s").starts_with("--work: "));
        assert!(refused("--work=-1us").starts_with("--work: "));
        assert!(refused("--noise-period 1 --noise-duration 1us").starts_with("--noise-period: "));
        let many = vec!["1ns"; 400].join(",");
        assert!(
            refused(&format!(
                "--work {many} --noise-period {many} --noise-duration 1us"
            ))
            .contains("more than 100000 points")
        );
    }

    #[test]
    fn lists_are_combined_and_nothing_without_noise_comes_twice() {
        let flags = "--nodes 1 --work 0,1ms --noise-period 1ms,2ms --noise-duration 0,10us \
                     --noise-distribution periodic,exponential";
        let flags: Vec<&str> = flags.split_whitespace().collect();
        let points = testing::points(&flags);
        // For either work: once without noise, and two periods in two ways.
        assert_eq!(points.len(), 2 * (1 + 2 * 2));
        let keys: Vec<_> = points.iter().map(row::identity).collect();
        let noise = points[1].disturbance.noise.expect("noise");
        assert_eq!(noise.duration().as_us(), 10.0);
        for (index, key) in keys.iter().enumerate() {
            assert!(!keys[..index].contains(key));
        }
    }
}
