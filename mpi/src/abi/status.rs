//! Statuses in a program's memory (MPI_Status), which each interface lays out in its own way.

use super::facts::Interface;
use super::rank::{Failure, Rank};
use crate::rank::{ANY_SOURCE, ANY_TAG, PROC_NULL, Status};

/// A status as a program has it, in the interface's own numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Fields {
    pub(super) source: i32,
    pub(super) tag: i32,
    pub(super) error: i32,
    pub(super) bytes: u64,
    pub(super) is_cancelled: bool,
}

/// Bytes of a status.
pub(super) const fn bytes_of(interface: Interface) -> u64 {
    match interface {
        Interface::Mpich => 20,
        Interface::Standard => 32,
    }
}

impl Fields {
    /// The fields of a status of the library's.
    pub(super) fn of(status: &Status, interface: Interface) -> Self {
        let source = match status.source {
            ANY_SOURCE => interface.constant("ANY_SOURCE") as i32,
            PROC_NULL => interface.constant("PROC_NULL") as i32,
            rank => rank as i32,
        };
        let tag = match status.tag {
            ANY_TAG => interface.constant("ANY_TAG") as i32,
            tag => tag,
        };
        Self {
            source,
            tag,
            error: 0,
            bytes: status.bytes,
            is_cancelled: status.is_cancelled,
        }
    }

    /// The words of MPICH's status: the count's low half, its high half above the bit that says
    /// whether the request was cancelled, source, tag and error.
    fn to_words(self, interface: Interface) -> Vec<i32> {
        let (low, high) = (self.bytes as i32, (self.bytes >> 32) as i32);
        let is_cancelled = i32::from(self.is_cancelled);
        match interface {
            Interface::Mpich => {
                let high = high << 1 | is_cancelled;
                vec![low, high, self.source, self.tag, self.error]
            }
            Interface::Standard => {
                let (source, tag, error) = (self.source, self.tag, self.error);
                vec![source, tag, error, low, high, is_cancelled, 0, 0]
            }
        }
    }

    fn from_words(words: &[i64], interface: Interface) -> Self {
        let word = |place: usize| words.get(place).copied().unwrap_or_default() as i32;
        let bytes = |low: i32, high: i32| u64::from(low as u32) | u64::from(high as u32) << 32;
        match interface {
            Interface::Mpich => Self {
                source: word(2),
                tag: word(3),
                error: word(4),
                bytes: bytes(word(0), (word(1) as u32 >> 1) as i32),
                is_cancelled: word(1) & 1 != 0,
            },
            Interface::Standard => Self {
                source: word(0),
                tag: word(1),
                error: word(2),
                bytes: bytes(word(3), word(4)),
                is_cancelled: word(5) != 0,
            },
        }
    }
}

impl Rank {
    /// Returns whether a program that gives this address does not want the status.
    fn is_ignored(&self, address: u64) -> bool {
        address == 0 || address == self.interface.handle("STATUS_IGNORE")
    }

    /// The status at an address.
    pub(super) fn status(&self, address: u64) -> Result<Fields, Failure> {
        let words = bytes_of(self.interface) as usize / 4;
        let words = self.numbers(address, words, 4)?;
        Ok(Fields::from_words(&words, self.interface))
    }

    /// Writes a status to an address, its error included.
    pub(super) fn put_status(&self, address: u64, fields: Fields) -> Result<(), Failure> {
        if self.is_ignored(address) {
            return Ok(());
        }
        let words = fields.to_words(self.interface);
        let words: Vec<i64> = words.into_iter().map(i64::from).collect();
        self.put_numbers(address, &words, 4)
    }

    /// Writes the status of a message to an address; the error there stays as it is, as calls with
    /// one status leave it. An empty status has none (MPI-4.1, Sec. 3.7.3).
    pub(super) fn put_message(&self, address: u64, status: &Status) -> Result<(), Failure> {
        if self.is_ignored(address) {
            return Ok(());
        }
        let error = match *status == Status::EMPTY {
            true => 0,
            false => self.status(address)?.error,
        };
        let fields = Fields::of(status, self.interface);
        self.put_status(address, Fields { error, ..fields })
    }

    /// Writes the status of a receive that is over to an address: of a message that was too long,
    /// too.
    ///
    /// # Errors
    /// That of the receive, if it has failed.
    pub(super) fn put_end(
        &self,
        address: u64,
        ended: Result<Status, impl Into<Failure>>,
    ) -> Result<(), Failure> {
        match ended.map_err(Into::into) {
            Ok(status) => self.put_message(address, &status),
            Err(failure) => {
                if let Failure::Wrong {
                    truncated: Some(truncated),
                    ..
                } = failure
                {
                    self.put_message(address, &truncated.into())?;
                }
                Err(failure)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_status_is_read_as_it_was_written(
            source in any::<i32>(), tag in any::<i32>(), error in any::<i32>(),
            bytes in 0..1u64 << 63, is_cancelled in any::<bool>(),
        ) {
            let fields = Fields { source, tag, error, bytes, is_cancelled };
            for interface in [Interface::Mpich, Interface::Standard] {
                let words = fields.to_words(interface);
                prop_assert_eq!(4 * words.len() as u64, bytes_of(interface));
                let words: Vec<i64> = words.into_iter().map(i64::from).collect();
                prop_assert_eq!(Fields::from_words(&words, interface), fields);
            }
        }
    }
}
