//! Calls of libraries, as a program tells observers that it is in one.

use std::fmt;

/// A call of a library. The machine knows neither the library nor what the call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its name.
    pub name: &'static str,
    /// Bytes that it moves, 0 where it moves none.
    pub bytes: u64,
    peer: u32,
    toward: Toward,
}

/// The relation of a call to its peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Toward {
    /// There is no peer.
    None,
    /// The call sends to the peer.
    To,
    /// The call receives from the peer.
    From,
    /// Neither, or both.
    With,
}

impl Call {
    /// The call called `name` that moves so many `bytes` and has no peer.
    pub const fn new(name: &'static str, bytes: u64) -> Self {
        Self {
            name,
            bytes,
            peer: 0,
            toward: Toward::None,
        }
    }

    /// The same that has rank `peer` of its job as its peer, related as `toward` says.
    pub const fn of(self, toward: Toward, peer: u32) -> Self {
        Self {
            peer,
            toward,
            ..self
        }
    }

    /// The rank of its peer, where it has one.
    pub fn peer(&self) -> Option<u32> {
        (self.toward != Toward::None).then_some(self.peer)
    }
}

/// `MPI_Recv from rank 3`
impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, peer, .. } = self;
        match self.toward {
            Toward::None => write!(f, "{name}"),
            Toward::To => write!(f, "{name} to rank {peer}"),
            Toward::From => write!(f, "{name} from rank {peer}"),
            Toward::With => write!(f, "{name} with rank {peer}"),
        }
    }
}
