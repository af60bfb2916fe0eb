//! Marks of the transactions on lines of a node's own memory.

use super::Trace;
use crate::families::sme::cluster::constants::origin_of;
use crate::families::sme::cluster::latencies::Bound;
use crate::families::sme::cluster::mark::{Access, Cause, Mark, What, byte_of};
use crate::families::sme::cluster::transaction::{BRIDGE, Kind, Transaction};
use crate::observe::path::{BEFORE, Part};
use crate::parts::line::Bytes;
use crate::time::Time;

impl Trace {
    /// `bytes` of `line` have been written, in the writer's own copy.
    pub fn written(&mut self, line: u32, bytes: Bytes) {
        self.values.insert((line, byte_of(bytes)), self.current);
    }

    /// The last write has probed away a spinning core's copy; the core notices at `at`.
    pub fn probed(&mut self, at: Time, core: u16, line: u32, bytes: Bytes) {
        let access = Access {
            line,
            byte: byte_of(bytes),
            agent: core,
            origin: (self.me, core),
            kind: Kind::Read,
        };
        self.current = self.stage(self.effect, at, Part::Cache, What::Probed(access));
    }

    /// A transaction leaves its socket at `leaves` and reaches its line's home at `at`.
    pub fn requested(&mut self, leaves: Time, at: Time, number: u32, transaction: &Transaction) {
        let what = What::Asks(self.access(transaction));
        let mark = self.stage(self.current, leaves, Part::Cache, what);
        let mark = self.stage(mark, at, Part::HyperTransport, what);
        self.transactions.insert(number, mark);
    }

    /// A transaction has taken effect now, and will be complete at `at`, for the reason `bound`.
    pub fn started(
        &mut self,
        (now, at): (Time, Time),
        bound: Bound,
        number: u32,
        transaction: &Transaction,
    ) {
        let access = self.access(transaction);
        let asked = self.transactions.get(&number).copied().unwrap_or(BEFORE);
        let effect = self.stage(asked, now, Part::Queueing, What::Waits(access));
        let variable = (access.line, access.byte);
        let value = match access.kind {
            Kind::Read | Kind::Fetch { .. } => self.values.get(&variable).copied(),
            _ => {
                self.values.insert(variable, effect);
                None
            }
        };
        let what = What::Served(access);
        let (before, part, until) = match bound {
            Bound::Memory { read } => (Time::ZERO, Part::Memory, read),
            Bound::Probe { reaches, answered } => (reaches, Part::Cache, answered),
        };
        let reached = self.stage(effect, now + before, Part::HyperTransport, what);
        let answered = self.stage(reached, now + until, part, what);
        let served = self.push(Mark {
            at,
            cause: Cause::Here(answered),
            part: Part::HyperTransport,
            what,
            value,
        });
        self.transactions.insert(number, served);
        self.effect = effect;
    }

    /// Notes that a transaction is complete.
    pub fn completed(&mut self, now: Time, number: u32, transaction: &Transaction) {
        self.answered = None;
        self.current = self.transactions.remove(&number).unwrap_or(BEFORE);
        let agent = transaction.agent;
        if agent != BRIDGE && transaction.kind == Kind::Read && self.takes(agent, transaction.value)
        {
            self.take(now);
        }
    }

    fn access(&self, transaction: &Transaction) -> Access {
        Access {
            line: transaction.line,
            byte: byte_of(transaction.bytes),
            agent: transaction.agent,
            origin: if transaction.agent == BRIDGE {
                origin_of(transaction.origin)
            } else {
                (self.me, transaction.agent)
            },
            kind: transaction.kind,
        }
    }
}
