//! The other processes that simulate the same machine, each a contiguous share of its nodes.
//!
//! [`super::window`] asks them once per window: messages to nodes of other processes go there, and
//! the earliest next event of all processes is where the next window starts. Facts about the whole
//! machine (has it come to a standstill?) are gathered, so that every process decides alike. The
//! means by which processes reach each other are not known here; [`connected`] joins threads of one
//! process.
//!
//! Every method is called by all processes, in the same order: a call ends when all have made it.

use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, channel};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::time::Time;

/// The reason why processes cannot go on together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PeerError {
    /// A process ended before the others.
    #[error("process {process} has ended before the others")]
    Gone {
        /// Its number.
        process: usize,
    },
    /// A message is not one that a process of the same program sends at this point.
    #[error("what process {process} has sent cannot be right: {reason}")]
    Garbled {
        /// Its number.
        process: usize,
        /// The reason why it is wrong.
        reason: String,
    },
    /// More at once than the connection takes.
    #[error("{bytes} bytes at once are too many between processes")]
    TooLong {
        /// So many were to be sent.
        bytes: usize,
    },
}

/// The processes of a run, as one of them sees them.
pub trait Peers {
    /// Returns the number of processes, this one included.
    fn count(&self) -> usize;

    /// Returns the number of this process, `0..count`.
    fn me(&self) -> usize;

    /// Gives `letters[p]` to process `p`, and leaves in its place what `p` has given to this one
    /// (nothing from itself). Returns the least `earliest` of all.
    ///
    /// # Errors
    /// [`PeerError`], after which nothing more can be exchanged.
    fn exchange(&mut self, letters: &mut [Vec<u8>], earliest: Time) -> Result<Time, PeerError>;

    /// Returns the contribution of every process, in their order.
    ///
    /// # Errors
    /// [`PeerError`], after which nothing more can be exchanged.
    fn all_gather(&mut self, mine: Vec<u8>) -> Result<Vec<Vec<u8>>, PeerError>;

    /// The same at process 0; nothing at the others.
    ///
    /// # Errors
    /// [`PeerError`], after which nothing more can be exchanged.
    fn gather(&mut self, mine: Vec<u8>) -> Result<Vec<Vec<u8>>, PeerError> {
        let all = self.all_gather(mine)?;
        Ok(if self.me() == 0 { all } else { Vec::new() })
    }
}

/// Gathers a value from every process, in their order.
///
/// # Errors
/// [`PeerError`]
pub fn all<T: Serialize + DeserializeOwned>(
    peers: &mut dyn Peers,
    mine: T,
) -> Result<Vec<T>, PeerError> {
    if peers.count() == 1 {
        return Ok(vec![mine]);
    }
    let gathered = peers.all_gather(to_bytes(peers, &mine)?)?;
    decoded(&gathered)
}

/// The rows that all processes have, one process behind the other: at process 0, the others keep
/// none.
///
/// # Errors
/// [`PeerError`]
pub fn collected<T: Serialize + DeserializeOwned>(
    peers: &mut dyn Peers,
    mine: Vec<T>,
) -> Result<Vec<T>, PeerError> {
    if peers.count() == 1 {
        return Ok(mine);
    }
    let gathered = peers.gather(to_bytes(peers, &mine)?)?;
    let rows: Vec<Vec<T>> = decoded(&gathered)?;
    Ok(rows.into_iter().flatten().collect())
}

fn to_bytes<T: Serialize>(peers: &dyn Peers, value: &T) -> Result<Vec<u8>, PeerError> {
    postcard::to_stdvec(value).map_err(|error| garbled(peers.me(), error))
}

fn decoded<T: DeserializeOwned>(gathered: &[Vec<u8>]) -> Result<Vec<T>, PeerError> {
    let one = |(process, bytes): (usize, &Vec<u8>)| {
        postcard::from_bytes(bytes).map_err(|error| garbled(process, error))
    };
    gathered.iter().enumerate().map(one).collect()
}

/// Makes the error for a message of `process` that is wrong for this `reason`.
pub(super) fn garbled(process: usize, reason: impl std::fmt::Display) -> PeerError {
    PeerError::Garbled {
        process,
        reason: reason.to_string(),
    }
}

/// No others: one process simulates the whole machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Alone;

impl Peers for Alone {
    fn count(&self) -> usize {
        1
    }

    fn me(&self) -> usize {
        0
    }

    fn exchange(&mut self, _letters: &mut [Vec<u8>], earliest: Time) -> Result<Time, PeerError> {
        Ok(earliest)
    }

    fn all_gather(&mut self, mine: Vec<u8>) -> Result<Vec<Vec<u8>>, PeerError> {
        Ok(vec![mine])
    }
}

/// Numbers `0..whole` in `parts` contiguous parts, none of which has two more than another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    whole: u32,
    parts: u32,
}

impl Shares {
    /// Of `whole` numbers among `parts`, of which there is at least one.
    pub fn new(whole: u32, parts: usize) -> Self {
        let parts = u32::try_from(parts).unwrap_or(u32::MAX).max(1);
        Self { whole, parts }
    }

    /// The numbers of `part`.
    pub fn of(self, part: usize) -> Range<u32> {
        let start = |part: u64| {
            (part.min(self.parts.into()) * u64::from(self.whole) / u64::from(self.parts)) as u32
        };
        let part = part as u64;
        start(part)..start(part + 1)
    }

    /// Returns the process that has the node `number`.
    #[inline]
    pub fn owner(self, number: u32) -> usize {
        let past = (u64::from(number) + 1) * u64::from(self.parts) - 1;
        (past / u64::from(self.whole.max(1))) as usize
    }
}

/// A process that is a thread, connected with the others by channels.
#[derive(Debug)]
pub struct Connected {
    me: usize,
    to: Vec<Sender<(Vec<u8>, Time)>>,
    from: Vec<Receiver<(Vec<u8>, Time)>>,
}

/// `count` processes, each for a thread of its own.
pub fn connected(count: usize) -> Vec<Connected> {
    let mut all: Vec<Connected> = (0..count)
        .map(|me| Connected {
            me,
            to: Vec::new(),
            from: Vec::new(),
        })
        .collect();
    for from in 0..count {
        for to in 0..count {
            let (sender, receiver) = channel();
            all[from].to.push(sender);
            all[to].from.push(receiver);
        }
    }
    all
}

impl Peers for Connected {
    fn count(&self) -> usize {
        self.to.len()
    }

    fn me(&self) -> usize {
        self.me
    }

    fn exchange(&mut self, letters: &mut [Vec<u8>], earliest: Time) -> Result<Time, PeerError> {
        for (process, (to, letter)) in self.to.iter().zip(&mut *letters).enumerate() {
            to.send((std::mem::take(letter), earliest))
                .map_err(|_| PeerError::Gone { process })?;
        }
        let mut least = earliest;
        for (process, (from, letter)) in self.from.iter().zip(letters).enumerate() {
            let (received, time) = from.recv().map_err(|_| PeerError::Gone { process })?;
            *letter = received;
            least = least.min(time);
        }
        Ok(least)
    }

    fn all_gather(&mut self, mine: Vec<u8>) -> Result<Vec<Vec<u8>>, PeerError> {
        let mut letters = vec![mine; self.count()];
        self.exchange(&mut letters, Time::NEVER)?;
        Ok(letters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_number_has_one_owner(whole in 1u32..10_000, parts in 1usize..70) {
            let shares = Shares::new(whole, parts);
            let mut next = 0;
            for part in 0..parts {
                let range = shares.of(part);
                prop_assert_eq!(range.start, next);
                prop_assert!(range.len() as u32 >= whole / parts as u32);
                prop_assert!(range.len() as u32 <= whole.div_ceil(parts as u32));
                for number in range.clone() {
                    prop_assert_eq!(shares.owner(number), part);
                }
                next = range.end;
            }
            prop_assert_eq!(next, whole);
        }
    }

    #[test]
    fn what_is_gathered_is_in_order_and_whole() {
        let gathered: Vec<_> = std::thread::scope(|scope| {
            let of = |mut peers: Connected| {
                let me = peers.me() as u64;
                let all = all(&mut peers, (me, format!("process {me}")));
                let rows = collected(&mut peers, vec![me; me as usize]);
                (me, all, rows)
            };
            let threads: Vec<_> = connected(3)
                .into_iter()
                .map(|peers| scope.spawn(move || of(peers)))
                .collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        let expected: Vec<_> = (0..3).map(|me| (me, format!("process {me}"))).collect();
        for (me, all, rows) in gathered {
            assert_eq!(all, Ok(expected.clone()));
            assert_eq!(rows, Ok(if me == 0 { vec![1, 2, 2] } else { vec![] }));
        }
    }

    #[test]
    fn who_has_gone_is_named() {
        let mut two = connected(2);
        drop(two.pop());
        let gone = all(&mut two[0], 1u8);
        assert_eq!(gone, Err(PeerError::Gone { process: 1 }));
        assert_eq!(
            gone.unwrap_err().to_string(),
            "process 1 has ended before the others"
        );
    }

    #[test]
    fn what_another_program_sends_is_found() {
        let mut two = connected(2);
        let (one, zero) = (two.pop(), two.pop());
        std::thread::scope(|scope| {
            scope.spawn(|| one.map(|mut one| one.all_gather(vec![0xff; 2])));
            let zero = zero.map(|mut zero| all(&mut zero, 1u64));
            assert!(matches!(
                zero,
                Some(Err(PeerError::Garbled { process: 1, .. }))
            ));
        });
    }
}
