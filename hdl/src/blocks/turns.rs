//! The turns that packets take in a switch, by dimension order in its topology; the others have no
//! wires.
//!
//! ```text
//! from \ to   x+ x- y+ y- z+ z- host
//! x+           .  1  1  1  1  1  1      arrived at x+: it travels towards x-, or has arrived in x
//! y-           .  .  1  .  1  1  1
//! z+           .  .  .  .  .  1  1
//! host         1  1  1  1  1  1  .      the crossbar turns round what is for the own node
//! ```
//!
//! A dimension of size 1 has no links, and a ring that does not wrap has no second dateline
//! channel: a switch of an 8×8 mesh has 10 inputs of 26, and 32 of 182 paths from an input to an
//! output. Most of a switch is multiplexers, so that this is most of its size. The engines of a
//! cluster send no packet that comes, or wants to turn, where none does. One that came nevertheless
//! would be lost, or would leave its input giving out wrong packets.

use sme_sim::parts::fabric::{CHANNELS, HOST_PORT, Here, LINK_PORTS, Router, Topology};

use crate::blocks::primitive::buffers::{INPUTS, OUTPUTS};

/// Inputs of the links.
const LINK_INPUTS: usize = LINK_PORTS * CHANNELS;

/// Inputs and paths of a switch, bit by bit for its inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turns {
    /// By output, the inputs whose packets leave there.
    pub(crate) into: [u32; OUTPUTS],
    /// The inputs whose packets can go on on their class's second channel.
    pub(crate) crossing: u32,
}

impl Turns {
    /// Of the switches of `topology`.
    pub fn of(topology: &Topology) -> Self {
        let from = |input: usize, port: usize| {
            let arrived = input / CHANNELS;
            let both = exists(topology, arrived) && exists(topology, port);
            let second = arrived < LINK_PORTS && input % 2 == 1;
            both && (!second || topology.wraps(arrived / 2)) && turns(arrived, port)
        };
        let into = |port| (0..INPUTS).fold(0, |mask, i| mask | u32::from(from(i, port)) << i);
        let crosses = |input: usize| input < LINK_INPUTS && topology.wraps(input / CHANNELS / 2);
        Self {
            into: std::array::from_fn(into),
            crossing: (0..INPUTS).fold(0, |mask, i| mask | u32::from(crosses(i)) << i),
        }
    }

    /// Returns whether there is a path for a packet to `target` that came to the switch `here` on
    /// `channel` of `port`.
    pub fn lead(&self, router: &Router, here: Here, port: u16, channel: u8, target: u32) -> bool {
        let (leaves, _) = router.step(here, port, channel, target);
        self.into[usize::from(leaves.index())] >> input(port, channel) & 1 == 1
    }

    /// The bits that the [way](super::router::Route::way) of a packet can have at an input.
    pub fn ways(&self, input: usize) -> u8 {
        let outputs = self.into.iter().enumerate();
        let bit = |mask: u32| (mask >> input & 1) as u8;
        outputs.fold(bit(self.crossing) << 7, |ways, (o, &into)| {
            ways | bit(into) << o
        })
    }

    /// The inputs at which packets come.
    pub fn inputs(&self) -> u32 {
        self.into.iter().fold(0, |all, inputs| all | inputs)
    }
}

/// The input of a channel of a port.
fn input(port: u16, channel: u8) -> usize {
    match port {
        HOST_PORT => INPUTS - 2 + usize::from(channel / 2),
        port => usize::from(port) * CHANNELS + usize::from(channel),
    }
}

/// Returns whether the switches have this port.
pub(crate) fn exists(topology: &Topology, port: usize) -> bool {
    port == usize::from(HOST_PORT) || topology.sizes()[port / 2] > 1
}

/// Returns whether packets that arrived at one port leave by another.
fn turns(arrived: usize, port: usize) -> bool {
    const HOST: usize = HOST_PORT as usize;
    match (arrived, port) {
        (HOST, port) => port != HOST,
        (_, HOST) => true,
        // On in the same direction, or in a later dimension.
        _ => port == arrived ^ 1 || port / 2 > arrived / 2,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sme_sim::parts::fabric::{Port, TopologyKind};

    use super::*;

    #[test]
    fn a_mesh_has_few() {
        let turns = Turns::of(&"mesh:8x8".parse().expect("a topology"));
        assert_eq!(turns.inputs().count_ones(), 10);
        let paths = turns.into.map(u32::count_ones);
        assert_eq!(paths, [4, 4, 8, 8, 0, 0, 8]);
        let turns = Turns::of(&"torus:5x5x5".parse().expect("a topology"));
        assert_eq!(turns.inputs(), (1 << INPUTS) - 1);
        assert_eq!(turns.into.map(u32::count_ones), [6, 6, 14, 14, 22, 22, 24]);
    }

    /// Returns the turns that packets between any two nodes take, by output.
    fn taken(topology: &Topology) -> Turns {
        let router = Router::new(topology);
        let (mut into, mut crossing) = ([0u32; OUTPUTS], 0u32);
        let all = || 0..topology.positions();
        for (from, to) in all().flat_map(|from| all().map(move |to| (from, to))) {
            for class in [0, 2].into_iter().filter(|_| from != to) {
                let (mut here, mut arrived, mut channel) = (from, HOST_PORT, class);
                loop {
                    let (port, next) = router.step(router.here(here), arrived, channel, to);
                    into[usize::from(port.index())] |= 1 << input(arrived, channel);
                    crossing |= u32::from(next & 1) << input(arrived, channel);
                    let Port::Link(port) = port else { break };
                    let next_position = topology.neighbour(here, port);
                    let (there, came) = next_position.expect("the way stays inside");
                    (here, arrived, channel) = (there, came, next);
                }
            }
        }
        Turns { into, crossing }
    }

    /// All turns are taken where rings are long enough.
    #[test]
    fn all_of_them_are_taken() {
        for name in [
            "mesh:3x4x3",
            "mesh:8x8",
            "mesh:1x3",
            "torus:7x7x7",
            "torus:9x7",
            "torus:1x8",
        ] {
            let topology = name.parse().expect("a topology");
            assert_eq!(taken(&topology), Turns::of(&topology), "{name}");
        }
    }

    proptest! {
        #[test]
        fn no_packet_takes_another(
            sizes in prop::collection::vec(1u32..7, 2..=3), torus: bool,
        ) {
            let shape = if torus { TopologyKind::Torus } else { TopologyKind::Mesh };
            let topology = Topology::new(shape, &sizes).expect("small");
            let (taken, turns) = (taken(&topology), Turns::of(&topology));
            for input in 0..INPUTS {
                prop_assert_eq!(taken.ways(input) & !turns.ways(input), 0);
            }
        }
    }
}
