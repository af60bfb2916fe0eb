//! Decoding of the host's doublewords, as a packet of each kind.
//!
//! ```text
//!             ┌─ command ──────────────> posted, nonposted, responds
//! doublewords ┼─ mask, count, data ────> write      a beat without what its kind does not carry
//!             ├─ address, tag ─────────> read
//!             └─ errors, data ─────────> response
//! ```
//!
//! It is combinational. The rules are those of
//! [`sme_sim::families::sme::engine::ht::Doublewords::decode`]; each buffer behind it keeps one
//! kind, so that no field is chosen by kind. A request that is no sized read or write of up to
//! eight aligned bytes gets the upper 24 bits of its address set, and so is one of no node.
//!
//! ```text
//! cycle         0   1   2
//! doublewords   w   r   ?        ? is a read of sixteen bytes
//! posted       ▔▔▔▔▁▁▁▁▁▁▁▁
//! write         w
//! nonposted    ▁▁▁▁▔▔▔▔▔▔▔▔
//! read              r   x        x has an address of no node
//! ```

use crate::beat::{DoublewordsBeat, HtBeat};
use rust_hdl::prelude::*;
use sme_sim::families::sme::engine::Kind;

/// The decoder.
#[derive(Clone, Debug, LogicBlock)]
pub struct HtDecoder {
    /// A packet of the host.
    pub doublewords: Signal<In, DoublewordsBeat>,
    /// The packet is on the channel of posted writes.
    pub posted: Signal<Out, Bit>,
    /// The packet is on the channel of reads.
    pub nonposted: Signal<Out, Bit>,
    /// The packet is on the channel of responses.
    pub responds: Signal<Out, Bit>,
    /// The write that it is, if posted.
    pub write: Signal<Out, HtBeat>,
    /// The read that it is, if nonposted.
    pub read: Signal<Out, HtBeat>,
    /// The response that it is, if it responds.
    pub response: Signal<Out, HtBeat>,
    /// Bits 3–5 of the command, and bits 0–2.
    what: Signal<Local, Bits<3>>,
    form: Signal<Local, Bits<3>>,
    count: Signal<Local, Bits<4>>,
    /// The second doubleword of eight bytes is the first that is meant.
    upper: Signal<Local, Bit>,
    /// The request is of doublewords, and not of bytes.
    of_doublewords: Signal<Local, Bit>,
    /// Doublewords that do not leave the eight bytes.
    doublewords_fit: Signal<Local, Bit>,
    /// The same of a write of bytes, whose mask counts.
    bytes_fit: Signal<Local, Bit>,
    /// An atomic request, which is not posted though its number is among those.
    atomic: Signal<Local, Bit>,
    reads: Signal<Local, Bit>,
    writes: Signal<Local, Bit>,
    /// A write has one doubleword of data.
    single: Signal<Local, Bit>,
    /// The bytes around a write's address that its mask names.
    mask: Signal<Local, Bits<8>>,
    fails: Signal<Local, Bit>,
    /// The upper bits of an address of no node.
    pub(crate) nowhere: Constant<Bits<24>>,
    read_request: Constant<HtBeat>,
    posted_write: Constant<HtBeat>,
    read_response: Constant<HtBeat>,
    pub(crate) error_response: Constant<Bits<2>>,
}

impl HtDecoder {
    /// No registers, no parameters.
    pub fn new() -> Self {
        let kind = |kind: Kind| {
            let mut beat = HtBeat::default();
            beat.set_value_kind((kind as u64).into());
            Constant::new(beat)
        };
        Self {
            doublewords: Signal::default(),
            posted: Signal::default(),
            nonposted: Signal::default(),
            responds: Signal::default(),
            write: Signal::default(),
            read: Signal::default(),
            response: Signal::default(),
            what: Signal::default(),
            form: Signal::default(),
            count: Signal::default(),
            upper: Signal::default(),
            of_doublewords: Signal::default(),
            doublewords_fit: Signal::default(),
            bytes_fit: Signal::default(),
            atomic: Signal::default(),
            reads: Signal::default(),
            writes: Signal::default(),
            single: Signal::default(),
            mask: Signal::default(),
            fails: Signal::default(),
            nowhere: Constant::new(0xff_ffff.into()),
            read_request: kind(Kind::ReadRequest),
            posted_write: kind(Kind::PostedWrite),
            read_response: kind(Kind::ReadResponse),
            error_response: Constant::new((Kind::ErrorResponse as u64).into()),
        }
    }
}

impl Default for HtDecoder {
    fn default() -> Self {
        Self::new()
    }
}

#[allow(
    clippy::nonminimal_bool,
    reason = "as it was placed and routed: in other words Yosys maps it otherwise"
)]
impl Logic for HtDecoder {
    #[hdl_gen]
    fn update(&mut self) {
        self.what.next = self.doublewords.val().get_value_what();
        self.form.next = self.doublewords.val().get_value_form();
        self.count.next = self.doublewords.val().get_value_count();
        self.upper.next = self.doublewords.val().get_value_upper() == 1;
        self.of_doublewords.next = self.form.val().get_bit(2);

        self.responds.next = self.what.val() == 6;
        self.atomic.next = (self.what.val() == 7) & (self.form.val() == 5);
        self.posted.next =
            self.what.val().get_bit(2) & !(self.what.val() == 6) & !self.atomic.val();
        self.nonposted.next = !self.what.val().get_bit(2) | self.atomic.val();
        self.reads.next = (self.what.val() == 2) | (self.what.val() == 3);
        self.writes.next = self.what.val() == 5;
        self.doublewords_fit.next =
            (self.count.val() == 0) | ((self.count.val() == 1) & !self.upper.val());
        self.bytes_fit.next =
            (self.count.val() == 1) | ((self.count.val() == 2) & !self.upper.val());

        // A read; that of bytes has a mask for a count.
        self.read.next = self.read_request.val();
        self.read
            .next
            .set_value_tag(self.doublewords.val().get_value_tag());
        self.read
            .next
            .set_value_address_3_7(self.doublewords.val().get_value_address_3_7());
        self.read
            .next
            .set_value_address_8_31(self.doublewords.val().get_value_address_8_31());
        self.read
            .next
            .set_value_address_32_39(self.doublewords.val().get_value_address_32_39());
        if self.reads.val() & (self.doublewords_fit.val() | !self.of_doublewords.val()) {
            self.read
                .next
                .set_value_address_40_63(self.doublewords.val().get_value_address_40_63());
        } else {
            self.read.next.set_value_address_40_63(self.nowhere.val());
        }
        if self.of_doublewords.val() & self.count.val().get_bit(0) {
            self.read.next.set_value_enables(0xff.into());
        } else if self.of_doublewords.val() & self.upper.val() {
            self.read.next.set_value_enables(0xf0.into());
        } else if self.of_doublewords.val() {
            self.read.next.set_value_enables(0x0f.into());
        } else if self.upper.val() {
            self.read
                .next
                .set_value_enables_high(self.doublewords.val().get_value_count());
        } else {
            self.read
                .next
                .set_value_enables_low(self.doublewords.val().get_value_count());
        }

        // A write: which of 32 bytes, by bits 3 and 4 of the address.
        self.mask.next = self.doublewords.val().get_value_mask_0();
        if self.doublewords.val().get_value_word() == 1 {
            self.mask.next = self.doublewords.val().get_value_mask_1();
        } else if self.doublewords.val().get_value_word() == 2 {
            self.mask.next = self.doublewords.val().get_value_mask_2();
        } else if self.doublewords.val().get_value_word() == 3 {
            self.mask.next = self.doublewords.val().get_value_mask_3();
        }
        if self.of_doublewords.val() {
            self.single.next = !self.count.val().get_bit(0);
            self.fails.next = !(self.writes.val() & self.doublewords_fit.val());
        } else {
            self.single.next = !self.count.val().get_bit(1);
            self.fails.next = !(self.writes.val() & self.bytes_fit.val());
        }
        self.write.next = self.posted_write.val();
        self.write
            .next
            .set_value_flag(self.doublewords.val().get_value_coherent());
        self.write
            .next
            .set_value_address_3_7(self.doublewords.val().get_value_address_3_7());
        self.write
            .next
            .set_value_address_8_31(self.doublewords.val().get_value_address_8_31());
        self.write
            .next
            .set_value_address_32_39(self.doublewords.val().get_value_address_32_39());
        self.write
            .next
            .set_value_address_40_63(self.doublewords.val().get_value_address_40_63());
        if self.fails.val() {
            self.write.next.set_value_address_40_63(self.nowhere.val());
        }
        self.write.next.set_value_enables(self.mask.val());
        if self.of_doublewords.val() {
            self.write.next.set_value_enables(0xff.into());
        }
        self.write
            .next
            .set_value_data_low(self.doublewords.val().get_value_data_low());
        self.write
            .next
            .set_value_data_high(self.doublewords.val().get_value_data_high());
        if self.single.val() & self.upper.val() {
            self.write.next.set_value_enables_low(0.into());
            self.write.next.set_value_data_low(0.into());
            self.write
                .next
                .set_value_data_high(self.doublewords.val().get_value_data_low());
        } else if self.single.val() {
            self.write.next.set_value_enables_high(0.into());
            self.write.next.set_value_data_high(0.into());
        }

        // A response.
        self.response.next = self.read_response.val();
        self.response
            .next
            .set_value_tag(self.doublewords.val().get_value_tag());
        self.response
            .next
            .set_value_data_low(self.doublewords.val().get_value_data_low());
        if self.count.val().get_bit(0) {
            self.response
                .next
                .set_value_data_high(self.doublewords.val().get_value_data_high());
        } else {
            self.response.next.set_value_flag(1.into());
        }
        if (self.form.val() != 0)
            | (self.doublewords.val().get_value_error() == 1)
            | (self.doublewords.val().get_value_no_access() == 1)
        {
            self.response.next.set_value_kind(self.error_response.val());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rust_hdl::simulate::simulate;
    use sme_sim::families::sme::engine::HtChannel;
    use sme_sim::families::sme::engine::ht::Doublewords;

    proptest! {
        /// Against the cycle model's rule: anything, and what is nearly an access.
        #[test]
        fn it_follows_the_cycle_model(
            all in prop::collection::vec((any::<[u64; 3]>(), 0u64..64, 0u64..3, 0..3u8), 1..40),
        ) {
            let mut decoder = HtDecoder::new();
            decoder.connect_all();
            for ([command, data, other], what, count, how) in all {
                let near = command & !(0x3f | 0xf << 22) | what | count << 22;
                let doublewords = Doublewords {
                    extension: other as u32,
                    command: if how == 0 { command } else { near },
                    mask: (other >> 32) as u32,
                    data,
                };
                decoder.doublewords.next = doublewords.into();
                prop_assert!(simulate(&mut decoder, 20));
                let channels = [&decoder.posted, &decoder.nonposted, &decoder.responds];
                let packets = [&decoder.write, &decoder.read, &decoder.response];
                for channel in HtChannel::ALL {
                    let chosen = channel == doublewords.channel();
                    prop_assert_eq!(channels[channel as usize].val(), chosen);
                    if chosen {
                        let packet = packets[channel as usize].val();
                        prop_assert_eq!(packet, HtBeat::from(doublewords.decode()));
                    }
                }
            }
        }
    }
}
