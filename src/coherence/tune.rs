//! Advice for an MPI implementer: which chunks, how many, in which direction, flushed or not.
//! Predicted by the model from a table, and confirmed by the transfer on a simulated machine.

use std::num::NonZero;

use super::bench::{Bench, BenchError};
use super::model::{self, Chunks, Flush, Ports, PredictError, Prediction, SharedBuffer};
use super::table::{Row, Table};
use super::transfer::{Direction, Transfer};
use super::transition::{CoreDistance, Curve, Transition, Variant};

/// The settings of a library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Bytes of a chunk.
    pub chunk_bytes: NonZero<u64>,
    /// Chunks of a ring.
    pub ring: u32,
    /// The direction of their use.
    pub direction: Direction,
    /// The way in which they are brought to memory.
    pub flush: Flush,
}

/// A search: a message between two cores, and the values of settings.
#[derive(Clone, Debug)]
pub struct Search {
    /// Where the cores are.
    pub placement: CoreDistance,
    /// Bytes of the message.
    pub message_bytes: NonZero<u64>,
    /// Bytes of chunks.
    pub chunks: Vec<NonZero<u64>>,
    /// Chunks of rings.
    pub rings: Vec<u32>,
}

impl Setting {
    /// Open MPI's: eight chunks of 32 KiB, the same way every time, not flushed.
    pub fn of_open_mpi() -> Self {
        let chunk_bytes = const { NonZero::new(32 << 10).expect("not zero") };
        Self {
            chunk_bytes,
            ring: 8,
            direction: Direction::Same,
            flush: Flush::None,
        }
    }
}

impl Search {
    /// All settings, Open MPI's first.
    pub fn settings(&self) -> Vec<Setting> {
        let mut all = vec![Setting::of_open_mpi()];
        for &chunk_bytes in &self.chunks {
            for &ring in &self.rings {
                for &direction in Direction::ALL {
                    for &flush in Flush::ALL {
                        let setting = Setting {
                            chunk_bytes,
                            ring,
                            direction,
                            flush,
                        };
                        if !all.contains(&setting) {
                            all.push(setting);
                        }
                    }
                }
            }
        }
        all
    }

    /// The prediction for `setting`, where buffers are used again. It does not depend on the ring's
    /// length. In one direction the sender owns a chunk that it writes again, if the table has such
    /// stores; otherwise it shares it.
    ///
    /// # Errors
    /// The table does not have a step, or not at this size.
    pub fn predicted(
        &self,
        table: &Table,
        setting: Setting,
        ports: Ports,
    ) -> Result<Prediction, PredictError> {
        let owned = Curve::plain(Transition::SHO, self.placement);
        let has_owned = table.curves().any(|curve| curve == owned);
        let shared = match setting.direction {
            Direction::Same if has_owned => SharedBuffer::Owned,
            _ => SharedBuffer::Shared,
        };
        // No cache has a chunk that the receiver has flushed.
        let shared = match setting.flush {
            Flush::Receiver => SharedBuffer::Shared,
            _ => shared,
        };
        let transfer = model::Transfer {
            shared,
            flush: setting.flush,
            ports,
            ..model::Transfer::of_paper(self.placement)
        };
        transfer.predict(table, Chunks::new(self.message_bytes, setting.chunk_bytes))
    }

    /// The throughput of `setting` on a simulated machine, in 10^9 bytes per second.
    ///
    /// # Errors
    /// As [`Transfer::time`].
    pub fn simulated(&self, bench: &Bench, setting: Setting) -> Result<f64, BenchError> {
        let bytes = self.message_bytes.get();
        let transfer = Transfer {
            chunk_bytes: setting.chunk_bytes.get(),
            ring: setting.ring,
            direction: setting.direction,
            flush: setting.flush,
            ..Transfer::of_open_mpi(self.placement, bytes)
        };
        transfer.gb_per_s(bench)
    }

    /// The rows of a throughput table that predictions of settings with these flushes need, of a
    /// simulated machine.
    ///
    /// # Errors
    /// As [`Bench::throughput`].
    pub fn rows(&self, bench: &Bench, flushes: &[Flush]) -> Result<Vec<Row>, BenchError> {
        let bytes = self.message_bytes.get();
        let name = bench.name();
        let curves = bench.curves().into_iter().filter(|curve| {
            let other = curve.holder() != Curve::plain(Transition::LMM, self.placement).holder();
            let is_elsewhere = curve.transition().involves_another_core() && other;
            !is_elsewhere && flushes.iter().any(|&flush| is_used(*curve, flush))
        });
        let row = |curve| {
            let rate = bench.throughput(curve, bytes)?;
            Ok(Row::new(name.as_str(), curve, bytes, rate))
        };
        curves.map(row).collect()
    }
}

/// Returns whether a prediction with buffers that are used again and this flush may look at this
/// curve.
fn is_used(curve: Curve, flush: Flush) -> bool {
    let (store, load) = flush.variants();
    match curve.transition() {
        Transition::SHS | Transition::SHO => curve.variant() == store,
        Transition::LMM => curve.variant() == load,
        Transition::LHM | Transition::SHM => curve.variant() == Variant::Plain,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use sme_sim::machine::Machine;

    use super::*;

    fn search(placement: CoreDistance) -> Search {
        let bytes = |bytes| NonZero::new(bytes).unwrap();
        Search {
            placement,
            message_bytes: bytes(64 << 10),
            chunks: vec![bytes(8 << 10), bytes(32 << 10)],
            rings: vec![2, 8],
        }
    }

    #[test]
    fn every_setting_is_tried_once() {
        let all = search(CoreDistance::Socket).settings();
        assert_eq!(all.len(), 2 * 2 * 2 * 4);
        let different: BTreeSet<String> = all.iter().map(|of| format!("{of:?}")).collect();
        assert_eq!(different.len(), all.len());
        assert_eq!(all[0], Setting::of_open_mpi());
    }

    /// On the Opteron alternating directions are foreseen to be faster, and are; on the Xeon
    /// neither.
    #[test]
    fn advice_is_confirmed() {
        for (machine, gains) in [("opteron-6272", true), ("xeon-e5-2650", false)] {
            let bench = Bench::new(Arc::new(Machine::builtin(machine).unwrap())).unwrap();
            let search = search(CoreDistance::Socket);
            let table = Table::new(search.rows(&bench, Flush::ALL).unwrap()).unwrap();
            let same = Setting::of_open_mpi();
            let alternating = Setting {
                direction: Direction::Alternating,
                ..same
            };
            let predicted = |of| search.predicted(&table, of, Ports::Separate).unwrap();
            let predicted = [same, alternating].map(|of| predicted(of).pipelined_gb_per_s);
            let simulated = [same, alternating].map(|of| search.simulated(&bench, of).unwrap());
            for [same, alternating] in [predicted, simulated] {
                assert_eq!(
                    alternating > 1.05 * same,
                    gains,
                    "{machine}: {same} {alternating}"
                );
            }
        }
    }
}
