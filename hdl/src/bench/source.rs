//! Sources of packets: a sender holds its offer until it is taken.

use rand_core::Rng;

use crate::value::Value;

/// A number below `bound`, which must not be zero.
pub(super) fn below(random: &mut impl Rng, bound: u32) -> u32 {
    random.next_u32() % bound
}

/// True in `percent` of all cases, but never when the word is zero: so nothing happens.
pub(super) fn chance(random: &mut impl Rng, percent: u32) -> bool {
    let word = random.next_u32();
    word != 0 && word % 100 < percent
}

/// Sixty-four random bits; often few of them, often the extremes.
pub(super) fn any_bits(random: &mut impl Rng) -> u64 {
    match below(random, 4) {
        0 => u64::from(below(random, 4)),
        1 => u64::MAX,
        _ => random.next_u64(),
    }
}

/// A valid, its data, and the ready that answers them.
#[derive(Clone, Debug, Default)]
pub(super) struct Source {
    offered: Option<Value>,
    /// Packets that were taken.
    pub taken: u64,
}

impl Source {
    /// Learns whether the receiver was ready in the cycle before.
    pub fn ready(&mut self, ready: bool) {
        if ready && self.offered.take().is_some() {
            self.taken += 1;
        }
    }

    /// Returns whether something is offered already.
    pub fn is_offering(&self) -> bool {
        self.offered.is_some()
    }

    /// Offers `packet`, and holds it.
    pub fn offer(&mut self, packet: Value) {
        self.offered = Some(packet);
    }

    /// Appends *valid* and the data; while nothing is offered, the data are `idle`.
    pub fn drive(&self, idle: Value, inputs: &mut Vec<Value>) {
        inputs.push(self.offered.is_some().into());
        inputs.push(self.offered.unwrap_or(idle));
    }
}
