//! A block as the harness sees it: values in and values out, cycle by cycle.
//!
//! RTL ([`Clocked`]), the generated Verilog under Verilator, and the cycle model's blocks
//! ([`crate::bench`]) are all a [`Device`] with the same ports, so that any two can be held
//! against each other.

use rust_hdl::prelude::*;
use rust_hdl::simulate::simulate;

use crate::beat::{DoublewordsBeat, HtBeat, PacketBeat};
use crate::netlist::{self, VerilogError};
use crate::value::Value;

/// A port's name in the Verilog and its width.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// Its width in bits.
    pub bits: usize,
}

/// Something with ports and a clock. Clock and reset are not among the ports.
pub trait Device {
    /// Its inputs, in the order of the values.
    fn inputs(&self) -> Vec<Port>;

    /// Its outputs, in the order of the values.
    fn outputs(&self) -> Vec<Port>;

    /// One cycle: `outputs` becomes what the outputs show with these inputs before the edge that
    /// ends the cycle; then comes the edge.
    fn cycle(&mut self, inputs: &[Value], outputs: &mut Vec<Value>);

    /// One cycle with reset high; nothing where there is no reset.
    fn reset(&mut self) {}

    /// Its Verilog, as the module `name`, where it is RTL.
    fn verilog(&self, _name: &str) -> Result<String, VerilogError> {
        Err(VerilogError::NotRtl)
    }
}

/// The type of a wire that can be a port.
pub trait Wire: Synth {
    /// Converts it to the value that the harness has.
    fn value(self) -> Value;
    /// From what the harness has.
    fn of(value: Value) -> Self;
}

impl<const N: usize> Wire for Bits<N> {
    fn value(self) -> Value {
        Value::from_bits(self)
    }

    fn of(value: Value) -> Self {
        value.bits()
    }
}

impl Wire for Bit {
    fn value(self) -> Value {
        self.into()
    }

    fn of(value: Value) -> Self {
        value.bit(0)
    }
}

impl Wire for PacketBeat {
    fn value(self) -> Value {
        PacketBeat::value(&self)
    }

    fn of(value: Value) -> Self {
        Self::from_value(value)
    }
}

impl Wire for DoublewordsBeat {
    fn value(self) -> Value {
        DoublewordsBeat::value(&self)
    }

    fn of(value: Value) -> Self {
        Self::from_value(value)
    }
}

impl Wire for HtBeat {
    fn value(self) -> Value {
        HtBeat::value(&self)
    }

    fn of(value: Value) -> Self {
        Self::from_value(value)
    }
}

/// An input, or an array of inputs.
pub trait Inputs {
    /// Appends its ports.
    fn ports(&self, name: &str, ports: &mut Vec<Port>);
    /// Takes its values from the front of `values`.
    fn drive(&mut self, values: &mut std::slice::Iter<'_, Value>);
}

impl<T: Wire> Inputs for Signal<In, T> {
    fn ports(&self, name: &str, ports: &mut Vec<Port>) {
        let (name, bits) = (name.to_owned(), T::BITS);
        ports.push(Port { name, bits });
    }

    fn drive(&mut self, values: &mut std::slice::Iter<'_, Value>) {
        if let Some(&value) = values.next() {
            self.next = T::of(value);
        }
    }
}

impl<I: Inputs, const N: usize> Inputs for [I; N] {
    fn ports(&self, name: &str, ports: &mut Vec<Port>) {
        for (index, inputs) in self.iter().enumerate() {
            inputs.ports(&format!("{name}${index}"), ports);
        }
    }

    fn drive(&mut self, values: &mut std::slice::Iter<'_, Value>) {
        self.iter_mut().for_each(|inputs| inputs.drive(values));
    }
}

/// An output, or an array of outputs.
pub trait Outputs {
    /// Appends its ports.
    fn ports(&self, name: &str, ports: &mut Vec<Port>);
    /// Appends its values.
    fn read(&self, values: &mut Vec<Value>);
}

impl<T: Wire> Outputs for Signal<Out, T> {
    fn ports(&self, name: &str, ports: &mut Vec<Port>) {
        let (name, bits) = (name.to_owned(), T::BITS);
        ports.push(Port { name, bits });
    }

    fn read(&self, values: &mut Vec<Value>) {
        values.push(self.val().value());
    }
}

impl<O: Outputs, const N: usize> Outputs for [O; N] {
    fn ports(&self, name: &str, ports: &mut Vec<Port>) {
        for (index, outputs) in self.iter().enumerate() {
            outputs.ports(&format!("{name}${index}"), ports);
        }
    }

    fn read(&self, values: &mut Vec<Value>) {
        self.iter().for_each(|outputs| outputs.read(values));
    }
}

/// A block in RTL: what [`pins!`](crate::pins) makes of a list of its ports.
pub trait Pins: Block {
    /// Its clock.
    fn clock(&mut self) -> &mut Signal<In, Clock>;
    /// Its reset.
    fn reset(&mut self) -> &mut Signal<In, Bit>;
    /// Its other inputs.
    fn input_ports(&self) -> Vec<Port>;
    /// Its outputs.
    fn output_ports(&self) -> Vec<Port>;
    /// Puts a value on each input.
    fn drive(&mut self, values: &[Value]);
    /// Reads the value of each output.
    fn read(&self, values: &mut Vec<Value>);
}

/// Makes a block's signals its [`Pins`]: `pins!(Block { in: a, b; out: c, d })`, with the
/// parameters of a generic block in brackets before its name.
///
/// An output `data`, or one whose name ends in `_data`, means something only in cycles in which
/// `valid`, or the output with `_valid` in that place, is not zero; only then it is compared.
/// `_channel`, `_crc`, `_stays` and `_before`, which accompany the data, are treated alike; so are
/// `found`, `_source`, `_tag` and `_stays`, which a table looks up, with `used`, and the `_source`
/// of a packet that `waits`.
#[macro_export]
macro_rules! pins {
    (@ [$($generics:tt)*] [$block:ty] [$($input:ident)*] [$($output:ident)*]) => {
        impl<$($generics)*> $crate::device::Pins for $block {
            fn clock(&mut self) -> &mut Signal<In, Clock> {
                &mut self.clock
            }

            fn reset(&mut self) -> &mut Signal<In, Bit> {
                &mut self.reset
            }

            fn input_ports(&self) -> Vec<$crate::device::Port> {
                let mut ports = Vec::new();
                $($crate::device::Inputs::ports(&self.$input, stringify!($input), &mut ports);)*
                ports
            }

            fn output_ports(&self) -> Vec<$crate::device::Port> {
                let mut ports = Vec::new();
                $($crate::device::Outputs::ports(&self.$output, stringify!($output), &mut ports);)*
                ports
            }

            fn drive(&mut self, values: &[$crate::value::Value]) {
                let mut values = values.iter();
                $($crate::device::Inputs::drive(&mut self.$input, &mut values);)*
            }

            fn read(&self, values: &mut Vec<$crate::value::Value>) {
                $($crate::device::Outputs::read(&self.$output, values);)*
            }
        }
    };
    ([$($generics:tt)*] $block:ty { in: $($input:ident),*; out: $($output:ident),* $(,)? }) => {
        $crate::pins!(@ [$($generics)*] [$block] [$($input)*] [$($output)*]);
    };
    ($block:ty { in: $($input:ident),*; out: $($output:ident),* $(,)? }) => {
        $crate::pins!(@ [] [$block] [$($input)*] [$($output)*]);
    };
}

/// Endings of the names of outputs that mean something only while another is not zero, and of that
/// one's name.
const WITH_VALID: [(&str, &str); 10] = [
    ("data", "valid"),
    ("channel", "valid"),
    ("crc", "valid"),
    ("stays", "valid"),
    ("stays", "used"),
    ("before", "valid"),
    ("found", "used"),
    ("source", "used"),
    ("source", "waits"),
    ("tag", "used"),
];

/// For each of `outputs`, the index of the output that says whether it means anything.
pub fn validity(outputs: &[Port]) -> Vec<Option<usize>> {
    let valid = |port: &Port| {
        let (stem, index) = match port.name.split_once('$') {
            Some((stem, index)) => (stem, format!("${index}")),
            None => (port.name.as_str(), String::new()),
        };
        WITH_VALID.iter().find_map(|(suffix, valid)| {
            let stem = stem.strip_suffix(suffix)?;
            let name = format!("{stem}{valid}{index}");
            let valid = || outputs.iter().position(|port| port.name == name);
            (stem.is_empty() || stem.ends_with('_')).then(valid)?
        })
    };
    outputs.iter().map(valid).collect()
}

/// A block in RTL with its clock running.
#[derive(Debug)]
pub struct Clocked<B> {
    /// In a box: an engine has some thousand signals.
    block: Box<B>,
}

/// Evaluations after which a block must have settled; each level of its hierarchy takes a few.
const SETTLED: usize = 200;

impl<B: Pins> Clocked<B> {
    /// The block after power-on.
    pub fn new(block: B) -> Self {
        let mut block = Box::new(block);
        block.connect_all();
        Self { block }
    }

    /// The block itself.
    pub fn block(&self) -> &B {
        &self.block
    }

    fn edge(&mut self, before: impl FnOnce(&B)) {
        self.block.clock().next = false.into();
        self.settle();
        before(&self.block);
        self.block.clock().next = true.into();
        self.settle();
    }

    /// # Panics
    /// If the logic oscillates, which is a mistake in the block.
    fn settle(&mut self) {
        let settled = simulate(self.block.as_mut(), SETTLED);
        assert!(settled, "the block does not settle: a loop in its logic");
    }
}

impl<B: Pins> Device for Clocked<B> {
    fn inputs(&self) -> Vec<Port> {
        self.block.input_ports()
    }

    fn outputs(&self) -> Vec<Port> {
        self.block.output_ports()
    }

    fn cycle(&mut self, inputs: &[Value], outputs: &mut Vec<Value>) {
        self.block.drive(inputs);
        outputs.clear();
        self.edge(|block| block.read(outputs));
    }

    fn reset(&mut self) {
        self.block.reset().next = true;
        self.edge(|_| ());
        self.block.reset().next = false;
    }

    fn verilog(&self, name: &str) -> Result<String, VerilogError> {
        netlist::of(self.block.as_ref(), name)
    }
}
