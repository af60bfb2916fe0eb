//! An address from an offset.

use rust_hdl::prelude::*;

/// A 40-bit offset plus a constant of the instance, in 64 bits; what is beyond them is lost. In
/// Verilog it is one adder; rust-hdl adds long numbers bit by bit, which is slow.
#[derive(Clone, Debug, LogicBlock)]
pub struct Displace {
    /// Bits 0–31 of the offset.
    pub offset_low: Signal<In, Bits<32>>,
    /// Bits 32–39.
    pub offset_high: Signal<In, Bits<8>>,
    /// Bits 0–31 of the address.
    pub address_low: Signal<Out, Bits<32>>,
    /// Bits 32–63.
    pub address_high: Signal<Out, Bits<32>>,
    _base: u64,
}

impl Displace {
    /// By `base`.
    pub fn new(base: u64) -> Self {
        Self {
            offset_low: Signal::default(),
            offset_high: Signal::default(),
            address_low: Signal::default(),
            address_high: Signal::default(),
            _base: base,
        }
    }
}

impl Logic for Displace {
    fn update(&mut self) {
        let offset = u64::from(self.offset_high.val()) << 32 | u64::from(self.offset_low.val());
        let address = self._base.wrapping_add(offset);
        self.address_low.next = (address & u64::from(u32::MAX)).into();
        self.address_high.next = (address >> 32).into();
    }

    fn connect(&mut self) {
        self.address_low.connect();
        self.address_high.connect();
    }

    fn hdl(&self) -> Verilog {
        let base = self._base;
        Verilog::Custom(format!(
            "\
wire [63:0] address;
assign address = {{24'h0, offset_high, offset_low}} + 64'h{base:x};
always @(*) begin
    address_low = address[31:0];
    address_high = address[63:32];
end"
        ))
    }
}
