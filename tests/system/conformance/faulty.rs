//! A simulated memory with one defect of many: the ideal machine's, or for networks the MPPA's.

use std::future::Future;

use sme_memory::{
    AnyFlag, Atomic, Blocks, Cacheable, Flag, Flags, Futex, Gathers, Interrupts, Mailbox, Memory,
    Network, NodeSet, Own, Passes, Place, Receives, Register, Route, Spawn, Stores, Tagged,
    TestAndSet, ThreadId, Timer, Transfer, Until, Word,
};
use sme_sim::parts::contract::ThreadMemory;

/// A defect of a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    LosesStores,
    WritesNeighbour,
    SetsBeforeStores,
    SetsWholeWord,
    WaitsForTheFirst,
    ReturnsWhatIsAwaited,
    KeepsCopies,
    DropsWithoutWritingBack,
    WritesNothingBack,
    DropsNothing,
    AddsInTwoSteps,
    SwapReturnsTheNew,
    ExchangesAlways,
    WakesNobody,
    SleepsWithoutLooking,
    FindsItClear,
    NeverSets,
    JoinsAtOnce,
    /// Signals with odd values are lost.
    LosesSignals,
    CopiesTooLittle,
    PassesTooLittle,
    ReturnsTheFirst,
    KeepsTaggedCopies,
    StoresWholeLines,
    TakesNoInterrupt,
    StandsStill,
    FindsNothing,
    SendsTooLittle,
    TellsOfEachTransfer,
    SetsEventsOnly,
    OverwritesMessages,
    SendsToOne,
    HearsItself,
    SetsBits,
}

/// The memory with a fault.
#[derive(Clone)]
pub struct Faulty {
    pub memory: ThreadMemory,
    pub fault: Fault,
}

impl Faulty {
    fn is(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    fn at_another_node(&self, word: Word) -> bool {
        // The ideal machine's addresses: a node's memory of 4 GiB after the other's.
        (word.0 & (u64::MAX >> 1)) >> 32 != u64::from(self.memory.node())
    }
}

impl Memory for Faulty {
    fn node(&self) -> u32 {
        self.memory.node()
    }

    fn flag(&self, place: Place, route: Route) -> Flag {
        self.memory.flag(place, route)
    }

    fn word(&self, place: Place, route: Route) -> Word {
        // The ideal machine keeps no copies of tagged lines: cached ones take their place.
        let route = match route {
            Route::Tagged if self.is(Fault::KeepsTaggedCopies) => Route::Cached,
            _ => route,
        };
        self.memory.word(place, route)
    }

    async fn read(&self, flag: Flag) -> u8 {
        self.memory.read(flag).await
    }

    async fn set(&self, flag: Flag, value: u8) {
        if self.is(Fault::SetsWholeWord) {
            let word = Word(flag.0 & !7);
            let value = u64::from(value) << (8 * (flag.0 % 8));
            self.memory.store(word, value).await;
        } else {
            self.memory.set(flag, value).await;
        }
    }

    async fn wait(&self, flag: Flag, until: Until) -> u8 {
        match (self.is(Fault::ReturnsWhatIsAwaited), until) {
            (true, Until::IsNot(old)) => {
                self.memory.wait(flag, until).await;
                old
            }
            _ => self.memory.wait(flag, until).await,
        }
    }

    async fn wait_all(&self, flags: Flags, until: Until) {
        let count = match self.is(Fault::WaitsForTheFirst) {
            true => flags.count.min(1),
            false => flags.count,
        };
        // The last is set first: so that the wait does end too early, it looks at that one.
        let first =
            flags.first.0 + u64::from(flags.stride * (flags.count - count.min(flags.count)));
        let first = Flag(first);
        self.memory
            .wait_all(
                Flags {
                    first,
                    count,
                    ..flags
                },
                until,
            )
            .await;
    }

    async fn load(&self, word: Word) -> u64 {
        self.memory.load(word).await
    }

    async fn store(&self, word: Word, value: u64) {
        match self.fault {
            Fault::LosesStores if self.at_another_node(word) => {}
            Fault::WritesNeighbour => {
                self.memory.store(word, value).await;
                self.memory.store(Word(word.0 ^ 8), value).await;
            }
            Fault::StoresWholeLines => {
                self.memory.store(word, value).await;
                for other in [8, 16, 24] {
                    self.memory.store(Word(word.0 ^ other), 0).await;
                }
            }
            Fault::SetsBeforeStores if self.at_another_node(word) => {
                // The store leaves later than the thread's next operation.
                let (memory, late) = (self.memory.clone(), self.memory.clone());
                let store = move |_| async move {
                    late.store(word, value).await;
                };
                memory.spawn(None, store).await;
            }
            _ => self.memory.store(word, value).await,
        }
    }

    async fn fence(&self) {
        self.memory.fence().await;
    }
}

impl Cacheable for Faulty {
    async fn flush(&self, word: Word) {
        match self.fault {
            Fault::KeepsCopies | Fault::DropsWithoutWritingBack => {}
            _ => self.memory.flush(word).await,
        }
    }

    async fn write_back(&self) {
        if !self.is(Fault::WritesNothingBack) {
            self.memory.write_back().await;
        }
    }

    async fn write_back_invalidate(&self) {
        match self.is(Fault::DropsNothing) {
            true => self.memory.write_back().await,
            false => self.memory.write_back_invalidate().await,
        }
    }
}

impl Atomic for Faulty {
    async fn fetch_add(&self, word: Word, amount: u64) -> u64 {
        if self.is(Fault::AddsInTwoSteps) {
            let value = self.memory.load(word).await;
            self.memory.store(word, value + amount).await;
            return value;
        }
        self.memory.fetch_add(word, amount).await
    }

    async fn swap(&self, word: Word, value: u64) -> u64 {
        let before = self.memory.swap(word, value).await;
        match self.is(Fault::SwapReturnsTheNew) {
            true => value,
            false => before,
        }
    }

    async fn compare_exchange(&self, word: Word, expected: u64, new: u64) -> u64 {
        if self.is(Fault::ExchangesAlways) {
            self.memory.swap(word, new).await;
            return expected;
        }
        self.memory.compare_exchange(word, expected, new).await
    }
}

impl Futex for Faulty {
    async fn futex_wait(&self, word: Word, expected: u64) {
        let expected = match self.is(Fault::SleepsWithoutLooking) {
            true => self.memory.load(word).await,
            false => expected,
        };
        self.memory.futex_wait(word, expected).await;
    }

    async fn futex_wake(&self, word: Word, count: u32) -> u32 {
        match self.is(Fault::WakesNobody) {
            true => 0,
            false => self.memory.futex_wake(word, count).await,
        }
    }
}

impl TestAndSet for Faulty {
    fn registers(&self) -> u32 {
        self.memory.registers()
    }

    async fn test_and_set(&self, register: Register) -> bool {
        let was_clear = self.memory.test_and_set(register).await;
        was_clear || self.is(Fault::FindsItClear)
    }

    async fn take(&self, register: Register) {
        if !self.is(Fault::NeverSets) {
            self.memory.take(register).await;
        }
    }

    async fn clear(&self, register: Register) {
        self.memory.clear(register).await;
    }
}

impl Spawn for Faulty {
    async fn spawn<P, F>(&self, core: Option<u32>, program: P) -> ThreadId
    where
        P: FnOnce(Self) -> F + Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let fault = self.fault;
        let program = move |memory| program(Faulty { memory, fault });
        self.memory.spawn(core, program).await
    }

    async fn join(&self, thread: ThreadId) {
        if !self.is(Fault::JoinsAtOnce) {
            self.memory.join(thread).await;
        }
    }

    async fn give_way(&self) {}

    fn id(&self) -> ThreadId {
        self.memory.id()
    }

    async fn send_signal(&self, thread: ThreadId, value: u64) {
        if !self.is(Fault::LosesSignals) || value.is_multiple_of(2) {
            self.memory.send_signal(thread, value).await;
        }
    }

    async fn take_signal(&self) -> u64 {
        self.memory.take_signal().await
    }
}

impl Blocks for Faulty {
    async fn put(&self, to: Word, words: &[u64], from: Option<Own>) {
        let count = words.len() - usize::from(self.is(Fault::CopiesTooLittle));
        self.memory.put(to, &words[..count], from).await;
    }

    async fn get(&self, from: Word, words: &mut [u64], to: Option<Own>) {
        self.memory.get(from, words, to).await;
    }
}

impl Passes for Faulty {
    async fn copy_words(&self, from: Word, to: Word, words: u32, stores: Stores) {
        let words = words - u32::from(self.is(Fault::PassesTooLittle));
        self.memory.copy_words(from, to, words, stores).await;
    }
}

impl AnyFlag for Faulty {
    async fn find_any(&self, flags: Flags, first: u32, until: Until) -> Option<u32> {
        let found = self.memory.find_any(flags, first, until).await;
        match self.is(Fault::FindsNothing) {
            true => None,
            false => found,
        }
    }

    async fn wait_any(&self, flags: Flags, until: Until) -> u32 {
        let index = self.memory.wait_any(flags, until).await;
        match self.is(Fault::ReturnsTheFirst) {
            true => 0,
            false => index,
        }
    }
}

impl Tagged for Faulty {
    async fn invalidate_tagged(&self) {
        self.memory.invalidate_tagged().await;
    }
}

impl Interrupts for Faulty {
    async fn interrupt(&self, node: u32) {
        self.memory.interrupt(node).await;
    }

    async fn take_interrupt(&self) {
        if !self.is(Fault::TakesNoInterrupt) {
            self.memory.take_interrupt().await;
        }
    }
}

impl Timer for Faulty {
    async fn now(&self) -> u64 {
        match self.is(Fault::StandsStill) {
            true => 1,
            false => self.memory.now().await,
        }
    }
}

impl Network for Faulty {
    async fn open(&self, tag: u16, receives: Receives) {
        let receives = match (self.fault, receives) {
            (
                Fault::TellsOfEachTransfer,
                Receives::Buffer {
                    at,
                    bytes,
                    tells,
                    event,
                    ..
                },
            ) => Receives::Buffer {
                at,
                bytes,
                transfers: 1,
                tells,
                event,
            },
            (
                Fault::SetsEventsOnly,
                Receives::Buffer {
                    at,
                    bytes,
                    transfers,
                    event: Some(event),
                    ..
                },
            ) => Receives::Buffer {
                at,
                bytes,
                transfers,
                tells: event,
                event: None,
            },
            (
                Fault::OverwritesMessages,
                Receives::Queue {
                    at,
                    slot_bytes,
                    tells,
                    event,
                },
            ) => Receives::Buffer {
                at,
                bytes: slot_bytes,
                transfers: 1,
                tells: tells.first,
                event,
            },
            _ => receives,
        };
        self.memory.open(tag, receives).await;
    }

    async fn close(&self, tag: u16) {
        self.memory.close(tag).await;
    }

    async fn push(&self, transfer: Transfer) {
        let transfer = match self.fault {
            Fault::SendsTooLittle => Transfer {
                bytes: transfer.bytes.saturating_sub(8),
                ..transfer
            },
            Fault::SendsToOne => Transfer {
                to: NodeSet(transfer.to.0 & transfer.to.0.wrapping_neg()),
                ..transfer
            },
            _ => transfer,
        };
        self.memory.push(transfer).await;
    }

    async fn start(&self, channel: u16, transfer: Transfer, tells: (Flag, Option<Flag>)) {
        self.memory.start(channel, transfer, tells).await;
    }

    async fn listen(&self, tag: u16, mailbox: Mailbox) {
        let gathers = match self.fault {
            Fault::HearsItself => Gathers::AllOf(1 << self.memory.node()),
            Fault::SetsBits if mailbox.gathers == Gathers::Sum => Gathers::AllOf(u64::MAX),
            _ => mailbox.gathers,
        };
        let mailbox = Mailbox { gathers, ..mailbox };
        self.memory.listen(tag, mailbox).await;
    }

    async fn signal(&self, nodes: NodeSet, tag: u16, bits: u64) {
        self.memory.signal(nodes, tag, bits).await;
    }
}
