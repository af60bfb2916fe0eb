//! Type maps written out, as MPI-4.1, Sec. 5.1, defines them: a list of every value and marker with
//! its displacement. Nothing here uses the library's layouts.

use proptest::prelude::*;
use sme_mpi::datatype::{Basic, Datatype, Dimension, Distribution, Marker, Order};
use sme_mpi::error::Fault;

/// A datatype as the constructors that make it.
#[derive(Clone, Debug)]
pub enum Spec {
    Basic(Basic),
    Marker(Marker),
    Contiguous(i64, Box<Spec>),
    Vector(i64, i64, i64, Box<Spec>),
    Hvector(i64, i64, i64, Box<Spec>),
    Indexed(Vec<(i64, i64)>, Box<Spec>),
    Hindexed(Vec<(i64, i64)>, Box<Spec>),
    IndexedBlock(i64, Vec<i64>, Box<Spec>),
    HindexedBlock(i64, Vec<i64>, Box<Spec>),
    Struct(Vec<(i64, i64, Spec)>),
    /// Dimensions of (size, subsize, start).
    Subarray(Vec<(i64, i64, i64)>, Order, Box<Spec>),
    /// Dimensions, a process's number in the grid, and the order.
    Darray(Vec<Dimension>, i64, Order, Box<Spec>),
    Resized(i64, i64, Box<Spec>),
    Dup(Box<Spec>),
}

/// An entry of a type map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// A number of so many bytes; of a pair, `field` tells which one.
    Number {
        basic: Basic,
        field: usize,
        size: i64,
        at: i64,
    },
    Lower(i64),
    Upper(i64),
    /// The end of a structure with its padding, which is no marker.
    End(i64),
}

/// The numbers of a predefined type: offset, size and alignment.
pub fn numbers(basic: Basic) -> &'static [(i64, i64, i64)] {
    match basic {
        Basic::Byte => &[(0, 1, 1)],
        Basic::Short => &[(0, 2, 2)],
        Basic::Int => &[(0, 4, 4)],
        Basic::Double => &[(0, 8, 8)],
        Basic::CDoubleComplex => &[(0, 16, 8)],
        Basic::TwoInt => &[(0, 4, 4), (4, 4, 4)],
        Basic::ShortInt => &[(0, 2, 2), (4, 4, 4)],
        Basic::DoubleInt => &[(0, 8, 8), (8, 4, 4)],
        other => panic!("{other} is not in the table"),
    }
}

impl Entry {
    fn moved(self, by: i64) -> Self {
        match self {
            Entry::Number {
                basic,
                field,
                size,
                at,
            } => Entry::Number {
                basic,
                field,
                size,
                at: at + by,
            },
            Entry::Lower(at) => Entry::Lower(at + by),
            Entry::Upper(at) => Entry::Upper(at + by),
            Entry::End(at) => Entry::End(at + by),
        }
    }

    pub fn data(self) -> Option<(i64, i64)> {
        match self {
            Entry::Number { size, at, .. } => Some((at, size)),
            _ => None,
        }
    }
}

/// A type map.
#[derive(Clone, Debug, Default)]
pub struct Map(pub Vec<Entry>);

impl Map {
    pub fn data(&self) -> impl Iterator<Item = (i64, i64)> + '_ {
        self.0.iter().filter_map(|entry| entry.data())
    }

    pub fn size(&self) -> i64 {
        self.data().map(|(_, size)| size).sum()
    }

    /// The true lower and upper bound.
    pub fn true_bounds(&self) -> (i64, i64) {
        let low = self.data().map(|(at, _)| at).min();
        let high = self.data().map(|(at, size)| at + size).max();
        (low.unwrap_or(0), high.unwrap_or(0))
    }

    /// The bounds of the data and of the structures' padding.
    fn padded_bounds(&self) -> (i64, i64) {
        let (low, high) = self.true_bounds();
        let ends = self.0.iter().filter_map(|entry| match entry {
            Entry::End(at) => Some(*at),
            _ => None,
        });
        (low, ends.max().unwrap_or(high).max(high))
    }

    /// With an end at which the next structure's data are aligned as this one's, as MPICH pads
    /// structures, and nothing else.
    fn padded_at_end(mut self) -> Self {
        let (low, mut high) = self.padded_bounds();
        let alignments = self.0.iter().filter_map(|entry| match entry {
            Entry::Number { basic, field, .. } => Some(numbers(*basic)[*field].2),
            _ => None,
        });
        if let Some(alignment) = alignments.max() {
            while (high - low) % alignment != 0 {
                high += 1;
            }
            self.0.push(Entry::End(high));
        }
        self
    }

    /// The lower and upper bound: those of the markers, or those of the data, padded.
    pub fn bounds(&self) -> (i64, i64) {
        let lower = self.0.iter().filter_map(|entry| match entry {
            Entry::Lower(at) => Some(*at),
            _ => None,
        });
        let upper = self.0.iter().filter_map(|entry| match entry {
            Entry::Upper(at) => Some(*at),
            _ => None,
        });
        let (low, high) = self.padded_bounds();
        (lower.min().unwrap_or(low), upper.max().unwrap_or(high))
    }

    pub fn extent(&self) -> i64 {
        let (low, high) = self.bounds();
        high - low
    }

    fn moved(&self, by: i64) -> impl Iterator<Item = Entry> + '_ {
        self.0.iter().map(move |entry| entry.moved(by))
    }

    /// Blocks of copies at displacements in bytes.
    fn blocks(&self, blocks: impl IntoIterator<Item = (i64, i64)>) -> Self {
        let extent = self.extent();
        let mut map = Map::default();
        for (length, at) in blocks {
            for i in 0..length {
                map.0.extend(self.moved(at + i * extent));
            }
        }
        map
    }

    /// The data of copies of it.
    pub fn copies(&self, count: i64) -> Vec<Entry> {
        let Map(mut entries) = self.blocks([(count, 0)]);
        entries.retain(|entry| entry.data().is_some());
        entries
    }

    fn resized(&self, lower: i64, extent: i64) -> Self {
        let mut map = Map(self.copies(1));
        map.0.push(Entry::Lower(lower));
        map.0.push(Entry::Upper(lower + extent));
        map
    }
}

impl Spec {
    pub fn map(&self) -> Map {
        match self {
            Spec::Basic(basic) => {
                let fields = numbers(*basic).iter().enumerate();
                let entries = fields.map(|(field, (at, size, _))| Entry::Number {
                    basic: *basic,
                    field,
                    size: *size,
                    at: *at,
                });
                // A pair is a structure of C.
                Map(entries.collect()).padded_at_end()
            }
            Spec::Marker(Marker::Lower) => Map(vec![Entry::Lower(0)]),
            Spec::Marker(Marker::Upper) => Map(vec![Entry::Upper(0)]),
            Spec::Contiguous(count, inner) => inner.map().blocks([(*count, 0)]),
            Spec::Vector(count, length, stride, inner) => {
                let inner = inner.map();
                let bytes = stride * inner.extent();
                inner.blocks((0..*count).map(|i| (*length, i * bytes)))
            }
            Spec::Hvector(count, length, stride, inner) => inner
                .map()
                .blocks((0..*count).map(|i| (*length, i * stride))),
            Spec::Indexed(blocks, inner) => {
                let inner = inner.map();
                let extent = inner.extent();
                inner.blocks(blocks.iter().map(|(length, at)| (*length, at * extent)))
            }
            Spec::Hindexed(blocks, inner) => inner.map().blocks(blocks.iter().copied()),
            Spec::IndexedBlock(length, places, inner) => {
                let inner = inner.map();
                let extent = inner.extent();
                inner.blocks(places.iter().map(|at| (*length, at * extent)))
            }
            Spec::HindexedBlock(length, places, inner) => {
                inner.map().blocks(places.iter().map(|at| (*length, *at)))
            }
            Spec::Struct(parts) => {
                let parts = parts
                    .iter()
                    .map(|(length, at, inner)| inner.map().blocks([(*length, *at)]).0);
                Map(parts.flatten().collect()).padded_at_end()
            }
            Spec::Subarray(dimensions, order, inner) => {
                let mut map = inner.map();
                let mut dimensions = dimensions.clone();
                if *order == Order::C {
                    dimensions.reverse();
                }
                for (size, subsize, start) in dimensions {
                    let extent = map.extent();
                    let part = map.blocks([(subsize, start * extent)]);
                    map = part.resized(0, size * extent);
                }
                map
            }
            Spec::Darray(dimensions, rank, order, inner) => {
                let mut map = inner.map();
                let own = (0..dimensions.len()).map(|i| {
                    let later = dimensions[i + 1..].iter().map(|of| of.processes);
                    let place = rank / later.product::<i64>() % dimensions[i].processes;
                    (dimensions[i], place)
                });
                let mut own: Vec<_> = own.collect();
                if *order == Order::C {
                    own.reverse();
                }
                for (dimension, place) in own {
                    let extent = map.extent();
                    let elements = (0..dimension.size)
                        .filter(|element| owner(&dimension, *element) == place)
                        .map(|element| (1, element * extent));
                    map = map.blocks(elements).resized(0, dimension.size * extent);
                }
                map
            }
            Spec::Resized(lower, extent, inner) => inner.map().resized(*lower, *extent),
            Spec::Dup(inner) => inner.map(),
        }
    }

    pub fn build(&self) -> Result<Datatype, Fault> {
        match self {
            Spec::Basic(basic) => Ok(Datatype::from(*basic)),
            Spec::Marker(marker) => Ok(Datatype::from(*marker)),
            Spec::Contiguous(count, inner) => Datatype::contiguous(*count, &inner.build()?),
            Spec::Vector(count, length, stride, inner) => {
                Datatype::vector(*count, *length, *stride, &inner.build()?)
            }
            Spec::Hvector(count, length, stride, inner) => {
                Datatype::hvector(*count, *length, *stride, &inner.build()?)
            }
            Spec::Indexed(blocks, inner) => {
                let (lengths, places): (Vec<_>, Vec<_>) = blocks.iter().copied().unzip();
                Datatype::indexed(&lengths, &places, &inner.build()?)
            }
            Spec::Hindexed(blocks, inner) => {
                let (lengths, places): (Vec<_>, Vec<_>) = blocks.iter().copied().unzip();
                Datatype::hindexed(&lengths, &places, &inner.build()?)
            }
            Spec::IndexedBlock(length, places, inner) => {
                Datatype::indexed_block(*length, places, &inner.build()?)
            }
            Spec::HindexedBlock(length, places, inner) => {
                Datatype::hindexed_block(*length, places, &inner.build()?)
            }
            Spec::Struct(parts) => {
                let lengths: Vec<_> = parts.iter().map(|part| part.0).collect();
                let places: Vec<_> = parts.iter().map(|part| part.1).collect();
                let types: Result<Vec<_>, _> = parts.iter().map(|part| part.2.build()).collect();
                Datatype::create_struct(&lengths, &places, &types?)
            }
            Spec::Subarray(dimensions, order, inner) => {
                let sizes: Vec<_> = dimensions.iter().map(|of| of.0).collect();
                let subsizes: Vec<_> = dimensions.iter().map(|of| of.1).collect();
                let starts: Vec<_> = dimensions.iter().map(|of| of.2).collect();
                Datatype::subarray(&sizes, &subsizes, &starts, *order, &inner.build()?)
            }
            Spec::Darray(dimensions, rank, order, inner) => {
                let size = dimensions.iter().map(|of| of.processes).product();
                Datatype::darray((size, *rank), dimensions, *order, &inner.build()?)
            }
            Spec::Resized(lower, extent, inner) => {
                Datatype::resized(&inner.build()?, *lower, *extent)
            }
            Spec::Dup(inner) => inner.build()?.dup(),
        }
    }
}

/// The process of a dimension that has an element, as the standard's examples deal them out.
fn owner(dimension: &Dimension, element: i64) -> i64 {
    let Dimension {
        size, processes, ..
    } = *dimension;
    let block = match (dimension.distribution, dimension.block) {
        (Distribution::None, _) => return 0,
        (_, Some(block)) => block,
        (Distribution::Block, None) => (1..).find(|block| block * processes >= size).unwrap(),
        (Distribution::Cyclic, None) => 1,
    };
    element / block % processes
}

/// An array over a grid of processes, and one of these.
fn distributed() -> impl Strategy<Value = (Vec<Dimension>, i64)> {
    let kind = prop::sample::select(vec![
        Distribution::None,
        Distribution::Block,
        Distribution::Cyclic,
    ]);
    let dimension = (1..8_i64, kind, 1..4_i64, prop::option::of(1..4_i64));
    let dimension = dimension.prop_map(|(size, distribution, processes, block)| {
        let processes = match distribution {
            Distribution::None => 1,
            _ => processes,
        };
        // Blocks that are too small are left to the default.
        let is_enough =
            |block: &i64| distribution != Distribution::Block || block * processes >= size;
        Dimension {
            size,
            distribution,
            block: block.filter(is_enough),
            processes,
        }
    });
    prop::collection::vec(dimension, 1..4).prop_flat_map(|dimensions| {
        let size: i64 = dimensions.iter().map(|of| of.processes).product();
        (Just(dimensions), 0..size)
    })
}

fn dimension() -> impl Strategy<Value = (i64, i64, i64)> {
    (1..4_i64)
        .prop_flat_map(|size| (Just(size), 1..=size))
        .prop_flat_map(|(size, subsize)| (Just(size), Just(subsize), 0..=size - subsize))
}

/// A count, seldom 0: an empty part empties all that is made of it.
fn count() -> impl Strategy<Value = i64> {
    prop_oneof![1 => Just(0), 12 => 1..4_i64]
}

/// Nested datatypes with small numbers, so that their type maps can be written out.
pub fn specs() -> impl Strategy<Value = Spec> {
    let basic = prop::sample::select(vec![
        Basic::Byte,
        Basic::Short,
        Basic::Int,
        Basic::Double,
        Basic::CDoubleComplex,
        Basic::TwoInt,
        Basic::ShortInt,
        Basic::DoubleInt,
    ]);
    let marker = prop::sample::select(Marker::ALL.to_vec());
    prop_oneof![12 => basic.prop_map(Spec::Basic), 1 => marker.prop_map(Spec::Marker)]
        .prop_recursive(4, 60, 2, |inner| {
            let boxed = inner.clone().prop_map(Box::new);
            let order = prop::sample::select(vec![Order::C, Order::Fortran]);
            let places = |far: i64| prop::collection::vec(-far..far, 1..4);
            let blocks = |far: i64| prop::collection::vec((count(), -far..far), 1..4);
            let dimensions = prop::collection::vec(dimension(), 1..4);
            prop_oneof![
                (count(), boxed.clone()).prop_map(|(n, of)| Spec::Contiguous(n, of)),
                (count(), count(), -4..5_i64, boxed.clone())
                    .prop_map(|(n, length, stride, of)| Spec::Vector(n, length, stride, of)),
                (count(), count(), -40..40_i64, boxed.clone())
                    .prop_map(|(n, length, stride, of)| Spec::Hvector(n, length, stride, of)),
                (blocks(4), boxed.clone()).prop_map(|(blocks, of)| Spec::Indexed(blocks, of)),
                (blocks(40), boxed.clone()).prop_map(|(blocks, of)| Spec::Hindexed(blocks, of)),
                (count(), places(4), boxed.clone())
                    .prop_map(|(length, places, of)| Spec::IndexedBlock(length, places, of)),
                (count(), places(40), boxed.clone())
                    .prop_map(|(length, places, of)| Spec::HindexedBlock(length, places, of)),
                prop::collection::vec((count(), -40..40_i64, inner), 0..5).prop_map(Spec::Struct),
                (dimensions, order, boxed.clone())
                    .prop_map(|(dimensions, order, of)| Spec::Subarray(dimensions, order, of)),
                (
                    distributed(),
                    prop::sample::select(vec![Order::C, Order::Fortran]),
                    boxed.clone()
                )
                    .prop_map(|((dimensions, rank), order, of)| {
                        Spec::Darray(dimensions, rank, order, of)
                    }),
                (-20..20_i64, -30..60_i64, boxed.clone())
                    .prop_map(|(lower, extent, of)| Spec::Resized(lower, extent, of)),
                boxed.prop_map(Spec::Dup),
            ]
        })
}
