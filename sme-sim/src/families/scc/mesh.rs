//! The parts that cores of the chip share on the way to each other: the links of the mesh, the
//! ports of the message passing buffers and the memory controllers. Each serves one after the
//! other.
//!
//! A packet takes its links in the order of the columns first, then the rows. All links of its way
//! are taken when it sets out, each for the time from when its first flit is there until its last
//! has gone: so packets queue behind those that set out before them. Routers have room for whole
//! packets.

use super::layout::Chip;
use crate::time::Time;

/// Links that leave a tile: east, west, north, south.
const DIRECTIONS: usize = 4;

/// The shared parts, each with the time until which it is busy.
#[derive(Debug)]
pub struct Mesh {
    chip: Chip,
    /// From one router to the next.
    hop: Time,
    /// One flit over a link.
    flit: Time,
    links: Vec<[Time; DIRECTIONS]>,
    /// Of each tile's buffer and registers.
    ports: Vec<Time>,
    controllers: Vec<Time>,
}

impl Mesh {
    /// Nothing is busy.
    pub fn new(chip: Chip, (hop, flit): (Time, Time)) -> Self {
        let tiles = chip.tiles() as usize;
        Self {
            chip,
            hop,
            flit,
            links: vec![[Time::ZERO; DIRECTIONS]; tiles],
            ports: vec![Time::ZERO; tiles],
            controllers: vec![Time::ZERO; super::layout::CONTROLLERS as usize],
        }
    }

    /// A packet of so many `flits` sets out at `now` from the router of tile `from`; when its first
    /// flit is at the router of tile `to`.
    pub fn travels(&mut self, now: Time, (from, to): (u32, u32), flits: u64) -> Time {
        let (mut x, mut y) = self.chip.position(from);
        let (to_x, to_y) = self.chip.position(to);
        let busy = self.flit.times(flits);
        let mut at = now;
        while (x, y) != (to_x, to_y) {
            let tile = (y * self.chip.columns() + x) as usize;
            let direction = match (x.cmp(&to_x), y.cmp(&to_y)) {
                (std::cmp::Ordering::Less, _) => {
                    x += 1;
                    0
                }
                (std::cmp::Ordering::Greater, _) => {
                    x -= 1;
                    1
                }
                (_, std::cmp::Ordering::Less) => {
                    y += 1;
                    2
                }
                _ => {
                    y -= 1;
                    3
                }
            };
            let link = &mut self.links[tile][direction];
            let begin = at.max(*link);
            *link = begin + busy;
            at = begin + self.hop;
        }
        at
    }

    /// An access comes to the buffer or the registers of `tile` at `now`, which are busy with it
    /// for so long; when it begins.
    pub fn at_port(&mut self, now: Time, tile: u32, busy: Time) -> Time {
        serve(&mut self.ports[tile as usize], now, busy)
    }

    /// The same for a controller.
    pub fn at_controller(&mut self, now: Time, controller: u32, busy: Time) -> Time {
        serve(&mut self.controllers[controller as usize], now, busy)
    }
}

fn serve(free: &mut Time, now: Time, busy: Time) -> Time {
    let begin = now.max(*free);
    *free = begin + busy;
    begin
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOP: Time = Time::from_ps(5_000);
    const FLIT: Time = Time::from_ps(1_250);

    fn mesh() -> Mesh {
        Mesh::new(Chip::new(6, 4, 8 << 10), (HOP, FLIT))
    }

    #[test]
    fn a_packet_alone_takes_a_hop_for_each_column_and_row() {
        for from in 0..24 {
            for to in 0..24 {
                let distance = |a: u32, b: u32| u64::from(a.abs_diff(b));
                let hops = distance(from % 6, to % 6) + distance(from / 6, to / 6);
                assert_eq!(mesh().travels(Time::ZERO, (from, to), 3), HOP.times(hops));
            }
        }
    }

    #[test]
    fn packets_queue_where_their_ways_meet_and_nowhere_else() {
        let mut mesh = mesh();
        assert_eq!(mesh.travels(Time::ZERO, (0, 2), 3), HOP.times(2));
        // Over the second link of the first.
        assert_eq!(mesh.travels(HOP, (1, 2), 1), HOP + FLIT.times(3) + HOP);
        // The other way, and around the corner.
        assert_eq!(mesh.travels(Time::ZERO, (2, 0), 3), HOP.times(2));
        assert_eq!(mesh.travels(Time::ZERO, (7, 2), 3), HOP.times(2));
    }
}
