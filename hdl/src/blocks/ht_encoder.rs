//! A packet for the host, of each kind, as HyperTransport's doublewords.
//!
//! ```text
//! write ────> posted sized write ────> write_out
//! read ─────> sized read ────────────> read_out
//! response ─> read response ─────────> response_out
//! ```
//!
//! It is combinational. The rules are those of
//! [`sme_sim::families::sme::engine::HtPacket::encode`]: an address extension where the address
//! needs more than 40 bits, a byte mask where a write is not of all eight bytes. Data stand where
//! they stood: nothing that is known late chooses between wide words. Fields that are not looked at
//! in a packet of its kind may be anything.
//!
//! ```text
//! cycle      0   1   2
//! write      a   b   b
//! write_out  A   B   B       no register: in the same cycle
//! ```

use crate::beat::{DoublewordsBeat, HtBeat};
use rust_hdl::prelude::*;

/// The encoder.
#[derive(Clone, Debug, LogicBlock)]
pub struct HtEncoder {
    /// A posted write.
    pub write: Signal<In, HtBeat>,
    /// A read.
    pub read: Signal<In, HtBeat>,
    /// A response.
    pub response: Signal<In, HtBeat>,
    /// The write.
    pub write_out: Signal<Out, DoublewordsBeat>,
    /// The read.
    pub read_out: Signal<Out, DoublewordsBeat>,
    /// The response.
    pub response_out: Signal<Out, DoublewordsBeat>,
    enables: Signal<Local, Bits<8>>,
    /// The bytes of a read, in the first doubleword and in the second.
    low: Signal<Local, Bits<4>>,
    high: Signal<Local, Bits<4>>,
    pub(crate) extension: Constant<Bits<6>>,
    posted_write: Constant<DoublewordsBeat>,
    pub(crate) sized_read: Constant<DoublewordsBeat>,
    read_response: Constant<DoublewordsBeat>,
}

impl HtEncoder {
    /// No registers, no parameters.
    pub fn new() -> Self {
        let command = |what: u64, coherent: u64| {
            let mut beat = DoublewordsBeat::default();
            beat.set_value_what(what.into());
            beat.set_value_coherent(coherent.into());
            Constant::new(beat)
        };
        Self {
            write: Signal::default(),
            read: Signal::default(),
            response: Signal::default(),
            write_out: Signal::default(),
            read_out: Signal::default(),
            response_out: Signal::default(),
            enables: Signal::default(),
            low: Signal::default(),
            high: Signal::default(),
            extension: Constant::new(0b11_1110.into()),
            posted_write: command(0b101, 0),
            sized_read: command(0b010, 1),
            read_response: command(0b110, 0),
        }
    }
}

impl Default for HtEncoder {
    fn default() -> Self {
        Self::new()
    }
}

impl Logic for HtEncoder {
    #[hdl_gen]
    fn update(&mut self) {
        // A write.
        self.enables.next = self.write.val().get_value_enables();
        self.write_out.next = self.posted_write.val();
        self.write_out
            .next
            .set_value_address_40_63(self.write.val().get_value_address_40_63());
        if self.write.val().get_value_address_40_63() != 0 {
            self.write_out
                .next
                .set_value_extension(self.extension.val());
        }
        self.write_out
            .next
            .set_value_address_32_39(self.write.val().get_value_address_32_39());
        self.write_out
            .next
            .set_value_address_8_31(self.write.val().get_value_address_8_31());
        self.write_out
            .next
            .set_value_address_3_7(self.write.val().get_value_address_3_7());
        self.write_out
            .next
            .set_value_coherent(self.write.val().get_value_flag());
        self.write_out
            .next
            .set_value_data_low(self.write.val().get_value_data_low());
        self.write_out
            .next
            .set_value_data_high(self.write.val().get_value_data_high());
        // Two doublewords, or two and the mask, less one.
        self.write_out.next.set_value_count(2.into());
        if self.enables.val() == 0xff {
            self.write_out.next.set_value_of_doublewords(1.into());
            self.write_out.next.set_value_count(1.into());
        }
        if self.write.val().get_value_word() == 0 {
            self.write_out.next.set_value_mask_0(self.enables.val());
        } else if self.write.val().get_value_word() == 1 {
            self.write_out.next.set_value_mask_1(self.enables.val());
        } else if self.write.val().get_value_word() == 2 {
            self.write_out.next.set_value_mask_2(self.enables.val());
        } else {
            self.write_out.next.set_value_mask_3(self.enables.val());
        }

        // A read; that of bytes has a mask for a count.
        self.low.next = self.read.val().get_value_enables_low();
        self.high.next = self.read.val().get_value_enables_high();
        self.read_out.next = self.sized_read.val();
        self.read_out
            .next
            .set_value_tag(self.read.val().get_value_tag());
        self.read_out
            .next
            .set_value_address_40_63(self.read.val().get_value_address_40_63());
        if self.read.val().get_value_address_40_63() != 0 {
            self.read_out.next.set_value_extension(self.extension.val());
        }
        self.read_out
            .next
            .set_value_address_32_39(self.read.val().get_value_address_32_39());
        self.read_out
            .next
            .set_value_address_8_31(self.read.val().get_value_address_8_31());
        self.read_out
            .next
            .set_value_address_3_7(self.read.val().get_value_address_3_7());
        if (self.low.val() != 0) & (self.high.val() != 0) {
            self.read_out.next.set_value_of_doublewords(1.into());
            self.read_out.next.set_value_count(1.into());
        } else if self.high.val() != 0 {
            self.read_out.next.set_value_upper(1.into());
            if self.high.val() == 15 {
                self.read_out.next.set_value_of_doublewords(1.into());
            } else {
                self.read_out.next.set_value_count(self.high.val());
            }
        } else if self.low.val() == 15 {
            self.read_out.next.set_value_of_doublewords(1.into());
        } else {
            self.read_out.next.set_value_count(self.low.val());
        }

        // A response.
        self.response_out.next = self.read_response.val();
        self.response_out
            .next
            .set_value_tag(self.response.val().get_value_tag());
        self.response_out
            .next
            .set_value_data_low(self.response.val().get_value_data_low());
        self.response_out
            .next
            .set_value_data_high(self.response.val().get_value_data_high());
        if self.response.val().get_value_flag() == 0 {
            self.response_out.next.set_value_count(1.into());
        }
        if self.response.val().get_value_kind() == 3 {
            self.response_out.next.set_value_error(1.into());
            self.response_out.next.set_value_no_access(1.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rust_hdl::simulate::simulate;
    use sme_sim::families::sme::engine::Kind;

    /// A packet of this kind with these fields, and others of the beat.
    fn beat(kind: Kind, address: u64, data: u64, enables: u8, rest: u8) -> HtBeat {
        let mut beat = HtBeat::default();
        beat.set_value_address((address & !7).into());
        beat.set_value_data(data.into());
        beat.set_value_enables(u64::from(enables).into());
        beat.set_value_tag(u64::from(rest & 31).into());
        beat.set_value_flag(u64::from(rest >> 7).into());
        beat.set_value_kind((kind as u64).into());
        beat
    }

    proptest! {
        #[test]
        fn it_follows_the_cycle_model(
            all in prop::collection::vec(
                (any::<u64>(), 0..64u32, any::<u64>(), 0..4u8, any::<[u8; 2]>()),
                1..40,
            ),
        ) {
            let mut encoder = HtEncoder::new();
            encoder.connect_all();
            for (address, shift, data, which, [enables, rest]) in all {
                let enables = [0xff, 0x0f, 0xf0, enables][usize::from(which)];
                let packet = |kind| beat(kind, address >> shift, data, enables, rest);
                let error = if rest & 64 == 0 { Kind::ReadResponse } else { Kind::ErrorResponse };
                let [write, read, response] =
                    [Kind::PostedWrite, Kind::ReadRequest, error].map(packet);
                encoder.write.next = write;
                encoder.read.next = read;
                encoder.response.next = response;
                prop_assert!(simulate(&mut encoder, 20));
                for (packet, found) in [
                    (write, encoder.write_out.val()),
                    (read, encoder.read_out.val()),
                    (response, encoder.response_out.val()),
                ] {
                    prop_assert_eq!(found.doublewords(), packet.packet(0).encode());
                }
            }
        }
    }
}
