//! A datatype's layout: which bytes its data occupy, in the order of its type map (MPI-4.1, Sec.
//! 5.1), and its bounds. A layout keeps repetitions as such: its size in memory does not depend on
//! counts.
//!
//! Bounds are kept in 128 bits while a layout is built, and checked to fit into 64 when it becomes
//! a datatype. Every displacement lies within its bounds, so that displacements may be added modulo
//! 2^64.

use std::sync::Arc;

use super::basic::Basic;

/// The kinds of predefined types in a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kinds {
    None,
    One(Basic),
    Several,
}

impl Kinds {
    fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::None, kinds) | (kinds, Self::None) => kinds,
            (left, right) if left == right => left,
            _ => Self::Several,
        }
    }
}

/// The arrangement of a shape's data in memory.
#[derive(Debug)]
pub(super) enum Arrangement {
    /// Values of a predefined type, one behind the other.
    Run { basic: Basic, count: u64 },
    /// Copies, `stride` bytes apart; two or more.
    Repeat {
        of: Arc<Shape>,
        count: u64,
        stride: i64,
    },
    /// Parts at their displacements; none is empty.
    Parts(Vec<(i64, Arc<Shape>)>),
}

/// The data of a type map, without markers.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) arrangement: Arrangement,
    /// Bytes of data; at most `i64::MAX`.
    pub(super) bytes: u64,
    /// Predefined values; a pair counts as two.
    pub(super) elements: u64,
    /// Bytes of data in the format external32: not more than `bytes`.
    pub(super) external: u64,
    pub(super) kinds: Kinds,
    alignment: usize,
    /// The place where the data begin, if they are one block in ascending order.
    pub(super) block: Option<i64>,
    /// The places of the first byte and behind the last one, if every byte of data lies behind the
    /// one before it in the type map.
    pub(super) ascending: Option<(i64, i64)>,
}

impl Shape {
    fn value(basic: Basic) -> Self {
        let end = basic.fields().map(|(at, number)| at + number.size()).max();
        Self {
            arrangement: Arrangement::Run { basic, count: 1 },
            bytes: basic.size() as u64,
            elements: basic.numbers().len() as u64,
            external: basic.external_size(),
            kinds: Kinds::One(basic),
            alignment: basic.alignment(),
            block: (end == Some(basic.size())).then_some(0),
            ascending: Some((0, end.unwrap_or_default() as i64)),
        }
    }

    fn run(basic: Basic, count: u64) -> Option<Arc<Self>> {
        let one = Self::value(basic);
        Some(Arc::new(Self {
            arrangement: Arrangement::Run { basic, count },
            bytes: limited(one.bytes.checked_mul(count)?)?,
            elements: one.elements.checked_mul(count)?,
            external: one.external.checked_mul(count)?,
            block: one.block.filter(|_| count == 1 || basic.is_dense()),
            ascending: repeated(one.ascending, count, basic.extent() as i64),
            ..one
        }))
    }

    fn empty() -> Arc<Self> {
        Arc::new(Self {
            arrangement: Arrangement::Parts(Vec::new()),
            bytes: 0,
            elements: 0,
            external: 0,
            kinds: Kinds::None,
            alignment: 1,
            block: None,
            ascending: Some((0, 0)),
        })
    }

    fn repeat(self: &Arc<Self>, count: u64, stride: i64) -> Option<Arc<Self>> {
        if count == 0 || self.bytes == 0 {
            return Some(Self::empty());
        }
        if count == 1 {
            return Some(Arc::clone(self));
        }
        let (of, count, stride) = match &self.arrangement {
            Arrangement::Run { basic, count: own } => {
                if i128::from(*own) * basic.extent() as i128 == i128::from(stride) {
                    return Self::run(*basic, own.checked_mul(count)?);
                }
                (self, count, stride)
            }
            Arrangement::Repeat {
                of,
                count: own,
                stride: step,
            } if i128::from(*own) * i128::from(*step) == i128::from(stride) => {
                (of, own.checked_mul(count)?, *step)
            }
            _ => (self, count, stride),
        };
        Some(Arc::new(Self {
            bytes: limited(of.bytes.checked_mul(count)?)?,
            elements: of.elements.checked_mul(count)?,
            external: of.external.checked_mul(count)?,
            kinds: of.kinds,
            alignment: of.alignment,
            block: of.block.filter(|_| stride == of.bytes as i64),
            ascending: repeated(of.ascending, count, stride),
            arrangement: Arrangement::Repeat {
                of: Arc::clone(of),
                count,
                stride,
            },
        }))
    }

    fn parts(parts: Vec<(i64, Arc<Self>)>) -> Option<Arc<Self>> {
        let mut own: Vec<(i64, Arc<Self>)> = Vec::with_capacity(parts.len());
        for (at, shape) in parts.into_iter().filter(|(_, shape)| shape.bytes > 0) {
            let (at, shape) = match &shape.arrangement {
                Arrangement::Parts(inner) if inner.len() == 1 => {
                    (at.wrapping_add(inner[0].0), Arc::clone(&inner[0].1))
                }
                _ => (at, shape),
            };
            if let Some((before, last)) = own.last_mut()
                && let Some(joined) = last.joined(at.wrapping_sub(*before), &shape)
            {
                *last = joined;
            } else {
                own.push((at, shape));
            }
        }
        if own.is_empty() {
            return Some(Self::empty());
        }
        if let [(0, only)] = own.as_slice() {
            return Some(Arc::clone(only));
        }
        let mut bytes = 0_u64;
        let mut elements = 0;
        let mut external = 0;
        let mut kinds = Kinds::None;
        let mut alignment = 1;
        let mut block = None;
        let mut ascending = own
            .first()
            .and_then(|(at, first)| moved(first.ascending?, *at));
        for (i, (at, shape)) in own.iter().enumerate() {
            if i > 0 {
                ascending = ascending.and_then(|(first, end)| {
                    let (begin, last) = moved(shape.ascending?, *at)?;
                    (begin >= end).then_some((first, last))
                });
            }
            let begins = shape.block.map(|begins| at.wrapping_add(begins));
            block = match block {
                None if i == 0 => begins,
                Some(start) if begins == Some(start.wrapping_add(bytes as i64)) => block,
                _ => None,
            };
            bytes = limited(bytes.checked_add(shape.bytes)?)?;
            elements += shape.elements;
            external += shape.external;
            kinds = kinds.and(shape.kinds);
            alignment = alignment.max(shape.alignment);
        }
        Some(Arc::new(Self {
            arrangement: Arrangement::Parts(own),
            bytes,
            elements,
            external,
            kinds,
            alignment,
            block,
            ascending,
        }))
    }

    /// This run with `next`, which begins `distance` bytes from its beginning, if that continues
    /// it.
    fn joined(&self, distance: i64, next: &Self) -> Option<Arc<Self>> {
        let (
            Arrangement::Run { basic, count },
            Arrangement::Run {
                basic: other,
                count: more,
            },
        ) = (&self.arrangement, &next.arrangement)
        else {
            return None;
        };
        let continues = i128::from(*count) * basic.extent() as i128 == i128::from(distance);
        match basic == other && continues {
            true => Self::run(*basic, count.checked_add(*more)?),
            false => None,
        }
    }
}

/// Ascending data, repeated so many times, `stride` bytes apart: `None` if they do not ascend.
fn repeated(one: Option<(i64, i64)>, count: u64, stride: i64) -> Option<(i64, i64)> {
    let (first, end) = one?;
    let ascends = count < 2 || stride >= end.checked_sub(first)?;
    let last = i64::try_from(count.saturating_sub(1)).ok()?;
    let end = last.checked_mul(stride)?.checked_add(end)?;
    ascends.then_some((first, end))
}

/// A range of displacements, moved by `at`.
fn moved((first, end): (i64, i64), at: i64) -> Option<(i64, i64)> {
    Some((first.checked_add(at)?, end.checked_add(at)?))
}

fn limited(bytes: u64) -> Option<u64> {
    (bytes <= i64::MAX as u64).then_some(bytes)
}

/// A range of displacements, from the first byte to the one behind the last.
pub(super) type Range = (i128, i128);

/// The lowest lower-bound marker of a type map and the highest upper-bound marker, where it has
/// them (MPI-4.1, Sec. 5.1.7).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Markers {
    pub(super) lower: Option<i128>,
    pub(super) upper: Option<i128>,
}

impl Markers {
    pub(super) fn around((lower, upper): Range) -> Self {
        Self {
            lower: Some(lower),
            upper: Some(upper),
        }
    }

    /// The markers of copies, the last of which lies at `last`. `None` if that is too large.
    fn repeat(self, last: i128) -> Option<Self> {
        let [lowest, highest] = [last.min(0), last.max(0)];
        Some(Self {
            lower: shifted(self.lower, lowest)?,
            upper: shifted(self.upper, highest)?,
        })
    }

    /// Adds those of a part at this displacement. `None` if that is too large.
    fn widen(&mut self, other: Self, at: i128) -> Option<()> {
        let (lower, upper) = (shifted(other.lower, at)?, shifted(other.upper, at)?);
        self.lower = [self.lower, lower].into_iter().flatten().min();
        self.upper = [self.upper, upper].into_iter().flatten().max();
        Some(())
    }
}

/// A place moved by `at`, if there is one. The outer `None` if that is too large.
fn shifted(place: Option<i128>, at: i128) -> Option<Option<i128>> {
    match place {
        None => Some(None),
        Some(place) => place.checked_add(at).map(Some),
    }
}

/// Data, and the bounds that they or markers give.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) shape: Arc<Shape>,
    /// The range of the data, if there are any.
    pub(super) data: Option<Range>,
    /// The same with the padding of structures.
    pub(super) padded: Option<Range>,
    pub(super) markers: Markers,
}

impl Layout {
    pub(super) fn basic(basic: Basic) -> Self {
        let ends = basic.fields().map(|(at, number)| at + number.size()).max();
        Self {
            shape: Arc::new(Shape::value(basic)),
            data: ends.map(|end| (0, end as i128)),
            padded: Some((0, basic.extent() as i128)),
            markers: Markers::default(),
        }
    }

    /// The layout of markers at displacement 0, without data.
    pub(super) fn of_markers(markers: Markers) -> Self {
        Self {
            shape: Shape::empty(),
            data: None,
            padded: None,
            markers,
        }
    }

    /// Copies, `stride` bytes apart. `None` if that is too large.
    pub(super) fn repeat(&self, count: u64, stride: i128) -> Option<Self> {
        let last = (i128::from(count) - 1).checked_mul(stride)?;
        let over = |range: Option<Range>| match range {
            Some((low, high)) if count > 0 => Some(Some((
                low.checked_add(last.min(0))?,
                high.checked_add(last.max(0))?,
            ))),
            _ => Some(None),
        };
        Some(Self {
            shape: self.shape.repeat(count, stride as i64)?,
            data: over(self.data)?,
            padded: over(self.padded)?,
            markers: match count {
                0 => Markers::default(),
                _ => self.markers.repeat(last)?,
            },
        })
    }

    /// Layouts at displacements, in this order. `None` if that is too large.
    pub(super) fn parts(parts: &[(i128, Self)]) -> Option<Self> {
        let mut data = None;
        let mut padded = None;
        let mut markers = Markers::default();
        let mut shapes = Vec::with_capacity(parts.len());
        for (at, part) in parts {
            widen(&mut data, part.data, *at)?;
            widen(&mut padded, part.padded, *at)?;
            markers.widen(part.markers, *at)?;
            shapes.push((*at as i64, Arc::clone(&part.shape)));
        }
        let shape = Shape::parts(shapes)?;
        Some(Self {
            shape,
            data,
            padded,
            markers,
        })
    }

    /// The layout of a structure, with padding at its end, so that the data of the next one are
    /// aligned as those of the first. The standard's formula (MPI-4.1, Sec. 5.1) would have that of
    /// every datatype, but MPICH and Open MPI pad structures alone, and programs rely on it.
    pub(super) fn padded_at_end(mut self) -> Option<Self> {
        if let Some((low, high)) = &mut self.padded {
            let unit = self.shape.alignment as i128;
            let rest = (*high - *low).rem_euclid(unit);
            let padding = if rest == 0 { 0 } else { unit - rest };
            *high = high.checked_add(padding)?;
        }
        Some(self)
    }

    /// The lower and upper bound (MPI-4.1, Sec. 5.1.7).
    pub(super) fn bounds(&self) -> Range {
        let (low, high) = self.padded.unwrap_or_default();
        let Markers { lower, upper } = self.markers;
        (lower.unwrap_or(low), upper.unwrap_or(high))
    }
}

/// Widens `range` to contain `other`, moved by `at`. `None` if that is too large.
fn widen(range: &mut Option<Range>, other: Option<Range>, at: i128) -> Option<()> {
    if let Some((low, high)) = other {
        let (low, high) = (low.checked_add(at)?, high.checked_add(at)?);
        *range = Some(match *range {
            None => (low, high),
            Some((lowest, highest)) => (lowest.min(low), highest.max(high)),
        });
    }
    Some(())
}
