//! The network between the engines: which switch is joined to which, and the way of a packet.
//!
//! [`Topology`] names the shape (2D and 3D mesh and torus) and joins the six link ports of the
//! switches; [`Router`] decides, hop by hop, which port and which virtual channel come next.
//! Nothing here takes time: links and buffers are simulated by [`crate::engine`].

mod routing;
mod topology;

pub use routing::{CHANNELS, Class, HOST_PORT, Here, Port, Router};
pub use topology::{LINK_PORTS, MAX_POSITIONS, Shape, Topology, TopologyError};
