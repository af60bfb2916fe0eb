//! Groups against plain lists that follow the standard's text.

use super::*;
use crate::properties::{holds, is_caught};
use proptest::prelude::*;
use proptest::sample::{SizeRange, subsequence};
use proptest::test_runner::TestCaseError;

/// The operations by the standard's text, on plain lists of world ranks.
mod naive {
    pub fn union(one: &[u32], two: &[u32]) -> Vec<u32> {
        let mut all = one.to_vec();
        all.extend(two.iter().filter(|rank| !one.contains(rank)));
        all
    }

    pub fn intersection(one: &[u32], two: &[u32]) -> Vec<u32> {
        let both = one.iter().filter(|rank| two.contains(rank));
        both.copied().collect()
    }

    pub fn difference(one: &[u32], two: &[u32]) -> Vec<u32> {
        let only = one.iter().filter(|rank| !two.contains(rank));
        only.copied().collect()
    }

    /// `None` where the call is erroneous.
    pub fn incl(group: &[u32], ranks: &[i64]) -> Option<Vec<u32>> {
        let mut members = Vec::new();
        for &rank in ranks {
            let member = *group.get(usize::try_from(rank).ok()?)?;
            if members.contains(&member) {
                return None;
            }
            members.push(member);
        }
        Some(members)
    }

    pub fn excl(group: &[u32], ranks: &[i64]) -> Option<Vec<u32>> {
        Some(difference(group, &incl(group, ranks)?))
    }

    /// Counts through each range; `None` where one has no ranks.
    pub fn ranks(ranges: &[super::RankRange]) -> Option<Vec<i64>> {
        let mut ranks = Vec::new();
        for range in ranges {
            let (mut rank, last) = (i64::from(range.first), i64::from(range.last));
            let before = ranks.len();
            while range.stride != 0 && (range.stride > 0) == (rank <= last) || rank == last {
                ranks.push(rank);
                if range.stride == 0 {
                    return None;
                }
                rank += i64::from(range.stride);
            }
            if ranks.len() == before {
                return None;
            }
        }
        Some(ranks)
    }
}

type Operation = fn(&Group, &Group) -> Group;

const SOUND: [Operation; 3] = [Group::union, Group::intersection, Group::difference];

fn lists() -> impl Strategy<Value = Vec<u32>> {
    let picked = subsequence((0..12u32).collect::<Vec<_>>(), SizeRange::from(0..=12));
    let strided =
        (0u32..40, 1u32..4, 0u32..8, any::<bool>()).prop_map(|(first, stride, size, falls)| {
            let mut list: Vec<_> = (0..size).map(|i| first + i * stride).collect();
            if falls {
                list.reverse();
            }
            list
        });
    prop_oneof![picked.prop_shuffle(), strided]
}

fn ranges() -> impl Strategy<Value = Vec<RankRange>> {
    let range = (-2i32..12, -3i32..14, -4i32..5).prop_map(|(first, last, stride)| RankRange {
        first,
        last,
        stride,
    });
    proptest::collection::vec(range, 0..4)
}

fn group(list: &[u32]) -> Group {
    Group::from_world_ranks(list.to_vec()).unwrap()
}

fn members(group: &Group) -> Vec<u32> {
    group.world_ranks().collect()
}

/// Holds the set operations against the standard's text.
fn check_sets(
    operations: [Operation; 3],
    (one, two): (Vec<u32>, Vec<u32>),
) -> Result<(), TestCaseError> {
    let oracles = [naive::union, naive::intersection, naive::difference];
    for (operation, oracle) in operations.into_iter().zip(oracles) {
        let result = operation(&group(&one), &group(&two));
        let expected = oracle(&one, &two);
        prop_assert_eq!(members(&result), &expected[..]);
        prop_assert_eq!(result, group(&expected));
    }
    Ok(())
}

#[test]
fn set_operations_are_as_the_standard_says() {
    holds((lists(), lists()), |case| check_sets(SOUND, case));
}

#[test]
fn broken_set_operations_are_caught() {
    let [union, intersection, difference] = SOUND;
    let in_the_others_order: Operation = |one, two| two.intersection(one);
    let the_other_first: Operation = |one, two| two.union(one);
    let variants = [
        [union, in_the_others_order, difference],
        [the_other_first, intersection, difference],
    ];
    for broken in variants {
        is_caught((lists(), lists()), |case| check_sets(broken, case));
    }
}

proptest! {
    #[test]
    fn ranks_and_world_ranks_are_inverse(list in lists()) {
        let group = group(&list);
        prop_assert_eq!(group.size() as usize, list.len());
        for world_rank in 0..64 {
            let rank = list.iter().position(|&member| member == world_rank);
            prop_assert_eq!(group.rank_of(world_rank), rank.map(|rank| rank as u32));
        }
        for rank in 0..20 {
            prop_assert_eq!(group.world_rank(rank), list.get(rank as usize).copied());
        }
    }

    #[test]
    fn comparisons_are_as_the_standard_says(one in lists(), two in lists(), seed in lists()) {
        let sorted = |list: &[u32]| {
            let mut list = list.to_vec();
            list.sort_unstable();
            list
        };
        let mut turned = one.clone();
        turned.rotate_left(seed.len() % one.len().max(1));
        for other in [one.clone(), turned, two] {
            let expected = if one == other {
                Comparison::Ident
            } else if sorted(&one) == sorted(&other) {
                Comparison::Similar
            } else {
                Comparison::Unequal
            };
            prop_assert_eq!(group(&one).compare(&group(&other)), expected);
        }
    }

    #[test]
    fn lists_of_ranks_are_as_the_standard_says(
        list in lists(),
        ranks in proptest::collection::vec(0u32..14, 0..6),
    ) {
        let wide: Vec<_> = ranks.iter().copied().map(i64::from).collect();
        let group = group(&list);
        let cases = [
            (group.incl(&ranks), naive::incl(&list, &wide)),
            (group.excl(&ranks), naive::excl(&list, &wide)),
        ];
        for (result, expected) in cases {
            if let Err(fault) = &result {
                prop_assert_eq!(fault.class, ErrorClass::Rank);
            }
            prop_assert_eq!(result.ok().as_ref().map(members), expected);
        }
    }

    #[test]
    fn ranges_are_as_the_standard_says(list in lists(), ranges in ranges()) {
        let group = group(&list);
        let ranks = naive::ranks(&ranges);
        let of = |oracle: fn(&[u32], &[i64]) -> Option<Vec<u32>>| oracle(&list, ranks.as_ref()?);
        let cases = [
            (group.range_incl(&ranges), of(naive::incl)),
            (group.range_excl(&ranges), of(naive::excl)),
        ];
        for (result, expected) in cases {
            if let Err(fault) = &result {
                prop_assert_eq!(fault.class, ErrorClass::Arg);
            }
            prop_assert_eq!(result.ok().as_ref().map(members), expected);
        }
    }

    #[test]
    fn translation_keeps_the_process(one in lists(), two in lists()) {
        let (from, to) = (group(&one), group(&two));
        let ranks: Vec<_> = (0..from.size()).collect();
        let position = |member| two.iter().position(|&other| other == member);
        let expected: Vec<_> =
            one.iter().map(|&member| position(member).map(|rank| rank as u32)).collect();
        prop_assert_eq!(from.translate_ranks(&ranks, &to), Ok(expected));
        prop_assert!(from.translate_ranks(&[from.size()], &to).is_err());
    }
}

#[test]
fn extreme_ranges_are_faults() {
    let world = Group::world(4);
    for (first, last, stride) in [
        (i32::MIN, i32::MAX, 1),
        (i32::MAX, i32::MIN, i32::MIN),
        (0, i32::MAX, 1),
        (0, 3, 0),
        (3, 0, 1),
    ] {
        let range = RankRange {
            first,
            last,
            stride,
        };
        let fault = world.range_incl(&[range]).unwrap_err();
        assert_eq!((fault.class, fault.argument), (ErrorClass::Arg, "ranges"));
    }
    let beyond = RankRange {
        first: 0,
        last: i32::MAX,
        stride: i32::MAX,
    };
    assert!(world.range_incl(&[beyond]).is_err());
    let one = RankRange {
        last: i32::MAX - 1,
        ..beyond
    };
    assert_eq!(world.range_incl(&[one]), Ok(Group::world(1)));
    assert!(Group::empty().range_incl(&[one]).is_err());
    assert_eq!(
        Group::from_world_ranks(vec![1, 1]).unwrap_err().class,
        ErrorClass::Rank
    );
}
