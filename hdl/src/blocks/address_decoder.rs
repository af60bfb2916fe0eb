//! Decoding of a global address: a node, and an offset in its shared partition.
//!
//! ```text
//!          ┌─ node's bits ─── − number of the first ──> target
//! address ─┼─ bits below ────────────────────────────> offset
//!          └─ first ≤ address < end ─────────────────> found
//! ```
//!
//! ```text
//! cycle     0           1           2        two partitions of 0x10 bytes, from 0x100 on
//! address   0x0108      0x0114      0x0120
//! found     ▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▁▁▁▁▁▁▁▁
//! target    0           1
//! offset    0x8         0x4
//! ```
//!
//! The requester has one for writes and one for reads. It is combinational. Global addresses
//! begin at a multiple of the partition's size, so that the offset is the address's lower bits as
//! they stand, and only the node's number is reckoned from the first address. Addresses and
//! offsets come in two halves, the lower of 32 bits.

use crate::blocks::primitive::{Below, Part};
use rust_hdl::prelude::*;

/// The decoder of a machine's global addresses.
#[derive(Clone, Debug, LogicBlock)]
pub struct AddressDecoder {
    /// Bits 0–31 of the address, in bytes.
    pub address_low: Signal<In, Bits<32>>,
    /// Bits 32–63.
    pub address_high: Signal<In, Bits<32>>,
    /// The node, if found.
    pub target: Signal<Out, Bits<20>>,
    /// Bits 0–31 of the offset in its shared partition, in bytes.
    pub offset_low: Signal<Out, Bits<32>>,
    /// Bits 32–39.
    pub offset_high: Signal<Out, Bits<8>>,
    /// The address is a node's.
    pub found: Signal<Out, Bit>,
    partition: Part<20>,
    below_first: Below,
    below_end: Below,
    /// The partition of node 0, counted from address 0; its lower bits.
    first_partition: Constant<Bits<20>>,
    within_low: Constant<Bits<32>>,
    within_high: Constant<Bits<8>>,
}

impl AddressDecoder {
    /// The decoder of `hosts` partitions of 2^`shared_bits` bytes from `global_base` on.
    ///
    /// # Panics
    /// If the base is no multiple of the partition's size: a machine's shared partition is never
    /// larger than its first global address, and both are powers of two. And if there is no
    /// partition, or more or larger ones than a packet can name.
    pub fn new(global_base: u64, shared_bits: u32, hosts: u32) -> Self {
        assert!(shared_bits <= 40 && (1..=1 << 20).contains(&hosts));
        let within = (1 << shared_bits) - 1;
        assert_eq!(global_base & within, 0, "the base is no partition's border");
        let first = u128::from(global_base);
        let end = first + (u128::from(hosts) << shared_bits);
        let low = |bits: u64| Constant::new((bits & u64::from(u32::MAX)).into());
        Self {
            address_low: Signal::default(),
            address_high: Signal::default(),
            target: Signal::default(),
            offset_low: Signal::default(),
            offset_high: Signal::default(),
            found: Signal::default(),
            partition: Part::new(shared_bits),
            below_first: Below::new(first),
            below_end: Below::new(end),
            first_partition: Constant::new((global_base >> shared_bits & 0xf_ffff).into()),
            within_low: low(within),
            within_high: Constant::new((within >> 32).into()),
        }
    }
}

impl Logic for AddressDecoder {
    #[hdl_gen]
    fn update(&mut self) {
        self.partition.low.next = self.address_low.val();
        self.partition.high.next = self.address_high.val();
        self.target.next = self.partition.part.val() - self.first_partition.val();
        self.offset_low.next = self.address_low.val() & self.within_low.val();
        self.offset_high.next = bit_cast::<8, 32>(self.address_high.val()) & self.within_high.val();
        self.below_first.low.next = self.address_low.val();
        self.below_first.high.next = self.address_high.val();
        self.below_end.low.next = self.address_low.val();
        self.below_end.high.next = self.address_high.val();
        self.found.next = self.below_end.below.val() & !self.below_first.below.val();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rust_hdl::simulate::simulate;
    use sme_sim::families::sme::engine::requester::RequesterSpec;

    fn locate(decoder: &mut AddressDecoder, address: u64) -> Option<(u32, u64)> {
        decoder.address_low.next = (address & u64::from(u32::MAX)).into();
        decoder.address_high.next = (address >> 32).into();
        assert!(simulate(decoder, 20));
        let [low, high] = [
            u64::from(decoder.offset_low.val()),
            u64::from(decoder.offset_high.val()),
        ];
        let target = u64::from(decoder.target.val()) as u32;
        decoder.found.val().then_some((target, high << 32 | low))
    }

    proptest! {
        /// Against the cycle model's rule, with any base that is possible; most addresses are at
        /// the edges.
        #[test]
        fn it_follows_the_cycle_model(
            shared_bits in 0u32..=40,
            base in any::<u64>(),
            hosts in prop_oneof![1u32..=4, 1u32..=1 << 20, Just(1 << 20)],
            addresses in prop::collection::vec((any::<u64>(), 0u8..4, -2i64..3), 1..40),
        ) {
            let global_base = base >> (base % 30) & !((1 << shared_bits) - 1);
            let spec = RequesterSpec { global_base, shared_bits, hosts, tags: 1 };
            let mut decoder = AddressDecoder::new(global_base, shared_bits, hosts);
            decoder.connect_all();
            let bytes = u64::from(hosts) << shared_bits;
            for (address, place, step) in addresses {
                let address = match place {
                    0 => address,
                    1 => global_base.wrapping_add(address % bytes),
                    2 => global_base,
                    _ => global_base.wrapping_add(bytes),
                };
                let address = address.wrapping_add_signed(step);
                prop_assert_eq!(locate(&mut decoder, address), spec.locate(address));
            }
        }
    }

    #[test]
    #[should_panic(expected = "no partition's border")]
    fn a_base_within_a_partition_is_refused() {
        AddressDecoder::new((1 << 40) + (1 << 19), 20, 4);
    }
}
