//! A block as Verilog text: rust-hdl generates, and the submodule `tidy` makes of that what a person
//! would have written.
//!
//! Called by [`crate::device`]; whole files and their test benches are made by [`crate::verilog`].

mod tidy;
mod width;

use rust_hdl::check_error::{CheckError, PathedName};
use rust_hdl::prelude::{Block, check_all, generate_verilog_unchecked};

/// Why there is no Verilog of a block.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerilogError {
    /// A cycle model and the like.
    #[error("it is not RTL")]
    NotRtl,
    /// A signal that nobody drives, a loop, an input that is written: a mistake in the block.
    #[error("{what}: {}", signals.join(", "))]
    Check {
        /// What is wrong.
        what: &'static str,
        /// With which signals.
        signals: Vec<String>,
    },
}

impl From<CheckError> for VerilogError {
    fn from(error: CheckError) -> Self {
        let name = |signal: &PathedName| format!("{}${}", signal.path, signal.name);
        let (what, mut signals): (_, Vec<String>) = match &error {
            CheckError::OpenSignal(open) => (
                "nobody drives these signals",
                open.values().map(name).collect(),
            ),
            CheckError::LogicLoops(signals) => (
                "these signals depend on themselves",
                signals.iter().map(name).collect(),
            ),
            CheckError::WritesToInputs(signals) => (
                "these inputs are written",
                signals.iter().map(name).collect(),
            ),
        };
        signals.sort();
        Self::Check { what, signals }
    }
}

/// `block`, whose signals are connected, as the module `module` and those below it.
pub fn of(block: &impl Block, module: &str) -> Result<String, VerilogError> {
    check_all(block)?;
    Ok(tidy::tidy(&generate_verilog_unchecked(block), module))
}

/// Whether a name may have `c`.
fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '$'
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::fifo::Fifo;
    use crate::device::Clocked;
    use rust_hdl::prelude::*;

    #[test]
    fn equal_registers_are_one_module() {
        let fifo = Clocked::new(Fifo::<Bits<8>, 3, 4>::new(5));
        let text = crate::device::Device::verilog(&fifo, "sme_fifo").unwrap();
        let modules: Vec<_> = text
            .lines()
            .filter(|line| line.starts_with("module "))
            .collect();
        let names = [
            "sme_fifo(",
            "sme_fifo_lut_ram_8x8(",
            "sme_fifo_head(",
            "sme_fifo_register_3_initial_1(",
            "sme_fifo_register_3(",
            "sme_fifo_register_4(",
            "sme_fifo_register_1(",
            "sme_fifo_register_1_initial_1(",
        ];
        assert_eq!(modules.len(), names.len(), "{text}");
        for (module, name) in modules.iter().zip(names) {
            assert!(module.starts_with(&format!("module {name}")), "{module}");
        }
        assert!(
            text.contains(".clock(clock)"),
            "the clock goes straight to the registers"
        );
    }

    #[derive(LogicBlock, Default)]
    struct Open {
        operand: Signal<In, Bit>,
        result: Signal<Out, Bit>,
        forgotten: Signal<Local, Bit>,
    }

    impl Logic for Open {
        #[hdl_gen]
        fn update(&mut self) {
            self.result.next = self.operand.val() & self.forgotten.val();
        }
    }

    #[test]
    fn a_signal_that_nobody_drives_is_named() {
        let mut block = Open::default();
        block.connect_all();
        let error = of(&block, "open").unwrap_err().to_string();
        assert!(error.contains("forgotten"), "{error}");
    }
}
