//! Groups: ordered sets of processes (MPI-4.1, Sec. 7.3).
//!
//! A group maps its ranks `0..size` to world ranks, which are ranks of the initial communicator.
//! Communicators name their members by one. A group whose world ranks are an arithmetic progression
//! stores three numbers instead of a list: the world, its rows and its columns cost nothing at a
//! million ranks. Other groups store each world rank and an index for the way back.

use std::fmt;
use std::sync::Arc;

use crate::error::{ErrorClass, Fault};

/// An ordered set of processes (MPI_Group). Clones share their members.
///
/// Two groups are equal if they have the same members in the same order (MPI_IDENT).
///
/// ```
/// use sme_mpi::group::{Group, RankRange};
///
/// let world = Group::world(1_000_000);
/// let evens = RankRange { first: 0, last: 999_999, stride: 2 };
/// let evens = world.range_incl(&[evens])?;
/// assert_eq!(evens.size(), 500_000);
/// assert_eq!((evens.world_rank(7), evens.rank_of(14)), (Some(14), Some(7)));
/// # Ok::<(), sme_mpi::error::Fault>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Group {
    members: Members,
}

/// The world ranks of a group. Equal groups have equal members: a progression is always stored as
/// one, with a stride of 1 if it has fewer than two members, and from 0 if it has none.
#[derive(Clone, PartialEq, Eq)]
enum Members {
    Progression { first: u32, stride: i64, size: u32 },
    Listed(Arc<Listed>),
}

/// World ranks that are no progression.
#[derive(PartialEq, Eq)]
struct Listed {
    world_ranks: Box<[u32]>,
    /// The ranks in the order of their world ranks.
    by_world_rank: Box<[u32]>,
}

/// Ranks `first`, `first + stride`, … up to `last` (the triplets of MPI_Group_range_incl).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankRange {
    /// The first rank.
    pub first: i32,
    /// The bound: the last rank is at or before it.
    pub last: i32,
    /// The distance from one rank to the next; it may be negative, and is not 0.
    pub stride: i32,
}

/// The relation of two groups, or two communicators (MPI-4.1, Sec. 7.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// The same members in the same order (MPI_IDENT).
    Ident,
    /// The same members in another order (MPI_SIMILAR).
    Similar,
    /// Different members (MPI_UNEQUAL).
    Unequal,
}

impl Group {
    /// The group without members (MPI_GROUP_EMPTY).
    pub const fn empty() -> Self {
        Self::world(0)
    }

    /// The group of all `size` ranks of the world, in their order.
    pub const fn world(size: u32) -> Self {
        let (first, stride) = (0, 1);
        Self {
            members: Members::Progression {
                first,
                stride,
                size,
            },
        }
    }

    /// The group of these world ranks, in this order.
    ///
    /// # Errors
    /// [`ErrorClass::Rank`] if a world rank occurs twice.
    pub fn from_world_ranks(world_ranks: Vec<u32>) -> Result<Self, Fault> {
        let twice = |rank| rank_fault("ranks", format!("world rank {rank} occurs twice"));
        match first_duplicate(&world_ranks) {
            Some(rank) => Err(twice(rank)),
            None => Ok(Self::of_distinct(world_ranks)),
        }
    }

    /// Stores distinct world ranks.
    fn of_distinct(world_ranks: Vec<u32>) -> Self {
        // Distinct ranks of a world are fewer than 2^32.
        let size = world_ranks.len() as u32;
        if let Some((first, stride)) = as_progression(&world_ranks) {
            let members = Members::Progression {
                first,
                stride,
                size,
            };
            return Self { members };
        }
        let mut by_world_rank: Box<[u32]> = (0..size).collect();
        by_world_rank.sort_unstable_by_key(|&rank| world_ranks[rank as usize]);
        let listed = Listed {
            world_ranks: world_ranks.into(),
            by_world_rank,
        };
        Self {
            members: Members::Listed(Arc::new(listed)),
        }
    }

    /// Members (MPI_Group_size).
    pub fn size(&self) -> u32 {
        match &self.members {
            Members::Progression { size, .. } => *size,
            Members::Listed(listed) => listed.world_ranks.len() as u32,
        }
    }

    /// The world rank of a rank, if the group has it.
    pub fn world_rank(&self, rank: u32) -> Option<u32> {
        match &self.members {
            Members::Progression {
                first,
                stride,
                size,
            } => (rank < *size).then(|| term((*first, *stride), rank)),
            Members::Listed(listed) => listed.world_ranks.get(rank as usize).copied(),
        }
    }

    /// The rank of a world rank (MPI_Group_rank); `None` is MPI_UNDEFINED.
    pub fn rank_of(&self, world_rank: u32) -> Option<u32> {
        match &self.members {
            Members::Progression {
                first,
                stride,
                size,
            } => {
                let distance = i64::from(world_rank) - i64::from(*first);
                let rank = u32::try_from(distance / stride).ok()?;
                (distance % stride == 0 && rank < *size).then_some(rank)
            }
            Members::Listed(listed) => listed.rank_of(world_rank),
        }
    }

    /// The world ranks in the order of their ranks.
    pub fn world_ranks(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.size()).filter_map(|rank| self.world_rank(rank))
    }

    /// Translates ranks of this group to those of the same processes in `to`
    /// (MPI_Group_translate_ranks); `None` is MPI_UNDEFINED. MPI_PROC_NULL, which translates to
    /// itself, is the caller's.
    ///
    /// # Errors
    /// [`ErrorClass::Rank`] if this group lacks a rank.
    pub fn translate_ranks(&self, ranks: &[u32], to: &Self) -> Result<Vec<Option<u32>>, Fault> {
        let world_rank = |&rank| self.member("ranks1", rank);
        ranks
            .iter()
            .map(|rank| Ok(to.rank_of(world_rank(rank)?)))
            .collect()
    }

    /// Compares the members and their order (MPI_Group_compare).
    pub fn compare(&self, other: &Self) -> Comparison {
        if self == other {
            Comparison::Ident
        } else if self.size() == other.size() && self.world_ranks().all(|rank| other.has(rank)) {
            Comparison::Similar
        } else {
            Comparison::Unequal
        }
    }

    /// All members of this group, then those of `other` that it lacks (MPI_Group_union).
    pub fn union(&self, other: &Self) -> Self {
        let mut added = other.world_ranks().filter(|&rank| !self.has(rank));
        match added.next() {
            None => self.clone(),
            Some(first) => {
                let added = std::iter::once(first).chain(added);
                Self::of_distinct(self.world_ranks().chain(added).collect())
            }
        }
    }

    /// The members of this group that `other` has, in this group's order (MPI_Group_intersection).
    pub fn intersection(&self, other: &Self) -> Self {
        self.retain(|world_rank| other.has(world_rank))
    }

    /// The members of this group that `other` lacks, in this group's order (MPI_Group_difference).
    pub fn difference(&self, other: &Self) -> Self {
        self.retain(|world_rank| !other.has(world_rank))
    }

    /// The members at `ranks`, in the order of the list (MPI_Group_incl).
    ///
    /// # Errors
    /// [`ErrorClass::Rank`] if the group lacks a rank, or one occurs twice.
    pub fn incl(&self, ranks: &[u32]) -> Result<Self, Fault> {
        self.check_ranks(ranks)?;
        let members = ranks.iter().filter_map(|&rank| self.world_rank(rank));
        Ok(Self::of_distinct(members.collect()))
    }

    /// The members at all other ranks than `ranks`, in this group's order (MPI_Group_excl).
    ///
    /// # Errors
    /// [`ErrorClass::Rank`] if the group lacks a rank, or one occurs twice.
    pub fn excl(&self, ranks: &[u32]) -> Result<Self, Fault> {
        self.check_ranks(ranks)?;
        Ok(self.without(ranks.to_vec()))
    }

    /// The members at the ranks of `ranges`, in their order (MPI_Group_range_incl).
    ///
    /// # Errors
    /// [`ErrorClass::Arg`] if a range has no stride or leads away from its end, if the group lacks
    /// a rank of it, or if a rank occurs twice.
    pub fn range_incl(&self, ranges: &[RankRange]) -> Result<Self, Fault> {
        if let (&[range], Members::Progression { first, stride, .. }) = (ranges, &self.members) {
            let size = range.count(self.size())?;
            let (first, stride) = (
                term((*first, *stride), range.first as u32),
                if size == 1 {
                    1
                } else {
                    i64::from(range.stride) * stride
                },
            );
            let members = Members::Progression {
                first,
                stride,
                size,
            };
            return Ok(Self { members });
        }
        let ranks = self.expand(ranges)?;
        let members = ranks.iter().filter_map(|&rank| self.world_rank(rank));
        Ok(Self::of_distinct(members.collect()))
    }

    /// The members at all other ranks than those of `ranges`, in this group's order
    /// (MPI_Group_range_excl).
    ///
    /// # Errors
    /// As [`Self::range_incl`].
    pub fn range_excl(&self, ranges: &[RankRange]) -> Result<Self, Fault> {
        Ok(self.without(self.expand(ranges)?))
    }

    fn has(&self, world_rank: u32) -> bool {
        self.rank_of(world_rank).is_some()
    }

    /// The world rank of a rank that a call names.
    fn member(&self, argument: &'static str, rank: u32) -> Result<u32, Fault> {
        let size = self.size();
        let missing = || rank_fault(argument, format!("there is no rank {rank} among {size}"));
        self.world_rank(rank).ok_or_else(missing)
    }

    fn check_ranks(&self, ranks: &[u32]) -> Result<(), Fault> {
        for &rank in ranks {
            self.member("ranks", rank)?;
        }
        match first_duplicate(ranks) {
            Some(rank) => Err(rank_fault("ranks", format!("rank {rank} occurs twice"))),
            None => Ok(()),
        }
    }

    /// The ranks of `ranges`, which are distinct.
    fn expand(&self, ranges: &[RankRange]) -> Result<Vec<u32>, Fault> {
        let size = self.size();
        let mut ranks = Vec::new();
        for range in ranges {
            let count = range.count(size)?;
            // So that ranges that overlap over and over take no more memory than the group.
            if ranks.len() + count as usize > size as usize {
                return Err(range.fault("it has ranks that an earlier range has"));
            }
            let progression = (range.first as u32, i64::from(range.stride));
            ranks.extend((0..count).map(|i| term(progression, i)));
        }
        match first_duplicate(&ranks) {
            Some(rank) => {
                let text = format!("rank {rank} occurs twice");
                Err(Fault::new(ErrorClass::Arg, "ranges", text))
            }
            None => Ok(ranks),
        }
    }

    /// The group without these of its ranks, which are distinct.
    fn without(&self, mut ranks: Vec<u32>) -> Self {
        if ranks.is_empty() {
            return self.clone();
        }
        ranks.sort_unstable();
        let mut excluded = ranks.into_iter().peekable();
        let kept = (0..self.size()).filter(|rank| excluded.next_if_eq(rank).is_none());
        Self::of_distinct(kept.filter_map(|rank| self.world_rank(rank)).collect())
    }

    fn retain(&self, keeps: impl Fn(u32) -> bool) -> Self {
        let kept: Vec<_> = self.world_ranks().filter(|&rank| keeps(rank)).collect();
        if kept.len() == self.size() as usize {
            return self.clone();
        }
        Self::of_distinct(kept)
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.members {
            Members::Progression {
                first,
                stride,
                size,
            } => write!(f, "Group({size} from {first} by {stride})"),
            Members::Listed(listed) => write!(f, "Group({:?})", listed.world_ranks),
        }
    }
}

impl Listed {
    fn rank_of(&self, world_rank: u32) -> Option<u32> {
        let of = |&rank: &u32| self.world_ranks[rank as usize];
        let at = self.by_world_rank.binary_search_by_key(&world_rank, of);
        at.ok().map(|at| self.by_world_rank[at])
    }
}

impl RankRange {
    /// Ranks of the range, all of which are below `size`.
    fn count(&self, size: u32) -> Result<u32, Fault> {
        let [first, last, stride] = [self.first, self.last, self.stride].map(i64::from);
        if stride == 0 {
            return Err(self.fault("its stride is 0"));
        }
        if (last - first).signum() * stride.signum() < 0 {
            return Err(self.fault("its stride leads away from its end"));
        }
        let steps = (last - first) / stride;
        let ends = [first, first + steps * stride];
        if ends.iter().any(|end| !(0..i64::from(size)).contains(end)) {
            return Err(self.fault(&format!("it leaves the ranks 0..{size}")));
        }
        // At most as many as there are ranks.
        Ok(steps as u32 + 1)
    }

    fn fault(&self, text: &str) -> Fault {
        let Self {
            first,
            last,
            stride,
        } = self;
        let text = format!("({first}, {last}, {stride}): {text}");
        Fault::new(ErrorClass::Arg, "ranges", text)
    }
}

/// The term of a progression of world ranks that has it.
fn term((first, stride): (u32, i64), index: u32) -> u32 {
    (i64::from(first) + stride * i64::from(index)) as u32
}

/// The start and the stride of distinct numbers that are a progression.
fn as_progression(numbers: &[u32]) -> Option<(u32, i64)> {
    let distance = |pair: &[u32]| i64::from(pair[1]) - i64::from(pair[0]);
    let mut distances = numbers.windows(2).map(distance);
    let stride = distances.next().unwrap_or(1);
    let first = numbers.first().copied().unwrap_or(0);
    distances
        .all(|next| next == stride)
        .then_some((first, stride))
}

fn first_duplicate(numbers: &[u32]) -> Option<u32> {
    if as_progression(numbers).is_some_and(|(_, stride)| stride != 0) {
        return None;
    }
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    let twice = sorted.windows(2).find(|pair| pair[0] == pair[1]);
    twice.map(|pair| pair[0])
}

fn rank_fault(argument: &'static str, text: String) -> Fault {
    Fault::new(ErrorClass::Rank, argument, text)
}

#[cfg(test)]
mod tests;
