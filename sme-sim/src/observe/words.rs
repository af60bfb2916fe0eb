//! Operations and places in words, for people.

use sme_memory::Place;

use crate::parts::contract::Operation;

/// The name of a `place` that no program has named.
pub fn place(place: Place) -> String {
    format!("byte {} of node {}", place.offset, place.node)
}

/// `operation` has come to its end at a core; what an address names is called what `at` says.
pub fn done(core: u16, operation: &Operation, at: &dyn Fn(u64) -> String) -> String {
    let core = format!("core {core}");
    match operation {
        Operation::Read(flag) => format!("{core} has read {}", at(flag.0)),
        Operation::Set(flag, _) => format!("{core} sets {}", at(flag.0)),
        Operation::Wait(flag, ..) => format!("{core} sees that {} has changed", at(flag.0)),
        Operation::WaitAll(flags, ..) if flags.count == 0 => {
            format!("{core} has no flag to wait for")
        }
        Operation::WaitAll(flags, ..) if flags.count == 1 => {
            format!("{core} sees that {} has changed", at(flags.first.0))
        }
        Operation::WaitAll(flags, ..) => {
            let last =
                flags.first.0 + u64::from(flags.stride) * u64::from(flags.count.saturating_sub(1));
            let (first, last) = (at(flags.first.0), at(last));
            format!("{core} sees that all from {first} to {last} have changed")
        }
        Operation::Load(word, _) => format!("{core} has loaded {}", at(word.0)),
        Operation::Store(word, ..) => format!("{core} stores {}", at(word.0)),
        Operation::Fence => format!("{core} has drained its stores"),
        Operation::FetchAdd(word, _)
        | Operation::Swap(word, _)
        | Operation::CompareExchange(word, ..) => format!("{core} has updated {}", at(word.0)),
        Operation::FutexWait(..) => format!("{core} returns from its futex wait"),
        Operation::FutexWake(..) => format!("{core} wakes sleepers and returns"),
        Operation::Flush(word) => format!("{core} has flushed {}", at(word.0)),
        Operation::WriteBack { .. } => format!("{core} has written its node's caches back"),
        Operation::TestAndSet(register) | Operation::Take(register, _) => {
            let (number, node) = (register.number, register.node);
            format!("{core} has read register {number} of node {node}")
        }
        Operation::Clear(register) => {
            let (number, node) = (register.number, register.node);
            format!("{core} clears register {number} of node {node}")
        }
        Operation::Spawn(_) => format!("{core} has started a thread"),
        Operation::Join(thread, _) => format!("{core} sees that thread {} has ended", thread.0),
        Operation::GiveWay => format!("{core} has given way"),
        Operation::SendSignal(thread, _) => format!("{core} sends thread {} a signal", thread.0),
        Operation::TakeSignal(_) => format!("{core} takes a signal"),
        Operation::Kill(thread) => format!("{core} kills thread {}", thread.0),
        Operation::Alarm(..) => format!("{core} has set an alarm"),
        Operation::Put(word, ..) => format!("{core} has stored a block from {} on", at(word.0)),
        Operation::Get(word, ..) => format!("{core} has loaded a block from {} on", at(word.0)),
        Operation::Copy(..) => format!("{core} has copied a block of its own memory"),
        Operation::Sum(word, words, _) => {
            format!("{core} has loaded {words} words from {} on", at(word.0))
        }
        Operation::Fill(word, _, words, _) | Operation::FillPast(word, _, words, _) => {
            format!("{core} has stored {words} words from {} on", at(word.0))
        }
        Operation::CopyWords(word, _, words, _) | Operation::CopyPast(word, _, words, _) => {
            format!("{core} has copied {words} words from {} on", at(word.0))
        }
        Operation::FlushWords(word, words, _) => {
            format!("{core} has flushed {words} words from {} on", at(word.0))
        }
        Operation::WaitAny(flags, ..) => {
            format!(
                "{core} sees that one from {} on has changed",
                at(flags.first.0)
            )
        }
        Operation::FindAny(flags, ..) => {
            format!("{core} has looked at all from {} on", at(flags.first.0))
        }
        Operation::InvalidateTagged => format!("{core} has dropped its tagged lines"),
        Operation::Interrupt(node) => format!("{core} interrupts node {node}"),
        Operation::TakeInterrupt(_) => format!("{core} takes an interrupt"),
        Operation::Now => format!("{core} has read the time"),
        Operation::Network => format!("{core} has asked its network interface"),
        Operation::SetDivider(divider) => format!("{core} has its clock divided by {divider}"),
        Operation::SetVoltage(millivolts) => {
            format!("{core} has its voltage set to {millivolts} mV")
        }
        Operation::Delay(_) => format!("{core} computes"),
        Operation::Mark(_) => core,
    }
}
