//! One access to a window's memory: the bytes that it reaches there, and what becomes of them.

use serde::{Deserialize, Serialize};

use crate::datatype::{Basic, Datatype};
use crate::error::{ErrorClass, Fault};
use crate::op::Op;

/// The kind of an access. Operations and predefined datatypes have their numbers in the lists of
/// all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    Put,
    Get,
    /// Accumulates, and gets what was there if `fetches`.
    Accumulate {
        op: u8,
        basic: u8,
        fetches: bool,
    },
    /// Compares with the first half of the data and puts the second half if they are equal; gets
    /// what was there.
    CompareAndSwap,
}

/// An access.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Access {
    pub(crate) kind: Kind,
    /// Blocks of the window's memory: the first byte and how many.
    pub(crate) blocks: Vec<(u64, u64)>,
    /// The data of the origin, packed.
    pub(crate) bytes: Vec<u8>,
}

/// The outcome of an access, from the bytes that were there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Performed {
    /// The bytes that are there from now on, if they change.
    pub(crate) written: Option<Vec<u8>>,
    /// The bytes that the origin gets.
    pub(crate) fetched: Option<Vec<u8>>,
}

impl Kind {
    /// The kind of an accumulate with `op` of elements of `datatype`.
    ///
    /// # Errors
    /// [`ErrorClass::Op`] if it is not predefined or not for such elements.
    pub(crate) fn accumulate(op: &Op, datatype: &Datatype, fetches: bool) -> Result<Self, Fault> {
        let number = Op::PREDEFINED
            .iter()
            .position(|one| one.name() == op.name());
        let number = number.filter(|_| op.is_predefined()).ok_or_else(|| {
            let text = format!("{} is not for accumulates", op.name());
            Fault::new(ErrorClass::Op, "op", text)
        })?;
        // No elements are of any type.
        let of_nothing = (datatype.size() == 0).then_some(Basic::Int);
        let basic = datatype.basic().or(of_nothing).ok_or_else(|| {
            let text = "the elements are not of one predefined datatype";
            Fault::new(ErrorClass::Type, "origin_datatype", text)
        })?;
        if !op.accepts(basic) {
            let text = format!("{} of {basic}", op.name());
            return Err(Fault::new(ErrorClass::Op, "op", text));
        }
        let place = Basic::ALL.iter().position(|&one| one == basic);
        Ok(Self::Accumulate {
            op: number as u8,
            basic: place.unwrap_or_default() as u8,
            fetches,
        })
    }

    /// Returns whether the origin gets something.
    pub(crate) fn fetches(self) -> bool {
        match self {
            Self::Put => false,
            Self::Get | Self::CompareAndSwap => true,
            Self::Accumulate { fetches, .. } => fetches,
        }
    }

    /// Returns whether it needs operands of the origin.
    pub(crate) fn has_operands(self) -> bool {
        match self {
            Self::Get => false,
            Self::Put | Self::CompareAndSwap => true,
            Self::Accumulate { op, .. } => {
                !matches!(Op::PREDEFINED.get(usize::from(op)), Some(Op::NoOp))
            }
        }
    }

    /// Returns whether it must find memory as it leaves it: others may not come between.
    pub(crate) fn is_atomic(self) -> bool {
        !matches!(self, Self::Put | Self::Get)
    }
}

/// The blocks of `count` elements of `datatype`, of which displacement 0 is at byte `origin` of a
/// window.
///
/// # Errors
/// [`ErrorClass::Disp`] if one begins before it.
pub(crate) fn blocks(
    origin: i64,
    count: i64,
    datatype: &Datatype,
) -> Result<Vec<(u64, u64)>, Fault> {
    let blocks = datatype.blocks(count)?.map(|block| {
        let begin = origin.checked_add(block.displacement);
        let begin = begin.and_then(|begin| u64::try_from(begin).ok());
        let begin = begin.ok_or_else(|| {
            let text = "the displacement is before the window";
            Fault::new(ErrorClass::Disp, "target_disp", text)
        })?;
        Ok((begin, block.bytes as u64))
    });
    blocks.collect()
}

impl Access {
    /// Bytes that it reaches.
    pub(crate) fn length(&self) -> u64 {
        self.blocks.iter().map(|(_, bytes)| bytes).sum()
    }

    /// Its outcome where `there` are the bytes of its blocks.
    ///
    /// # Errors
    /// The operation is not defined for them; then nothing has changed.
    pub(crate) fn performed(&self, there: Vec<u8>) -> Result<Performed, Fault> {
        let (written, fetched) = match self.kind {
            Kind::Put => (Some(self.bytes.clone()), None),
            Kind::Get => (None, Some(there)),
            Kind::Accumulate { op, basic, fetches } => {
                let op = &Op::PREDEFINED[usize::from(op) % Op::PREDEFINED.len()];
                let basic = Basic::ALL[usize::from(basic) % Basic::ALL.len()];
                let written = match op {
                    Op::NoOp => None,
                    _ => {
                        let mut result = self.bytes.clone();
                        op.combine(&there, &mut result, &Datatype::from(basic))?;
                        Some(result)
                    }
                };
                (written, fetches.then_some(there))
            }
            Kind::CompareAndSwap => {
                let (compared, new) = self.bytes.split_at(self.bytes.len() / 2);
                let is_equal = compared == there;
                (is_equal.then(|| new.to_vec()), Some(there))
            }
        };
        Ok(Performed { written, fetched })
    }
}
