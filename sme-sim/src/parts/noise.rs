//! Noise of the operating system: detours that take a core away from its thread for a while.
//!
//! After T. Hoefler, T. Schneider, A. Lumsdaine, "Characterizing the Influence of System Noise on
//! Large-Scale Applications by Simulation" (SC'10): every core has a trace of detours of its own,
//! begun at a random place, and what a thread computes, its part of each access included, takes
//! longer by the detours that fall into it. A detour while the thread waits costs it nothing.
//!
//! A trace is never stored. Each core's time is cut into periods, the first of which begins at a
//! random time; what happens in a period is drawn from the seed, the core and the period's number,
//! lies within the period, and so is known at any time without what was before. Called where a
//! node's core is done with something, [`Noise::end_of`]; times in picoseconds.

use crate::kernel::draw::{self, Draws, MOST_COUNTED};
use crate::time::Time;

/// The distribution of the beginnings of a core's detours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Gaps {
    /// One period after another.
    Periodic,
    /// One in each period, anywhere in it.
    Uniform,
    /// At any time with the same probability, one per period on average: gaps are exponential.
    Exponential,
}

/// The lengths of detours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lengths {
    /// All the same.
    Constant,
    /// Exponential.
    Exponential,
}

/// The noise of all cores of a machine: a function of core and time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Noise {
    period: u64,
    duration: u64,
    gaps: Gaps,
    lengths: Lengths,
    seed: u64,
}

/// The reason why there is no such noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoiseError {
    /// Simulating a detour every few operations would take for ever.
    #[error("a period of {0} is too short; at least {LEAST_PERIOD}")]
    Period(Time),
    /// No detour.
    #[error("a detour of no duration is none")]
    Nothing,
    /// Detours would not fit into their periods.
    #[error("a duration of {duration} is too long; at most {most}, {share} of the period")]
    Duration {
        /// The one that was asked for.
        duration: Time,
        /// The longest.
        most: Time,
        /// The share of the period that is the longest, in words.
        share: &'static str,
    },
}

/// The shortest period.
pub const LEAST_PERIOD: Time = Time::from_ns(1_000);

/// The longest duration is the period divided by this, where each period has one detour of constant
/// length.
const REGULAR: u64 = 2;
/// The same where chance may bring several, or long ones.
const IRREGULAR: u64 = 8;

/// The number of no period: what a core draws once and for all.
const ONCE: u64 = u64::MAX;

/// The detours of a core in one of its periods, in order: begin, counted from the period's, and
/// length. They neither overlap nor reach into the next period.
struct Detours {
    count: usize,
    all: [(u64, u64); MOST_COUNTED],
}

impl Noise {
    /// Detours with the mean length `duration`, one every `period` on average.
    ///
    /// # Errors
    /// [`NoiseError`] if the period is shorter than [`LEAST_PERIOD`], or the duration is zero, or
    /// more than half the period, or more than an eighth unless each period has one detour of
    /// constant length.
    pub fn new(
        period: Time,
        duration: Time,
        gaps: Gaps,
        lengths: Lengths,
        seed: u64,
    ) -> Result<Self, NoiseError> {
        if period < LEAST_PERIOD {
            return Err(NoiseError::Period(period));
        }
        if duration == Time::ZERO {
            return Err(NoiseError::Nothing);
        }
        let regular = gaps != Gaps::Exponential && lengths == Lengths::Constant;
        let (parts, share) = match regular {
            true => (REGULAR, "half"),
            false => (IRREGULAR, "an eighth"),
        };
        let most = Time::from_ps(period.as_ps() / parts);
        if duration > most {
            return Err(NoiseError::Duration {
                duration,
                most,
                share,
            });
        }
        Ok(Self {
            period: period.as_ps(),
            duration: duration.as_ps(),
            gaps,
            lengths,
            seed,
        })
    }

    /// The mean time from the beginning of one detour to that of the next.
    pub fn period(&self) -> Time {
        Time::from_ps(self.period)
    }

    /// The mean length of a detour.
    pub fn duration(&self) -> Time {
        Time::from_ps(self.duration)
    }

    /// Returns the distribution of the beginnings of detours.
    pub fn gaps(&self) -> Gaps {
        self.gaps
    }

    /// Returns the lengths of detours.
    pub fn lengths(&self) -> Lengths {
        self.lengths
    }

    /// Returns the time at which `core` has done `work` that it began at `start`, and executes
    /// again: `work` after `start`, and later by each detour on the way and by one that begins
    /// right then. [`Time::NEVER`] where that is beyond all times.
    #[inline]
    pub fn end_of(&self, core: u64, start: Time, work: Time) -> Time {
        let key = draw::key(self.seed, core);
        let phase = self.phase(key);
        self.walk(key, phase, start, work)
            .map_or(Time::NEVER, |end| Time::from_ps(end - phase))
    }

    /// The first time at or after `at` at which `core` executes.
    pub fn resumes(&self, core: u64, at: Time) -> Time {
        self.end_of(core, at, Time::ZERO)
    }

    /// The detours of `core`, first begin and then end, from the period on in which `from` lies.
    /// The first may have begun before time zero: then that is given as its begin.
    pub fn detours(&self, core: u64, from: Time) -> impl Iterator<Item = (Time, Time)> {
        let noise = *self;
        let key = draw::key(noise.seed, core);
        let phase = noise.phase(key);
        let first = from.as_ps().saturating_add(phase) / noise.period;
        (first..).flat_map(move |number| {
            let detours = noise.in_period(key, number);
            let base = number.saturating_mul(noise.period);
            let time = move |at: u64| Time::from_ps(base.saturating_add(at).saturating_sub(phase));
            let times = move |(begin, length)| (time(begin), time(begin + length));
            let ended = |&(_, end): &(Time, Time)| end > Time::ZERO;
            detours.into_iter().map(times).filter(ended)
        })
    }

    /// Returns how long before time zero the period of a core began in which time zero lies.
    fn phase(&self, key: u64) -> u64 {
        Draws::new(key, ONCE).below(self.period)
    }

    /// [`Self::end_of`], counted like the core's periods: from `phase` before time zero.
    fn walk(&self, key: u64, phase: u64, start: Time, work: Time) -> Option<u64> {
        let at = start.as_ps().checked_add(phase)?;
        let mut number = at / self.period;
        let mut within = at % self.period;
        let mut left = work.as_ps();
        loop {
            let base = number.checked_mul(self.period)?;
            for (begin, length) in self.in_period(key, number) {
                if within >= begin + length {
                    continue;
                }
                let free = begin.saturating_sub(within);
                if left < free {
                    return base.checked_add(within + left);
                }
                left -= free;
                within = begin + length;
            }
            let free = self.period - within;
            if left < free {
                return base.checked_add(within)?.checked_add(left);
            }
            left -= free;
            within = 0;
            number += 1;
            if self.gaps != Gaps::Exponential && self.lengths == Lengths::Constant {
                // Of whole periods it is known what they leave.
                let free = self.period - self.duration;
                number = number.checked_add(left / free)?;
                left %= free;
            }
        }
    }

    fn in_period(&self, key: u64, number: u64) -> Detours {
        let mut draws = Draws::new(key, number);
        let count = match self.gaps {
            Gaps::Periodic | Gaps::Uniform => 1,
            Gaps::Exponential => draws.poisson(),
        };
        let mut all = [(0, 0); MOST_COUNTED];
        // An eighth of a period is the core's own, however long the detours turn out.
        let mut free = self.period - self.period.div_ceil(IRREGULAR);
        for (_, length) in all.iter_mut().take(count) {
            let drawn = match self.lengths {
                Lengths::Constant => self.duration,
                Lengths::Exponential => draws.exponential(self.duration),
            };
            *length = drawn.min(free);
            free -= *length;
        }
        free += self.period.div_ceil(IRREGULAR);
        if self.gaps != Gaps::Periodic {
            for (begin, _) in all.iter_mut().take(count) {
                *begin = draws.below(free + 1);
            }
            // Places in what is left of the period; lengths belong to no place yet.
            if let Some(drawn) = all.get_mut(..count) {
                drawn.sort_unstable();
            }
            let mut before = 0;
            for (begin, length) in all.iter_mut().take(count) {
                *begin += before;
                before += *length;
            }
        }
        Detours { count, all }
    }
}

impl IntoIterator for Detours {
    type Item = (u64, u64);
    type IntoIter = std::iter::Take<std::array::IntoIter<(u64, u64), MOST_COUNTED>>;

    fn into_iter(self) -> Self::IntoIter {
        self.all.into_iter().take(self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const US: u64 = 1_000_000;

    /// The same by walking over a list of all detours.
    fn listed(noise: &Noise, core: u64, start: Time, work: Time) -> Time {
        let (mut now, mut left) = (start, work);
        for (begin, end) in noise.detours(core, Time::ZERO) {
            if end <= now {
                continue;
            }
            if begin > now + left {
                break;
            }
            left = Time::from_ps(left.as_ps() - begin.since(now).as_ps());
            now = end;
        }
        now + left
    }

    fn any_noise() -> impl Strategy<Value = Noise> {
        let gaps = prop::sample::select(vec![Gaps::Periodic, Gaps::Uniform, Gaps::Exponential]);
        let lengths = prop::sample::select(vec![Lengths::Constant, Lengths::Exponential]);
        let period = prop_oneof![Just(US), US..50 * US];
        (gaps, lengths, period, 0.0..=1.0, any::<u64>()).prop_map(
            |(gaps, lengths, period, share, seed)| {
                let regular = gaps != Gaps::Exponential && lengths == Lengths::Constant;
                let most = period / if regular { REGULAR } else { IRREGULAR };
                let duration = ((most as f64 * share) as u64).max(1);
                let [period, duration] = [period, duration].map(Time::from_ps);
                Noise::new(period, duration, gaps, lengths, seed).unwrap()
            },
        )
    }

    proptest! {
        #[test]
        fn a_core_is_done_when_the_list_of_its_detours_says(
            noise in any_noise(),
            core in any::<u64>(),
            start in 0..200 * US,
            work in prop_oneof![Just(0), 0..US, 0..300 * US],
        ) {
            let [start, work] = [start, work].map(Time::from_ps);
            let end = noise.end_of(core, start, work);
            prop_assert_eq!(end, listed(&noise, core, start, work));
            prop_assert_eq!(noise.resumes(core, end), end, "it executes then");
        }

        #[test]
        fn work_adds_up(
            noise in any_noise(),
            core in any::<u64>(),
            start in 0..200 * US,
            works in prop::collection::vec(0..30 * US, 1..5),
        ) {
            let start = Time::from_ps(start);
            let total = Time::from_ps(works.iter().sum());
            let one_by_one = works
                .iter()
                .fold(start, |at, &work| noise.end_of(core, at, Time::from_ps(work)));
            prop_assert_eq!(noise.end_of(core, start, total), one_by_one);
        }

        #[test]
        fn whoever_starts_later_is_done_no_sooner(
            noise in any_noise(),
            core in any::<u64>(),
            start in 0..200 * US,
            later in 0..20 * US,
            work in 0..30 * US,
        ) {
            let [start, later, work] = [start, later, work].map(Time::from_ps);
            let ends = noise.end_of(core, start, work);
            let ends_later = noise.end_of(core, start + later, work);
            prop_assert!(start + work <= ends && ends <= ends_later);
        }

        #[test]
        fn detours_keep_to_themselves(noise in any_noise(), core in any::<u64>()) {
            let mut before = Time::ZERO;
            for (begin, end) in noise.detours(core, Time::ZERO).take(100) {
                prop_assert!(before <= begin && begin <= end, "{:?} {:?} {:?}", before, begin, end);
                before = end;
            }
        }
    }

    /// Walks that are wrong in one way each are told from the right one.
    #[test]
    fn the_list_catches_a_wrong_walk() {
        type Walk = fn(&Noise, u64, Time, Time) -> Time;
        let wrong: [(&str, Walk); 5] = [
            ("deaf", |_, _, start, work| start + work),
            ("one detour is all there is", |noise, core, start, work| {
                let mut detours = noise.detours(core, start).filter(|d| d.1 > start);
                let (begin, end) = detours.next().unwrap();
                match begin <= start + work {
                    true => end + Time::from_ps(work.as_ps() - begin.since(start).as_ps()),
                    false => start + work,
                }
            }),
            ("a share of the work", |noise, core, start, work| {
                let stolen = work.as_ps() / 10;
                noise.resumes(core, start + work + Time::from_ps(stolen))
            }),
            ("a neighbour's", |noise, core, start, work| {
                noise.end_of(core + 1, start, work)
            }),
            ("ends where a detour begins", |noise, core, start, work| {
                let before = Time::from_ps(work.as_ps().saturating_sub(1));
                noise.end_of(core, start, before) + work.since(before)
            }),
        ];
        for (name, walk) in wrong {
            let caught = (0..400).any(|case| {
                let mut draws = Draws::new(1, case);
                let period = Time::from_ps(US + draws.below(4 * US));
                let duration = Time::from_ps(period.as_ps() / 10);
                let noise = |gaps| Noise::new(period, duration, gaps, Lengths::Constant, case);
                let any = Time::from_ps(draws.below(20 * US));
                let (noise, start, work) = if case % 2 == 0 {
                    (noise(Gaps::Exponential).unwrap(), any, any)
                } else {
                    // From the end of a detour to the beginning of another.
                    let noise = noise(Gaps::Periodic).unwrap();
                    let (_, end) = noise.detours(9, any).next().unwrap();
                    (noise, end, (period - duration).times(1 + case % 3))
                };
                walk(&noise, 9, start, work) != listed(&noise, 9, start, work)
            });
            assert!(caught, "{name}");
        }
    }

    /// All detours of `cores` cores in the first `time`, begin and length, core by core.
    fn detours(noise: &Noise, cores: u64, time: Time) -> Vec<Vec<(Time, Time)>> {
        let of = |core| {
            let all = noise.detours(core, Time::ZERO);
            let all = all.map(|(begin, end)| (begin, end.since(begin)));
            all.take_while(|&(begin, _)| begin < time).collect()
        };
        (0..cores).map(of).collect()
    }

    #[test]
    fn detours_are_distributed_as_asked_for() {
        let (period, duration) = (Time::from_ns(100_000), Time::from_ns(5_000));
        let time = Time::from_ns(20_000_000);
        let cores = 400;
        // The variation of gaps and lengths: deviation over mean, from the textbook.
        for (gaps, vary) in [
            (Gaps::Periodic, 0.0),
            // Between places in neighbouring periods: the difference of two uniform variates.
            (Gaps::Uniform, 0.95 / f64::sqrt(6.0)),
            // Free time is exponential, and longest where there are few detours.
            (Gaps::Exponential, 0.98),
        ] {
            for (lengths, lengths_vary) in [(Lengths::Constant, 0.0), (Lengths::Exponential, 1.0)] {
                let noise = Noise::new(period, duration, gaps, lengths, 5).unwrap();
                let name = format!("{gaps:?} {lengths:?}");
                let all = detours(&noise, cores, time);
                let count: usize = all.iter().map(Vec::len).sum();
                let stolen: f64 = all.iter().flatten().map(|d| d.1.as_us()).sum();
                let expected = cores as f64 * time.as_us() / period.as_us();
                assert!(
                    (count as f64 / expected - 1.0).abs() < 0.02,
                    "{name}: {count}"
                );
                let share = stolen / (cores as f64 * time.as_us());
                assert!((share / 0.05 - 1.0).abs() < 0.03, "{name}: {share}");

                let between = all.iter().flat_map(|core| core.windows(2));
                let between = between.map(|pair| pair[1].0.since(pair[0].0).as_us());
                let found = variation(&between.collect::<Vec<_>>());
                assert!((found - vary).abs() < 0.03, "{name}: gaps vary by {found}");
                // Not the first: what of it lies before time zero is cut off.
                let lengths = all.iter().flat_map(|core| &core[1..]);
                let found = variation(&lengths.map(|d| d.1.as_us()).collect::<Vec<_>>());
                assert!(
                    (found - lengths_vary).abs() < 0.03,
                    "{name}: lengths vary by {found}"
                );
            }
        }
    }

    /// Standard deviation over mean.
    fn variation(values: &[f64]) -> f64 {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        (squares / count).sqrt() / mean
    }

    /// At any time, as many cores are away as the share says: no time is special, not even zero.
    #[test]
    fn cores_are_out_of_step() {
        for gaps in [Gaps::Periodic, Gaps::Uniform, Gaps::Exponential] {
            let [period, duration] = [10_000, 1_000].map(Time::from_ns);
            let noise = Noise::new(period, duration, gaps, Lengths::Constant, 1).unwrap();
            for at in [0, 1, 5_000, 9_999, 10_000, 123_456].map(Time::from_ns) {
                let away = (0..20_000).filter(|&core| noise.resumes(core, at) > at);
                let share = away.count() as f64 / 20_000.0;
                assert!((share - 0.1).abs() < 0.012, "{gaps:?} at {at}: {share}");
            }
        }
    }

    #[test]
    fn what_fits_no_period_is_refused() {
        let noise = |period, duration, gaps, lengths| {
            let [period, duration] = [period, duration].map(Time::from_ns);
            let noise = Noise::new(period, duration, gaps, lengths, 0);
            noise.map_err(|error| error.to_string())
        };
        use Gaps::{Exponential, Periodic, Uniform};
        let constant = Lengths::Constant;
        for (refused, because) in [
            (
                noise(0, 10, Periodic, constant),
                "a period of 0.000 ns is too short; at least 1000.000 ns",
            ),
            (
                noise(1_000, 0, Uniform, constant),
                "a detour of no duration is none",
            ),
            (
                noise(1_000, 1_000, Periodic, constant),
                "a duration of 1000.000 ns is too long; at most 500.000 ns, half of the period",
            ),
            (
                noise(1_000, 126, Exponential, constant),
                "a duration of 126.000 ns is too long; at most 125.000 ns, an eighth of the period",
            ),
            (
                noise(1_000, 126, Periodic, Lengths::Exponential),
                "a duration of 126.000 ns is too long; at most 125.000 ns, an eighth of the period",
            ),
        ] {
            assert_eq!(refused, Err(because.to_owned()));
        }
        assert!(noise(1_000, 500, Uniform, constant).is_ok());
        assert!(noise(1_000, 125, Exponential, Lengths::Exponential).is_ok());
    }

    #[test]
    fn beyond_all_times_is_never() {
        let never = Time::NEVER;
        for gaps in [Gaps::Periodic, Gaps::Exponential] {
            let [period, duration] = [never.as_ps() / 3, US].map(Time::from_ps);
            let noise = Noise::new(period, duration, gaps, Lengths::Constant, 1).unwrap();
            assert_eq!(noise.end_of(1, never, never), never);
            assert_eq!(
                noise.end_of(1, Time::from_ps(never.as_ps() - 1), never),
                never
            );
        }
        let [period, duration] = [1_000, 500].map(Time::from_ns);
        let noise = Noise::new(period, duration, Gaps::Periodic, Lengths::Constant, 1).unwrap();
        // Twice as long, in one step.
        let half = Time::from_ps(never.as_ps() / 2 - period.as_ps());
        assert!(noise.end_of(1, Time::ZERO, half) > half.times(2).since(period));
        assert_eq!(noise.end_of(1, Time::ZERO, never), never);
    }
}
