//! Programs that look again and again for what has not come yet (MPI_Test, MPI_Iprobe).
//!
//! A process may make some of the looks in a row by itself, each of which finds nothing, and need
//! not wait for the simulator. At its next call they are made up for on the machine, one after the
//! other, and take their time there. If one of them finds something, and the process is still
//! looking for it, its call ends at the time of that look: the program has looked more often than
//! it had to, at the same simulated time. If it has gone on to another call, it has been told that
//! there is nothing when there was, which MPI allows (MPI-4.1, Sec. 3.7.3 and 3.8.1), and all looks
//! take their time. As a process makes a sixteenth of the looks before by itself, and never more
//! than [`MOST`], it learns of something so many looks late at most.

use super::arguments::{Arguments, Out};
use super::clock::Compute;
use super::facts::{CALLS, Interface};
use super::program::{Asked, Gone, Looks};
use super::rank::Failure;
use super::server::Server;
use crate::channel::Channel;

/// Of so many looks in a row, the process makes one more by itself.
const SHARE: u64 = 16;

/// The most looks that a process makes by itself without a call.
const MOST: u64 = 64;

/// The most bytes of requests that a process compares at each look.
const MOST_BYTES: usize = 4096;

/// A call that may find nothing.
struct Look {
    name: &'static str,
    full_name: &'static str,
    /// The arguments with the number of requests, if it is not 1, and with their address.
    requests: Option<(Option<usize>, usize)>,
    /// The arguments with the addresses to which it writes numbers if it finds nothing, and the
    /// constants that it writes there, or 0.
    writes: &'static [(usize, Option<&'static str>)],
}

const LOOKS: [Look; 5] = [
    Look {
        name: "Iprobe",
        full_name: "MPI_Iprobe",
        requests: None,
        writes: &[(3, None)],
    },
    Look {
        name: "Test",
        full_name: "MPI_Test",
        requests: Some((None, 0)),
        writes: &[(1, None)],
    },
    Look {
        name: "Testall",
        full_name: "MPI_Testall",
        requests: Some((Some(0), 1)),
        writes: &[(2, None)],
    },
    Look {
        name: "Testany",
        full_name: "MPI_Testany",
        requests: Some((Some(0), 1)),
        writes: &[(2, Some("UNDEFINED")), (3, None)],
    },
    Look {
        name: "Testsome",
        full_name: "MPI_Testsome",
        requests: Some((Some(0), 1)),
        writes: &[(2, None)],
    },
];

impl Look {
    /// The look that this call is.
    fn of(asked: &Asked) -> Option<&'static Self> {
        let name = CALLS.get(asked.number)?.name;
        LOOKS.iter().find(|look| look.name == name)
    }

    /// The argument with the address of its requests, and their bytes.
    fn requests(&self, asked: &Asked, interface: Interface) -> Option<(usize, usize)> {
        let (count, place) = self.requests?;
        // A number of 32 bits: the rest of its word says nothing.
        let count = count.map_or(1, |place| asked.values[place] as u32 as usize);
        Some((place, count.saturating_mul(interface.handle_bytes())))
    }
}

/// Looks in a row, alike, of which none has found anything.
#[derive(Debug)]
pub(super) struct Row {
    asked: Asked,
    length: u64,
    /// The requests as they were when the process was given leave first.
    requests: Option<Vec<u8>>,
    /// The looks that the process may make by itself.
    most: u32,
}

impl Arguments<'_> {
    /// Writes whether the call has found what it has looked for.
    pub(super) fn put_found(&mut self, out: Out, has_found: bool) -> Result<(), Failure> {
        self.has_found = Some(has_found);
        self.put(out, has_found.into())
    }
}

impl<C: Channel> Server<'_, C> {
    /// Makes up for the looks that the process has made by itself before this call. The result of
    /// the call, if it is another such look, and one of them has found something.
    pub(super) async fn makes_up(&mut self, asked: &Asked) -> Result<Option<u64>, Gone> {
        let Some(mut row) = self.row.take() else {
            return Ok(None);
        };
        let looks = asked.looks.min(std::mem::take(&mut row.most));
        row.length += u64::from(looks);
        let is_same = looks > 0 && self.is_of(&row, asked);
        for _ in 0..looks {
            if is_same {
                let (result, has_found) = self.performs(*asked, true).await?;
                if has_found != Some(false) {
                    return Ok(Some(result));
                }
            } else {
                self.passes_by(&row.asked).await;
            }
            self.mpi.has_left().await;
            if let Compute::Fixed(ps) = self.compute {
                self.passes(ps).await.map_err(|_| Gone)?;
            }
        }
        self.row = Some(row);
        Ok(None)
    }

    /// A call has ended. If it was a look that has found nothing, the process may make some of the
    /// next ones by itself.
    pub(super) fn has_looked(&mut self, asked: &Asked, has_found: Option<bool>) {
        let found_nothing = has_found == Some(false);
        let Some(look) = Look::of(asked).filter(|_| found_nothing) else {
            self.row = None;
            return;
        };
        let before = self.row.take().filter(|row| self.is_of(row, asked));
        let mut row = before.unwrap_or(Row {
            asked: *asked,
            length: 0,
            requests: None,
            most: 0,
        });
        row.length += 1;
        // The time between two looks is not known where it is measured; and a program with windows
        // may wait for what others put there, and look only to make progress.
        let is_simple = !matches!(self.compute, Compute::Measured(_)) && self.windows.is_empty();
        if is_simple && row.length >= SHARE {
            row.requests = row.requests.or_else(|| self.contents(asked));
            if row.requests.is_some() {
                row.most = (row.length / SHARE).min(MOST) as u32;
                self.rank.program.lets_look(&self.leave(look, &row));
            }
        }
        self.row = Some(row);
    }

    /// The leave to go on with a row of looks.
    fn leave(&self, look: &Look, row: &Row) -> Looks {
        let number = |name: Option<&str>| match name {
            Some(name) => self.rank.interface.constant(name) as i32,
            None => 0,
        };
        let writes = look.writes.iter();
        Looks {
            most: row.most,
            writes: writes.map(|&(at, name)| (at, number(name))).collect(),
            requests: look.requests(&row.asked, self.rank.interface),
        }
    }

    /// Returns whether this call looks for the same as those of the row.
    fn is_of(&self, row: &Row, asked: &Asked) -> bool {
        (row.asked.number, row.asked.values) == (asked.number, asked.values)
            && (row.requests.is_none() || row.requests == self.contents(asked))
    }

    /// The requests that a look is for, as they are in the program's memory; none of too many.
    fn contents(&self, asked: &Asked) -> Option<Vec<u8>> {
        let requests = Look::of(asked)?.requests(asked, self.rank.interface);
        let Some((place, bytes)) = requests else {
            return Some(Vec::new());
        };
        let mut contents = Vec::new();
        let mut block = std::iter::once((asked.values[place], bytes));
        let is_short = bytes <= MOST_BYTES;
        let read = is_short.then(|| self.rank.program.read(&mut block, &mut contents));
        read?.ok().map(|()| contents)
    }

    /// A look that the process has made by itself, and whose outcome it does not ask for any more:
    /// it takes its time.
    async fn passes_by(&mut self, asked: &Asked) {
        let (Some(look), rank) = (Look::of(asked), self.rank.clone()) else {
            return;
        };
        let mut a = Arguments::new(&rank, asked);
        match &mut a {
            Some(a) if look.name == "Iprobe" => {
                let wanted = (a.source(), a.wanted_tag(), a.comm());
                if let (Ok(source), Ok(tag), Ok(comm)) = wanted {
                    // It has not failed before.
                    let _ = self.mpi.on(comm).iprobe(source, tag).await;
                }
            }
            // It has not failed before.
            _ => drop(self.progress(look.full_name).await),
        }
    }
}
