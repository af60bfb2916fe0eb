//! A node's reports to the checker of stale reads ([`crate::observe::log`]), where there is one.

use super::constants::{FILLS, origin_of};
use super::here::Here;
use super::transaction::Transaction;
use crate::families::sme::spec::WriteBack;
use crate::observe::staleness::What;
use crate::parts::address::AddressSpace;
use crate::parts::cache::Held;
use crate::parts::contract::Operation;
use crate::parts::line::Bytes;

impl Here {
    /// The `operation` of `core` has ended with `answer`; a store is in its buffer.
    #[inline]
    pub(super) fn log_finished(&mut self, core: u16, operation: &Operation, answer: u64) {
        if let Some(log) = &mut self.log {
            log.finished(self.now, core, (operation, answer), &self.constants.map);
        }
    }

    /// A wait for many flags has seen `value` in the one at `address`.
    pub(super) fn log_saw(&mut self, core: u16, address: u64, value: u8) {
        if let Some(log) = &mut self.log {
            log.saw(self.now, core, (address, value), &self.constants.map);
        }
    }

    /// The line at `physical` in this node's memory has been read for the load of `trace`: if that
    /// fetches the line, the copy is as old as this.
    pub(super) fn log_read(&mut self, physical: u64, trace: u32) {
        if trace & FILLS == 0 {
            return;
        }
        if let Some(log) = &mut self.log
            && let Some((line, _)) = self.constants.map.shared(self.me, physical)
        {
            log.tell_of(origin_of(trace), self.now, What::Filled { line });
        }
    }

    /// `core` has posted the write-back of a line.
    pub(super) fn log_write_back(&mut self, core: u16, held: &Held) {
        let size = self.constants.map.line;
        let all = size.bytes_of(held.line);
        let (bytes, old) = match self.constants.spec.cache.writeback {
            WriteBack::Line => (all, all & !held.dirty),
            WriteBack::Mask => (held.dirty, 0),
        };
        if let Some(log) = &mut self.log
            && let Some((line, _)) = (self.constants.map).shared(self.me, size.address(held.line))
        {
            log.tell(self.now, core, What::WroteBack { line, bytes, old });
        }
    }

    /// All copies in the node are gone.
    pub(super) fn log_all_dropped(&mut self, core: u16) {
        if let Some(log) = &mut self.log {
            log.tell(self.now, core, What::DroppedAll);
        }
    }

    /// A posted write has been performed in the line at `physical` in this node's memory.
    pub(super) fn log_performed(&mut self, physical: u64, transaction: &Transaction) {
        let Bytes { word, enables, .. } = transaction.bytes;
        let (by_node, _) = origin_of(transaction.origin);
        if let Some(log) = &mut self.log
            && let Some((line, _)) = self.constants.map.shared(self.me, physical)
        {
            let bytes = u64::from(enables) << (8 * word);
            let performed = What::Performed {
                line,
                bytes,
                by_node,
            };
            log.tell(self.now, 0, performed);
        }
    }
}
