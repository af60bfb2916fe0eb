//! The route against the cycle model's router.

use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;
use rust_hdl::prelude::*;
use sme_sim::parts::fabric::{CHANNELS, HOST_PORT, Router, Topology, TopologyKind};

use super::miswired::Miswired;
use super::ported::{ModelBlock, Ported};
use super::source::{below, chance};
use super::{Bench, EngineSite};
use crate::blocks::router::Route;
use crate::device::Clocked;
use crate::lockstep::random::Random;
use crate::lockstep::{Pair, Traffic};
use crate::value::Value;

pub(super) const BENCH: Bench = Bench {
    name: "router",
    what: "dimension-order routing with dateline channels: the next step of a packet",
    faults: &[
        "ties go the - way",
        "sizes the other way round",
        "mesh for torus",
        "datelines forgotten",
    ],
    build,
    of,
};

/// Inputs, by their place in the list.
const ARRIVED: usize = 3;

fn build(seed: u64, fault: Option<&str>) -> Pair {
    pair(any_topology(seed), fault)
}

fn of(site: &EngineSite, fault: Option<&str>) -> Pair {
    Pair {
        sizes: site.topology.to_string(),
        ..pair(site.topology.clone(), fault)
    }
}

fn pair(topology: Topology, fault: Option<&str>) -> Pair {
    let shape = topology.kind();
    let mut built = match fault {
        Some("sizes the other way round") => {
            let sizes: Vec<u32> = topology.dimensions().iter().rev().copied().collect();
            other(shape, &sizes)
        }
        Some("mesh for torus") => other(TopologyKind::Mesh, topology.dimensions()),
        _ => topology.clone(),
    };
    if fault == Some("ties go the - way") {
        // Only a ring of even size has any.
        built = other(TopologyKind::Torus, &[6, 4]);
    }
    let topology = if fault == Some("ties go the - way") {
        built.clone()
    } else {
        topology
    };
    let mut route = Route::new(&built);
    if fault == Some("ties go the - way") {
        route.half[0] = Constant::new(2.into());
    }
    let rtl = Clocked::new(route);
    let model = Model {
        router: Router::new(&topology),
        topology: topology.clone(),
    };
    let model = Ported::like(&rtl, model);
    Pair {
        rtl: match fault {
            Some("datelines forgotten") => Box::new(Miswired::new(
                rtl,
                |inputs| inputs[ARRIVED] = u64::from(HOST_PORT).into(),
                |_| (),
            )),
            _ => Box::new(rtl),
        },
        model: Box::new(model),
        sizes: topology.to_string(),
        traffic: Box::new(Targets { topology, asked: 0 }),
    }
}

fn other(shape: TopologyKind, sizes: &[u32]) -> Topology {
    Topology::new(shape, sizes).expect("as many positions as the other")
}

/// Often odd sizes, sometimes powers of two, sometimes flat, sometimes as large as they can be.
pub(super) fn any_topology(seed: u64) -> Topology {
    let mut random = Pcg32::seed_from_u64(seed ^ 0x746f_706f);
    let dimensions = 2 + below(&mut random, 2) as usize;
    let sizes: Vec<u32> = (0..dimensions)
        .map(|_| match below(&mut random, 8) {
            0 => 1,
            1 => 1 << below(&mut random, 6),
            2 => 17 + below(&mut random, 84),
            _ => 2 + below(&mut random, 10),
        })
        .collect();
    let shape = if seed.is_multiple_of(2) {
        TopologyKind::Torus
    } else {
        TopologyKind::Mesh
    };
    other(shape, &sizes)
}

/// A target: mostly a position, often a near one; sometimes none of this topology.
pub(super) fn any_target(random: &mut Random, topology: &Topology, here: u32) -> u32 {
    match below(random, 8) {
        0 => random.next_u32() >> 12,
        1 => here,
        2 | 3 => topology
            .neighbour(here, below(random, 6) as u16)
            .map_or(here, |(there, _)| there),
        _ => below(random, topology.positions()),
    }
}

/// Ports: x, y, z, arrived, channel, target; exit, way.
struct Model {
    router: Router,
    topology: Topology,
}

impl ModelBlock for Model {
    fn cycle(&mut self, inputs: &[Value], outputs: &mut Vec<Value>) {
        let low = |port: usize| inputs[port].low() as u32;
        let position = self.topology.position([low(0), low(1), low(2)]);
        let here = self.router.here(position.expect("traffic stays inside"));
        let (arrived, channel) = (low(ARRIVED) as u16, low(4) as u8);
        let (port, channel) = self.router.step(here, arrived, channel, low(5));
        let exit = u64::from(port.index()) * CHANNELS as u64 + u64::from(channel);
        let way = 1 << port.index() | u64::from(channel & 1) << 7;
        outputs.clear();
        outputs.extend([exit, way].map(Value::from));
    }
}

/// Every cycle another place, port, channel and target.
struct Targets {
    topology: Topology,
    asked: u64,
}

impl Traffic for Targets {
    fn inputs(&mut self, random: &mut Random, _: &[Value], inputs: &mut Vec<Value>) {
        let topology = &self.topology;
        let here = below(random, topology.positions());
        let target = any_target(random, topology, here);
        inputs.extend(topology.coordinates(here).map(u64::from).map(Value::from));
        inputs.push(u64::from(below(random, 7)).into());
        let mut channel = below(random, 4);
        if chance(random, 20) {
            channel |= 1;
        }
        inputs.push(u64::from(channel).into());
        inputs.push(u64::from(target).into());
        self.asked += 1;
    }

    fn transactions(&self) -> u64 {
        self.asked
    }
}
