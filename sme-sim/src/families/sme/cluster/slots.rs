//! The sockets' slots for loads from behind the engine, and the source tags under which these are
//! known to it.
//!
//! A load waits for its socket's only slot (Fröning et al., Sec. IV-B) and holds it until its
//! answer is back and the slot has turned around.

use rand_core::Rng;
use rand_pcg::Pcg32;

use super::constants::Constants;
use crate::families::sme::spec::{Arbitration, ClusterSpec};

/// The sender of a load from behind the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asker {
    /// A core, past its caches.
    Core(u16),
    /// The fill of a line; once it has a tag, for this word.
    Fill(u16, u8),
}

/// The slots and tags of a node that has ever had such a load.
#[derive(Debug)]
pub struct Slots {
    /// Free slots of each socket, and who waits for one.
    sockets: Vec<(u32, Vec<Asker>)>,
    /// The reader under each source tag.
    readers: [Asker; 32],
    free_tags: u32,
    random: Pcg32,
}

impl Slots {
    /// Of node `node`, all free.
    pub fn new(constants: &Constants, node: u32) -> Self {
        let spec = &constants.spec;
        let slots = spec.uncached.outstanding_loads_per_socket;
        // A stream of its own for each node, and another than the one of its caches.
        let stream = u64::from(node) | 1 << 32;
        Self {
            sockets: vec![(slots, Vec::new()); spec.node.sockets as usize],
            readers: [Asker::Core(0); 32],
            free_tags: u32::MAX,
            random: Pcg32::new(constants.seed, stream),
        }
    }

    /// Returns whether no load waits or is under way.
    pub fn is_quiet(&self, spec: &ClusterSpec) -> bool {
        let slots = spec.uncached.outstanding_loads_per_socket;
        let idle = |(free, waiting): &(u32, Vec<Asker>)| *free == slots && waiting.is_empty();
        self.free_tags == u32::MAX && self.sockets.iter().all(idle)
    }

    /// Bytes of them.
    pub fn bytes(&self) -> usize {
        let waiting = self.sockets.iter().map(|(_, waiting)| waiting.capacity());
        size_of::<Self>()
            + self.sockets.capacity() * size_of::<(u32, Vec<Asker>)>()
            + waiting.sum::<usize>() * size_of::<Asker>()
    }

    /// `asker` waits for a slot of `socket`.
    pub fn queue(&mut self, socket: u8, asker: Asker) {
        self.sockets[usize::from(socket)].1.push(asker);
    }

    /// One slot more of `socket` is free.
    pub fn free(&mut self, socket: u8) {
        self.sockets[usize::from(socket)].0 += 1;
    }

    /// Sockets from the one after `socket` on, that one last.
    pub fn sockets_after(&self, socket: u8) -> impl Iterator<Item = u8> + use<> {
        let sockets = self.sockets.len() as u8;
        (1..=sockets).map(move |other| (socket + other) % sockets)
    }

    /// Gives a slot of `socket` to one of the loads that wait for it, if there is one and a tag is
    /// free; returns that load's sender and its tag.
    pub fn grant(&mut self, socket: u8, spec: &ClusterSpec) -> Option<(Asker, u8)> {
        let (free, waiting) = &mut self.sockets[usize::from(socket)];
        if *free == 0 || waiting.is_empty() {
            return None;
        }
        let chosen = match spec.uncached.arbitration {
            Arbitration::Fifo => 0,
            Arbitration::Random => self.random.next_u32() as usize % waiting.len(),
        };
        // Removing shifts the others, so that they stay in the order of their arrival.
        let asker = waiting.remove(chosen);
        let Some(tag) = self.take_tag(asker) else {
            self.sockets[usize::from(socket)].1.insert(0, asker);
            return None;
        };
        self.sockets[usize::from(socket)].0 -= 1;
        Some((asker, tag))
    }

    /// A source tag that was free, under which `asker` reads from now on.
    pub fn take_tag(&mut self, asker: Asker) -> Option<u8> {
        if self.free_tags == 0 {
            return None;
        }
        let tag = self.free_tags.trailing_zeros() as u8;
        self.free_tags &= self.free_tags - 1;
        self.readers[usize::from(tag)] = asker;
        Some(tag)
    }

    /// `asker`, which has `tag`, reads under it from now on.
    pub fn reads_under(&mut self, tag: u8, asker: Asker) {
        self.readers[usize::from(tag)] = asker;
    }

    /// The reader under `tag`, whose answer has come; the tag is free again.
    pub fn answered(&mut self, tag: u8) -> Asker {
        self.free_tags |= 1 << tag;
        self.readers[usize::from(tag)]
    }
}
