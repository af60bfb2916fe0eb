//! The data of a datatype in type-map order, found one by one: a walk takes memory for the nesting
//! of the layout, not for its counts.

use std::iter::FusedIterator;
use std::slice;
use std::sync::Arc;

use super::basic::Basic;
use super::layout::{Arrangement, Shape};
use super::{Datatype, counted};
use crate::error::Fault;

/// Bytes of data without a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// The place where they begin.
    pub displacement: i64,
    /// The length in bytes; at least one.
    pub bytes: usize,
}

/// Values of a predefined type, one [extent](Basic::extent) apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The place where the first begins.
    pub displacement: i64,
    /// Their type.
    pub basic: Basic,
    /// The number of values; at least one.
    pub count: u64,
}

/// The blocks of copies of a datatype; see [`Datatype::blocks`].
#[derive(Clone, Debug)]
pub struct Blocks<'t> {
    walk: Walk<'t>,
    /// A block that the next one may continue.
    pending: Option<Block>,
    /// A run with gaps, whose values are blocks of their own.
    gapped: Option<Gapped>,
}

/// The predefined values of copies of a datatype; see [`Datatype::elements`].
#[derive(Clone, Debug)]
pub struct Elements<'t> {
    walk: Walk<'t>,
}

impl Datatype {
    /// The blocks of `count` copies, in type-map order; a block that continues the one before is
    /// merged with it (MPI-4.1, Sec. 5.1).
    ///
    /// # Errors
    /// [`crate::error::ErrorClass::Count`] if `count` is negative, and
    /// [`crate::error::ErrorClass::Arg`] if the copies do not fit into 63 bits.
    pub fn blocks(&self, count: i64) -> Result<Blocks<'_>, Fault> {
        Ok(Blocks {
            walk: self.walk(count, true)?,
            pending: None,
            gapped: None,
        })
    }

    /// The same without the first `skipped` bytes of data, which are not looked at one by one.
    ///
    /// # Errors
    /// As [`Self::blocks`].
    pub fn blocks_from(&self, count: i64, skipped: u64) -> Result<Blocks<'_>, Fault> {
        let mut blocks = self.blocks(count)?;
        let mut left = blocks.walk.skip(skipped);
        while left > 0
            && let Some(mut block) = blocks.piece()
        {
            let gone = left.min(block.bytes as u64);
            left -= gone;
            block.displacement = block.displacement.wrapping_add(gone as i64);
            block.bytes -= gone as usize;
            blocks.pending = Some(block).filter(|block| block.bytes > 0);
        }
        Ok(blocks)
    }

    /// The predefined values of `count` copies, in type-map order. Two runs may be adjacent.
    ///
    /// # Errors
    /// As [`Self::blocks`].
    pub fn elements(&self, count: i64) -> Result<Elements<'_>, Fault> {
        Ok(Elements {
            walk: self.walk(count, false)?,
        })
    }

    fn walk(&self, count: i64, as_blocks: bool) -> Result<Walk<'_>, Fault> {
        self.span(count)?;
        let left = counted("count", count)?;
        let shape = &self.0.layout.shape;
        let stride = self.extent();
        let joined = match shape.arrangement {
            _ if left == 0 || shape.bytes == 0 => None,
            Arrangement::Run { basic, count } if own_extent(basic, count) == i128::from(stride) => {
                let count = count * left;
                Some(Leaf::Run(0, basic, count))
            }
            _ => shape
                .block
                .filter(|_| as_blocks && stride == self.size())
                .map(|begins| Leaf::Block(begins, shape.bytes * left)),
        };
        let frame = match joined {
            Some(leaf) => Frame::Leaf(leaf),
            None => Frame::Repeat {
                of: shape,
                at: 0,
                stride,
                left: if shape.bytes == 0 { 0 } else { left },
            },
        };
        Ok(Walk {
            stack: vec![frame],
            as_blocks,
        })
    }
}

fn own_extent(basic: Basic, count: u64) -> i128 {
    i128::from(count) * basic.extent() as i128
}

/// A walk over the leaves of a shape. With `as_blocks` a shape that is one block is a leaf.
#[derive(Clone, Debug)]
struct Walk<'t> {
    stack: Vec<Frame<'t>>,
    as_blocks: bool,
}

#[derive(Clone, Debug)]
enum Frame<'t> {
    Repeat {
        of: &'t Shape,
        at: i64,
        stride: i64,
        left: u64,
    },
    Parts {
        parts: slice::Iter<'t, (i64, Arc<Shape>)>,
        at: i64,
    },
    Leaf(Leaf),
}

#[derive(Clone, Copy, Debug)]
enum Leaf {
    Run(i64, Basic, u64),
    Block(i64, u64),
}

impl<'t> Walk<'t> {
    fn next(&mut self) -> Option<Leaf> {
        loop {
            let (shape, begins) = match self.stack.last_mut()? {
                Frame::Repeat { left: 0, .. } => {
                    self.stack.pop();
                    continue;
                }
                Frame::Repeat {
                    of,
                    at,
                    stride,
                    left,
                } => {
                    let begins = *at;
                    *at = begins.wrapping_add(*stride);
                    *left -= 1;
                    (*of, begins)
                }
                Frame::Parts { parts, at } => match parts.next() {
                    Some((offset, shape)) => (&**shape, at.wrapping_add(*offset)),
                    None => {
                        self.stack.pop();
                        continue;
                    }
                },
                Frame::Leaf(leaf) => {
                    let leaf = *leaf;
                    self.stack.pop();
                    return Some(leaf);
                }
            };
            if let Some(leaf) = self.open(shape, begins) {
                return Some(leaf);
            }
        }
    }

    /// Goes into a shape: the leaf that it is, if it is one.
    fn open(&mut self, shape: &'t Shape, begins: i64) -> Option<Leaf> {
        if let Some(offset) = shape.block.filter(|_| self.as_blocks) {
            return Some(Leaf::Block(begins.wrapping_add(offset), shape.bytes));
        }
        match &shape.arrangement {
            Arrangement::Run { basic, count } => return Some(Leaf::Run(begins, *basic, *count)),
            Arrangement::Repeat { of, count, stride } => self.stack.push(Frame::Repeat {
                of,
                at: begins,
                stride: *stride,
                left: *count,
            }),
            Arrangement::Parts(parts) => self.stack.push(Frame::Parts {
                parts: parts.iter(),
                at: begins,
            }),
        }
        None
    }

    /// Skips bytes of data; returns how many bytes of the next predefined value are still to be
    /// skipped.
    fn skip(&mut self, bytes: u64) -> u64 {
        let mut bytes = bytes;
        while bytes > 0
            && let Some(frame) = self.stack.last_mut()
        {
            let inner = match frame {
                Frame::Repeat {
                    of,
                    at,
                    stride,
                    left,
                } => {
                    let copies = (bytes / of.bytes.max(1)).min(*left);
                    bytes -= copies * of.bytes;
                    *at = at.wrapping_add(stride.wrapping_mul(copies as i64));
                    *left -= copies;
                    // The copy in which the next byte lies, if there is one.
                    let begins = *at;
                    let inner = (bytes > 0 && *left > 0).then_some((*of, begins));
                    if inner.is_some() {
                        *at = begins.wrapping_add(*stride);
                        *left -= 1;
                    }
                    inner
                }
                Frame::Parts { parts, at } => {
                    let part = parts.find(|(_, part)| {
                        let is_skipped = part.bytes <= bytes;
                        bytes -= if is_skipped { part.bytes } else { 0 };
                        !is_skipped
                    });
                    part.map(|(offset, part)| (&**part, at.wrapping_add(*offset)))
                }
                Frame::Leaf(leaf) => {
                    bytes = leaf.skip(bytes);
                    if !leaf.is_empty() {
                        return bytes;
                    }
                    None
                }
            };
            match inner {
                Some((shape, begins)) => {
                    if let Some(leaf) = self.open(shape, begins) {
                        self.stack.push(Frame::Leaf(leaf));
                    }
                }
                None => self.drop_empty(),
            }
        }
        bytes
    }

    /// Leaves the last frame if nothing is left of it.
    fn drop_empty(&mut self) {
        let is_empty = self.stack.last().is_some_and(|frame| match frame {
            Frame::Repeat { left, .. } => *left == 0,
            Frame::Parts { parts, .. } => parts.len() == 0,
            Frame::Leaf(leaf) => leaf.is_empty(),
        });
        if is_empty {
            self.stack.pop();
        }
    }
}

impl Leaf {
    /// Skips bytes, but no part of a value; returns how many are still to be skipped.
    fn skip(&mut self, bytes: u64) -> u64 {
        match self {
            Self::Block(at, length) => {
                let gone = bytes.min(*length);
                *at = at.wrapping_add(gone as i64);
                *length -= gone;
                bytes - gone
            }
            Self::Run(at, basic, count) => {
                let size = basic.size() as u64;
                let gone = (bytes / size).min(*count);
                let step = basic.extent() as i64;
                *at = at.wrapping_add(step.wrapping_mul(gone as i64));
                *count -= gone;
                bytes - gone * size
            }
        }
    }

    fn is_empty(&self) -> bool {
        matches!(self, Self::Block(_, 0) | Self::Run(_, _, 0))
    }
}

impl Iterator for Elements<'_> {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        match self.walk.next()? {
            Leaf::Run(displacement, basic, count) => Some(Run {
                displacement,
                basic,
                count,
            }),
            Leaf::Block(..) => None,
        }
    }
}

impl FusedIterator for Elements<'_> {}

/// The rest of a run whose values have gaps.
#[derive(Clone, Copy, Debug)]
struct Gapped {
    at: i64,
    basic: Basic,
    left: u64,
    /// The field of the first value that comes next.
    field: usize,
}

impl Gapped {
    fn next(&mut self) -> Option<Block> {
        if self.left == 0 {
            return None;
        }
        let Some((offset, number)) = self.basic.fields().nth(self.field) else {
            self.left -= 1;
            self.field = 0;
            self.at = self.at.wrapping_add(self.basic.extent() as i64);
            return self.next();
        };
        self.field += 1;
        Some(Block {
            displacement: self.at.wrapping_add(offset as i64),
            bytes: number.size(),
        })
    }
}

impl Blocks<'_> {
    /// The next block, not merged.
    fn piece(&mut self) -> Option<Block> {
        loop {
            if let Some(block) = self.gapped.as_mut().and_then(Gapped::next) {
                return Some(block);
            }
            match self.walk.next()? {
                Leaf::Run(at, basic, count) if !basic.is_dense() => {
                    self.gapped = Some(Gapped {
                        at,
                        basic,
                        left: count,
                        field: 0,
                    });
                }
                Leaf::Run(displacement, basic, count) => {
                    let bytes = basic.size() * count as usize;
                    return Some(Block {
                        displacement,
                        bytes,
                    });
                }
                Leaf::Block(displacement, bytes) => {
                    let bytes = bytes as usize;
                    return Some(Block {
                        displacement,
                        bytes,
                    });
                }
            }
        }
    }
}

impl Iterator for Blocks<'_> {
    type Item = Block;

    fn next(&mut self) -> Option<Block> {
        let mut block = match self.pending.take() {
            Some(block) => block,
            None => self.piece()?,
        };
        while let Some(next) = self.piece() {
            let end = block.displacement.wrapping_add(block.bytes as i64);
            if end != next.displacement {
                self.pending = Some(next);
                break;
            }
            block.bytes += next.bytes;
        }
        Some(block)
    }
}

impl FusedIterator for Blocks<'_> {}
