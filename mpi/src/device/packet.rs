//! Packets: a header of fixed length, and the data of a message behind some of them.

/// Bytes of a header.
pub(super) const HEADER_BYTES: usize = 32;

/// The kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A message with its data.
    Eager,
    /// The same, whose sender wants to know when it has been matched.
    EagerSynchronous,
    /// A message whose data come when the receiver is ready for them.
    RequestToSend,
    /// It is.
    ClearToSend,
    /// Those data.
    Data,
    /// An eager message has been matched.
    Matched,
}

const KINDS: [Kind; 6] = [
    Kind::Eager,
    Kind::EagerSynchronous,
    Kind::RequestToSend,
    Kind::ClearToSend,
    Kind::Data,
    Kind::Matched,
];

/// The header of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: Kind,
    pub(super) context: u32,
    pub(super) tag: i32,
    /// The sender's and the receiver's requests, where the kind has them.
    pub(super) sender: u32,
    pub(super) receiver: u32,
    /// Bytes of the message.
    pub(super) length: u64,
}

impl Header {
    /// Bytes of data behind it.
    pub(super) fn data_bytes(&self) -> u64 {
        match self.kind {
            Kind::Eager | Kind::EagerSynchronous | Kind::Data => self.length,
            Kind::RequestToSend | Kind::ClearToSend | Kind::Matched => 0,
        }
    }

    /// As it goes over a channel.
    pub(super) fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0] = KINDS
            .iter()
            .position(|&kind| kind == self.kind)
            .unwrap_or(0) as u8;
        bytes[4..8].copy_from_slice(&self.context.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.tag.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.sender.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.receiver.to_le_bytes());
        bytes[24..].copy_from_slice(&self.length.to_le_bytes());
        bytes
    }

    /// Read from there; none if there is no such kind.
    pub(super) fn from_bytes(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        let word = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let length = u64::from(word(24)) | u64::from(word(28)) << 32;
        Some(Self {
            kind: *KINDS.get(usize::from(bytes[0]))?,
            context: word(4),
            tag: word(8) as i32,
            sender: word(12),
            receiver: word(16),
            length,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_header_is_read_as_it_was_written(
            kind in 0..KINDS.len(), context: u32, tag: i32, sender: u32, receiver: u32, length: u64,
        ) {
            let header = Header { kind: KINDS[kind], context, tag, sender, receiver, length };
            prop_assert_eq!(Header::from_bytes(&header.to_bytes()), Some(header));
        }
    }
}
