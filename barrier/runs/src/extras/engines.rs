//! The engines of an experiment: the cycle model, RTL, or Verilog compiled by Verilator.

use std::sync::Arc;

use sme_hdl::blocks::engine::Engine;
use sme_hdl::device::Clocked;
use sme_hdl::rtl_engine::{RtlEngine, Surroundings};
use sme_hdl::verilated::Toolchain;
use sme_sim::families::sme::cluster::Plugged;
use sme_sim::families::sme::engine::Design;

use super::super::{EngineKind, Error, Experiment};
use super::spec;

impl Experiment {
    /// Returns whether engines as the machine wants them can be built in RTL, if that is asked for.
    ///
    /// # Errors
    /// [`Error::Design`] and [`Error::Rtl`].
    pub fn check_rtl(&self) -> Result<(), Error> {
        if self.engine != EngineKind::Cycle {
            let spec = spec(self)?;
            let hosts = spec.hosts(self.nodes);
            Design::new(spec, &self.topology, hosts)?;
            Engine::new(spec, &self.topology, hosts)?;
        }
        Ok(())
    }

    /// Returns the function that makes the engine of each position.
    ///
    /// # Errors
    /// [`Error::Design`] if no engine can be built as the machine wants it, [`Error::Rtl`] if it
    /// cannot in RTL.
    pub(super) fn engines(&self) -> Result<Box<dyn Fn(u32) -> Plugged>, Error> {
        let spec = spec(self)?;
        let (topology, hosts) = (self.topology.clone(), spec.hosts(self.nodes));
        let design = Arc::new(Design::new(spec, &topology, hosts)?);
        Ok(match self.engine {
            EngineKind::Cycle => Box::new(move |node| Plugged::cycle(&design, node, hosts)),
            EngineKind::Rtl => {
                Engine::new(spec, &topology, hosts)?;
                let spec = spec.clone();
                let surroundings = Arc::new(Surroundings::new(&spec, &topology, hosts));
                Box::new(move |node| {
                    let engine = Engine::new(&spec, &topology, hosts);
                    let engine = engine.expect("one was built before the first node");
                    Plugged::Other(Box::new(RtlEngine::new(
                        Clocked::new(engine),
                        &surroundings,
                        node,
                    )))
                })
            }
            EngineKind::Verilated => {
                let engine = Clocked::new(Engine::new(spec, &topology, hosts)?);
                let model = Toolchain::find()?.build(&engine)?;
                let surroundings = Arc::new(Surroundings::new(spec, &topology, hosts));
                Box::new(move |node| {
                    Plugged::Other(Box::new(RtlEngine::new(
                        model.device(),
                        &surroundings,
                        node,
                    )))
                })
            }
        })
    }
}
