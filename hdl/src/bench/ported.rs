//! A block of the cycle model with the ports of the RTL beside it.

use crate::device::{Device, Port};
use crate::value::Value;

/// A block of the cycle model; see [`Device::cycle`].
pub(super) trait ModelBlock {
    /// One cycle.
    fn cycle(&mut self, inputs: &[Value], outputs: &mut Vec<Value>);
}

/// A block of the cycle model, as a device.
pub(super) struct Ported<M> {
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    model: M,
}

impl<M: ModelBlock> Ported<M> {
    /// With all ports of `rtl`.
    pub fn like(rtl: &dyn Device, model: M) -> Self {
        Self {
            inputs: rtl.inputs(),
            outputs: rtl.outputs(),
            model,
        }
    }
}

impl<M: ModelBlock> Device for Ported<M> {
    fn inputs(&self) -> Vec<Port> {
        self.inputs.clone()
    }

    fn outputs(&self) -> Vec<Port> {
        self.outputs.clone()
    }

    fn cycle(&mut self, inputs: &[Value], outputs: &mut Vec<Value>) {
        self.model.cycle(inputs, outputs);
    }
}
