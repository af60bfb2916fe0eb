//! Memory that does one thing wrong for a tournament: the lock's own code, with one fault.

use std::sync::{Arc, Mutex};

use sme_barrier::lock::{Lock, Tournament};
use sme_memory::{Flag, Flags, Memory, Place, Route, Until, Word};

use crate::machine::TestMemory;

/// A fault of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Fences do nothing: a look may pass one's own claim.
    NoFence,
    /// The look at the rival's claim does not push one's own claim to its home, as if they lay on
    /// different nodes.
    NoReadBackOfClaim,
    /// A release does not see to it that its withdrawal has been performed.
    NoReadBackOfWithdrawal,
    /// The turn is written before the claim.
    TurnBeforeClaim,
    /// The thread that leaves looks whether another waits, and then withdraws.
    LookBeforeWithdrawal,
    /// No thread is told that it may go.
    NoGrant,
    /// No thread is woken.
    NoBell,
    /// Woken before there is anything to be seen.
    BellBeforeGrant,
}

impl Fault {
    pub const ALL: [Self; 8] = [
        Self::NoFence,
        Self::NoReadBackOfClaim,
        Self::NoReadBackOfWithdrawal,
        Self::TurnBeforeClaim,
        Self::LookBeforeWithdrawal,
        Self::NoGrant,
        Self::NoBell,
        Self::BellBeforeGrant,
    ];
}

/// A thread's view with a fault.
pub struct Tampered {
    pub inner: TestMemory,
    pub fault: Option<Fault>,
    lock: Arc<Tournament>,
    /// A store that comes later than it should.
    held: Mutex<Option<(Word, u64)>>,
}

impl Tampered {
    pub fn new(inner: TestMemory, fault: Option<Fault>, lock: Arc<Tournament>) -> Self {
        let held = Mutex::new(None);
        Self {
            inner,
            fault,
            lock,
            held,
        }
    }

    fn is(&self, address: u64, what: &str) -> bool {
        let name = Lock::<TestMemory>::variable(&*self.lock, TestMemory::place(address));
        name.is_some_and(|name| name.contains(what))
    }

    fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    fn hold(&self, word: Word, value: u64) {
        *self.held.lock().unwrap() = Some((word, value));
    }

    async fn let_go(&self) {
        let held = self.held.lock().unwrap().take();
        if let Some((word, value)) = held {
            self.inner.store(word, value).await;
        }
    }
}

impl Memory for Tampered {
    fn node(&self) -> u32 {
        self.inner.node()
    }

    fn flag(&self, place: Place, route: Route) -> Flag {
        self.inner.flag(place, route)
    }

    fn word(&self, place: Place, route: Route) -> Word {
        self.inner.word(place, route)
    }

    async fn read(&self, flag: Flag) -> u8 {
        self.inner.read(flag).await
    }

    async fn set(&self, flag: Flag, value: u8) {
        let bell = self.is(flag.0, "bell of");
        if bell && self.has(Fault::NoBell) {
            return;
        }
        self.inner.set(flag, value).await;
        if bell {
            self.let_go().await;
        }
    }

    async fn wait(&self, flag: Flag, until: Until) -> u8 {
        self.inner.wait(flag, until).await
    }

    async fn wait_all(&self, flags: Flags, until: Until) {
        self.inner.wait_all(flags, until).await;
    }

    async fn load(&self, word: Word) -> u64 {
        let (claim, turn) = (self.is(word.0, "claim of"), self.is(word.0, "turn of"));
        if claim && self.has(Fault::NoReadBackOfClaim)
            || turn && self.has(Fault::NoReadBackOfWithdrawal)
        {
            return self.inner.overtake(word).await;
        }
        let value = self.inner.load(word).await;
        if turn && self.has(Fault::LookBeforeWithdrawal) {
            self.let_go().await;
        }
        value
    }

    async fn store(&self, word: Word, value: u64) {
        let (claim, turn) = (self.is(word.0, "claim of"), self.is(word.0, "turn of"));
        let grant = self.is(word.0, "grant to");
        match self.fault {
            Some(Fault::TurnBeforeClaim) if claim && value != 0 => self.hold(word, value),
            Some(Fault::LookBeforeWithdrawal) if claim && value == 0 => self.hold(word, value),
            Some(Fault::BellBeforeGrant) if grant => self.hold(word, value),
            Some(Fault::NoGrant) if grant => {}
            _ => self.inner.store(word, value).await,
        }
        if turn && self.has(Fault::TurnBeforeClaim) {
            self.let_go().await;
        }
    }

    async fn fence(&self) {
        if !self.has(Fault::NoFence) {
            self.inner.fence().await;
        }
    }
}
