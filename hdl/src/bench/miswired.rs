//! Broken variants by wrong wires: a block in RTL whose ports lead elsewhere.

use crate::device::{Device, Port};
use crate::netlist::VerilogError;
use crate::value::Value;

/// A device between wires that change what is on its inputs and outputs.
pub(super) struct Miswired<D> {
    device: D,
    inputs: fn(&mut [Value]),
    outputs: fn(&mut [Value]),
}

impl<D: Device> Miswired<D> {
    /// `inputs` changes what arrives at the device, `outputs` what it shows; neither depends on
    /// the other.
    pub fn new(device: D, inputs: fn(&mut [Value]), outputs: fn(&mut [Value])) -> Self {
        Self {
            device,
            inputs,
            outputs,
        }
    }
}

impl<D: Device> Device for Miswired<D> {
    fn inputs(&self) -> Vec<Port> {
        self.device.inputs()
    }

    fn outputs(&self) -> Vec<Port> {
        self.device.outputs()
    }

    fn cycle(&mut self, inputs: &[Value], outputs: &mut Vec<Value>) {
        let mut changed = inputs.to_vec();
        (self.inputs)(&mut changed);
        self.device.cycle(&changed, outputs);
        (self.outputs)(outputs);
    }

    fn reset(&mut self) {
        self.device.reset();
    }

    /// Of the block between the wires.
    fn verilog(&self, name: &str) -> Result<String, VerilogError> {
        self.device.verilog(name)
    }
}
