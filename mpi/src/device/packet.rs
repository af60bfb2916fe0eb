//! Packets: a header of fixed length, and the data of a message behind some of them.

/// Bytes of a header.
pub(super) const HEADER_BYTES: usize = 32;

/// The kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A message with its data.
    Eager,
    /// A message with its data, whose sender wants to know when it has been matched.
    EagerSynchronous,
    /// A message whose data come when the receiver is ready for them.
    RequestToSend,
    /// The receiver is ready for the data of a message.
    ClearToSend,
    /// The data that were waited for.
    Data,
    /// An eager message has been matched.
    Matched,
    /// The sender withdraws a message, unless it has been matched.
    Withdraw,
    /// The message has been withdrawn.
    Withdrawn,
    /// Data for the handler of its context, which no receive matches.
    Active,
}

const KINDS: [Kind; 9] = [
    Kind::Eager,
    Kind::EagerSynchronous,
    Kind::RequestToSend,
    Kind::ClearToSend,
    Kind::Data,
    Kind::Matched,
    Kind::Withdraw,
    Kind::Withdrawn,
    Kind::Active,
];

/// The header of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) kind: Kind,
    /// The collective call that the message belongs to, 0 for none.
    pub(super) call: u8,
    /// The low bits of that call's root.
    pub(super) root: u16,
    pub(super) context: u64,
    pub(super) tag: i32,
    /// The sender's request, where the kind has one.
    pub(super) sender: u32,
    /// The receiver's request, where the kind has one.
    pub(super) receiver: u32,
    /// Bytes of the message.
    pub(super) length: u64,
}

impl Header {
    /// Bytes of data behind it.
    pub(super) fn data_bytes(&self) -> u64 {
        match self.kind {
            Kind::Eager | Kind::EagerSynchronous | Kind::Data | Kind::Active => self.length,
            Kind::RequestToSend
            | Kind::ClearToSend
            | Kind::Matched
            | Kind::Withdraw
            | Kind::Withdrawn => 0,
        }
    }

    /// The header as it goes over a channel.
    pub(super) fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        let kind = KINDS.iter().position(|&kind| kind == self.kind);
        bytes[0] = kind.unwrap_or(0) as u8;
        bytes[1] = self.call;
        bytes[2..4].copy_from_slice(&self.root.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.tag.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.context.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.sender.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.receiver.to_le_bytes());
        bytes[24..].copy_from_slice(&self.length.to_le_bytes());
        bytes
    }

    /// Reads a header; none if there is no such kind.
    pub(super) fn from_bytes(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let word = |at: usize| u32::from(half(at)) | u32::from(half(at + 2)) << 16;
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        Some(Self {
            kind: *KINDS.get(usize::from(bytes[0]))?,
            call: bytes[1],
            root: half(2),
            tag: word(4) as i32,
            context: long(8),
            sender: word(16),
            receiver: word(20),
            length: long(24),
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
            kind in 0..KINDS.len(), call: u8, root: u16, context: u64, tag: i32,
            sender: u32, receiver: u32, length: u64,
        ) {
            let kind = KINDS[kind];
            let header = Header { kind, call, root, context, tag, sender, receiver, length };
            prop_assert_eq!(Header::from_bytes(&header.to_bytes()), Some(header));
        }
    }
}
