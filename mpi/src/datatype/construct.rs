//! The constructors of derived datatypes (MPI-4.1, Sec. 5.1.2, 5.1.3 and 5.1.7).
//!
//! Counts, displacements and sizes are those of the large-count calls (`MPI_Type_vector_c`, …): 64
//! bits.

use super::layout::{Layout, Markers};
use super::{Combiner, Contents, Datatype, counted, too_large};
use crate::error::{ErrorClass, Fault};

/// The order of an array's elements in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// The last dimension varies fastest (MPI_ORDER_C).
    C,
    /// The first dimension varies fastest (MPI_ORDER_FORTRAN).
    Fortran,
}

impl Order {
    /// Its number in [`Contents`].
    pub const fn code(self) -> i64 {
        match self {
            Self::C => 0,
            Self::Fortran => 1,
        }
    }
}

impl Datatype {
    /// `count` copies, one behind the other (MPI_Type_contiguous).
    ///
    /// # Errors
    /// As all constructors: [`ErrorClass::Count`] if a count or block length is negative,
    /// [`ErrorClass::Arg`] if lists differ in length or the datatype does not fit into 63 bits,
    /// [`ErrorClass::Type`] if constructors are nested more than [`super::DEPTH_LIMIT`] deep.
    pub fn contiguous(count: i64, oldtype: &Self) -> Result<Self, Fault> {
        let copies = counted("count", count)?;
        let layout = oldtype.block(copies);
        let contents = contents(vec![count], Vec::new(), oldtype);
        Self::new(Combiner::Contiguous, contents, layout, "count")
    }

    /// `count` blocks of copies, `stride` extents apart (MPI_Type_vector).
    ///
    /// # Errors
    /// As [`Self::contiguous`].
    pub fn vector(
        count: i64,
        blocklength: i64,
        stride: i64,
        oldtype: &Self,
    ) -> Result<Self, Fault> {
        let bytes = i128::from(stride) * i128::from(oldtype.extent());
        let layout = oldtype.strided(count, blocklength, bytes)?;
        let contents = contents(vec![count, blocklength, stride], Vec::new(), oldtype);
        Self::new(Combiner::Vector, contents, layout, "stride")
    }

    /// `count` blocks of copies, `stride` bytes apart (MPI_Type_create_hvector).
    ///
    /// # Errors
    /// As [`Self::contiguous`].
    pub fn hvector(
        count: i64,
        blocklength: i64,
        stride: i64,
        oldtype: &Self,
    ) -> Result<Self, Fault> {
        let layout = oldtype.strided(count, blocklength, stride.into())?;
        let contents = contents(vec![count, blocklength], vec![stride], oldtype);
        Self::new(Combiner::Hvector, contents, layout, "stride")
    }

    /// Blocks of copies at displacements in extents (MPI_Type_indexed).
    ///
    /// # Errors
    /// As [`Self::contiguous`].
    pub fn indexed(
        blocklengths: &[i64],
        displacements: &[i64],
        oldtype: &Self,
    ) -> Result<Self, Fault> {
        let blocks = paired(blocklengths, displacements)?;
        let layout = oldtype.placed(blocks, oldtype.extent())?;
        let integers = listed(&[blocklengths, displacements]);
        let contents = contents(integers, Vec::new(), oldtype);
        Self::new(Combiner::Indexed, contents, layout, DISPLACEMENTS)
    }

    /// Blocks of copies at displacements in bytes (MPI_Type_create_hindexed).
    ///
    /// # Errors
    /// As [`Self::contiguous`].
    pub fn hindexed(
        blocklengths: &[i64],
        displacements: &[i64],
        oldtype: &Self,
    ) -> Result<Self, Fault> {
        let blocks = paired(blocklengths, displacements)?;
        let layout = oldtype.placed(blocks, 1)?;
        let contents = contents(listed(&[blocklengths]), displacements.to_vec(), oldtype);
        Self::new(Combiner::Hindexed, contents, layout, DISPLACEMENTS)
    }

    /// Blocks of equal length at displacements in extents (MPI_Type_create_indexed_block).
    ///
    /// # Errors
    /// As [`Self::contiguous`].
    pub fn indexed_block(
        blocklength: i64,
        displacements: &[i64],
        oldtype: &Self,
    ) -> Result<Self, Fault> {
        let layout = oldtype.placed_equally(blocklength, displacements, oldtype.extent())?;
        let mut integers = vec![displacements.len() as i64, blocklength];
        integers.extend_from_slice(displacements);
        let contents = contents(integers, Vec::new(), oldtype);
        Self::new(Combiner::IndexedBlock, contents, layout, DISPLACEMENTS)
    }

    /// Blocks of equal length at displacements in bytes (MPI_Type_create_hindexed_block).
    ///
    /// # Errors
    /// As [`Self::contiguous`].
    pub fn hindexed_block(
        blocklength: i64,
        displacements: &[i64],
        oldtype: &Self,
    ) -> Result<Self, Fault> {
        let layout = oldtype.placed_equally(blocklength, displacements, 1)?;
        let integers = vec![displacements.len() as i64, blocklength];
        let contents = contents(integers, displacements.to_vec(), oldtype);
        Self::new(Combiner::HindexedBlock, contents, layout, DISPLACEMENTS)
    }

    /// Blocks of copies of several datatypes at displacements in bytes (MPI_Type_create_struct).
    ///
    /// # Errors
    /// As [`Self::contiguous`].
    pub fn create_struct(
        blocklengths: &[i64],
        displacements: &[i64],
        types: &[Self],
    ) -> Result<Self, Fault> {
        same_length("array_of_types", types.len(), blocklengths.len())?;
        let mut parts = Vec::with_capacity(types.len());
        for ((length, at), inner) in paired(blocklengths, displacements)?.zip(types) {
            let block = inner.block(counted(BLOCKLENGTHS, length)?);
            let block = block.ok_or_else(|| too_large(BLOCKLENGTHS))?;
            parts.push((i128::from(at), block));
        }
        let contents = Contents {
            integers: listed(&[blocklengths]),
            addresses: displacements.to_vec(),
            types: types.to_vec(),
            ..Contents::default()
        };
        let layout = Layout::parts(&parts).and_then(Layout::padded_at_end);
        Self::new(Combiner::Struct, contents, layout, DISPLACEMENTS)
    }

    /// A part of an array: `subsizes` elements from `starts`, of `sizes`
    /// (MPI_Type_create_subarray). Its extent is that of the whole array.
    ///
    /// # Errors
    /// As [`Self::contiguous`]; [`ErrorClass::Arg`] if there is no dimension or the part is empty
    /// or not inside the array.
    pub fn subarray(
        sizes: &[i64],
        subsizes: &[i64],
        starts: &[i64],
        order: Order,
        oldtype: &Self,
    ) -> Result<Self, Fault> {
        if sizes.is_empty() {
            return Err(Fault::new(ErrorClass::Arg, "ndims", "0 is not positive"));
        }
        same_length("array_of_subsizes", subsizes.len(), sizes.len())?;
        same_length("array_of_starts", starts.len(), sizes.len())?;
        let dimensions = sizes.iter().zip(subsizes).zip(starts);
        for (i, ((size, subsize), start)) in dimensions.clone().enumerate() {
            let wrong = |argument, text: String| Err(Fault::new(ErrorClass::Arg, argument, text));
            if *size < 1 {
                let text = format!("size {size} of dimension {i} is not positive");
                return wrong("array_of_sizes", text);
            }
            if *subsize < 1 || subsize > size {
                let text = format!("{subsize} of dimension {i} is not from 1 to {size}");
                return wrong("array_of_subsizes", text);
            }
            if *start < 0 || *start > size - subsize {
                let last = size - subsize;
                let text = format!("{start} of dimension {i} is not from 0 to {last}");
                return wrong("array_of_starts", text);
            }
        }
        let dimensions = dimensions.map(|((size, subsize), start)| (*size, *subsize, *start));
        let layout = match order {
            Order::C => oldtype.part_of_array(dimensions.rev()),
            Order::Fortran => oldtype.part_of_array(dimensions),
        };
        let mut integers = vec![sizes.len() as i64];
        integers.extend([sizes, subsizes, starts].into_iter().flatten());
        integers.push(order.code());
        let contents = contents(integers, Vec::new(), oldtype);
        Self::new(Combiner::Subarray, contents, layout, "array_of_sizes")
    }

    /// The same data with other bounds (MPI_Type_create_resized). The extent may be less than the
    /// size, or negative.
    ///
    /// # Errors
    /// As [`Self::contiguous`].
    pub fn resized(oldtype: &Self, lower_bound: i64, extent: i64) -> Result<Self, Fault> {
        let lower = i128::from(lower_bound);
        let layout = Layout {
            markers: Markers::around((lower, lower + i128::from(extent))),
            ..oldtype.0.layout.clone()
        };
        let contents = contents(Vec::new(), vec![lower_bound, extent], oldtype);
        Self::new(Combiner::Resized, contents, Some(layout), "extent")
    }

    /// Another datatype of the same layout (MPI_Type_dup; MPI-4.1, Sec. 5.1.10).
    ///
    /// # Errors
    /// As [`Self::contiguous`].
    pub fn dup(&self) -> Result<Self, Fault> {
        let contents = contents(Vec::new(), Vec::new(), self);
        Self::new(
            Combiner::Dup,
            contents,
            Some(self.0.layout.clone()),
            "oldtype",
        )
    }

    /// Copies, one behind the other. `None` if that is too large.
    fn block(&self, copies: u64) -> Option<Layout> {
        self.0.layout.repeat(copies, self.extent().into())
    }

    fn strided(&self, count: i64, blocklength: i64, stride: i128) -> Result<Option<Layout>, Fault> {
        let count = counted("count", count)?;
        let block = self.block(counted("blocklength", blocklength)?);
        Ok(block.and_then(|block| block.repeat(count, stride)))
    }

    /// Blocks at displacements in `unit` bytes.
    fn placed(
        &self,
        blocks: impl Iterator<Item = (i64, i64)>,
        unit: i64,
    ) -> Result<Option<Layout>, Fault> {
        let mut parts = Vec::new();
        for (length, at) in blocks {
            let block = self.block(counted(BLOCKLENGTHS, length)?);
            let block = block.ok_or_else(|| too_large(BLOCKLENGTHS))?;
            parts.push((i128::from(at) * i128::from(unit), block));
        }
        Ok(Layout::parts(&parts))
    }

    fn placed_equally(
        &self,
        blocklength: i64,
        displacements: &[i64],
        unit: i64,
    ) -> Result<Option<Layout>, Fault> {
        counted("blocklength", blocklength)?;
        self.placed(displacements.iter().map(|at| (blocklength, *at)), unit)
    }

    /// The part of an array whose dimensions of (size, subsize, start) come fastest first.
    fn part_of_array(&self, dimensions: impl Iterator<Item = (i64, i64, i64)>) -> Option<Layout> {
        let mut part = self.0.layout.clone();
        let mut stride = i128::from(self.extent());
        let mut at = 0_i128;
        for (size, subsize, start) in dimensions {
            part = part.repeat(subsize.unsigned_abs(), stride)?;
            at = at.checked_add(stride.checked_mul(start.into())?)?;
            stride = stride.checked_mul(size.into())?;
        }
        let mut whole = Layout::parts(&[(at, part)])?;
        whole.markers = Markers::around((0, stride));
        Some(whole)
    }
}

const BLOCKLENGTHS: &str = "array_of_blocklengths";
const DISPLACEMENTS: &str = "array_of_displacements";

fn contents(integers: Vec<i64>, addresses: Vec<i64>, oldtype: &Datatype) -> Contents {
    Contents {
        integers,
        addresses,
        types: vec![oldtype.clone()],
        ..Contents::default()
    }
}

/// The length of the lists, then their elements.
fn listed(lists: &[&[i64]]) -> Vec<i64> {
    let length = lists.first().map_or(0, |list| list.len() as i64);
    let elements = lists.iter().flat_map(|list| list.iter().copied());
    std::iter::once(length).chain(elements).collect()
}

fn paired(
    blocklengths: &[i64],
    displacements: &[i64],
) -> Result<impl Iterator<Item = (i64, i64)>, Fault> {
    same_length(DISPLACEMENTS, displacements.len(), blocklengths.len())?;
    let lengths = blocklengths.iter().copied();
    Ok(lengths.zip(displacements.iter().copied()))
}

fn same_length(argument: &'static str, length: usize, wanted: usize) -> Result<(), Fault> {
    if length == wanted {
        return Ok(());
    }
    let text = format!("it has {length} entries, not {wanted}");
    Err(Fault::new(ErrorClass::Arg, argument, text))
}
