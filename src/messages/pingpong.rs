//! Ping-pong: two ranks send each other a message in turn, the rest of the job being idle. Half of
//! a round is the latency, and the message over it the bandwidth.
//!
//! The message lies at the same place of each rank's own memory in every round, so that it is in
//! the caches as far as it fits: after two rounds that do not count.

use sme_memory::Own;
use sme_sim::parts::contract::{Span, ThreadMemory};
use sme_sim::time::Time;

use super::endpoint::{Endpoint, Incoming, Outgoing};
use super::job::{Error, Job, Library, Observe, Observed, times};
use super::{Measurement, WARM_UP};

/// A ping-pong.
#[derive(Clone, Debug)]
pub struct PingPong {
    /// The machine, the library and the ranks.
    pub job: Job,
    /// The rank that answers rank 0; not 0.
    pub partner: u32,
    /// Bytes of the message, a multiple of eight.
    pub size_bytes: u64,
    /// Rounds that count, at least 1.
    pub rounds: u32,
}

/// The outcome of a ping-pong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The mean of half a round.
    pub latency: Time,
}

/// The rounds that count.
const ROUNDS: Span = Span::new("rounds", 0);

/// The last round has the number 1, the one before 0.
pub const LAST: &str = "last rounds";

impl PingPong {
    /// The address of the message in each rank's own memory: away from its beginning, and from the
    /// end of a small one.
    fn message(&self) -> Own {
        match self.job.library {
            Library::Queues => Own(1 << 19),
            _ => Own(1 << 20),
        }
    }

    /// The bandwidth of an outcome, in MB/s: 10^6 bytes a second.
    pub fn bandwidth_mb_per_s(&self, outcome: &Outcome) -> f64 {
        self.size_bytes as f64 / outcome.latency.as_us()
    }
}

impl Measurement for PingPong {
    type Outcome = Outcome;

    fn job(&self) -> &Job {
        &self.job
    }

    fn data_end(&self) -> u64 {
        self.message().0 + self.size_bytes
    }

    fn calls(&self) -> u64 {
        4 * u64::from(WARM_UP + self.rounds)
    }

    fn observed(&self, observe: Observe) -> Result<(Outcome, Observed), Error> {
        let job = &self.job;
        let observed = job.run(observe, |memory, rank| {
            let course = Course {
                rank,
                partner: self.partner,
                words: (self.size_bytes / 8) as usize,
                at: self.message(),
                rounds: self.rounds,
            };
            let job = job.clone();
            async move {
                let endpoint = Endpoint::new(&job, &memory, rank).await?;
                let messages = course.run(&endpoint, &memory).await?;
                endpoint.stop().await;
                Ok(messages)
            }
        })?;
        let rounds = times(&observed.spans, ROUNDS.name);
        let all = rounds.last_end.since(rounds.first_begin).as_ps();
        let outcome = Outcome {
            latency: Time::from_ps(all / (2 * u64::from(self.rounds))),
        };
        Ok((outcome, observed))
    }
}

/// The course of one rank.
struct Course {
    rank: u32,
    partner: u32,
    words: usize,
    at: Own,
    rounds: u32,
}

impl Course {
    /// The number of messages that it sends.
    async fn run(self, endpoint: &Endpoint, memory: &ThreadMemory) -> Result<u64, Error> {
        let other = match self.rank {
            0 => self.partner,
            rank if rank == self.partner => 0,
            _ => return Ok(0),
        };
        let sent: Vec<u64> = (0..self.words as u64).map(|word| word << 8 | 1).collect();
        let mut came = vec![0; self.words];
        let rounds = WARM_UP + self.rounds;
        let mut is_right = true;
        for round in 0..rounds {
            if self.rank == 0 && round == WARM_UP {
                memory.begin(ROUNDS).await;
            }
            // There are two rounds at least.
            let late = (round + 2).checked_sub(rounds).filter(|_| self.rank == 0);
            let late = late.map(|number| Span::new(LAST, number));
            if let Some(span) = late {
                memory.begin(span).await;
            }
            came.fill(0);
            let out = |words| Outgoing {
                to: other,
                words,
                at: self.at,
            };
            let into = |words| Incoming {
                from: other,
                words,
                at: self.at,
            };
            if self.rank == 0 {
                endpoint.send(out(&sent)).await?;
                endpoint.receive(into(&mut came)).await?;
            } else {
                endpoint.receive(into(&mut came)).await?;
                endpoint.send(out(&came)).await?;
            }
            is_right &= came == sent;
            if let Some(span) = late {
                memory.end(span).await;
            }
        }
        if self.rank == 0 {
            memory.end(ROUNDS).await;
        }
        match is_right {
            true => Ok(rounds.into()),
            false => Err(Error::Garbled {
                call: "the ping-pong",
                rank: self.rank,
            }),
        }
    }
}
