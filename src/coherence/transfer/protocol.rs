//! The protocol of a transfer as data: the copies that a core does for a message, each with the
//! buffer of the application, the chunk of a ring, and the state of that chunk's flag.
//!
//! Executed on simulated machines by [`super::Transfer::time`], and on this computer by
//! [`crate::coherence::measure::transfer`]. The two cores are 0 and 1; in each round core 0 sends a
//! message, and then core 1. Everything follows from the number of the round, so that the two need
//! to agree on nothing else.

use sme_memory::Stores;

use super::{Direction, Home, Transfer};
use crate::coherence::model::Flush;

/// The part of a core in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Act {
    /// It copies the message into the ring.
    Send,
    /// It copies the message out of the ring.
    Receive,
}

impl Act {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Send, Self::Receive];

    /// The part of `core` in a message of `sender`.
    pub fn of(core: u32, sender: u32) -> Self {
        match core == sender {
            true => Self::Send,
            false => Self::Receive,
        }
    }
}

/// A copy of one chunk, by the sender or by the receiver of the message.
///
/// The core waits until the flag of the chunk is [`Self::state`], copies, flushes the chunk if that
/// is asked for, and makes the flag the next state. An even state is an empty chunk, an odd one a
/// chunk that is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// The buffer of the application, among those of the core for this part ([`Transfer::buffer`]).
    pub buffer: u64,
    /// Where the bytes are in the message (bytes).
    pub offset_bytes: u64,
    /// The length in bytes.
    pub bytes: u64,
    /// The ring: 0 or 1.
    pub ring: usize,
    /// The chunk of the ring.
    pub slot: u64,
    /// The number of times that the chunk was filled and emptied before.
    pub state: u64,
    /// The kind of stores of the copy.
    pub stores: Stores,
    /// Whether the chunk is flushed after the copy.
    pub is_flushed: bool,
}

impl Transfer {
    /// The copies of the message that `sender` sends in `round`, in their order, as one of the two
    /// cores does them. Every message begins at the first chunk of its ring.
    pub fn steps(&self, round: u64, sender: u32, act: Act) -> impl Iterator<Item = Step> + use<> {
        let transfer = *self;
        let ring = self.ring_of(sender);
        // The messages that went through the ring before.
        let before = match self.direction {
            Direction::Same => round,
            Direction::Alternating => 2 * round + u64::from(sender),
        };
        let slots = u64::from(self.ring);
        let chunks = self.message_bytes.div_ceil(self.chunk_bytes);
        (0..chunks).map(move |chunk| {
            let slot = chunk % slots;
            let of_each_message = (chunks - slot).div_ceil(slots);
            let turn = before * of_each_message + chunk / slots;
            let offset_bytes = chunk * transfer.chunk_bytes;
            Step {
                buffer: transfer.buffer(act, round),
                offset_bytes,
                bytes: transfer
                    .chunk_bytes
                    .min(transfer.message_bytes - offset_bytes),
                ring,
                slot,
                state: match act {
                    Act::Send => 2 * turn,
                    Act::Receive => 2 * turn + 1,
                },
                stores: match (act, transfer.flush) {
                    (Act::Send, Flush::NonTemporal) => Stores::NonTemporal,
                    _ => Stores::Cached,
                },
                is_flushed: matches!(
                    (act, transfer.flush),
                    (Act::Send, Flush::Sender) | (Act::Receive, Flush::Receiver)
                ),
            }
        })
    }

    /// The ring of `sender`.
    fn ring_of(&self, sender: u32) -> usize {
        match self.direction {
            Direction::Same => sender as usize,
            Direction::Alternating => 0,
        }
    }

    /// The core whose memory a ring is in.
    pub fn home_of(&self, ring: usize) -> usize {
        match self.home {
            Home::Sender => ring,
            Home::Receiver => 1 - ring,
        }
    }

    /// Returns whether messages are sent from, or received into, the buffer of the one before.
    pub fn reuses(&self, act: Act) -> bool {
        let (sends, receives) = self.reuses;
        match act {
            Act::Send => sends,
            Act::Receive => receives,
        }
    }

    /// The application's buffer for a core's message of `round`, among those for this part: the
    /// first one always, or another one for each message.
    pub fn buffer(&self, act: Act, round: u64) -> u64 {
        match self.reuses(act) {
            true => 0,
            false => round,
        }
    }
}

#[cfg(test)]
pub(crate) mod testing {
    //! Settings of every kind, small.

    use proptest::prelude::*;

    use super::*;
    use crate::coherence::transition::CoreDistance;

    /// Any setting of a ring of up to five chunks of up to three lines, for messages of up to 20.
    pub fn transfers() -> impl Strategy<Value = Transfer> {
        let lines = (1..=20u64, 1..=3u64, 1..=5u32, 1..=3u32);
        let names = (
            prop::sample::select(Direction::ALL),
            prop::sample::select(Flush::ALL),
            prop::sample::select(Home::ALL),
            any::<(bool, bool)>(),
        );
        (lines, names).prop_map(|((message, chunk, ring, rounds), names)| {
            let (direction, flush, home, reuses) = names;
            Transfer {
                placement: CoreDistance::Socket,
                message_bytes: 64 * message,
                chunk_bytes: 64 * chunk,
                ring,
                direction,
                flush,
                home,
                reuses,
                rounds,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashSet};

    use proptest::prelude::*;

    use super::testing::transfers;
    use super::*;
    use crate::coherence::transition::CoreDistance;

    const ROUNDS: u64 = 4;

    /// A fault in the steps of one part.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Fault {
        /// The core does not wait for the flag.
        NoWait(Act),
        /// It lets the chunk go without copying it.
        NoCopy(Act),
    }

    /// All steps of a core, each with its round and the sender of its message.
    fn script(transfer: &Transfer, core: u32) -> Vec<(u64, u32, Act, Step)> {
        let mut script = Vec::new();
        for round in 0..ROUNDS {
            for sender in 0..2 {
                let act = Act::of(core, sender);
                let steps = transfer.steps(round, sender, act);
                script.extend(steps.map(|step| (round, sender, act, step)));
            }
        }
        script
    }

    /// Returns the content of each line of a message.
    fn line(round: u64, sender: u32, at: u64) -> u64 {
        1 + at + 1_000 * (round + 100 * u64::from(sender))
    }

    /// The two cores on arrays, in an order that `choices` gives: each step is begun, then half of
    /// it copied, then the rest.
    #[derive(Default)]
    struct Interleaved {
        flags: BTreeMap<(usize, u64), u64>,
        holders: BTreeMap<(usize, u64), usize>,
        rings: BTreeMap<(usize, u64, u64), u64>,
        buffers: BTreeMap<(usize, Act, u64, u64), u64>,
    }

    impl Interleaved {
        /// Returns whether the step may begin.
        fn is_ready(&self, act: Act, step: Step, fault: Option<Fault>) -> bool {
            let chunk = (step.ring, step.slot);
            let flag = self.flags.get(&chunk).copied().unwrap_or_default();
            match fault {
                Some(Fault::NoWait(broken)) if broken == act => true,
                _ => flag == step.state,
            }
        }

        fn copy(&mut self, core: usize, act: Act, step: Step, lines: std::ops::Range<u64>) {
            for at in lines {
                let in_ring = (step.ring, step.slot, at);
                let in_buffer = (core, act, step.buffer, step.offset_bytes / 64 + at);
                match act {
                    Act::Send => self.rings.insert(in_ring, self.buffers[&in_buffer]),
                    Act::Receive => {
                        let read = self.rings.get(&in_ring).copied().unwrap_or_default();
                        self.buffers.insert(in_buffer, read)
                    }
                };
            }
        }

        /// Both scripts to their ends.
        fn run(
            transfer: &Transfer,
            choices: &[bool],
            fault: Option<Fault>,
        ) -> Result<(), &'static str> {
            let mut all = Self::default();
            let scripts = [script(transfer, 0), script(transfer, 1)];
            // The step of each core, and how much of it is done.
            let mut at = [(0, 0); 2];
            let mut choices = choices.iter().cycle();
            loop {
                let can = |core: usize| match scripts[core].get(at[core].0) {
                    Some(&(_, _, act, step)) => at[core].1 > 0 || all.is_ready(act, step, fault),
                    None => false,
                };
                let core = match (can(0), can(1)) {
                    (true, true) => usize::from(*choices.next().unwrap()),
                    (true, false) => 0,
                    (false, true) => 1,
                    (false, false) => break,
                };
                let (round, sender, act, step) = scripts[core][at[core].0];
                let chunk = (step.ring, step.slot);
                let lines = step.bytes / 64;
                let copies = fault != Some(Fault::NoCopy(act));
                match at[core].1 {
                    0 => {
                        if all.holders.insert(chunk, core).is_some() {
                            return Err("both have a chunk");
                        }
                        if (act, step.offset_bytes) == (Act::Send, 0) {
                            for at in 0..transfer.message_bytes / 64 {
                                let place = (core, act, step.buffer, at);
                                all.buffers.insert(place, line(round, sender, at));
                            }
                        }
                    }
                    1 if copies => all.copy(core, act, step, 0..lines / 2),
                    2 if copies => all.copy(core, act, step, lines / 2..lines),
                    1 | 2 => {}
                    _ => {
                        all.holders.remove(&chunk);
                        all.flags.insert(chunk, step.state + 1);
                        let end = step.offset_bytes + step.bytes;
                        if act == Act::Receive && end == transfer.message_bytes {
                            for at in 0..transfer.message_bytes / 64 {
                                let place = (core, act, step.buffer, at);
                                if all.buffers.get(&place) != Some(&line(round, sender, at)) {
                                    return Err("a message has other bytes");
                                }
                            }
                        }
                        at[core] = (at[core].0 + 1, 0);
                        continue;
                    }
                }
                at[core].1 += 1;
            }
            match at == [0, 1].map(|core: usize| (scripts[core].len(), 0)) {
                true => Ok(()),
                false => Err("both wait"),
            }
        }
    }

    proptest! {
        #[test]
        fn every_order_of_the_cores_brings_every_message_over(
            transfer in transfers(),
            choices in prop::collection::vec(any::<bool>(), 1..64),
        ) {
            prop_assert_eq!(Interleaved::run(&transfer, &choices, None), Ok(()));
        }

        /// The states follow from counting how often a core meets each chunk; on both cores alike;
        /// and no state of a chunk is passed by two steps.
        #[test]
        fn states_are_counts(transfer in transfers()) {
            let mut passed = HashSet::new();
            for core in 0..2 {
                let mut turns: BTreeMap<(usize, u64), u64> = BTreeMap::new();
                for (round, _, act, step) in script(&transfer, core) {
                    let turn = turns.entry((step.ring, step.slot)).or_default();
                    prop_assert_eq!(step.state, 2 * *turn + u64::from(act == Act::Receive));
                    *turn += 1;
                    prop_assert!(step.slot < u64::from(transfer.ring));
                    let buffer = if transfer.reuses(act) { 0 } else { round };
                    prop_assert_eq!(step.buffer, buffer);
                    prop_assert!(passed.insert((step.ring, step.slot, step.state)));
                }
            }
        }

        /// The chunks of a message are the message.
        #[test]
        fn chunks_cover_a_message(transfer in transfers(), round in 0..9u64, sender in 0..2u32) {
            for act in Act::ALL {
                let mut end = 0;
                for step in transfer.steps(round, sender, act) {
                    prop_assert_eq!(step.offset_bytes, end);
                    prop_assert!(step.bytes > 0 && step.bytes <= transfer.chunk_bytes);
                    end += step.bytes;
                }
                prop_assert_eq!(end, transfer.message_bytes);
            }
        }
    }

    /// Returns whether any of the orders in which one core runs ahead for a while shows the fault.
    fn is_caught(transfer: &Transfer, fault: Fault) -> bool {
        (1..40).any(|ahead| {
            [false, true].into_iter().any(|first| {
                let mut choices = vec![first; ahead];
                choices.extend(vec![!first; ahead]);
                Interleaved::run(transfer, &choices, Some(fault)).is_err()
            })
        })
    }

    #[test]
    fn broken_steps_are_caught() {
        for direction in [Direction::Same, Direction::Alternating] {
            let transfer = Transfer {
                chunk_bytes: 128,
                ring: 2,
                direction,
                ..Transfer::of_open_mpi(CoreDistance::Socket, 6 * 128)
            };
            assert_eq!(Interleaved::run(&transfer, &[false, true], None), Ok(()));
            for act in Act::ALL {
                assert!(is_caught(&transfer, Fault::NoWait(act)));
                assert!(is_caught(&transfer, Fault::NoCopy(act)));
            }
        }
    }
}
