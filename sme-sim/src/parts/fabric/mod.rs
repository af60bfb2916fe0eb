//! The network between the engines: which switch is joined to which, and the way of a packet.
//!
//! [`Topology`] names the shape and joins the link ports of the switches: 2D and 3D mesh and torus
//! (`grid`), whose switches are the engines' own, and fat tree (`fat_tree`) and dragonfly
//! (`dragonfly`), whose switches are separate and of any radix. [`Router`] decides, hop by hop,
//! which port and which virtual channel come next, from the numbers of switch and target alone.
//! Nothing here takes time: links and buffers are for the machine that has them.

mod dimension_order;
mod dragonfly;
mod fat_tree;
mod grid;
mod network_kind;
mod routing;
mod topology;

pub use network_kind::NetworkKind;
pub use routing::{CHANNELS, Class, HOST_PORT, Here, Port, Router};
pub use topology::{LINK_PORTS, MAX_HOSTS, MOST_PORTS, Topology, TopologyError, TopologyKind};
