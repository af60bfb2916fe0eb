//! Packets: a header, and the data of a message behind some of them. Channels whose streams are
//! made of control messages have short headers of those packets that need no more, so that there is
//! room for data behind them.

/// Bytes of a header.
pub(super) const HEADER_BYTES: usize = 32;

/// Bytes of a short header: the first of a long one, the rest of which is 0.
const SHORT_BYTES: usize = 24;

/// The bit of a header's first byte that says that it is short.
const IS_SHORT: u8 = 0x80;

/// The kind of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
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
    /// A place is ready for the data of a message that may not have been sent yet.
    Place,
    /// A place is ready for the data of this message.
    Matches,
    /// The receiver takes a place back, unless a message has it.
    TakeBack,
    /// The place has been taken back.
    TakenBack,
    /// The data of a receive have come to its place.
    Landed,
}

const KINDS: [Kind; 14] = [
    Kind::Eager,
    Kind::EagerSynchronous,
    Kind::RequestToSend,
    Kind::ClearToSend,
    Kind::Data,
    Kind::Matched,
    Kind::Withdraw,
    Kind::Withdrawn,
    Kind::Active,
    Kind::Place,
    Kind::Matches,
    Kind::TakeBack,
    Kind::TakenBack,
    Kind::Landed,
];

/// The header of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
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
    /// A header of this kind in which all else is 0.
    pub(super) fn of(kind: Kind) -> Self {
        Self {
            kind,
            call: 0,
            root: 0,
            context: 0,
            tag: 0,
            sender: 0,
            receiver: 0,
            length: 0,
        }
    }

    /// Bytes of data behind it.
    pub(super) fn data_bytes(&self) -> u64 {
        match self.kind {
            Kind::Eager | Kind::EagerSynchronous | Kind::Data | Kind::Active => self.length,
            Kind::RequestToSend
            | Kind::ClearToSend
            | Kind::Matched
            | Kind::Withdraw
            | Kind::Withdrawn
            | Kind::Place
            | Kind::Matches
            | Kind::TakeBack
            | Kind::TakenBack
            | Kind::Landed => 0,
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
        bytes[20..28].copy_from_slice(&self.length.to_le_bytes());
        bytes[28..].copy_from_slice(&self.receiver.to_le_bytes());
        bytes
    }

    /// The same, short if it may be and has data behind it.
    pub(super) fn to_short_bytes(self) -> Vec<u8> {
        let mut bytes = self.to_bytes().to_vec();
        let is_short = bytes[SHORT_BYTES..].iter().all(|&byte| byte == 0);
        if is_short && self.data_bytes() > 0 {
            bytes.truncate(SHORT_BYTES);
            bytes[0] |= IS_SHORT;
        }
        bytes
    }

    /// Reads the header with which `bytes` begin, and tells its length; none if it is not whole, or
    /// there is no such kind.
    pub(super) fn read(bytes: &[u8]) -> Option<(Self, usize)> {
        let is_short = bytes.first()? & IS_SHORT != 0;
        let length = if is_short { SHORT_BYTES } else { HEADER_BYTES };
        let mut whole = [0; HEADER_BYTES];
        whole[..length].copy_from_slice(bytes.get(..length)?);
        whole[0] &= !IS_SHORT;
        Some((Self::from_bytes(&whole)?, length))
    }

    /// Bytes that are missing of a header of which these have come; `may_be_short` says whether
    /// there are short ones.
    pub(super) fn missing(bytes: &[u8], may_be_short: bool) -> usize {
        let is_short = bytes
            .first()
            .map_or(may_be_short, |first| first & IS_SHORT != 0);
        let first = if is_short || may_be_short && bytes.len() < SHORT_BYTES {
            SHORT_BYTES
        } else {
            HEADER_BYTES
        };
        first.saturating_sub(bytes.len())
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
            length: long(20),
            receiver: word(28),
        })
    }
}

/// The packets of all ranks that come by messages, each of which has a header at its beginning or
/// none.
#[derive(Debug)]
pub(crate) struct Frames {
    /// Bytes that are missing of the last packet of each.
    missing: Vec<u64>,
}

impl Frames {
    /// Of so many ranks.
    pub(crate) fn new(ranks: usize) -> Self {
        let missing = vec![0; ranks];
        Self { missing }
    }

    /// A message has come `from` a rank: the header, if it begins with one.
    pub(crate) fn comes(&mut self, from: u32, message: &[u8]) -> Option<Header> {
        let missing = self.missing.get_mut(from as usize)?;
        let (header, data) = match *missing {
            0 => {
                let (header, length) = Header::read(message)?;
                *missing = header.data_bytes();
                (Some(header), message.len() - length)
            }
            _ => (None, message.len()),
        };
        *missing = missing.saturating_sub(data as u64);
        header
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
            sender: u32, receiver in prop_oneof![Just(0), any::<u32>()],
            length in prop_oneof![0..200_u64, any::<u64>()],
        ) {
            let kind = KINDS[kind];
            let header = Header { kind, call, root, context, tag, sender, receiver, length };
            prop_assert_eq!(Header::from_bytes(&header.to_bytes()), Some(header));
            let short = header.to_short_bytes();
            prop_assert_eq!(Header::read(&short), Some((header, short.len())));
            prop_assert_eq!(Header::missing(&short, true), 0);
            for come in 0..short.len() {
                prop_assert_eq!(Header::read(&short[..come]), None);
                let missing = Header::missing(&short[..come], true);
                prop_assert!((1..=short.len() - come).contains(&missing));
            }
        }
    }
}
