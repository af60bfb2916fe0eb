//! Wrong arguments are faults with a class and the argument's name, and never panics.

use proptest::prelude::*;
use sme_mpi::datatype::pack::{get_elements, pack, pack_size, unpack};
use sme_mpi::datatype::{Basic, Combiner, DEPTH_LIMIT, Datatype, Dimension, Distribution, Order};
use sme_mpi::error::{ErrorClass, Fault};

fn fault<T>(result: Result<T, Fault>) -> (ErrorClass, &'static str) {
    let fault = result.map(|_| ()).unwrap_err();
    (fault.class, fault.argument)
}

#[test]
fn faults_name_class_and_argument() {
    let int = Datatype::from(Basic::Int);
    let (count, arg) = (ErrorClass::Count, ErrorClass::Arg);
    assert_eq!(fault(Datatype::contiguous(-1, &int)), (count, "count"));
    assert_eq!(fault(Datatype::contiguous(i64::MAX, &int)), (arg, "count"));
    assert_eq!(
        fault(Datatype::vector(1, -1, 1, &int)),
        (count, "blocklength")
    );
    assert_eq!(
        fault(Datatype::vector(3, 1, i64::MAX, &int)),
        (arg, "stride")
    );
    assert_eq!(fault(Datatype::hvector(-2, 1, 1, &int)), (count, "count"));
    let lengths = "array_of_blocklengths";
    let places = "array_of_displacements";
    assert_eq!(
        fault(Datatype::indexed(&[-1], &[0], &int)),
        (count, lengths)
    );
    assert_eq!(fault(Datatype::indexed(&[1, 2], &[0], &int)), (arg, places));
    assert_eq!(
        fault(Datatype::hindexed(&[1], &[i64::MAX], &int)),
        (arg, places)
    );
    let types = std::slice::from_ref(&int);
    let uneven = Datatype::create_struct(&[1, 2], &[0, 1], types);
    assert_eq!(fault(uneven), (arg, "array_of_types"));
    let part = |sizes: &[i64], subsizes: &[i64], starts: &[i64]| {
        fault(Datatype::subarray(sizes, subsizes, starts, Order::C, &int))
    };
    assert_eq!(part(&[], &[], &[]), (arg, "ndims"));
    assert_eq!(part(&[0], &[1], &[0]), (arg, "array_of_sizes"));
    assert_eq!(part(&[4], &[5], &[0]), (arg, "array_of_subsizes"));
    assert_eq!(part(&[4], &[0], &[0]), (arg, "array_of_subsizes"));
    assert_eq!(part(&[4], &[2], &[3]), (arg, "array_of_starts"));
    assert_eq!(
        part(&[i64::MAX; 3], &[1; 3], &[0; 3]),
        (arg, "array_of_sizes")
    );
    let distributed = |process, size, distribution, block, processes| {
        let dimension = Dimension {
            size,
            distribution,
            block,
            processes,
        };
        fault(Datatype::darray(process, &[dimension], Order::C, &int))
    };
    let (none, blocks) = (Distribution::None, Distribution::Block);
    let nothing = Datatype::darray((1, 0), &[], Order::C, &int);
    assert_eq!(fault(nothing), (arg, "ndims"));
    let gsizes = (arg, "array_of_gsizes");
    assert_eq!(distributed((1, 0), 0, blocks, None, 1), gsizes);
    assert_eq!(distributed((1, 0), i64::MAX, blocks, None, 1), gsizes);
    let psizes = (arg, "array_of_psizes");
    assert_eq!(distributed((2, 0), 5, none, None, 2), psizes);
    assert_eq!(distributed((3, 0), 5, blocks, None, 2), psizes);
    assert_eq!(distributed((0, 0), 5, blocks, None, 0), psizes);
    let dargs = (arg, "array_of_dargs");
    assert_eq!(distributed((2, 0), 5, blocks, Some(2), 2), dargs);
    let cyclic = Distribution::Cyclic;
    assert_eq!(distributed((2, 0), 5, cyclic, Some(0), 2), dargs);
    assert_eq!(distributed((2, 2), 5, blocks, None, 2), (arg, "rank"));
    let wide = Datatype::resized(&int, i64::MAX, i64::MAX);
    assert_eq!(fault(wide), (arg, "extent"));
    assert_eq!(fault(pack_size(-1, &int)), (count, "count"));
}

#[test]
fn data_outside_memory_are_refused_before_any_is_moved() {
    let int = Datatype::from(Basic::Int);
    let backwards = Datatype::vector(3, 1, -1, &int).unwrap();
    let mut memory = [7; 16];
    let mut out = vec![1];
    let packed = pack(&memory, 4, 1, &backwards, &mut out);
    assert_eq!(fault(packed), (ErrorClass::Buffer, "inbuf"));
    assert_eq!(out, [1]);
    let unpacked = unpack(&[0; 12], &mut memory, 4, 1, &backwards);
    assert_eq!(fault(unpacked), (ErrorClass::Buffer, "outbuf"));
    let unpacked = unpack(&[0; 4], &mut memory, 0, 5, &int);
    assert_eq!(fault(unpacked), (ErrorClass::Buffer, "outbuf"));
    assert_eq!(memory, [7; 16]);
    let stacked = Datatype::hvector(1 << 60, 1, 0, &int).unwrap();
    let packed = pack(&memory, 0, 1, &stacked, &mut out);
    assert_eq!(fault(packed), (ErrorClass::NoMem, "outbuf"));
    assert_eq!(pack(&[], usize::MAX, 0, &int, &mut out), Ok(()));
}

/// A message that ends inside a value fills the bytes that it has; its values are not counted.
#[test]
fn a_message_may_end_inside_a_value() {
    let pair = Datatype::from(Basic::ShortInt);
    let mut memory = [0; 16];
    let message = [1, 2, 3, 4, 5, 6, 7];
    assert_eq!(unpack(&message, &mut memory, 0, 2, &pair), Ok(7));
    assert_eq!(memory, [1, 2, 0, 0, 3, 4, 5, 6, 7, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(get_elements(7, &pair), None);
    assert_eq!(get_elements(8, &pair), Some(3));
}

#[test]
fn constructors_can_be_asked_for() {
    let int = Datatype::from(Basic::Int);
    assert_eq!(int.combiner(), Combiner::Named(Basic::Int));
    let row = Datatype::hvector(2, 3, -40, &int).unwrap();
    assert_eq!(row.combiner().name(), "MPI_COMBINER_HVECTOR");
    assert_eq!(row.contents().integers, [2, 3]);
    assert_eq!(row.contents().addresses, [-40]);
    assert!(row.contents().types[0].is(&int));
    let part = Datatype::subarray(&[4, 5], &[2, 3], &[1, 2], Order::Fortran, &row).unwrap();
    assert_eq!(part.contents().integers, [2, 4, 5, 2, 3, 1, 2, 1]);
    let blocks = Datatype::indexed(&[1, 2], &[8, 9], &part).unwrap();
    assert_eq!(blocks.contents().integers, [2, 1, 2, 8, 9]);
}

#[test]
fn contents_may_be_large_counts() {
    let int = Datatype::from(Basic::Int);
    let place = Dimension {
        size: 9,
        distribution: Distribution::Cyclic,
        block: Some(2),
        processes: 3,
    };
    type Case<'a> = (Result<Datatype, Fault>, &'a [i64], &'a [i64]);
    let all: [Case<'_>; 9] = [
        (Datatype::contiguous(7, &int), &[], &[7]),
        (Datatype::vector(2, 3, 4, &int), &[], &[2, 3, 4]),
        (Datatype::hvector(2, 3, 40, &int), &[], &[2, 3, 40]),
        (
            Datatype::hindexed(&[1, 2], &[3, 40], &int),
            &[],
            &[2, 1, 2, 3, 40],
        ),
        (
            Datatype::hindexed_block(6, &[3, 40], &int),
            &[],
            &[2, 6, 3, 40],
        ),
        (Datatype::resized(&int, -3, 8), &[], &[-3, 8]),
        (
            Datatype::subarray(&[4, 5], &[2, 3], &[1, 2], Order::Fortran, &int),
            &[2, 1],
            &[4, 5, 2, 3, 1, 2],
        ),
        (
            Datatype::darray((3, 1), &[place], Order::C, &int),
            &[3, 1, 1, 2, 2, 3, 0],
            &[9],
        ),
        (Datatype::dup(&int), &[], &[]),
    ];
    for (made, integers, counts) in all {
        let made = made.unwrap();
        let large = made.with_large_contents();
        let contents = large.contents();
        assert_eq!(
            (&contents.integers[..], &contents.large_counts[..]),
            (integers, counts)
        );
        assert!(contents.addresses.is_empty() && contents.types[0].is(&int));
        assert_eq!(
            (large.combiner(), large.size()),
            (made.combiner(), made.size())
        );
        assert_eq!(large.extent(), made.extent());
        assert!(made.contents().large_counts.is_empty());
    }
}

#[test]
fn deep_nesting_ends_at_the_limit() {
    let byte = Datatype::from(Basic::Byte);
    let mut nested = byte.clone();
    for _ in 0..DEPTH_LIMIT {
        let types = [nested, byte.clone()];
        nested = Datatype::create_struct(&[1, 1], &[3, 0], &types).unwrap();
    }
    assert_eq!(nested.blocks(1).unwrap().count(), DEPTH_LIMIT as usize + 1);
    assert_eq!(fault(nested.dup()).0, ErrorClass::Type);
}

fn extremes() -> impl Strategy<Value = i64> {
    prop_oneof![
        Just(i64::MIN),
        Just(i64::MAX),
        any::<i64>(),
        -3..4_i64,
        (0..63_u32).prop_map(|shift| 1 << shift),
    ]
}

proptest! {
    #[test]
    fn no_argument_panics(
        numbers in prop::collection::vec(prop::array::uniform4(extremes()), 1..5),
        basic in prop::sample::select(Basic::ALL),
    ) {
        let mut types = vec![Datatype::from(basic)];
        for [a, b, c, d] in numbers {
            for old in types.clone() {
                let made = [
                    Datatype::contiguous(a, &old),
                    Datatype::vector(a, b, c, &old),
                    Datatype::hvector(a, b, c, &old),
                    Datatype::indexed(&[a, b], &[c, d], &old),
                    Datatype::hindexed(&[a, b], &[c, d], &old),
                    Datatype::indexed_block(a, &[b, c], &old),
                    Datatype::hindexed_block(a, &[b, c], &old),
                    Datatype::create_struct(&[a, b], &[c, d], &[old.clone(), types[0].clone()]),
                    Datatype::subarray(&[a, b], &[c, d], &[0, 0], Order::C, &old),
                    Datatype::subarray(&[a, b], &[1, 1], &[c, d], Order::Fortran, &old),
                    Datatype::resized(&old, a, b),
                ];
                types.extend(made.into_iter().flatten());
            }
            types.truncate(12);
        }
        for datatype in &types {
            if let Ok(blocks) = datatype.blocks(3) {
                for block in blocks.take(20) {
                    let end = i128::from(block.displacement) + block.bytes as i128;
                    prop_assert!(end <= i128::from(i64::MAX));
                }
            }
            let mut memory = [0; 64];
            // Overlapping data of a small memory may fill a large one; no memory is that of 2^56
            // bytes.
            if !(1 << 16..1 << 56).contains(&datatype.size()) {
                let _ = pack(&memory, 8, 2, datatype, &mut Vec::new());
            }
            let _ = unpack(&[1; 16], &mut memory, usize::MAX, 1, datatype);
            let _ = get_elements(u64::MAX, datatype);
            let _ = pack_size(i64::MAX, datatype);
        }
    }
}
