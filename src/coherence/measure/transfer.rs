//! The two-copy transfer on this computer: the protocol of [`crate::coherence::transfer`], executed
//! by two threads pinned to CPUs, with real copies.
//!
//! ```no_run
//! use sme::coherence::measure::cpus::Cpus;
//! use sme::coherence::measure::transfer::{HostTransfers, measure};
//! use sme::coherence::transfer::Transfer;
//! use sme::coherence::transition::CoreDistance;
//! use sme::progress::Silent;
//!
//! let transfer = Transfer {
//!     rounds: 21,
//!     ..Transfer::of_open_mpi(CoreDistance::Socket, 1 << 20)
//! };
//! let report = measure(
//!     &HostTransfers {
//!         cpus: Cpus::default_of_process()?,
//!         placement: CoreDistance::Socket,
//!         transfers: vec![transfer],
//!     },
//!     &Silent,
//! )?;
//! for timed in report.rows {
//!     println!("{} bytes: {} GB/s", timed.transfer.message_bytes, timed.gb_per_s());
//! }
//! # Ok::<(), sme::coherence::measure::MeasureError>(())
//! ```
//!
//! Called by `sme coherence transfer --host`. A time is half of a round trip, the low quantile of
//! all that are timed. Rings are touched first by the thread of the core whose memory they shall be
//! ([`Transfer::home`]), an application's buffer by the thread that uses it: where there is one
//! NUMA node, the home makes no difference. Times in nanoseconds.

use std::sync::Arc;

use super::cpus::Cpus;
use super::drift::{Candidate, RoundTrip, settled};
use super::lines::{HAS_FLUSH, LINE_BYTES};
use super::pair::Pair;
use super::steady::{clock_ns, steadily};
use super::team::{Team, with_team};
use super::{Flushed, MeasureError};
use crate::coherence::model::Flush;
use crate::coherence::transfer::Transfer;
use crate::coherence::transfer::protocol::Act;
use crate::coherence::transition::CoreDistance;
use crate::progress::Watch;

/// Round trips before those that are timed. Their messages are compared byte by byte; so is the
/// last that is timed.
pub const WARM_UP: u32 = 3;

/// Transfers between two CPUs.
#[derive(Clone, Debug)]
pub struct HostTransfers {
    /// The measuring CPU is the first core, the first holder at the placement the second one.
    pub cpus: Cpus,
    /// Where the second core is.
    pub placement: CoreDistance,
    /// The transfers, whose own placement is not looked at. `rounds` is how often each is timed.
    pub transfers: Vec<Transfer>,
}

/// A transfer and its time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timed {
    /// The transfer.
    pub transfer: Transfer,
    /// The time of a message: half of a round trip (ns).
    pub ns: f64,
}

impl Timed {
    /// Its throughput, in 10^9 bytes per second.
    pub fn gb_per_s(&self) -> f64 {
        self.transfer.message_bytes as f64 / self.ns
    }
}

/// The transfers that were measured, and those that were not.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// The transfers that were measured on one placement of the two CPUs.
    pub rows: Vec<Timed>,
    /// Those that were not, and why.
    pub dropped: Vec<(Transfer, String)>,
    /// The round trip of a cache line between the two CPUs.
    pub round_trips: Vec<RoundTrip>,
}

impl HostTransfers {
    /// Returns whether they can be measured here: the two CPUs, with nothing else.
    ///
    /// # Errors
    /// [`MeasureError::NoHolder`], [`MeasureError::Size`], [`MeasureError::Lines`] and
    /// [`MeasureError::NoFlush`].
    pub fn check(&self) -> Result<Cpus, MeasureError> {
        for transfer in &self.transfers {
            transfer.check()?;
            let sizes = [transfer.message_bytes, transfer.chunk_bytes];
            let odd = |size: &u64| !size.is_multiple_of(LINE_BYTES as u64);
            if let Some(size) = sizes.into_iter().find(odd) {
                return Err(MeasureError::Lines(size));
            }
            if HAS_FLUSH {
                continue;
            }
            if transfer.flush != Flush::None {
                return Err(MeasureError::NoFlush(Flushed::Chunks));
            }
            if transfer.reuses != (true, true) {
                return Err(MeasureError::NoFlush(Flushed::Buffers));
            }
        }
        let Some(&second) = self.cpus.holders_at(self.placement).first() else {
            return Err(MeasureError::NoHolder {
                cpus: self.cpus.clone(),
                placement: self.placement,
            });
        };
        Ok(Cpus {
            measuring: self.cpus.measuring,
            holders: vec![self.cpus.holders[second]],
        })
    }

    /// The bytes that the largest of them takes: rings and buffers of both cores.
    pub fn bytes(&self) -> u64 {
        let of = |transfer: &Transfer| {
            let rings = 2 * transfer.chunk_bytes.saturating_mul(transfer.ring.into());
            let buffers = Act::ALL.map(|act| match transfer.reuses(act) {
                true => 2,
                false => 2 * u64::from(WARM_UP),
            });
            let buffers: u64 = buffers.iter().sum();
            rings.saturating_add(transfer.message_bytes.saturating_mul(buffers))
        };
        self.transfers.iter().map(of).max().unwrap_or_default()
    }
}

/// Measures the transfers; `watch` is told of each.
///
/// # Errors
/// As [`HostTransfers::check`]; the system gives no threads or memory; a message was received with
/// other bytes than it was sent with.
pub fn measure(plan: &HostTransfers, watch: &dyn Watch) -> Result<Report, MeasureError> {
    let cpus = plan.check()?;
    watch.begin("transfers", plan.transfers.len() as u64);
    let measured = with_team(&cpus, 0, |team| {
        let clock_ns = clock_ns(team);
        let (mut measured, mut dropped) = (Vec::new(), Vec::new());
        for &transfer in &plan.transfers {
            let timed = steadily(
                team,
                (&[0], 1, plan.placement),
                ("a round trip of messages", clock_ns),
                || round_trips_ns(team, transfer),
            )?;
            match timed {
                Ok((ns, trips)) => measured.push(Candidate {
                    row: Timed {
                        transfer,
                        ns: ns as f64 / 2.0,
                    },
                    trips,
                }),
                Err(reason) => dropped.push((transfer, reason)),
            }
            watch.advance(1);
        }
        Ok((measured, dropped))
    });
    watch.end();
    let (measured, mut dropped) = measured?;
    let settled = settled(measured);
    let elsewhere = settled.dropped.into_iter();
    dropped.extend(elsewhere.map(|(timed, reason)| (timed.transfer, reason)));
    Ok(Report {
        rows: settled.rows,
        dropped,
        round_trips: settled.round_trips,
    })
}

/// The times of round trips between the measuring thread and the first holder (ns).
fn round_trips_ns(team: &Team<'_>, transfer: Transfer) -> Result<Vec<u64>, MeasureError> {
    let pair = Arc::new(Pair::new(transfer, WARM_UP.into()));
    let other = Arc::clone(&pair);
    let (times, _) = team.beside(0, move || other.play(1), || pair.play(0))?;
    Ok(times)
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;
    use crate::progress::Silent;

    fn transfers() -> Vec<Transfer> {
        let of = |message_bytes| Transfer {
            rounds: 3,
            ..Transfer::of_open_mpi(CoreDistance::Socket, message_bytes)
        };
        [4096, 65536, 1 << 20].map(of).to_vec()
    }

    /// Two CPUs, or one twice where there is no other on its socket.
    fn two_cpus() -> Cpus {
        let mut cpus = Cpus::default_of_process().unwrap();
        if cpus.holders_at(CoreDistance::Socket).is_empty() {
            cpus.holders.push(cpus.measuring);
        }
        cpus
    }

    /// Every transfer is a row, or dropped with a reason.
    fn is_accounted_for(cpus: Cpus, transfers: Vec<Transfer>) {
        let plan = HostTransfers {
            cpus,
            placement: CoreDistance::Socket,
            transfers,
        };
        let report = measure(&plan, &Silent).unwrap();
        let rows = report.rows.iter().map(|timed| timed.transfer);
        let dropped = report.dropped.iter().map(|&(transfer, _)| transfer);
        let mut all: Vec<Transfer> = rows.chain(dropped).collect();
        all.sort_unstable_by_key(|transfer| transfer.message_bytes);
        assert_eq!(all, plan.transfers);
        for timed in &report.rows {
            assert!(timed.ns > 0.0 && timed.gb_per_s() > 0.0);
        }
        assert!(report.dropped.iter().all(|(_, reason)| !reason.is_empty()));
        assert!(report.round_trips.iter().all(|trip| trip.ns > 0.0));
    }

    #[test]
    fn every_transfer_is_accounted_for() {
        is_accounted_for(two_cpus(), transfers());
    }

    #[test]
    fn threads_that_share_a_cpu_come_to_an_end() {
        let mut cpus = two_cpus();
        cpus.holders = vec![cpus.measuring];
        is_accounted_for(cpus, transfers()[..1].to_vec());
    }

    #[test]
    fn a_plan_that_cannot_be_is_refused() {
        let refused = |cpus: Cpus, placement, transfer| {
            let plan = HostTransfers {
                cpus,
                placement,
                transfers: vec![transfer],
            };
            measure(&plan, &Silent).unwrap_err().to_string()
        };
        let plain = transfers()[0];
        let with = |message_bytes, chunk_bytes| Transfer {
            message_bytes,
            chunk_bytes,
            ..plain
        };
        let alone = Cpus {
            holders: Vec::new(),
            ..two_cpus()
        };
        let id = alone.measuring.id;
        assert_eq!(
            refused(alone.clone(), CoreDistance::Remote, plain),
            format!("needs a CPU on another socket than that of CPU {id}; there is no other CPU")
        );
        let twice = Cpus {
            holders: vec![alone.measuring],
            ..alone
        };
        assert_eq!(
            refused(twice, CoreDistance::Remote, plain),
            format!(
                "needs a CPU on another socket than that of CPU {id}; there is CPU {id} on its \
                 socket"
            )
        );
        let refused = |transfer| refused(two_cpus(), CoreDistance::Socket, transfer);
        assert_eq!(refused(with(72, 64)), "72 bytes is no multiple of 64");
        assert!(refused(with(64, 0)).contains("a buffer of 0 bytes"));
        assert!(refused(Transfer { rounds: 0, ..plain }).contains("a buffer of"));
    }

    #[test]
    fn memory_is_counted() {
        let plain = transfers()[0];
        let plan = |transfers| HostTransfers {
            cpus: two_cpus(),
            placement: CoreDistance::Socket,
            transfers,
        };
        let rings = 2 * 8 * (32 << 10);
        assert_eq!(plan(vec![plain]).bytes(), rings + 4 * 4096);
        let fresh = Transfer {
            reuses: (false, true),
            ..plain
        };
        assert_eq!(plan(vec![fresh, plain]).bytes(), rings + 8 * 4096);
        assert_eq!(plan(Vec::new()).bytes(), 0);
    }
}
