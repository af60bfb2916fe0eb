//! Datatypes (MPI-4.1, Chapter 5): which bytes of memory a message consists of, and in which order.
//!
//! A [`Datatype`] is made by a constructor ([`Datatype::vector`], [`Datatype::subarray`], …) and
//! never changes. It lists its data in type-map order, as [blocks](Datatype::blocks) of bytes or as
//! [runs](Datatype::elements) of predefined values; [`pack`] moves the data. All displacements and
//! extents are in bytes. There is no commit state: every datatype can be used at once.
//!
//! ```
//! use sme_mpi::datatype::{Basic, Block, Datatype};
//!
//! # fn main() -> Result<(), sme_mpi::error::Fault> {
//! // A column of a matrix with 3 rows and 4 columns of doubles.
//! let column = Datatype::vector(3, 1, 4, &Datatype::from(Basic::Double))?;
//! assert_eq!((column.size(), column.extent()), (24, 72));
//! let blocks: Vec<Block> = column.blocks(1)?.collect();
//! assert_eq!(blocks[1], Block { displacement: 32, bytes: 8 });
//! # Ok(())
//! # }
//! ```
//!
//! Architecture invariant: nothing here knows ranks, channels or time.

mod basic;
mod construct;
mod contents;
mod darray;
pub mod external;
mod fortran;
mod layout;
pub mod pack;
mod walk;

use std::fmt;
use std::mem;
use std::sync::Arc;

pub(crate) use basic::Number;
pub use basic::{Basic, Class};
pub use construct::Order;
pub use contents::Contents;
pub use darray::{DEFAULT_BLOCK, Dimension, Distribution};
pub use fortran::UNASKED;
use layout::{Kinds, Layout, Markers};
pub use walk::{Block, Blocks, Elements, Run};

use crate::error::{ErrorClass, Fault};

/// The deepest nesting of constructors.
pub const DEPTH_LIMIT: u32 = 1000;

/// A datatype. A clone is the same datatype, and costs a reference count.
#[derive(Clone)]
pub struct Datatype(Arc<Node>);

struct Node {
    combiner: Combiner,
    contents: Contents,
    layout: Layout,
    lower_bound: i64,
    extent: i64,
    true_lower_bound: i64,
    true_extent: i64,
    depth: u32,
}

/// The constructor that made a datatype (MPI-4.1, Sec. 5.1.13).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Combiner {
    /// None: it is predefined.
    Named(Basic),
    /// None: it marks a bound.
    Marker(Marker),
    /// MPI_Type_dup.
    Dup,
    /// MPI_Type_contiguous.
    Contiguous,
    /// MPI_Type_vector.
    Vector,
    /// MPI_Type_create_hvector.
    Hvector,
    /// MPI_Type_indexed.
    Indexed,
    /// MPI_Type_create_hindexed.
    Hindexed,
    /// MPI_Type_create_indexed_block.
    IndexedBlock,
    /// MPI_Type_create_hindexed_block.
    HindexedBlock,
    /// MPI_Type_create_struct.
    Struct,
    /// MPI_Type_create_subarray.
    Subarray,
    /// MPI_Type_create_darray.
    Darray,
    /// MPI_Type_create_f90_integer.
    F90Integer,
    /// MPI_Type_create_f90_real.
    F90Real,
    /// MPI_Type_create_f90_complex.
    F90Complex,
    /// MPI_Type_create_resized.
    Resized,
}

/// A datatype without data, which marks a bound of the structures that have it, and of all that is
/// made of these (MPI-2.2, Sec. 4.1.6). MPI-3.0 has removed it; programs that were written before
/// use it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Marker {
    /// The lower bound.
    Lower,
    /// The upper bound.
    Upper,
}

impl Marker {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Lower, Self::Upper];

    /// Its name in the standard.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lower => "MPI_LB",
            Self::Upper => "MPI_UB",
        }
    }
}

impl Combiner {
    /// Returns whether its datatypes are the library's own, which a program does not free.
    pub const fn is_predefined(self) -> bool {
        matches!(
            self,
            Self::Named(_) | Self::Marker(_) | Self::F90Integer | Self::F90Real | Self::F90Complex
        )
    }

    /// Its name in the standard.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Named(_) | Self::Marker(_) => "MPI_COMBINER_NAMED",
            Self::Dup => "MPI_COMBINER_DUP",
            Self::Contiguous => "MPI_COMBINER_CONTIGUOUS",
            Self::Vector => "MPI_COMBINER_VECTOR",
            Self::Hvector => "MPI_COMBINER_HVECTOR",
            Self::Indexed => "MPI_COMBINER_INDEXED",
            Self::Hindexed => "MPI_COMBINER_HINDEXED",
            Self::IndexedBlock => "MPI_COMBINER_INDEXED_BLOCK",
            Self::HindexedBlock => "MPI_COMBINER_HINDEXED_BLOCK",
            Self::Struct => "MPI_COMBINER_STRUCT",
            Self::Subarray => "MPI_COMBINER_SUBARRAY",
            Self::Darray => "MPI_COMBINER_DARRAY",
            Self::F90Integer => "MPI_COMBINER_F90_INTEGER",
            Self::F90Real => "MPI_COMBINER_F90_REAL",
            Self::F90Complex => "MPI_COMBINER_F90_COMPLEX",
            Self::Resized => "MPI_COMBINER_RESIZED",
        }
    }
}

impl Datatype {
    /// Bytes of data (MPI_Type_size; MPI-4.1, Sec. 5.1.5).
    pub fn size(&self) -> i64 {
        self.0.layout.shape.bytes as i64
    }

    /// Bytes from the lower to the upper bound (MPI_Type_get_extent; MPI-4.1, Sec. 5.1.7). Copies
    /// lie that far apart.
    pub fn extent(&self) -> i64 {
        self.0.extent
    }

    /// The lower bound (MPI_Type_get_extent).
    pub fn lower_bound(&self) -> i64 {
        self.0.lower_bound
    }

    /// Bytes from the first to the last byte of data (MPI_Type_get_true_extent; MPI-4.1, Sec.
    /// 5.1.8).
    pub fn true_extent(&self) -> i64 {
        self.0.true_extent
    }

    /// The displacement of the first byte of data (MPI_Type_get_true_extent); 0 without data.
    pub fn true_lower_bound(&self) -> i64 {
        self.0.true_lower_bound
    }

    /// The constructor that made it (MPI_Type_get_envelope; MPI-4.1, Sec. 5.1.13).
    pub fn combiner(&self) -> Combiner {
        self.0.combiner
    }

    /// The arguments of that constructor (MPI_Type_get_contents).
    pub fn contents(&self) -> &Contents {
        &self.0.contents
    }

    /// The predefined type that all its data have, if it is one: those of a derived datatype must
    /// for predefined operations (MPI-4.1, Sec. 12.3.4).
    pub fn basic(&self) -> Option<Basic> {
        match self.0.layout.shape.kinds {
            Kinds::One(basic) => Some(basic),
            Kinds::None | Kinds::Several => None,
        }
    }

    /// Returns whether copies of it are one block of bytes, which begins at displacement 0.
    pub fn is_contiguous(&self) -> bool {
        self.0.layout.shape.block == Some(0) && self.extent() == self.size()
    }

    /// Returns whether every byte of its data lies behind the one before it in the type map, as in
    /// the filetype of a file (MPI-4.1, Sec. 14.3).
    pub fn is_ascending(&self) -> bool {
        self.0.layout.shape.ascending.is_some()
    }

    /// Returns whether it is the same datatype, not one that was made alike.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The range of displacements of the data of `count` copies; `None` if there are none.
    pub(crate) fn span(&self, count: i64) -> Result<Option<(i64, i64)>, Fault> {
        let count = counted("count", count)?;
        let too_large = || too_large("count");
        let stride = i128::from(self.0.extent);
        let copies = self.0.layout.repeat(count, stride);
        match copies.ok_or_else(too_large)?.data {
            None => Ok(None),
            Some((low, high)) => match (i64::try_from(low), i64::try_from(high)) {
                (Ok(low), Ok(high)) => Ok(Some((low, high))),
                _ => Err(too_large()),
            },
        }
    }

    /// A datatype of this layout, if it fits into 64 bits.
    fn new(
        combiner: Combiner,
        contents: Contents,
        layout: Option<Layout>,
        argument: &'static str,
    ) -> Result<Self, Fault> {
        let node = layout.and_then(|layout| {
            let (lower_bound, extent) = bounds(layout.bounds())?;
            let (true_lower_bound, true_extent) = bounds(layout.data.unwrap_or_default())?;
            let inner = contents.types.iter().map(|inner| inner.0.depth + 1);
            Some(Node {
                lower_bound,
                extent,
                true_lower_bound,
                true_extent,
                depth: inner.max().unwrap_or_default(),
                combiner,
                contents,
                layout,
            })
        });
        let node = node.ok_or_else(|| too_large(argument))?;
        if node.depth > DEPTH_LIMIT {
            let text = format!("constructors are nested more than {DEPTH_LIMIT} deep");
            return Err(Fault::new(ErrorClass::Type, "oldtype", text));
        }
        Ok(Self(Arc::new(node)))
    }
}

impl From<Basic> for Datatype {
    fn from(basic: Basic) -> Self {
        let layout = Layout::basic(basic);
        let extent = basic.extent() as i64;
        let true_extent = layout.data.map_or(0, |(_, high)| high as i64);
        Self(Arc::new(Node {
            combiner: Combiner::Named(basic),
            contents: Contents::default(),
            layout,
            lower_bound: 0,
            extent,
            true_lower_bound: 0,
            true_extent,
            depth: 0,
        }))
    }
}

impl From<Marker> for Datatype {
    fn from(marker: Marker) -> Self {
        let is = |one| (marker == one).then_some(0);
        let layout = Layout::of_markers(Markers {
            lower: is(Marker::Lower),
            upper: is(Marker::Upper),
        });
        Self(Arc::new(Node {
            combiner: Combiner::Marker(marker),
            contents: Contents::default(),
            layout,
            lower_bound: 0,
            extent: 0,
            true_lower_bound: 0,
            true_extent: 0,
            depth: 0,
        }))
    }
}

/// Frees nested datatypes one after the other: a chain of them does not deepen the stack.
impl Drop for Node {
    fn drop(&mut self) {
        let mut pending = mem::take(&mut self.contents.types);
        while let Some(Datatype(node)) = pending.pop() {
            if let Some(mut node) = Arc::into_inner(node) {
                pending.append(&mut node.contents.types);
            }
        }
    }
}

impl fmt::Debug for Datatype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.combiner {
            Combiner::Named(basic) => return f.write_str(basic.name()),
            Combiner::Marker(marker) => return f.write_str(marker.name()),
            _ => {}
        }
        let Contents {
            integers,
            addresses,
            large_counts,
            types,
        } = &self.0.contents;
        write!(
            f,
            "{:?}({integers:?}, {addresses:?}, {large_counts:?}, {types:?})",
            self.0.combiner
        )
    }
}

/// Lower bound and extent of a range.
fn bounds((low, high): layout::Range) -> Option<(i64, i64)> {
    i64::try_from(high).ok()?;
    let extent = high.checked_sub(low)?;
    Some((i64::try_from(low).ok()?, i64::try_from(extent).ok()?))
}

/// A count that is not negative.
fn counted(argument: &'static str, count: i64) -> Result<u64, Fault> {
    u64::try_from(count)
        .map_err(|_| Fault::new(ErrorClass::Count, argument, format!("{count} is negative")))
}

fn too_large(argument: &'static str) -> Fault {
    let text = "displacements or sizes do not fit into 63 bits";
    Fault::new(ErrorClass::Arg, argument, text)
}
