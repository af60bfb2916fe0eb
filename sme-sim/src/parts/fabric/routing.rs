//! Routing of packets, hop by hop.
//!
//! The switch asks [`Router`] once per packet and hop. The answer follows from the numbers of the
//! switch and of the target: dimension order in a mesh or torus (`dimension_order`), up and down in
//! a fat tree (`fat_tree`), at most one global link in a dragonfly (`dragonfly`). No table is
//! stored for any size. All are deterministic, so what one node sends another stays in order.
//!
//! Each of the two classes has two channels on every link. Where packets could wait for each other
//! in a circle, those behind a *dateline* take the second: a ring's wrap-around link in a torus,
//! the global link in a dragonfly. Meshes and fat trees use the first only.

use super::dimension_order::DimensionOrder;
use super::dragonfly::Dragonfly;
use super::fat_tree::FatTree;
use super::topology::{LINK_PORTS, Topology, Wiring};

/// Virtual channels of a link: two classes with two dateline channels each.
pub const CHANNELS: usize = 4;

/// The switch port that leads to the engine and its host.
pub const HOST_PORT: u16 = LINK_PORTS as u16;

/// The one of two independent networks on which a packet travels, so that a response never waits
/// behind a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Class {
    /// Read requests and posted writes.
    Request = 0,
    /// Read responses and error responses.
    Response = 1,
}

impl Class {
    /// This class's virtual channel, before or after the dateline.
    pub const fn channel(self, crossed: bool) -> u8 {
        self as u8 * 2 + crossed as u8
    }

    /// The class a virtual channel belongs to.
    pub const fn of_channel(channel: u8) -> Self {
        if channel < 2 {
            Class::Request
        } else {
            Class::Response
        }
    }
}

/// The port by which a packet leaves a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Port {
    /// Over a link port: `0..6` of an engine, `0..radix` of a switch outside.
    Link(u16),
    /// The packet has arrived.
    Host,
}

impl Port {
    /// The number of the link port, or of an engine's port to its host.
    pub const fn index(self) -> u16 {
        match self {
            Port::Link(port) => port,
            Port::Host => HOST_PORT,
        }
    }
}

/// The facts about a topology that routing needs, prepared for speed.
#[derive(Clone, Debug)]
pub struct Router(Ways);

#[derive(Clone, Debug)]
enum Ways {
    Grid(DimensionOrder),
    FatTree(FatTree),
    Dragonfly(Dragonfly),
}

/// The facts about its own position that a switch needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Here([u32; 3]);

impl Router {
    /// Prepares routing in `topology`.
    pub fn new(topology: &Topology) -> Self {
        Self(match topology.wiring() {
            Wiring::Grid(grid) => Ways::Grid(DimensionOrder::new(grid)),
            Wiring::FatTree(tree) => Ways::FatTree(*tree),
            Wiring::Dragonfly(dragonfly) => Ways::Dragonfly(*dragonfly),
        })
    }

    /// The place of `position`, which must be inside the topology.
    pub fn here(&self, position: u32) -> Here {
        Here(match &self.0 {
            Ways::Grid(grid) => grid.coordinates(position),
            Ways::FatTree(tree) => tree.here(position),
            Ways::Dragonfly(dragonfly) => dragonfly.here(position),
        })
    }

    /// The next step from `here` to the host at `target`: minimal in hops, in a dragonfly among the
    /// ways with one global link.
    pub fn route(&self, here: Here, target: u32) -> Port {
        match &self.0 {
            Ways::Grid(grid) => grid.route(here.0, target),
            Ways::FatTree(tree) => tree.route(here.0, target),
            Ways::Dragonfly(dragonfly) => dragonfly.route(here.0, target),
        }
    }

    /// Links that a packet from the host at `from` to that at `to` crosses in `topology`, for which
    /// this is the router.
    pub fn hops(&self, topology: &Topology, from: u32, to: u32) -> u32 {
        let (mut hops, mut at) = (0, from);
        while let Port::Link(port) = self.route(self.here(at), to)
            && let Some((next, _)) = topology.neighbour(at, port)
        {
            (hops, at) = (hops + 1, next);
        }
        hops
    }

    /// Port and virtual channel of the next step of a packet that waits `here`, in virtual channel
    /// `channel` of port `arrived` (a link port or, of an engine, [`HOST_PORT`]).
    pub fn step(&self, here: Here, arrived: u16, channel: u8, target: u32) -> (Port, u8) {
        let class = Class::of_channel(channel);
        let port = self.route(here, target);
        let Port::Link(leaves) = port else {
            return (port, class.channel(false));
        };
        let crossed = match &self.0 {
            Ways::Grid(grid) => grid.crossed(here.0, arrived, channel & 1 == 1, leaves),
            Ways::FatTree(_) => false,
            Ways::Dragonfly(dragonfly) => dragonfly.crossed(here.0, arrived, leaves),
        };
        (port, class.channel(crossed))
    }
}

#[cfg(test)]
mod tests;
