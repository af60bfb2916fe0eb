//! Operations of reductions and accumulates (MPI-4.1, Sec. 6.9 and 12.3.4).
//!
//! [`Op::combine`] works on packed data. It keeps MPI's order: `into` becomes `earlier op into`, so
//! that a reduction in rank order has the lower ranks in `earlier`, and an accumulate has the
//! target's values in `earlier` and the origin's in `into`.
//!
//! | Operation | Classes of datatypes |
//! |---|---|
//! | MAX, MIN | integer, floating, multi-language |
//! | SUM, PROD | integer, floating, complex, multi-language |
//! | LAND, LOR, LXOR | integer, logical |
//! | BAND, BOR, BXOR | integer, byte, multi-language |
//! | MINLOC, MAXLOC | pair |
//! | REPLACE, NO_OP | all |
//!
//! Integers wrap around. MAX, MIN, MAXLOC and MINLOC do not depend on the order of their operands:
//! a NaN wins over any number, and of two zeros +0 is the larger one. Logical results are 0 or 1.

mod arithmetic;

use std::fmt;
use std::sync::Arc;

use crate::datatype::{Basic, Class, Datatype};
use crate::error::{ErrorClass, Fault};

/// A user's function: `f(earlier, into, datatype)` sets `into` to `earlier op into`. Both are
/// packed data of a whole number of copies of the datatype.
pub type Function = dyn Fn(&[u8], &mut [u8], &Datatype) + Send + Sync;

/// An operation.
#[derive(Clone)]
pub enum Op {
    /// The larger value (MPI_MAX).
    Max,
    /// The smaller value (MPI_MIN).
    Min,
    /// The sum (MPI_SUM).
    Sum,
    /// The product (MPI_PROD).
    Prod,
    /// Logical and (MPI_LAND).
    Land,
    /// Bitwise and (MPI_BAND).
    Band,
    /// Logical or (MPI_LOR).
    Lor,
    /// Bitwise or (MPI_BOR).
    Bor,
    /// Logical exclusive or (MPI_LXOR).
    Lxor,
    /// Bitwise exclusive or (MPI_BXOR).
    Bxor,
    /// The smaller value and its index; of equal values the lower index (MPI_MINLOC).
    MinLoc,
    /// The larger value and its index; of equal values the lower index (MPI_MAXLOC).
    MaxLoc,
    /// The later value: the origin's (MPI_REPLACE).
    Replace,
    /// The earlier value: the target's (MPI_NO_OP).
    NoOp,
    /// A user's operation (MPI_Op_create).
    User(User),
}

/// An operation that a user defined (MPI-4.1, Sec. 6.9.5).
#[derive(Clone)]
pub struct User {
    commutative: bool,
    function: Arc<Function>,
}

impl Op {
    /// The predefined operations.
    pub const PREDEFINED: [Self; 14] = [
        Self::Max,
        Self::Min,
        Self::Sum,
        Self::Prod,
        Self::Land,
        Self::Band,
        Self::Lor,
        Self::Bor,
        Self::Lxor,
        Self::Bxor,
        Self::MinLoc,
        Self::MaxLoc,
        Self::Replace,
        Self::NoOp,
    ];

    /// A user's operation (MPI_Op_create; MPI-4.1, Sec. 6.9.5). It must be associative.
    pub fn user(commutative: bool, function: Arc<Function>) -> Self {
        Self::User(User {
            commutative,
            function,
        })
    }

    /// Its name in the standard.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Max => "MPI_MAX",
            Self::Min => "MPI_MIN",
            Self::Sum => "MPI_SUM",
            Self::Prod => "MPI_PROD",
            Self::Land => "MPI_LAND",
            Self::Band => "MPI_BAND",
            Self::Lor => "MPI_LOR",
            Self::Bor => "MPI_BOR",
            Self::Lxor => "MPI_LXOR",
            Self::Bxor => "MPI_BXOR",
            Self::MinLoc => "MPI_MINLOC",
            Self::MaxLoc => "MPI_MAXLOC",
            Self::Replace => "MPI_REPLACE",
            Self::NoOp => "MPI_NO_OP",
            Self::User(_) => "a user-defined operation",
        }
    }

    /// Returns whether its operands may be exchanged (MPI_Op_commutative; MPI-4.1, Sec. 6.9.7).
    pub const fn is_commutative(&self) -> bool {
        match self {
            Self::Replace | Self::NoOp => false,
            Self::User(user) => user.commutative,
            _ => true,
        }
    }

    /// Returns whether it is predefined: accumulates take no others (MPI-4.1, Sec. 12.3.4).
    pub const fn is_predefined(&self) -> bool {
        !matches!(self, Self::User(_))
    }

    /// Returns whether it is for one-sided calls only: reductions refuse it (MPI-4.1, Sec. 12.3.4).
    pub const fn is_one_sided(&self) -> bool {
        matches!(self, Self::Replace | Self::NoOp)
    }

    /// Returns whether values of `basic` can be combined with it (MPI-4.1, Sec. 6.9.2 and 6.9.4).
    pub const fn accepts(&self, basic: Basic) -> bool {
        use Class::{Byte, Complex, Floating, Integer, Logical, MultiLanguage, Pair};
        let class = basic.class();
        match self {
            Self::Max | Self::Min => matches!(class, Integer | Floating | MultiLanguage),
            Self::Sum | Self::Prod => {
                matches!(class, Integer | Floating | Complex | MultiLanguage)
            }
            Self::Land | Self::Lor | Self::Lxor => matches!(class, Integer | Logical),
            Self::Band | Self::Bor | Self::Bxor => matches!(class, Integer | Byte | MultiLanguage),
            Self::MinLoc | Self::MaxLoc => matches!(class, Pair),
            Self::Replace | Self::NoOp | Self::User(_) => true,
        }
    }

    /// Sets `into` to `earlier op into`; both are packed data of copies of `datatype`.
    ///
    /// A predefined operation works value by value: all data of a derived datatype must have one
    /// predefined type. A user's function has the datatype to tell what the bytes are.
    ///
    /// # Errors
    /// [`ErrorClass::Op`] if the operation does not combine such data, [`ErrorClass::Buffer`] if
    /// the lengths differ or are no whole number of values, or of copies for a user's function.
    /// Then `into` is as before.
    pub fn combine(
        &self,
        earlier: &[u8],
        into: &mut [u8],
        datatype: &Datatype,
    ) -> Result<(), Fault> {
        if earlier.len() != into.len() {
            let text = format!("{} and {} bytes to combine", earlier.len(), into.len());
            return Err(Fault::new(ErrorClass::Buffer, "inoutbuf", text));
        }
        if let Self::User(User { function, .. }) = self {
            whole(into.len(), datatype.size() as usize)?;
            function(earlier, into, datatype);
            return Ok(());
        }
        let Some(basic) = datatype.basic() else {
            return match datatype.size() {
                0 => whole(into.len(), 0),
                _ => {
                    let text = format!("{} of a datatype of several types", self.name());
                    Err(Fault::new(ErrorClass::Op, "op", text))
                }
            };
        };
        if !self.accepts(basic) {
            let text = format!("{} of {basic}", self.name());
            return Err(Fault::new(ErrorClass::Op, "op", text));
        }
        whole(into.len(), basic.size())?;
        arithmetic::combine(self, earlier, into, basic);
        Ok(())
    }
}

/// Checks that so many bytes are a whole number of pieces.
fn whole(bytes: usize, piece: usize) -> Result<(), Fault> {
    if bytes == 0 || (piece > 0 && bytes.is_multiple_of(piece)) {
        return Ok(());
    }
    let text = format!("{bytes} bytes are no whole number of {piece}");
    Err(Fault::new(ErrorClass::Buffer, "inoutbuf", text))
}

impl fmt::Debug for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
