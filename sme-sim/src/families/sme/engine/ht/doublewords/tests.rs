use super::*;
use proptest::prelude::*;

/// Returns what [`HtPacket::encode`] keeps of a packet.
fn kept(packet: HtPacket) -> HtPacket {
    match packet {
        HtPacket::Read {
            address,
            enables,
            tag,
            ..
        } => HtPacket::Read {
            extra_words: 0,
            address,
            enables: if HtPacket::is_single(enables) {
                enables
            } else {
                0xff
            },
            tag,
            trace: 0,
        },
        HtPacket::Write {
            address,
            data,
            enables,
            coherent,
            ..
        } => HtPacket::Write {
            address,
            data,
            enables,
            coherent,
            trace: 0,
        },
        HtPacket::Response {
            data,
            single,
            tag,
            error,
            ..
        } => HtPacket::Response {
            extra_words: 0,
            data: if single {
                data & u64::from(u32::MAX)
            } else {
                data
            },
            single,
            tag,
            error,
            trace: 0,
        },
    }
}

fn enables() -> impl Strategy<Value = u8> {
    prop_oneof![Just(0xff), Just(0x0f), Just(0xf0), any::<u8>()]
}

fn packet() -> impl Strategy<Value = HtPacket> {
    let address = (any::<u64>(), 0..64u32).prop_map(|(bits, shift)| bits >> shift & !7);
    let read = (address.clone(), enables(), 0u8..32).prop_map(|(address, enables, tag)| {
        let trace = 7;
        HtPacket::Read {
            extra_words: 0,
            address,
            enables,
            tag,
            trace,
        }
    });
    let write = (address, any::<u64>(), enables(), any::<bool>()).prop_map(
        |(address, data, enables, coherent)| HtPacket::Write {
            address,
            data,
            enables,
            coherent,
            trace: 7,
        },
    );
    let response = (any::<u64>(), any::<bool>(), 0u8..32, any::<bool>()).prop_map(
        |(data, single, tag, error)| HtPacket::Response {
            extra_words: 0,
            data,
            single,
            tag,
            error,
            trace: 7,
        },
    );
    prop_oneof![read, write, response]
}

/// A request with these fields, of the node whose global address is 2^40.
fn request(command: u64, count: u64, address: u64) -> Doublewords {
    Doublewords {
        extension: 0x13e,
        command: command | count << 22 | address >> 2 << 26,
        mask: u32::MAX,
        data: 0x8877_6655_4433_2211,
    }
}

proptest! {
    #[test]
    fn what_is_encoded_can_be_decoded(packet in packet()) {
        let doublewords = packet.encode();
        prop_assert_eq!(doublewords.decode(), kept(packet));
        prop_assert_eq!(doublewords.channel(), packet.channel());
        prop_assert_eq!(doublewords.decode().encode().decode(), kept(packet));
    }

    #[test]
    fn the_link_has_the_bytes_that_are_counted(packet in packet()) {
        prop_assert_eq!(packet.encode().on_link().len() as u64, packet.wire_bytes());
    }

    /// Commands name all doublewords of a long read; an engine without long reads takes such a
    /// command for no access.
    #[test]
    fn a_count_names_all_doublewords_of_a_long_read(words in 2u8..=8, tag in 0u8..32) {
        let (address, enables, extra_words) = (1 << 40, 0xff, words - 1);
        let read = HtPacket::Read { address, enables, extra_words, tag, trace: 0 };
        let response =
            HtPacket::Response { data: 1, single: false, extra_words, tag, error: false, trace: 0 };
        for packet in [read, response] {
            prop_assert_eq!(packet.encode().command >> 22 & 15, 2 * u64::from(words) - 1);
        }
        // Command and extension; command and data.
        prop_assert_eq!(read.wire_bytes(), 12);
        prop_assert_eq!(response.wire_bytes(), 4 + 8 * u64::from(words));
        let taken = read.encode().decode();
        let is_nowhere = matches!(taken, HtPacket::Read { address, .. } if address >> 40 == 0xff_ffff);
        prop_assert!(is_nowhere, "{:?}", taken);
    }

    /// Against the bytes that a request names, told one by one.
    #[test]
    fn whatever_the_command_bytes_of_one_word_are_accessed_and_no_others(
        command in 0u64..64,
        count in 0u64..16,
        word in 0u64..4,
        upper in 0u64..2,
        mask: u32,
    ) {
        let start = 8 * word + 4 * upper;
        let request = Doublewords { mask, ..request(command, count, start) };
        let of_doublewords = command & 4 != 0;
        // Bytes from the start on that the request is of; those of a read of bytes, under its mask.
        let (is_sized, bytes) = match (command >> 3, of_doublewords) {
            (0b010 | 0b011, true) | (0b101, true) => (true, 4 * (count + 1)),
            (0b010 | 0b011, false) => (true, 4),
            (0b101, false) => (count > 0, 4 * count),
            _ => (false, 0),
        };
        let is_access = is_sized && start / 8 == (start + bytes - 1) / 8;
        let address = (1 << 40) + 8 * word;
        let named = |byte: u64| {
            let here = (start..start + bytes).contains(&(8 * word + byte));
            here && match (command >> 5, of_doublewords) {
                (_, true) => true,
                (0, false) => count >> (byte % 4) & 1 == 1,
                (_, false) => mask >> (8 * word + byte) & 1 == 1,
            }
        };
        let named = (0..8).filter(|&byte| named(byte)).fold(0, |all, byte| all | 1 << byte);
        if let HtPacket::Write { data, enables, .. } = request.decode()
            && is_access
        {
            // Byte by byte from the first doubleword on.
            for byte in (0..8).filter(|byte| enables >> byte & 1 == 1) {
                let sent = request.data.to_le_bytes()[(byte - 4 * upper) as usize];
                prop_assert_eq!(data.to_le_bytes()[byte as usize], sent, "byte {}", byte);
            }
        }
        match request.decode() {
            HtPacket::Response { .. } => prop_assert_eq!(command >> 3, 0b110),
            HtPacket::Read { address: found, enables, .. }
            | HtPacket::Write { address: found, enables, .. } => {
                prop_assert_eq!(found == address, is_access);
                prop_assert!(is_access || found >> 40 == 0xff_ffff);
                if is_access {
                    prop_assert_eq!(enables, named);
                }
            }
        }
    }
}

#[test]
fn the_fields_are_where_the_specification_has_them() {
    let read = HtPacket::Read {
        extra_words: 0,
        address: 0x1234_5678_9ab8,
        enables: 0xff,
        tag: 0x15,
        trace: 0,
    };
    let bytes = [
        0x3e, 0x12, 0x00, 0x00, // address extension: bits 40 to 63
        0b01_0101, 0x00, 0x55,
        0xb8, // read of doublewords; tag, count 1; address from bit 2 on
        0x9a, 0x78, 0x56, 0x34,
    ];
    assert_eq!(read.encode().on_link(), bytes);

    let write = HtPacket::Write {
        address: 0x1018,
        data: 0x8877_6655_4433_2211,
        enables: 0b0010_0001,
        coherent: true,
        trace: 0,
    };
    let bytes = [
        0b10_1001, 0x00, 0x80, 0x18, 0x10, 0x00, 0x00, 0x00, // write of bytes; count 2
        0x00, 0x00, 0x00, 0x21, // the mask of 32 bytes from 0x1000 on
        0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88,
    ];
    assert_eq!(write.encode().on_link(), bytes);

    let response = HtPacket::Response {
        extra_words: 0,
        data: 5,
        single: true,
        tag: 1,
        error: true,
        trace: 0,
    };
    let bytes = [0b11_0000, 0x00, 0x21, 0x20, 5, 0, 0, 0];
    assert_eq!(response.encode().on_link(), bytes);
}

/// Every command that a host may send has a channel, for its credits.
#[test]
fn every_command_has_its_channel() {
    let posted = (0b10_0000..0b11_0000).chain(0b11_1000..0b100_0000);
    let posted: Vec<u64> = posted.filter(|&code| code != 0b11_1101).collect();
    for code in 0..64 {
        let channel = match code {
            0b11_0000..0b11_1000 => HtChannel::Response,
            code if posted.contains(&code) => HtChannel::Posted,
            _ => HtChannel::NonPosted,
        };
        let packet = request(code, 0, 0);
        assert_eq!(packet.channel(), channel, "{code:#b}");
        assert_eq!(packet.decode().channel(), channel, "{code:#b}");
    }
}

#[test]
fn a_write_of_bytes_may_have_one_doubleword() {
    for (address, enables, data) in [
        (0x18, 0x0f, 0x4433_2211),
        (0x1c, 0xf0, 0x4433_2211_0000_0000),
    ] {
        let packet = request(0b10_1000, 1, address).decode();
        let expected = HtPacket::Write {
            address: (1 << 40) + 0x18,
            data,
            enables,
            coherent: false,
            trace: 0,
        };
        assert_eq!(packet, expected);
    }
}

#[test]
fn a_response_that_is_no_read_response_is_an_error() {
    for (command, error) in [
        (0b11_0000, false),
        (0b11_0011, true),
        (0b11_0000 | 1 << 29, true),
    ] {
        let doublewords = Doublewords {
            command,
            ..Doublewords::default()
        };
        let HtPacket::Response { error: found, .. } = doublewords.decode() else {
            panic!("{command:#b} is a response");
        };
        assert_eq!(found, error);
    }
}
