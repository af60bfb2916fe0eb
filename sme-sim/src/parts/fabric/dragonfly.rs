//! Dragonflies: groups of routers, all joined within a group, and every two groups joined; with
//! minimal routing.
//!
//! J. Kim, W. J. Dally, S. Scott, D. Abts, Technology-Driven, Highly-Scalable Dragonfly Topology,
//! ISCA 2008: p hosts per router, a routers per group, h global links per router, and at most
//! a·h + 1 groups, of which each two are then joined by one link. With fewer groups, g, every two
//! are joined by m = ⌊a·h / (g − 1)⌋ links, and what remains is not connected.
//!
//! A router's ports are its hosts (`0..p`), the other routers of its group by number
//! (`p..p + a − 1`), and its global links. Global link n of a group, at its router n / h, is copy
//! n / (g − 1) of the link to the other group number n mod (g − 1), the own group not counted.
//!
//! A packet goes to the router of its group that has the link to its target's group, over that
//! link, and to its target's router: at most one local link, one global, one local. The target's
//! number chooses among the copies of a link. Links of the target's group are taken on the second
//! dateline channel, so that one that has crossed never waits for one that has not (Sec. 4.1
//! there: two virtual channels suffice for minimal routing).

use super::routing::Port;

/// A dragonfly. Positions are the hosts, then the routers, group by group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Dragonfly {
    /// p, a, h, g.
    numbers: [u32; 4],
    /// Whether g stands in its name.
    named: bool,
}

impl Dragonfly {
    /// None of the numbers is zero, there are at most as many groups as links reach, and the hosts'
    /// number fits 32 bits; without `groups` all that can be.
    pub fn new([hosts, routers, global]: [u32; 3], groups: Option<u32>) -> Self {
        let all = routers * global + 1;
        Self {
            numbers: [hosts, routers, global, groups.unwrap_or(all)],
            named: groups.is_some(),
        }
    }

    pub fn numbers(&self) -> &[u32] {
        &self.numbers[..3 + usize::from(self.named)]
    }

    pub fn radix(&self) -> u16 {
        let [hosts, routers, global, _] = self.numbers;
        (hosts + routers - 1 + global) as u16
    }

    pub fn hosts(&self) -> u32 {
        let [hosts, routers, _, groups] = self.numbers;
        hosts * routers * groups
    }

    pub fn positions(&self) -> u32 {
        let [_, routers, _, groups] = self.numbers;
        self.hosts() + routers * groups
    }

    /// The other end of a link port of a position that exists.
    pub fn neighbour(&self, position: u32, port: u16) -> Option<(u32, u16)> {
        let [hosts, routers, global, groups] = self.numbers;
        let port = u32::from(port);
        if position < self.hosts() {
            let router = self.hosts() + position / hosts;
            return (port == 0).then_some((router, (position % hosts) as u16));
        }
        let switch = position - self.hosts();
        let (group, router) = (switch / routers, switch % routers);
        let local = hosts + routers - 1;
        if port < hosts {
            Some((switch * hosts + port, 0))
        } else if port < local {
            let peer = with_gap(port - hosts, router);
            let their_port = hosts + without_gap(router, peer);
            Some((self.router(group, peer), their_port as u16))
        } else if port < local + global {
            let link = router * global + port - local;
            let others = groups - 1;
            if link >= self.copies() * others {
                return None;
            }
            let peer = with_gap(link % others, group);
            let theirs = link / others * others + without_gap(group, peer);
            let their_port = local + theirs % global;
            Some((self.router(peer, theirs / global), their_port as u16))
        } else {
            None
        }
    }

    /// Returns the facts about a position that routing needs: at a router its group, its number
    /// there, and 1; at a host its number, and 0.
    pub fn here(&self, position: u32) -> [u32; 3] {
        let routers = self.numbers[1];
        match position.checked_sub(self.hosts()) {
            None => [position, 0, 0],
            Some(switch) => [switch / routers, switch % routers, 1],
        }
    }

    /// The port of the next step to the host `target`.
    pub fn route(&self, [group, router, is_router]: [u32; 3], target: u32) -> Port {
        let [hosts, routers, global, groups] = self.numbers;
        if is_router == 0 {
            return match target == group {
                true => Port::Host,
                false => Port::Link(0),
            };
        }
        let switch = target / hosts;
        let their_group = switch / routers;
        let (towards, leaves) = if group == their_group {
            (switch % routers, target % hosts)
        } else {
            let copy = target % self.copies();
            let link = copy * (groups - 1) + without_gap(their_group, group);
            (link / global, hosts + routers - 1 + link % global)
        };
        let port = match router == towards {
            true => leaves,
            false => hosts + without_gap(towards, router),
        };
        Port::Link(port as u16)
    }

    /// Returns whether a packet that came by port `arrived` of a router and leaves by `leaves` is
    /// on its second local link.
    pub fn crossed(&self, here: [u32; 3], arrived: u16, leaves: u16) -> bool {
        let [hosts, routers, ..] = self.numbers;
        let local = hosts..hosts + routers - 1;
        here[2] == 1 && u32::from(arrived) >= local.end && local.contains(&u32::from(leaves))
    }

    /// Links between every two groups.
    fn copies(&self) -> u32 {
        let [_, routers, global, groups] = self.numbers;
        match groups {
            1 => 0,
            _ => routers * global / (groups - 1),
        }
    }

    fn router(&self, group: u32, router: u32) -> u32 {
        self.hosts() + group * self.numbers[1] + router
    }
}

/// The number of `other` among all but `own`.
fn without_gap(other: u32, own: u32) -> u32 {
    other - u32::from(other > own)
}

/// Returns the number at `index` among all but `own`.
fn with_gap(index: u32, own: u32) -> u32 {
    index + u32::from(index >= own)
}
