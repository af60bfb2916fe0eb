//! Datatypes and operations against type maps that are written out.
//!
//! Situation 24 of the reference list: extents smaller than the size, negative strides, subarrays
//! with a lower bound that is not zero, resized types inside structures, partial unpack. Every
//! comparison is repeated with broken code, which it must find out.

// A failure here fails the test.
#![allow(clippy::unwrap_used)]

mod arguments;
mod external;
mod operations;
mod oracle;

use oracle::{Entry, Map, Spec, numbers, specs};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use sme_mpi::datatype::pack::{get_count, get_elements, pack, pack_size, unpack};
use sme_mpi::datatype::{Basic, Block, Datatype, Order};

type Packer = fn(&[u8], usize, i64, &Datatype) -> Vec<u8>;
type Unpacker = fn(&[u8], &mut [u8], usize, i64, &Datatype) -> usize;

/// Larger maps are left out.
const ENTRIES: usize = 4000;

/// Memory in which no two neighbours are equal, and the index of displacement 0.
fn memory_for(entries: &[Entry]) -> (Vec<u8>, usize) {
    let data = || entries.iter().filter_map(|entry| entry.data());
    let low = data().map(|(at, _)| at).min().unwrap_or(0).min(0);
    let high = data().map(|(at, size)| at + size).max().unwrap_or(0).max(0);
    let length = (high - low) as usize + 64;
    let memory = (0..length).map(|i| (i * 7 % 251) as u8).collect();
    (memory, (32 - low) as usize)
}

/// The index of every byte of data, in type-map order.
fn indices(entries: &[Entry], origin: usize) -> Vec<usize> {
    let data = entries.iter().filter_map(|entry| entry.data());
    data.flat_map(|(at, size)| at..at + size)
        .map(|at| (origin as i64 + at) as usize)
        .collect()
}

fn right_pack(memory: &[u8], origin: usize, count: i64, datatype: &Datatype) -> Vec<u8> {
    let mut out = vec![1, 2, 3];
    pack(memory, origin, count, datatype, &mut out).unwrap();
    assert_eq!(out[..3], [1, 2, 3]);
    out.split_off(3)
}

fn right_unpack(
    packed: &[u8],
    memory: &mut [u8],
    origin: usize,
    count: i64,
    datatype: &Datatype,
) -> usize {
    unpack(packed, memory, origin, count, datatype).unwrap()
}

fn packs(packer: Packer, spec: &Spec, count: i64) -> Result<(), TestCaseError> {
    let entries = spec.map().copies(count);
    prop_assume!(entries.len() <= ENTRIES);
    let (memory, origin) = memory_for(&entries);
    let datatype = spec.build().unwrap();
    let packed = packer(&memory, origin, count, &datatype);
    let expected: Vec<_> = indices(&entries, origin)
        .into_iter()
        .map(|index| memory[index])
        .collect();
    prop_assert_eq!(packed, expected);
    Ok(())
}

/// `part` of 256 is the share of the message that arrives; more than 256 is a longer message.
fn unpacks(unpacker: Unpacker, spec: &Spec, count: i64, part: usize) -> Result<(), TestCaseError> {
    let entries = spec.map().copies(count);
    prop_assume!(entries.len() <= ENTRIES);
    let (mut memory, origin) = memory_for(&entries);
    let indices = indices(&entries, origin);
    let message: Vec<_> = (0..indices.len() * part / 256)
        .map(|i| (i * 11 % 241) as u8)
        .collect();
    let mut expected = memory.clone();
    for (index, byte) in indices.iter().zip(&message) {
        expected[*index] = *byte;
    }
    let datatype = spec.build().unwrap();
    let used = unpacker(&message, &mut memory, origin, count, &datatype);
    prop_assert_eq!(used, indices.len().min(message.len()));
    prop_assert_eq!(memory, expected);
    Ok(())
}

/// Bounds and sizes, as a broken library could report them.
fn describes(reported: fn(&Spec) -> Datatype, spec: &Spec) -> Result<(), TestCaseError> {
    let map = spec.map();
    prop_assume!(map.0.len() <= ENTRIES);
    let datatype = reported(spec);
    let (low, high) = map.bounds();
    let (true_low, true_high) = map.true_bounds();
    prop_assert_eq!(datatype.size(), map.size());
    prop_assert_eq!(
        (datatype.lower_bound(), datatype.extent()),
        (low, high - low)
    );
    let bounds = (datatype.true_lower_bound(), datatype.true_extent());
    prop_assert_eq!(bounds, (true_low, true_high - true_low));
    Ok(())
}

proptest! {
    #![proptest_config(Config { cases: 1500, failure_persistence: None, ..Config::default() })]

    #[test]
    fn bounds_are_those_of_the_type_map(spec in specs()) {
        describes(|spec| spec.build().unwrap(), &spec)?;
    }

    #[test]
    fn data_are_packed_in_type_map_order(spec in specs(), count in 0..4_i64) {
        packs(right_pack, &spec, count)?;
    }

    #[test]
    fn messages_are_unpacked_as_far_as_they_go(
        spec in specs(), count in 0..4_i64, part in 0..300_usize
    ) {
        unpacks(right_unpack, &spec, count, part)?;
    }

    #[test]
    fn blocks_and_elements_are_those_of_the_type_map(spec in specs(), count in 0..4_i64) {
        let entries = spec.map().copies(count);
        prop_assume!(entries.len() <= ENTRIES);
        let datatype = spec.build().unwrap();

        let mut merged: Vec<(i64, i64)> = Vec::new();
        for (at, size) in entries.iter().filter_map(|entry| entry.data()) {
            match merged.last_mut() {
                Some((begins, bytes)) if *begins + *bytes == at => *bytes += size,
                _ => merged.push((at, size)),
            }
        }
        let blocks = datatype.blocks(count).unwrap();
        let blocks: Vec<_> = blocks.map(|block| (block.displacement, block.bytes as i64)).collect();
        prop_assert_eq!(blocks, merged);

        let mut values = Vec::new();
        for run in datatype.elements(count).unwrap() {
            for i in 0..run.count as i64 {
                let begins = run.displacement + i * run.basic.extent() as i64;
                for (field, (offset, size, _)) in numbers(run.basic).iter().enumerate() {
                    let (basic, size, at) = (run.basic, *size, begins + offset);
                    values.push(Entry::Number { basic, field, size, at });
                }
            }
        }
        prop_assert_eq!(values, entries);
    }

    #[test]
    fn the_first_bytes_of_blocks_are_left_out(
        spec in specs(), count in 0..4_i64, skipped in 0..400_usize
    ) {
        let map = spec.map();
        let entries = map.copies(count);
        prop_assume!(entries.len() <= ENTRIES);
        let datatype = spec.build().unwrap();
        let bytes = |data: Option<(i64, i64)>| {
            let (at, size) = data.unwrap_or_default();
            at..at + size
        };
        let all: Vec<i64> = entries.iter().flat_map(|entry| bytes(entry.data())).collect();
        let blocks = datatype.blocks_from(count, skipped as u64).unwrap();
        let block = |block: Block| block.displacement..block.displacement + block.bytes as i64;
        let left: Vec<i64> = blocks.flat_map(block).collect();
        prop_assert_eq!(left.as_slice(), all.get(skipped..).unwrap_or_default());

        let one: Vec<i64> = map.data().flat_map(|data| bytes(Some(data))).collect();
        prop_assert_eq!(datatype.is_ascending(), one.is_sorted_by(|left, right| left < right));
    }

    #[test]
    fn messages_are_counted_in_copies_and_in_values(spec in specs(), bytes in 0..600_u64) {
        let map = spec.map();
        prop_assume!(map.0.len() <= ENTRIES);
        let datatype = spec.build().unwrap();
        prop_assert_eq!(pack_size(3, &datatype).unwrap() as i64, 3 * map.size());
        prop_assert_eq!(get_elements(bytes, &datatype), elements_of(&map, bytes));
        let copies = match map.size() as u64 {
            0 => (bytes == 0).then_some(0),
            size => (0..=bytes).find(|copies| copies * size == bytes),
        };
        prop_assert_eq!(get_count(bytes, &datatype), copies);
    }
}

/// Numbers until the message ends, if it ends behind one.
fn elements_of(map: &Map, bytes: u64) -> Option<u64> {
    let mut left = bytes as i64;
    if map.size() == 0 {
        return (left == 0).then_some(0);
    }
    let mut elements = 0;
    for (_, size) in map.data().collect::<Vec<_>>().into_iter().cycle() {
        if left <= 0 {
            break;
        }
        left -= size;
        elements += 1;
    }
    (left == 0).then_some(elements)
}

/// Packs block by block from where `place` says: copy, datatype, displacement.
fn pack_at(
    memory: &[u8],
    count: i64,
    datatype: &Datatype,
    place: impl Fn(i64, i64) -> i64,
) -> Vec<u8> {
    let mut out = Vec::new();
    for copy in 0..count {
        for block in datatype.blocks(1).unwrap() {
            for i in 0..block.bytes as i64 {
                let index = place(copy, block.displacement + i);
                let byte = usize::try_from(index)
                    .ok()
                    .and_then(|index| memory.get(index));
                out.push(byte.copied().unwrap_or(255));
            }
        }
    }
    out
}

fn ignores_the_lower_bound(memory: &[u8], origin: usize, count: i64, of: &Datatype) -> Vec<u8> {
    let begins = origin as i64 - of.true_lower_bound();
    pack_at(memory, count, of, |copy, at| {
        begins + copy * of.extent() + at
    })
}

fn takes_the_size_for_the_extent(
    memory: &[u8],
    origin: usize,
    count: i64,
    of: &Datatype,
) -> Vec<u8> {
    pack_at(memory, count, of, |copy, at| {
        origin as i64 + copy * of.size() + at
    })
}

fn loses_signs(memory: &[u8], origin: usize, count: i64, of: &Datatype) -> Vec<u8> {
    let extent = of.extent();
    pack_at(memory, count, of, |copy, at| {
        origin as i64 + copy * extent + at.abs()
    })
}

fn packs_in_address_order(memory: &[u8], origin: usize, count: i64, of: &Datatype) -> Vec<u8> {
    let mut places: Vec<_> = of.blocks(count).unwrap().collect();
    places.sort_by_key(|block| block.displacement);
    let place = |block: &sme_mpi::datatype::Block| {
        let begins = (origin as i64 + block.displacement) as usize;
        memory[begins..begins + block.bytes].to_vec()
    };
    places.iter().flat_map(place).collect()
}

fn unpacks_whole_copies_only(
    packed: &[u8],
    memory: &mut [u8],
    origin: usize,
    count: i64,
    of: &Datatype,
) -> usize {
    let copies = (packed.len() as i64).checked_div(of.size()).unwrap_or(0);
    unpack(packed, memory, origin, copies.min(count), of).unwrap()
}

/// The datatype with the bounds of resized parts forgotten.
fn forgets_resizing(spec: &Spec) -> Datatype {
    match spec {
        Spec::Struct(parts) => {
            let parts = parts.iter().map(|(length, at, inner)| match inner {
                Spec::Resized(_, _, inner) => (*length, *at, (**inner).clone()),
                other => (*length, *at, other.clone()),
            });
            Spec::Struct(parts.collect()).build().unwrap()
        }
        other => other.build().unwrap(),
    }
}

/// A runner that always tries the same cases.
fn runner() -> TestRunner {
    let config = Config {
        cases: 1500,
        failure_persistence: None,
        ..Config::default()
    };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    TestRunner::new_with_rng(config, rng)
}

#[test]
fn broken_packers_are_found_out() {
    let broken: [(&str, Packer); 4] = [
        ("lower bound", ignores_the_lower_bound),
        ("extent", takes_the_size_for_the_extent),
        ("signs", loses_signs),
        ("order", packs_in_address_order),
    ];
    for (name, packer) in broken {
        let found = runner().run(&(specs(), 0..4_i64), |(spec, count)| {
            packs(packer, &spec, count)
        });
        assert!(found.is_err(), "{name}");
    }
}

#[test]
fn a_broken_unpacker_is_found_out() {
    let cases = (specs(), 0..4_i64, 0..300_usize);
    let found = runner().run(&cases, |(spec, count, part)| {
        unpacks(unpacks_whole_copies_only, &spec, count, part)
    });
    assert!(found.is_err());
}

#[test]
fn forgotten_bounds_are_found_out() {
    let found = runner().run(&specs(), |spec| describes(forgets_resizing, &spec));
    assert!(found.is_err());
}

/// The cases of situation 24, each by itself.
#[test]
fn known_traps() {
    let int = || Box::new(Spec::Basic(Basic::Int));
    let overlapping = Spec::Resized(0, 4, Box::new(Spec::Contiguous(3, int())));
    let backwards = Spec::Vector(3, 1, -2, int());
    let corner = Spec::Subarray(vec![(4, 2, 1), (5, 3, 2)], Order::C, int());
    let spread = Spec::Resized(-4, 24, int());
    let record = Spec::Struct(vec![
        (1, 0, Spec::Basic(Basic::Byte)),
        (2, 8, spread),
        (1, -16, corner.clone()),
    ]);
    let unaligned = Spec::Hindexed(
        vec![(1, 3), (1, -9)],
        Box::new(Spec::Basic(Basic::DoubleInt)),
    );
    for spec in [overlapping, backwards, corner, record, unaligned] {
        describes(|spec| spec.build().unwrap(), &spec).unwrap();
        for count in 0..4 {
            packs(right_pack, &spec, count).unwrap();
            for part in 0..300 {
                unpacks(right_unpack, &spec, count, part).unwrap();
            }
        }
    }
}

/// Counts beyond memory are walked lazily, and dense ones are a single block.
#[test]
fn large_counts_take_no_memory() {
    let double = Datatype::from(Basic::Double);
    let row = Datatype::contiguous(1 << 30, &double).unwrap();
    assert_eq!(row.blocks(1 << 20).unwrap().count(), 1);
    let record = Datatype::create_struct(&[1, 2], &[0, 8], &[double.clone(), Basic::Int.into()]);
    let record = record.unwrap();
    assert!(record.is_contiguous());
    assert_eq!(record.blocks(1 << 40).unwrap().count(), 1);
    let pair = Datatype::resized(&Basic::DoubleInt.into(), 0, 12).unwrap();
    assert_eq!(pair.blocks(1 << 40).unwrap().count(), 1);
    let column = Datatype::vector(1 << 40, 1, 1000, &double).unwrap();
    let second = column.blocks(1 << 10).unwrap().nth(1).unwrap();
    assert_eq!((second.displacement, second.bytes), (8000, 8));
    let values = column.elements(1).unwrap().nth(2).unwrap();
    assert_eq!((values.displacement, values.count), (16000, 1));
    assert_eq!(get_elements(8 * 12345, &column), Some(12345));
}
