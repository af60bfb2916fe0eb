//! Ping-pong: two ranks send each other a message in turn, the rest of the job being idle. Half of
//! a round is the latency, and the message over it the bandwidth.
//!
//! Beside it stands what the call that sends takes on either side: with a library whose sends wait
//! for the receive, that is what Ho et al. (Sec. V) call the transmission time.
//!
//! The message lies at the same place of each rank's own memory in every round, so that it is in
//! the caches as far as it fits: after two rounds that do not count.

use sme_memory::Own;
use sme_mpi::channel::transfers::Modes;
use sme_mpi::error::MpiError;
use sme_sim::parts::contract::{Span, ThreadMemory};
use sme_sim::time::Time;

use super::endpoint::{Endpoint, Incoming, Outgoing, SendCall};
use super::job::{Error, Job, Library, Observe, Observed, times};
use super::{Measurement, WARM_UP};

/// A ping-pong.
#[derive(Clone, Debug)]
pub struct PingPong {
    /// The machine, the library and the ranks.
    pub job: Job,
    /// The rank that begins.
    pub first: u32,
    /// The rank that answers; another one.
    pub partner: u32,
    /// The call by which both send.
    pub call: SendCall,
    /// The way of all messages, if that is named; the job's modes are those.
    pub way: Option<Way>,
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
    /// The mean of the calls that send, of the rank that begins and of the one that answers, over
    /// the last rounds.
    pub sends: (Time, Time),
}

/// The way of all messages (Ho et al., Sec. V-C).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// When the receive is there, by the core that sends.
    Normal,
    /// At once; through channel queues in pieces that are control messages.
    Eager,
    /// Copied by the core that sends, and sent by the server when the receive is there.
    Lazy,
    /// When the receive is there, by a DMA channel.
    Dma,
}

sme_barrier::names!(Way, "mode", {
    Normal => "normal",
    Eager => "eager",
    Lazy => "lazy",
    Dma => "dma",
});

impl Way {
    /// Returns whether messages can go this way through a library's channel.
    pub fn is_of(self, library: Library) -> bool {
        match self {
            Self::Normal | Self::Eager => library.is_mpi(),
            Self::Lazy | Self::Dma => library == Library::Queues,
        }
    }

    /// The modes in which all messages go this way.
    pub fn modes(self) -> Modes {
        let all = Some(u64::MAX);
        match self {
            Self::Normal => Modes::NORMAL,
            Self::Eager => Modes {
                eager_bytes: all,
                ..Modes::NORMAL
            },
            Self::Lazy => Modes {
                lazy_bytes: all,
                ..Modes::NORMAL
            },
            Self::Dma => Modes {
                engine_bytes: Some(0),
                ..Modes::NORMAL
            },
        }
    }
}

/// The address of the message in each rank's own memory: away from its beginning, and from the end
/// of a small one.
fn message(job: &Job) -> Own {
    match job.library {
        Library::Queues => Own(1 << 19),
        _ => Own(1 << 20),
    }
}

/// The end of a message of so many bytes in each rank's own memory, in bytes.
pub fn data_end(job: &Job, size_bytes: u64) -> u64 {
    message(job).0.saturating_add(size_bytes)
}

/// The spans of the calls that send, of either rank.
const SENDS: [&str; 2] = ["sends", "answers"];

/// The last rounds, in which these are measured, at most.
const MEASURED: u32 = 50;

/// The rounds that count.
const ROUNDS: Span = Span::new("rounds", 0);

/// The last round has the number 1, the one before 0.
pub const LAST: &str = "last rounds";

impl PingPong {
    /// The bandwidth of an outcome, in MB/s: 10^6 bytes per second.
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
        data_end(&self.job, self.size_bytes)
    }

    fn calls(&self) -> u64 {
        let of_round = match self.call {
            SendCall::Send => 4,
            SendCall::Isend => 6,
        };
        of_round * u64::from(WARM_UP + self.rounds)
    }

    fn observed(&self, observe: Observe) -> Result<(Outcome, Observed), Error> {
        let job = &self.job;
        let observed = job.run(observe, |memory, rank| {
            let course = Course {
                rank,
                first: self.first,
                partner: self.partner,
                call: self.call,
                words: (self.size_bytes / 8) as usize,
                at: message(&self.job),
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
        let sends = SENDS.map(|name| {
            let all = observed.spans.called(name).iter();
            let times = all.map(|span| span.last_end.since(span.first_begin).as_ps());
            Time::from_ps(times.sum::<u64>() / u64::from(self.rounds.clamp(1, MEASURED)))
        });
        let outcome = Outcome {
            latency: Time::from_ps(all / (2 * u64::from(self.rounds))),
            sends: sends.into(),
        };
        Ok((outcome, observed))
    }
}

/// The course of one rank.
struct Course {
    rank: u32,
    first: u32,
    partner: u32,
    call: SendCall,
    words: usize,
    at: Own,
    rounds: u32,
}

impl Course {
    /// The number of messages that it sends.
    async fn run(self, endpoint: &Endpoint, memory: &ThreadMemory) -> Result<u64, Error> {
        let begins = self.rank == self.first;
        let other = match self.rank {
            _ if begins => self.partner,
            rank if rank == self.partner => self.first,
            _ => return Ok(0),
        };
        let sent: Vec<u64> = (0..self.words as u64).map(|word| word << 8 | 1).collect();
        let mut came = vec![0; self.words];
        let rounds = WARM_UP + self.rounds;
        let mut is_right = true;
        for round in 0..rounds {
            if begins && round == WARM_UP {
                memory.begin(ROUNDS).await;
            }
            // There are two rounds at least.
            let late = (round + 2).checked_sub(rounds).filter(|_| begins);
            let late = late.map(|number| Span::new(LAST, number));
            if let Some(span) = late {
                memory.begin(span).await;
            }
            came.fill(0);
            if begins {
                self.sends(endpoint, memory, (&sent, other), round).await?;
            }
            let into = Incoming {
                from: other,
                words: &mut came,
                at: self.at,
            };
            endpoint.receive(into).await?;
            if !begins {
                self.sends(endpoint, memory, (&came, other), round).await?;
            }
            is_right &= came == sent;
            if let Some(span) = late {
                memory.end(span).await;
            }
        }
        if begins {
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

    /// Sends in round `round`, and measures it if it is one of the last.
    async fn sends(
        &self,
        endpoint: &Endpoint,
        memory: &ThreadMemory,
        (words, to): (&[u64], u32),
        round: u32,
    ) -> Result<(), MpiError> {
        let measured = MEASURED.min(self.rounds);
        let number = (round + measured).checked_sub(WARM_UP + self.rounds);
        let name = SENDS[usize::from(self.rank != self.first)];
        let span = number.map(|number| Span::new(name, number));
        if let Some(span) = span {
            memory.begin(span).await;
        }
        let out = Outgoing {
            to,
            words,
            at: self.at,
        };
        endpoint.send_by(out, self.call).await?;
        if let Some(span) = span {
            memory.end(span).await;
        }
        Ok(())
    }
}
