//! Fat trees: folded Clos networks of equal switches, with destination-modulo routing.
//!
//! ```text
//! level 1     [0]     [1]          each switch of the top level leads to every subtree
//!            / | \   / | \
//! level 0  [0][1][2][3]            k hosts below each, k switches above
//!          ||  ||  ||  ||
//! hosts    01  23  45  67          fattree:4x2
//! ```
//!
//! A switch of radix 2k has k ports down (`0..k`) and k up (`k..2k`); one of the top level has 2k
//! down. With n levels there are 2kⁿ hosts: for three levels the k-ary fat tree of data centres (M.
//! Al-Fares, A. Loukissas, A. Vahdat, A Scalable, Commodity Data Center Network Architecture,
//! SIGCOMM 2008), in general the folded form of a k-ary n-tree (F. Petrini, M. Vanneschi, k-ary
//! n-trees, IPPS 1997) whose top switches use all their ports.
//!
//! There are kˡ switches of level l to serve the same kˡ⁺¹ hosts. Such a switch is named by the
//! number of that subtree, which is host / kˡ⁺¹, and by its number among its equals, whose digit i
//! to the base k is the port up taken at level i to reach it.
//!
//! A packet climbs until its target lies below, taking at level l the port up that is the target's
//! digit l, and then descends by the target's digits; so all packets to one host meet at one switch
//! of the top level, and shifts of all hosts by any distance share no link (E. Zahavi, D-Mod-K
//! Routing Providing Non-Blocking Traffic for Shift Permutations on Real Life Fat Trees, CCIT
//! Report 776, Technion 2010). Up then down closes no cycle: one channel a class is enough.

use super::routing::Port;

/// A fat tree. Positions are the hosts, then the switches level by level, each level by subtree,
/// then by number among equals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FatTree {
    /// Links of a switch, and levels: the numbers of its name.
    numbers: [u32; 2],
    /// Derived from these: hosts, and switches of each level but the top one, which has half as
    /// many.
    hosts: u32,
    per_level: u32,
}

impl FatTree {
    /// Of switches of an even radix, at least one level, and so that the hosts' number fits 32
    /// bits.
    pub fn new(radix: u32, levels: u32) -> Self {
        let per_level = 2 * (radix / 2).pow(levels - 1);
        Self {
            numbers: [radix, levels],
            hosts: radix / 2 * per_level,
            per_level,
        }
    }

    /// Hosts of such a tree; saturates.
    pub fn hosts_of(radix: u32, levels: u32) -> u64 {
        u64::from(radix / 2)
            .saturating_pow(levels)
            .saturating_mul(2)
    }

    pub fn numbers(&self) -> &[u32] {
        &self.numbers
    }

    pub fn radix(&self) -> u16 {
        self.numbers[0] as u16
    }

    pub fn hosts(&self) -> u32 {
        self.hosts
    }

    pub fn positions(&self) -> u32 {
        self.hosts + self.per_level * (self.levels() - 1) + self.per_level / 2
    }

    /// The other end of a link port of a position that exists.
    pub fn neighbour(&self, position: u32, port: u16) -> Option<(u32, u16)> {
        let (half, hosts) = (self.half(), self.hosts);
        let port = u32::from(port);
        if position < hosts {
            let leaf = hosts + position / self.ports_down(0);
            return (port == 0).then_some((leaf, (position % self.ports_down(0)) as u16));
        }
        let SwitchPosition {
            level,
            subtree,
            equal,
        } = self.place(position);
        let down = self.ports_down(level);
        if port < down {
            let child = subtree * down + port;
            let Some(below) = level.checked_sub(1) else {
                return Some((child, 0));
            };
            let equals = half.pow(below);
            let their_port = half + equal / equals;
            let switch = self.switch(below, child, equal % equals);
            Some((switch, their_port as u16))
        } else if port < 2 * half {
            let above = level + 1;
            let parents = self.ports_down(above);
            let equal = equal + (port - half) * half.pow(level);
            let switch = self.switch(above, subtree / parents, equal);
            Some((switch, (subtree % parents) as u16))
        } else {
            None
        }
    }

    /// Returns the facts about a position that routing needs: kˡ at a switch of level l and 0 at a
    /// host, the number of its subtree, and whether everything lies below it.
    pub fn here(&self, position: u32) -> [u32; 3] {
        if position < self.hosts {
            return [0, position, 0];
        }
        let place = self.place(position);
        let top = u32::from(place.level + 1 == self.levels());
        [self.half().pow(place.level), place.subtree, top]
    }

    /// The port of the next step to the host `target`.
    pub fn route(&self, [stride, subtree, top]: [u32; 3], target: u32) -> Port {
        if stride == 0 {
            return match target == subtree {
                true => Port::Host,
                false => Port::Link(0),
            };
        }
        let (half, digits) = (self.half(), target / stride);
        let port = match top {
            1 => digits,
            _ if digits / half == subtree => digits % half,
            _ => half + digits % half,
        };
        Port::Link(port as u16)
    }

    fn half(&self) -> u32 {
        self.numbers[0] / 2
    }

    fn levels(&self) -> u32 {
        self.numbers[1]
    }

    fn ports_down(&self, level: u32) -> u32 {
        match level + 1 == self.levels() {
            true => 2 * self.half(),
            false => self.half(),
        }
    }

    fn switch(&self, level: u32, subtree: u32, equal: u32) -> u32 {
        self.hosts + level * self.per_level + subtree * self.half().pow(level) + equal
    }

    fn place(&self, position: u32) -> SwitchPosition {
        let switch = position - self.hosts;
        let level = switch / self.per_level;
        let (within, equals) = (switch % self.per_level, self.half().pow(level));
        SwitchPosition {
            level,
            subtree: within / equals,
            equal: within % equals,
        }
    }
}

/// The position of a switch.
struct SwitchPosition {
    level: u32,
    /// The number of its group of hosts among those below its level.
    subtree: u32,
    /// The number of the switch among those that serve that group.
    equal: u32,
}
