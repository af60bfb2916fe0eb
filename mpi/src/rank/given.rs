//! The buffers of a call: the contribution, the buffer for the result, and the places of the blocks
//! in them.

use crate::buffer::{Buffer, BufferMut, Piece};
use crate::comm::Comm;
use crate::datatype::Datatype;
use crate::error::{ErrorClass, Fault};

/// The contribution is taken from the buffer for the result (MPI_IN_PLACE).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InPlace;

/// The contribution of a rank.
#[derive(Clone, Debug)]
pub enum Sent<'a> {
    /// The data in the buffer for the result.
    InPlace,
    /// These elements.
    Buffer(Buffer<'a>),
}

impl From<InPlace> for Sent<'_> {
    fn from(_: InPlace) -> Self {
        Self::InPlace
    }
}

impl<'a, T: Into<Buffer<'a>>> From<T> for Sent<'a> {
    fn from(buffer: T) -> Self {
        Self::Buffer(buffer.into())
    }
}

/// The places of the blocks of all ranks in a buffer.
#[derive(Clone, Debug, Default)]
pub enum Layout {
    /// Blocks of equal length, one behind the other.
    #[default]
    Even,
    /// Blocks of so many elements of the buffer's datatype, which begin so many extents behind its
    /// origin.
    Counts(Vec<(i64, i64)>),
    /// Blocks of so many elements of their own datatypes, which begin so many bytes behind the
    /// origin.
    Typed(Vec<(i64, i64, Datatype)>),
}

impl Layout {
    /// Blocks of so many elements, one behind the other.
    pub fn packed(counts: &[i64]) -> Self {
        let mut end = 0i64;
        let blocks = counts.iter().map(|&count| {
            let begin = end;
            end = end.saturating_add(count);
            (count, begin)
        });
        Self::Counts(blocks.collect())
    }

    /// The blocks of `ranks` ranks in the memory of `whole`.
    pub(super) fn pieces(
        &self,
        whole: &Piece,
        ranks: u32,
        argument: &'static str,
    ) -> Result<Vec<Piece>, Fault> {
        let wrong = |text: String| Fault::new(ErrorClass::Count, argument, text);
        let extent = whole.datatype.extent();
        let far = || wrong("a block begins too far away".to_owned());
        let at = |displacement: i64| whole.origin.checked_add(displacement).ok_or_else(far);
        let pieces: Vec<Piece> = match self {
            Self::Even => {
                let each = whole.count / i64::from(ranks.max(1));
                if each * i64::from(ranks) != whole.count {
                    let count = whole.count;
                    return Err(wrong(format!(
                        "{count} elements are not the same number for each of {ranks} ranks"
                    )));
                }
                let step = each.checked_mul(extent).ok_or_else(far)?;
                (0..i64::from(ranks))
                    .map(|rank| {
                        Ok(Piece {
                            origin: at(rank.checked_mul(step).ok_or_else(far)?)?,
                            count: each,
                            datatype: whole.datatype.clone(),
                        })
                    })
                    .collect::<Result<_, Fault>>()?
            }
            Self::Counts(blocks) => blocks
                .iter()
                .map(|&(count, displacement)| {
                    Ok(Piece {
                        origin: at(displacement.checked_mul(extent).ok_or_else(far)?)?,
                        count,
                        datatype: whole.datatype.clone(),
                    })
                })
                .collect::<Result<_, Fault>>()?,
            Self::Typed(blocks) => blocks
                .iter()
                .map(|(count, displacement, datatype)| {
                    Ok(Piece {
                        origin: at(*displacement)?,
                        count: *count,
                        datatype: datatype.clone(),
                    })
                })
                .collect::<Result<_, Fault>>()?,
        };
        if pieces.len() != ranks as usize {
            let blocks = pieces.len();
            return Err(wrong(format!(
                "there are {blocks} blocks for {ranks} ranks"
            )));
        }
        Ok(pieces)
    }
}

/// The buffers of one collective call.
pub(super) struct Given<'b> {
    pub(super) sent: Sent<'b>,
    pub(super) received: BufferMut<'b>,
}

impl<'b> Given<'b> {
    /// With this contribution.
    pub(super) fn sent(self, sent: Sent<'b>) -> Self {
        Self { sent, ..self }
    }

    /// With this buffer for the result.
    pub(super) fn received(self, received: BufferMut<'b>) -> Self {
        Self { received, ..self }
    }

    /// No buffers.
    pub(super) fn nothing() -> Self {
        Self {
            sent: Sent::InPlace,
            received: BufferMut::empty(),
        }
    }

    /// The buffer of a send.
    pub(super) fn contribution(&self) -> Result<&Buffer<'_>, Fault> {
        match &self.sent {
            Sent::Buffer(buffer) => Ok(buffer),
            Sent::InPlace => {
                let text = "a send has a buffer of its own";
                Err(Fault::new(ErrorClass::Buffer, "buf", text))
            }
        }
    }

    /// Bytes that a timeline shows: those of the contribution, or of the result.
    pub(super) fn bytes(&self) -> u64 {
        match &self.sent {
            Sent::Buffer(buffer) => buffer.bytes(),
            Sent::InPlace => self.received.bytes(),
        }
    }

    /// The contribution, packed; in place it is `piece` of the buffer for the result.
    pub(super) fn own(&self, comm: &Comm, piece: Option<&Piece>) -> Result<Vec<u8>, Fault> {
        match (&self.sent, piece) {
            (Sent::Buffer(buffer), _) => buffer.packed(),
            (Sent::InPlace, _) if comm.remote().is_some() => Err(Fault::new(
                ErrorClass::Buffer,
                "sendbuf",
                "MPI_IN_PLACE is not for intercommunicators",
            )),
            (Sent::InPlace, Some(piece)) => self.received.shared().packed_piece(piece),
            (Sent::InPlace, None) => Err(Fault::new(
                ErrorClass::Buffer,
                "sendbuf",
                "MPI_IN_PLACE is for the root alone",
            )),
        }
    }
}
