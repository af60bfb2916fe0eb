//! Thresholds between the ways of sending: which way is best for messages of which lengths, by
//! lines of cost (Ho et al., Sec. V-C) and by simulation.

use std::collections::BTreeMap;

use super::Measurement;
use super::job::{Error, Job};
use super::line::Line;
use super::pingpong::{Outcome, PingPong, Way};
use super::{SendCall, pingpong};

/// The aim of the search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// The least latency: half of a round of a ping-pong.
    Latency,
    /// The largest message rate: the sender gets rid of its message soonest.
    Rate,
}

sme_barrier::names!(Aim, "aim", {
    Latency => "latency",
    Rate => "rate",
});

/// Two ranks whose messages are tuned.
#[derive(Clone, Debug)]
pub struct Tuning {
    /// The machine, the library and the ranks.
    pub job: Job,
    /// The two ranks.
    pub ranks: (u32, u32),
    /// The longest message, in bytes, at least 64 and a multiple of eight.
    pub most_bytes: u64,
    /// Rounds of each ping-pong.
    pub rounds: u32,
}

/// A way, and the length from which on it is the best.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    /// The first length, in bytes.
    pub from_bytes: f64,
    /// The way.
    pub way: Way,
}

/// The thresholds for one aim.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuned {
    /// The aim.
    pub aim: Aim,
    /// The lines of all ways, in microseconds: what the aim is about, by the length.
    pub lines: Vec<(Way, Line)>,
    /// The thresholds by these lines.
    pub by_lines: Vec<Threshold>,
    /// Those of the simulation.
    pub simulated: Vec<Threshold>,
}

/// The way that takes least, from which length on, up to `most_bytes`: the lower envelope of lines.
/// Of equal ones the first.
pub fn thresholds(lines: &[(Way, Line)], most_bytes: f64) -> Vec<Threshold> {
    let mut thresholds: Vec<Threshold> = Vec::new();
    let first = lines.iter().min_by(|one, other| {
        let [one, other] = [one, other].map(|(_, line)| line);
        let costs = one.fixed.total_cmp(&other.fixed);
        costs.then(one.per_byte.total_cmp(&other.per_byte))
    });
    let Some(mut best) = first else {
        return thresholds;
    };
    let mut from_bytes = 0.0;
    // The line that is least stays so until another one crosses it.
    loop {
        thresholds.push(Threshold {
            from_bytes,
            way: best.0,
        });
        let crossing = |other: &&(Way, Line)| {
            let bytes = other.1.crossover(&best.1)?;
            (bytes >= from_bytes && other.0 != best.0).then_some(bytes)
        };
        let crossings = lines
            .iter()
            .filter_map(|other| Some((crossing(&other)?, other)));
        let next = crossings.min_by(|(a, one), (b, other)| {
            // Where several cross at once, the flattest is behind.
            a.total_cmp(b)
                .then(one.1.per_byte.total_cmp(&other.1.per_byte))
        });
        match next {
            Some((bytes, other)) if bytes <= most_bytes => (from_bytes, best) = (bytes, other),
            _ => return thresholds,
        }
    }
}

impl Tuning {
    /// The ways that the channel has.
    fn ways(&self) -> Vec<Way> {
        let ways = Way::ALL.iter().copied();
        ways.filter(|way| way.is_of(self.job.library)).collect()
    }

    /// Lengths that are simulated in any case: powers of two, at most the longest.
    fn sizes(&self) -> Vec<u64> {
        let doubled = std::iter::successors(Some(8_u64), |bytes| bytes.checked_mul(2));
        let mut sizes: Vec<u64> = doubled
            .take_while(|&bytes| bytes < self.most_bytes)
            .collect();
        sizes.push(self.most_bytes);
        sizes
    }

    /// Tunes for all aims.
    ///
    /// # Errors
    /// [`Error`]
    pub fn run(&self) -> Result<Vec<Tuned>, Error> {
        let mut known = Known {
            of: self,
            times: BTreeMap::new(),
        };
        let (ways, sizes) = (self.ways(), self.sizes());
        let mut tuned = Vec::new();
        for &aim in Aim::ALL {
            let mut lines = Vec::new();
            for &way in &ways {
                let mut points = Vec::new();
                for &bytes in &sizes {
                    points.push((bytes as f64, known.time(way, bytes, aim)?));
                }
                // There are two sizes at least.
                lines.extend(Line::through(&points).map(|fitted| (way, fitted.line)));
            }
            tuned.push(Tuned {
                aim,
                by_lines: thresholds(&lines, self.most_bytes as f64),
                simulated: known.thresholds(&ways, &sizes, aim)?,
                lines,
            });
        }
        Ok(tuned)
    }
}

/// Ping-pongs, each simulated once.
struct Known<'t> {
    of: &'t Tuning,
    times: BTreeMap<(u64, u8), Outcome>,
}

impl Known<'_> {
    fn time(&mut self, way: Way, bytes: u64, aim: Aim) -> Result<f64, Error> {
        let key = (bytes, way as u8);
        let outcome = match self.times.get(&key) {
            Some(&known) => known,
            None => {
                let outcome = self.ping_pong(way, bytes).run()?;
                self.times.insert(key, outcome);
                outcome
            }
        };
        Ok(match aim {
            Aim::Latency => outcome.latency.as_us(),
            Aim::Rate => outcome.sends.0.as_us(),
        })
    }

    fn ping_pong(&self, way: Way, size_bytes: u64) -> PingPong {
        let Tuning { job, ranks, .. } = self.of;
        PingPong {
            job: Job {
                modes: way.modes(),
                ..job.clone()
            },
            first: ranks.0,
            partner: ranks.1,
            call: SendCall::Send,
            way: Some(way),
            size_bytes,
            rounds: self.of.rounds,
        }
    }

    fn best(&mut self, ways: &[Way], bytes: u64, aim: Aim) -> Result<Way, Error> {
        let mut best = (ways[0], f64::INFINITY);
        for &way in ways {
            let time = self.time(way, bytes, aim)?;
            if time < best.1 {
                best = (way, time);
            }
        }
        Ok(best.0)
    }

    /// Between two of the sizes with different ways the first length, of whole words, with another
    /// way than the shorter one's is searched for by halves.
    fn thresholds(
        &mut self,
        ways: &[Way],
        sizes: &[u64],
        aim: Aim,
    ) -> Result<Vec<Threshold>, Error> {
        let mut way = self.best(ways, sizes[0], aim)?;
        let mut found = vec![Threshold {
            from_bytes: 0.0,
            way,
        }];
        let mut least = sizes[0];
        for &size in &sizes[1..] {
            while self.best(ways, size, aim)? != way {
                let (mut same, mut other) = (least, size);
                while other - same > 8 {
                    let middle = (same + other) / 16 * 8;
                    match self.best(ways, middle, aim)? == way {
                        true => same = middle,
                        false => other = middle,
                    }
                }
                way = self.best(ways, other, aim)?;
                found.push(Threshold {
                    from_bytes: other as f64,
                    way,
                });
                least = other;
            }
            least = size;
        }
        Ok(found)
    }
}

/// Bytes of the longest message that a machine's memory has room for, and that is asked about.
pub fn most_bytes(job: &Job) -> u64 {
    let asked = 64 << 10;
    let fits = |bytes: &u64| job.holds(pingpong::data_end(job, *bytes)).is_ok();
    let halved = std::iter::successors(Some(asked), |bytes| Some(bytes / 2));
    halved
        .take_while(|&bytes| bytes > 64)
        .find(fits)
        .unwrap_or(64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WAYS: [Way; 4] = [Way::Normal, Way::Eager, Way::Lazy, Way::Dma];

    #[test]
    fn the_papers_lines_give_its_order() {
        let line = |per_byte, fixed| Line { per_byte, fixed };
        let lines = [
            (Way::Normal, line(0.98, 30240.0)),
            (Way::Eager, line(3800.0 / 96.0, 3800.0)),
            (Way::Dma, line(0.27, 32850.0)),
        ];
        let found = thresholds(&lines, 1e6);
        let ways: Vec<Way> = found.iter().map(|one| one.way).collect();
        assert_eq!(ways, [Way::Eager, Way::Normal, Way::Dma]);
        assert!((found[1].from_bytes - 684.9).abs() < 0.1);
        assert!((found[2].from_bytes - 3676.1).abs() < 0.1);
        assert_eq!(thresholds(&lines, 1000.0).len(), 2);
        assert_eq!(thresholds(&[], 1.0), []);
    }

    proptest! {
        /// At every length the way of the last threshold up to it takes least.
        #[test]
        fn thresholds_are_the_lower_envelope(
            costs in prop::collection::vec((0.0..50.0, 0.0..5e4), 1..5),
            lengths in prop::collection::vec(0.0..1e4, 20),
        ) {
            let lines: Vec<(Way, Line)> = WAYS
                .into_iter()
                .zip(&costs)
                .map(|(way, &(per_byte, fixed))| (way, Line { per_byte, fixed }))
                .collect();
            let found = thresholds(&lines, 1e4);
            for bytes in lengths {
                let chosen = found.iter().rfind(|one| one.from_bytes <= bytes).unwrap().way;
                let time = |way| lines.iter().find(|(of, _)| *of == way).unwrap().1.time(bytes);
                let least = lines.iter().map(|(way, _)| time(*way)).fold(f64::MAX, f64::min);
                prop_assert!(time(chosen) <= least * (1.0 + 1e-9) + 1e-6);
            }
        }
    }
}
