//! A memory that is read in the same cycle, as the look-up tables of an FPGA make one.

use rust_hdl::prelude::*;

/// 2^A places of `T`. `read_data` follows `read_address` at once; a write is seen after the edge.
/// Nothing is reset: the reader knows what was written.
#[derive(Clone, Debug, LogicBlock)]
pub struct LutRam<T: Synth, const A: usize> {
    /// The clock of the writes.
    pub clock: Signal<In, Clock>,
    /// The place that is read.
    pub read_address: Signal<In, Bits<A>>,
    /// The data at the read address.
    pub read_data: Signal<Out, T>,
    /// Whether something is written.
    pub write_enable: Signal<In, Bit>,
    /// The address.
    pub write_address: Signal<In, Bits<A>>,
    /// The data to write.
    pub write_data: Signal<In, T>,
    _places: Box<[T]>,
}

impl<T: Synth, const A: usize> Default for LutRam<T, A> {
    fn default() -> Self {
        Self {
            clock: Signal::default(),
            read_address: Signal::default(),
            read_data: Signal::default(),
            write_enable: Signal::default(),
            write_address: Signal::default(),
            write_data: Signal::default(),
            _places: vec![T::default(); 1 << A].into(),
        }
    }
}

impl<T: Synth, const A: usize> Logic for LutRam<T, A> {
    fn update(&mut self) {
        if self.clock.pos_edge() && self.write_enable.val() {
            self._places[self.write_address.val().index()] = self.write_data.val();
        }
        self.read_data.next = self._places[self.read_address.val().index()];
    }

    fn connect(&mut self) {
        self.read_data.connect();
    }

    fn hdl(&self) -> Verilog {
        let (width, last) = (T::BITS - 1, (1 << A) - 1);
        Verilog::Custom(format!(
            "\
reg [{width}:0] places [0:{last}];
integer place;

initial begin
    for (place = 0; place <= {last}; place = place + 1) places[place] = 0;
end

always @(posedge clock) begin
    if (write_enable) places[write_address] <= write_data;
end

always @(*) read_data = places[read_address];"
        ))
    }
}
