//! A process's part of an array that is distributed over a grid of processes
//! (MPI_Type_create_darray; MPI-4.1, Sec. 5.1.4).

use super::layout::{Layout, Markers};
use super::{Combiner, Contents, Datatype, Order};
use crate::error::{ErrorClass, Fault};

/// The distribution of a dimension over the processes of the grid's dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Distribution {
    /// Every process has the whole dimension (MPI_DISTRIBUTE_NONE).
    None,
    /// Each has one block (MPI_DISTRIBUTE_BLOCK).
    Block,
    /// Blocks go round (MPI_DISTRIBUTE_CYCLIC).
    Cyclic,
}

impl Distribution {
    /// Its number in [`Contents`].
    pub const fn code(self) -> i64 {
        match self {
            Self::None => 0,
            Self::Block => 1,
            Self::Cyclic => 2,
        }
    }
}

/// A dimension of a distributed array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Dimension {
    /// Elements of the whole array.
    pub size: i64,
    /// The way in which they are distributed.
    pub distribution: Distribution,
    /// Elements of a block; `None` for MPI_DISTRIBUTE_DFLT_DARG.
    pub block: Option<i64>,
    /// Processes of the grid.
    pub processes: i64,
}

/// The number in [`Contents`] of a block's length that is the default.
pub const DEFAULT_BLOCK: i64 = 0;

impl Datatype {
    /// The part of an array that the `rank`th process of a grid has. The grid's processes are
    /// numbered with its last dimension fastest, in either order of the array's elements. The
    /// extent is that of the whole array.
    ///
    /// # Errors
    /// As [`Self::contiguous`]; [`ErrorClass::Arg`] if there is no dimension, a size is not
    /// positive, the grid has not `size` processes, there is no such `rank`, the processes of a
    /// dimension that is not distributed are several, or blocks are too small to hold a dimension.
    pub fn darray(
        (size, rank): (i64, i64),
        dimensions: &[Dimension],
        order: Order,
        oldtype: &Self,
    ) -> Result<Self, Fault> {
        let wrong = |argument, text| Err(Fault::new(ErrorClass::Arg, argument, text));
        if dimensions.is_empty() {
            return wrong("ndims", "0 is not positive".to_owned());
        }
        let blocks = dimensions.iter().map(Dimension::block);
        let blocks: Vec<i64> = blocks.collect::<Result<_, _>>()?;
        let mut grid = dimensions.iter().map(|dimension| dimension.processes);
        let processes = grid.try_fold(1_i64, i64::checked_mul);
        if processes != Some(size) {
            let text = format!("the grid has not {size} processes");
            return wrong("array_of_psizes", text);
        }
        if rank < 0 || rank >= size {
            return wrong("rank", format!("{rank} is not from 0 to {}", size - 1));
        }
        // This process's place in each dimension, the last of which is the fastest.
        let mut left = rank;
        let places = dimensions.iter().rev().map(|dimension| {
            let place = left % dimension.processes;
            left /= dimension.processes;
            place
        });
        let own = dimensions.iter().zip(blocks).rev();
        let mut own: Vec<_> = own.zip(places).collect();
        if order == Order::Fortran {
            own.reverse();
        }
        let mut part = Some(oldtype.0.layout.clone());
        let mut extent = i128::from(oldtype.extent());
        for ((dimension, block), place) in own {
            part = part.and_then(|part| distributed(&part, extent, dimension, (block, place)));
            // Where it saturates, the part is too large as well.
            extent = extent.saturating_mul(dimension.size.into());
        }
        let of = |value: fn(&Dimension) -> i64| dimensions.iter().map(value);
        let mut integers = vec![size, rank, dimensions.len() as i64];
        integers.extend(of(|dimension| dimension.size));
        integers.extend(of(|dimension| dimension.distribution.code()));
        integers.extend(of(|dimension| dimension.block.unwrap_or(DEFAULT_BLOCK)));
        integers.extend(of(|dimension| dimension.processes));
        integers.push(order.code());
        let contents = Contents {
            integers,
            types: vec![oldtype.clone()],
            ..Contents::default()
        };
        Self::new(Combiner::Darray, contents, part, "array_of_gsizes")
    }
}

impl Dimension {
    /// Elements of a block; a process's blocks lie [`Self::processes`] blocks apart.
    fn block(&self) -> Result<i64, Fault> {
        let wrong = |argument, text| Err(Fault::new(ErrorClass::Arg, argument, text));
        let (size, processes) = (self.size, self.processes);
        if size < 1 {
            return wrong("array_of_gsizes", format!("{size} is not positive"));
        }
        if processes < 1 {
            return wrong("array_of_psizes", format!("{processes} is not positive"));
        }
        if let Some(block) = self.block.filter(|block| *block < 1) {
            return wrong("array_of_dargs", format!("{block} is not positive"));
        }
        // Rounded up without a sum that could be too large.
        let even = (size - 1) / processes + 1;
        match (self.distribution, self.block) {
            (Distribution::None, _) if processes > 1 => {
                let text = format!("{processes} processes share a dimension not distributed");
                wrong("array_of_psizes", text)
            }
            (Distribution::None, _) => Ok(size),
            (Distribution::Block, Some(block)) if block < even => {
                let text = format!("{processes} blocks of {block} are less than {size}");
                wrong("array_of_dargs", text)
            }
            (Distribution::Block, block) => Ok(block.unwrap_or(even)),
            (Distribution::Cyclic, block) => Ok(block.unwrap_or(1)),
        }
    }
}

/// A dimension's elements, `extent` bytes each, that are in every `processes`th block from the
/// `place`th on. `None` if that is too large.
fn distributed(
    element: &Layout,
    extent: i128,
    dimension: &Dimension,
    (block, place): (i64, i64),
) -> Option<Layout> {
    let size = i128::from(dimension.size);
    let processes = i128::from(dimension.processes);
    let (block, place) = (i128::from(block), i128::from(place));
    let (whole, rest) = (size / block, size % block);
    // The whole blocks among place, place + processes, …
    let own = (whole - place + processes - 1).max(0) / processes;
    let begins = |number: i128| number.checked_mul(block)?.checked_mul(extent);
    let mut parts = Vec::new();
    if own > 0 {
        let blocks = element.repeat(u64::try_from(block).ok()?, extent)?;
        let blocks = blocks.repeat(u64::try_from(own).ok()?, begins(processes)?)?;
        parts.push((begins(place)?, blocks));
    }
    if rest > 0 && whole % processes == place {
        let last = element.repeat(u64::try_from(rest).ok()?, extent)?;
        parts.push((begins(whole)?, last));
    }
    let mut part = Layout::parts(&parts)?;
    part.markers = Markers::around((0, extent.checked_mul(size)?));
    Some(part)
}
