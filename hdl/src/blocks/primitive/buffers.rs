//! The memories of the switch's receive buffers, and the multiplexers that read them.

use rust_hdl::prelude::*;

use crate::beat::PacketBeat;

/// Buffers.
pub const INPUTS: usize = 26;
/// Writers: each serves the buffers that [`writer`] gives it.
pub const WRITERS: usize = 8;
/// The switch's outputs.
pub const OUTPUTS: usize = 7;
/// Readers: an output each, but two for the host, of requests and of responses.
pub const READERS: usize = OUTPUTS + 1;

/// The writer of a buffer: a link's four channels share one; the host's two have one each.
pub const fn writer(input: usize) -> usize {
    if input < 24 { input / 4 } else { input - 18 }
}

/// A memory for each buffer, whose first packet every reader can take in the same cycle.
///
/// A packet written can be read after the edge. `data` of a reader is what its one-hot `select`
/// picks of the buffers that it reads, an and-or of what their `read_address`es pointed to in the
/// cycle before; 0 if it picks none of these. Where something is written in the very cycle in which
/// it is read, no reader may pick it. Packets move in here and nowhere else in the switch.
#[derive(Clone, Debug, LogicBlock)]
pub struct Buffers {
    /// The clock of the writes.
    pub clock: Signal<In, Clock>,
    /// The buffers that are written, bit by bit.
    pub write: Signal<In, Bits<INPUTS>>,
    /// The data of the writers.
    pub write_data: [Signal<In, PacketBeat>; WRITERS],
    /// The address at which a buffer is written.
    pub write_address: [Signal<In, Bits<5>>; INPUTS],
    /// The address at which a buffer is read.
    pub read_address: [Signal<In, Bits<5>>; INPUTS],
    /// The buffer that a reader takes, one-hot.
    pub select: [Signal<In, Bits<INPUTS>>; READERS],
    /// The data for each reader.
    pub data: [Signal<Out, PacketBeat>; READERS],
    _places: Box<[Box<[PacketBeat]>]>,
    /// The address at which each buffer was read: what is there does not change while it is picked.
    _read_at: [u8; INPUTS],
    _reads: [u32; READERS],
}

impl Buffers {
    /// Buffers of these depths, 1 to 32; a reader reads those in `reads`, bit by bit. Buffers
    /// without a reader are not there.
    pub fn new(depths: &[usize; INPUTS], reads: &[u32; READERS]) -> Self {
        assert!(depths.iter().all(|depth| (1..=32).contains(depth)));
        let places = |&depth: &usize| vec![PacketBeat::default(); depth].into();
        Self {
            clock: Signal::default(),
            write: Signal::default(),
            write_data: Default::default(),
            write_address: std::array::from_fn(|_| Signal::default()),
            read_address: std::array::from_fn(|_| Signal::default()),
            select: Default::default(),
            data: Default::default(),
            _places: depths.iter().map(places).collect(),
            _read_at: [0; INPUTS],
            _reads: *reads,
        }
    }
}

impl Logic for Buffers {
    fn update(&mut self) {
        if self.clock.pos_edge() {
            let mut write = self.write.val().to_u32();
            while write != 0 {
                let input = write.trailing_zeros() as usize;
                write &= write - 1;
                let address = self.write_address[input].val().index();
                self._places[input][address] = self.write_data[writer(input)].val();
            }
            for (at, address) in self._read_at.iter_mut().zip(&self.read_address) {
                *at = address.val().index() as u8;
            }
        }
        let selects = self.select.iter().zip(self._reads);
        for ((select, reads), data) in selects.zip(&mut self.data) {
            let select = select.val().to_u32() & reads;
            data.next = match select.trailing_zeros() as usize {
                input @ 0..INPUTS => self._places[input][usize::from(self._read_at[input])],
                _ => PacketBeat::default(),
            };
        }
    }

    fn connect(&mut self) {
        self.data.iter_mut().for_each(Logic::connect);
    }

    fn hdl(&self) -> Verilog {
        let last = PacketBeat::BITS - 1;
        let mut code = "integer place;\n".to_owned();
        let read = self._reads.iter().fold(0, |all, inputs| all | inputs);
        let places = self._places.iter().enumerate();
        for (input, places) in places.filter(|(input, _)| read >> input & 1 == 1) {
            let (writer, end) = (writer(input), places.len() - 1);
            let bits = places.len().next_power_of_two().trailing_zeros().max(1) as usize - 1;
            code += &format!(
                "
(* ram_style = \"distributed\" *) reg [{last}:0] places{input} [0:{end}];
reg [{last}:0] first{input} = 0;
initial for (place = 0; place <= {end}; place = place + 1) places{input}[place] = 0;
always @(posedge clock) begin
    first{input} <= places{input}[read_address${input}[{bits}:0]];
    if (write[{input}]) places{input}[write_address${input}[{bits}:0]] <= write_data${writer};
end
"
            );
        }
        for reader in 0..READERS {
            let bits = PacketBeat::BITS;
            let term = |input| format!("({{{bits}{{select${reader}[{input}]}}}} & first{input})");
            let inputs = (0..INPUTS).filter(|input| self._reads[reader] >> input & 1 == 1);
            let terms: Vec<String> = inputs.map(term).collect();
            let terms = match terms.len() {
                0 => format!("{{{bits}{{select${reader}[0]}}}} & {bits}'h0"),
                _ => terms.join("\n    | "),
            };
            code += &format!("\nalways @(*) data${reader} = {terms};\n");
        }
        Verilog::Custom(code)
    }
}
