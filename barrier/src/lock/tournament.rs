//! The lock between nodes, of loads and stores only: a tournament of two-process locks, in which
//! each node waits on flags in its own memory.
//!
//! Sources: the two-process lock is G. L. Peterson's ("Myths About the Mutual Exclusion Problem",
//! Information Processing Letters 12(3), 1981). That the rivals tell each other where they wait, so
//! that a tournament needs no polling of remote memory, is from J.-H. Yang and J. H. Anderson, "A
//! Fast, Scalable Mutual Exclusion Algorithm", Distributed Computing 9(1), 1995.
//!
//! # Why this one
//!
//! L. Lamport's bakery ("A New Solution of Dijkstra's Concurrent Programming Problem", CACM 17(8),
//! 1974) looks at every other node at each acquisition and polls the numbers of those before it:
//! 3 (nodes - 1) remote loads of more than a microsecond each, and more for every turn of a poll,
//! one at a time because a socket has one slot for them. Here an acquisition without a rival
//! takes one remote load in each of ⌈log2 nodes⌉ rounds, a release as many, and a wait none.
//!
//! # Layout
//!
//! In round `k` the winner of nodes `[2i·2^k, (2i+1)·2^k)` meets that of the next `2^k` nodes. The
//! three words of a match (`claims[2]`, `turn`) lie at *one* home, the first node of its right
//! half, so that each node is the home of at most one match. All else is single-writer: for each
//! pair of nodes, in the memory of the one that waits, a bell (a flag) and a grant (a word), which
//! only the other writes.
//!
//! # Why it is right on this memory
//!
//! *Claim before look.* Peterson's lock needs each rival's claim and turn to have been *performed*
//! before it reads the other's claim. Posted stores are not acknowledged, and [`Memory::fence`]
//! says only that they have left the core. But all three words have one home, stores and loads from
//! one node to one home stay in order, and so the load that follows the fence reads the claim after
//! both stores have been performed: the load is its own read-back. At the home itself the words are
//! coherent local memory, where the fence performs the stores. The turn must not pass the claim:
//! same home, same order (the fence between them is for real threads, where two threads' stores to
//! two words are ordered by nothing less). So each match sees sequentially consistent memory, and
//! mutual exclusion is Peterson's: of two who have claimed, the one whose number is *not* in `turn`
//! goes.
//!
//! *Top-down release.* A release withdraws the claims from the last round to the first. A node that
//! follows from the same half of a match writes the same claim from another node, hence by another
//! path: the withdrawal must have been performed before the round below is given away. It has been,
//! since the release then loads `turn` from the same home.
//!
//! *Grants.* A node that leaves reads `turn` after its claim has gone. If it names the rival's
//! attempt, then the rival, having written claim and turn, would now read that its opponent's claim
//! is gone: the leaver has looked for it, and posts the attempt's number as a grant. Numbers of
//! attempts never repeat, so a grant that comes late, after the rival has found out for itself, is
//! never taken for another.
//!
//! *Bells only wake.* A bell decides nothing: who hears it looks at its grant and at `turn` again.
//! A grant is posted before its bell to the same node, so it is there when the bell is heard. A
//! thread that waits has read its bell before it looks, and a thread that changes what another
//! waits for rings after that: the leaver after its grant, and (as in Yang and Anderson's) a
//! newcomer that finds that it has to wait, because its rival may have looked between the
//! newcomer's claim and its turn. The next value of a bell is counted where it is rung; it comes
//! round after 128 rings, and no wait sees more than a few.
//!
//! *Fairness.* From the time when a node's turn in a match has been performed until the node has
//! the lock, nodes of the match's other half have it at most once: the earlier winner. So no node
//! starves. The number of times that others have it is not bounded while a node is on its way from
//! one round to the next; that is so in every tournament.

use std::future::Future;

use sme_memory::{Flag, Memory, Place, Until, Word};

use super::{Lock, LockError};
use crate::layout::{Row, RowAllocator};
use crate::{Layout, Member};

/// No claim.
const NO_CLAIM: u64 = 0;
/// Values of a bell.
const RINGS: u8 = 128;

/// Description of a lock between nodes.
#[derive(Clone, Copy, Debug)]
pub struct TournamentSpec {
    /// Nodes, at least 1.
    pub nodes: u32,
    /// The layout of claims, bells and grants.
    pub layout: Layout,
}

/// A lock between nodes. At most one thread of a node may compete for it or hold it at a time, but
/// it may be released by another thread of the node than has acquired it, if that knows of it
/// through coherent memory.
#[derive(Clone, Debug)]
pub struct Tournament {
    nodes: u32,
    /// Of the match at home here: the claim of its left half and of its right half.
    claims: Row,
    /// Of the match at home here: who claimed last.
    turn: Row,
    /// Attempts of this node.
    attempts: Row,
    /// From each node: the attempt of this node that it lets pass.
    grants: Row,
    /// From each node: look again.
    bells: Row,
    /// For each node: what this node last wrote to its bell there.
    rung: Row,
    bytes: u64,
}

/// A match from one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Match {
    home: u32,
    side: u32,
}

impl Tournament {
    /// Lays the lock out.
    ///
    /// # Errors
    /// If there is no node or the layout is of no use.
    pub fn new(spec: TournamentSpec) -> Result<Self, LockError> {
        let mut allocator = spec.layout.allocator()?;
        let lock = Self::planned(&mut allocator, spec.nodes)?;
        let bytes = allocator.bytes()?;
        Ok(Self { bytes, ..lock })
    }

    /// Lays out the variables of `nodes` nodes, as a part of a larger lock.
    pub(super) fn planned(allocator: &mut RowAllocator, nodes: u32) -> Result<Self, LockError> {
        if nodes == 0 {
            return Err(LockError::NoNodes);
        }
        Ok(Self {
            nodes,
            claims: allocator.shared_words(2, nodes)?,
            turn: allocator.shared_words(1, nodes)?,
            attempts: allocator.words(1)?,
            grants: allocator.shared_words(nodes, nodes)?,
            bells: allocator.shared_flags(nodes, nodes)?,
            rung: allocator.flags(nodes)?,
            bytes: 0,
        })
    }

    /// Bytes of each shared partition, from its beginning, that must be zero at first.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The words of loads and stores by which nodes learn of each other what has happened: claims,
    /// turns and grants. Bells are flags, and attempts are a node's own.
    pub fn synchronizing(&self) -> impl Iterator<Item = Place> + use<> {
        let (rows, nodes) = ([self.claims, self.turn, self.grants], self.nodes);
        rows.into_iter()
            .flat_map(move |row| (0..nodes).flat_map(move |node| row.places(node)))
    }

    /// The home of the last round's match.
    pub(super) fn final_home(&self) -> u32 {
        let last = self.matches(0).next_back();
        last.map_or(0, |last| last.home)
    }

    /// The matches of `node`, the first round first. Rounds without an opponent are left out.
    fn matches(&self, node: u32) -> impl DoubleEndedIterator<Item = Match> + Send + use<> {
        let nodes = self.nodes;
        let rounds = u32::BITS - (nodes - 1).leading_zeros();
        (0..rounds).filter_map(move |round| {
            let home = (node >> round | 1) << round;
            let side = node >> round & 1;
            (home < nodes).then_some(Match { home, side })
        })
    }

    /// A number that no other attempt of any node has or had.
    fn attempt<M: Memory>(&self, memory: &M) -> impl Future<Output = u64> + Send {
        async move {
            let me = memory.node();
            let attempts = self.attempts.word(memory, me, 0);
            let count = memory.load(attempts).await;
            memory.store(attempts, count.wrapping_add(1)).await;
            count
                .wrapping_mul(u64::from(self.nodes))
                .wrapping_add(u64::from(me) + 1)
        }
    }

    /// Returns the node whose attempt it is.
    fn node_of(&self, attempt: u64) -> u32 {
        (attempt.wrapping_sub(1) % u64::from(self.nodes)) as u32
    }

    fn claim<M: Memory>(&self, memory: &M, Match { home, side }: Match) -> Word {
        self.claims.word(memory, home, side)
    }

    fn claim_of_rival<M: Memory>(&self, memory: &M, Match { home, side }: Match) -> Word {
        self.claims.word(memory, home, 1 - side)
    }

    fn turn<M: Memory>(&self, memory: &M, Match { home, .. }: Match) -> Word {
        self.turn.word(memory, home, 0)
    }

    fn bell<M: Memory>(&self, memory: &M, node: u32, from: u32) -> Flag {
        self.bells.flag(memory, node, from)
    }

    fn grant<M: Memory>(&self, memory: &M, node: u32, from: u32) -> Word {
        self.grants.word(memory, node, from)
    }

    /// Ends when `mine` has won the match.
    fn win<M: Memory>(&self, memory: &M, of: Match, mine: u64) -> impl Future<Output = ()> + Send {
        async move {
            let turn = self.turn(memory, of);
            memory.store(self.claim(memory, of), mine).await;
            memory.fence().await;
            memory.store(turn, mine).await;
            memory.fence().await;
            let theirs = memory.load(self.claim_of_rival(memory, of)).await;
            if theirs == NO_CLAIM {
                return;
            }

            let (me, rival) = (memory.node(), self.node_of(theirs));
            let bell = self.bell(memory, me, rival);
            let grant = self.grant(memory, me, rival);
            let mut heard = memory.read(bell).await;
            if memory.load(turn).await != mine {
                return;
            }
            self.ring(memory, rival).await;
            while memory.load(grant).await != mine && memory.load(turn).await == mine {
                heard = memory.wait(bell, Until::IsNot(heard)).await;
            }
        }
    }

    /// Gives the match away.
    fn leave<M: Memory>(&self, memory: &M, of: Match) -> impl Future<Output = ()> + Send {
        async move {
            memory.store(self.claim(memory, of), NO_CLAIM).await;
            memory.fence().await;
            let last = memory.load(self.turn(memory, of)).await;
            let (me, rival) = (memory.node(), self.node_of(last));
            if rival != me {
                memory.store(self.grant(memory, rival, me), last).await;
                self.ring(memory, rival).await;
            }
        }
    }

    /// Makes `rival` look again, if it waits. The fence is for the next thread of this node that
    /// rings: its stores to `rival` are to follow these.
    fn ring<M: Memory>(&self, memory: &M, rival: u32) -> impl Future<Output = ()> + Send {
        async move {
            let me = memory.node();
            let rung = self.rung.flag(memory, me, rival);
            let next = (memory.read(rung).await + 1) % RINGS;
            memory.set(rung, next).await;
            memory.set(self.bell(memory, rival, me), next).await;
            memory.fence().await;
        }
    }
}

impl<M: Memory> Lock<M> for Tournament {
    type Local = ();

    fn acquire(&self, memory: &M, _me: Member, (): &mut ()) -> impl Future<Output = ()> + Send {
        async move {
            let mine = self.attempt(memory).await;
            for of in self.matches(memory.node()) {
                self.win(memory, of, mine).await;
            }
        }
    }

    fn release(&self, memory: &M, _me: Member, (): &mut ()) -> impl Future<Output = ()> + Send {
        async move {
            for of in self.matches(memory.node()).rev() {
                self.leave(memory, of).await;
            }
        }
    }

    fn variable(&self, place: Place) -> Option<String> {
        if let Some((node, side)) = self.claims.find(place) {
            let side = if side == 0 { "left" } else { "right" };
            return Some(format!("the {side} claim of match {node}"));
        }
        if let Some((node, _)) = self.turn.find(place) {
            return Some(format!("the turn of match {node}"));
        }
        if let Some((node, _)) = self.attempts.find(place) {
            return Some(format!("node {node}'s attempts"));
        }
        let pairs = [
            (self.grants, "grant to", "from"),
            (self.bells, "bell of", "rung by"),
            (self.rung, "count of", "ringing"),
        ];
        pairs.iter().find_map(|(row, what, how)| {
            let (node, other) = row.find(place)?;
            Some(format!("the {what} node {node} {how} node {other}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_two_nodes_meet_once_on_different_sides(nodes in 1..70u32) {
            let layout = Layout::packed(64);
            let lock = Tournament::new(TournamentSpec { nodes, layout }).unwrap();
            let mut players: HashMap<u32, [Vec<u32>; 2]> = HashMap::new();
            for node in 0..nodes {
                for Match { home, side } in lock.matches(node) {
                    players.entry(home).or_default()[side as usize].push(node);
                }
            }
            prop_assert_eq!(players.len() as u32, nodes - 1);
            let mut meetings = vec![0; (nodes * nodes) as usize];
            for (home, [left, right]) in players {
                prop_assert_eq!(home, right[0]);
                for &a in &left {
                    for &b in &right {
                        meetings[(a * nodes + b) as usize] += 1;
                    }
                }
            }
            for a in 0..nodes {
                for b in 0..nodes {
                    prop_assert_eq!(meetings[(a * nodes + b) as usize], u32::from(a < b));
                }
            }
        }

        #[test]
        fn a_node_has_won_its_own_matches_only(nodes in 1..70u32, node in 0..70u32) {
            prop_assume!(node < nodes);
            let layout = Layout::packed(64);
            let lock = Tournament::new(TournamentSpec { nodes, layout }).unwrap();
            for count in 0..3u64 {
                let attempt = count * u64::from(nodes) + u64::from(node) + 1;
                prop_assert_eq!(lock.node_of(attempt), node);
            }
            prop_assert_eq!(lock.matches(node).next_back().map_or(0, |m| m.home), lock.final_home());
        }
    }
}
