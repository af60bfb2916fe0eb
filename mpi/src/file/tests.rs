//! Accesses through random views, against a model that knows where each byte of data is.

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;

use super::*;
use crate::datatype::{Basic, Datatype};

/// A view by its parts, in bytes but for `etype` and `blocks`.
#[derive(Clone, Debug)]
struct Seen {
    displacement: u64,
    /// Shorts of an etype.
    etype: u64,
    /// The etypes left out before each block of the filetype, and those of the block.
    blocks: Vec<(u64, u64)>,
    /// The bytes behind the last one.
    tail: u64,
}

impl Seen {
    fn etype_bytes(&self) -> u64 {
        2 * self.etype
    }

    fn etype(&self) -> Datatype {
        let short = Datatype::from(Basic::Short);
        Datatype::contiguous(self.etype as i64, &short).unwrap_or(short)
    }

    /// The places of the data of one filetype, byte by byte, and where the next one begins.
    fn tile(&self) -> (Vec<u64>, u64) {
        let (mut places, mut at) = (Vec::new(), 0);
        for (gap, length) in &self.blocks {
            at += gap * self.etype_bytes();
            let end = at + length * self.etype_bytes();
            places.extend(at..end);
            at = end;
        }
        (places, at + self.tail)
    }

    /// The place in the file of the byte of data with this number.
    fn place(&self, number: u64) -> u64 {
        let (places, extent) = self.tile();
        let each = places.len() as u64;
        self.displacement + number / each * extent + places[(number % each) as usize]
    }

    fn view(&self) -> Result<View, Fault> {
        let mut at = 0;
        let (mut lengths, mut displacements) = (Vec::new(), Vec::new());
        for (gap, length) in &self.blocks {
            at += *gap as i64;
            displacements.push(at);
            lengths.push(*length as i64);
            at += *length as i64;
        }
        let etype = self.etype();
        let filetype = Datatype::indexed(&lengths, &displacements, &etype)?;
        let filetype = Datatype::resized(&filetype, 0, self.tile().1 as i64)?;
        let native = Representation::Native;
        View::new(self.displacement as i64, (&etype, &filetype), native, true)
    }
}

fn seen() -> impl Strategy<Value = Seen> {
    let blocks = prop::collection::vec((0..4_u64, 1..4_u64), 1..5);
    (0..9_u64, 1..4_u64, blocks, 0..7_u64).prop_map(|(displacement, etype, blocks, tail)| Seen {
        displacement,
        etype,
        blocks,
        tail,
    })
}

/// A call, with offsets and counts in etypes.
#[derive(Clone, Debug)]
enum Deed {
    See(Seen),
    Write { start: Way, count: u64, first: u8 },
    Read { start: Way, count: u64 },
    Seek(u64),
    SeekEnd,
    SetSize(u64),
}

#[derive(Clone, Copy, Debug)]
enum Way {
    Offset(u64),
    Own,
    Shared,
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let way = || {
        prop_oneof![
            (0..20_u64).prop_map(Way::Offset),
            Just(Way::Own),
            Just(Way::Shared)
        ]
    };
    let deed = prop_oneof![
        1 => seen().prop_map(Deed::See),
        4 => (way(), 0..9_u64, any::<u8>())
            .prop_map(|(start, count, first)| Deed::Write { start, count, first }),
        4 => (way(), 0..9_u64).prop_map(|(start, count)| Deed::Read { start, count }),
        1 => (0..20_u64).prop_map(Deed::Seek),
        1 => Just(Deed::SeekEnd),
        1 => (0..200_u64).prop_map(Deed::SetSize),
    ];
    prop::collection::vec(deed, 1..20)
}

/// A file as it must be.
struct Model {
    seen: Seen,
    bytes: Vec<u8>,
    own: u64,
    shared: u64,
}

impl Model {
    /// The number of the first byte of data of an access, whose pointer moves.
    fn start(&mut self, way: Way, asked: u64) -> u64 {
        let offset = match way {
            Way::Offset(offset) => offset,
            Way::Own => self.own,
            Way::Shared => {
                self.shared += asked;
                self.shared - asked
            }
        };
        offset * self.seen.etype_bytes()
    }

    fn write(&mut self, from: u64, data: &[u8]) {
        for (number, &byte) in (from..).zip(data) {
            let place = self.seen.place(number) as usize;
            let size = self.bytes.len().max(place + 1);
            self.bytes.resize(size, 0);
            self.bytes[place] = byte;
        }
    }

    fn read(&self, from: u64, most: u64) -> Vec<u8> {
        let places = (from..from + most).map(|number| self.seen.place(number));
        places
            .map_while(|place| self.bytes.get(place as usize).copied())
            .collect()
    }

    /// Etypes before the first data behind the end.
    fn end(&self) -> u64 {
        let size = self.bytes.len() as u64;
        let bytes = (0..).find(|&number| self.seen.place(number) >= size);
        bytes.unwrap_or_default().div_ceil(self.seen.etype_bytes())
    }
}

/// Performs calls on a file and on its model; `spoils` does something to the file after each write.
fn agrees(deeds: &[Deed], spoils: impl Fn(&mut File)) -> Result<(), TestCaseError> {
    let seen = Seen {
        displacement: 0,
        etype: 1,
        blocks: vec![(0, 1)],
        tail: 0,
    };
    let mode = Mode::new(vec![Flag::ReadWrite, Flag::Create])?;
    let storage = InMemory::default().open(b"name", &mode)?;
    let mut file = File::new(Arc::new(Opened::new(storage, &mode)?), mode);
    file.set_view(seen.view()?);
    let mut model = Model {
        seen,
        bytes: Vec::new(),
        own: 0,
        shared: 0,
    };
    for deed in deeds {
        performs(deed, &mut file, &mut model)?;
        if let Deed::Write { .. } = deed {
            spoils(&mut file);
        }
        let mut bytes = vec![0; model.bytes.len() + 1];
        let read = file.opened().access().read(0, &mut bytes)?;
        prop_assert_eq!(&bytes[..read], model.bytes.as_slice());
        let pointers = (file.position(), file.opened().shared());
        prop_assert_eq!(pointers, (model.own, model.shared));
        let place = file.byte_offset(model.own as i64)?;
        prop_assert_eq!(
            place,
            model.seen.place(model.own * model.seen.etype_bytes())
        );
    }
    Ok(())
}

/// A byte that no access has touched.
const UNTOUCHED: u8 = 0xaa;

fn performs(deed: &Deed, file: &mut File, model: &mut Model) -> Result<(), TestCaseError> {
    let start = |way: &Way| match *way {
        Way::Offset(offset) => Start::Offset(offset as i64),
        Way::Own => Start::Own,
        Way::Shared => Start::Shared,
    };
    // A buffer has a gap behind each etype.
    let each = model.seen.etype_bytes();
    let step = each + GAP;
    let memory_type = Datatype::resized(&model.seen.etype(), 0, step as i64)?;
    match deed {
        Deed::See(seen) => {
            file.set_view(seen.view()?);
            file.opened().set_shared(0);
            (model.own, model.shared) = (0, 0);
            model.seen = seen.clone();
        }
        Deed::Write {
            start: way,
            count,
            first,
        } => {
            let bytes = (0..count * step).map(|at| first.wrapping_add(at as u8));
            let memory: Vec<u8> = bytes.collect();
            let buffer = Buffer::new(&memory, 0, *count as i64, &memory_type);
            let data = buffer.packed()?;
            let written = file.write(start(way), &buffer)?;
            prop_assert_eq!(written, data.len() as u64);
            let from = model.start(*way, *count);
            model.write(from, &data);
            model.own += if let Way::Own = way { *count } else { 0 };
        }
        Deed::Read { start: way, count } => {
            let mut memory = vec![UNTOUCHED; (count * step) as usize];
            let mut buffer = BufferMut::new(&mut memory, 0, *count as i64, &memory_type);
            let read = file.read(start(way), &mut buffer)?;
            let came = buffer.shared().packed_part(0, read)?;
            let rest = buffer.shared().packed_part(read, u64::MAX)?;
            let from = model.start(*way, *count);
            let data = model.read(from, count * each);
            let accessed = (data.len() as u64).div_ceil(each);
            model.own += if let Way::Own = way { accessed } else { 0 };
            prop_assert_eq!(came, data);
            let gaps = memory.chunks(step as usize);
            let gaps = gaps.flat_map(|one| &one[each as usize..]);
            prop_assert!(rest.iter().chain(gaps).all(|&byte| byte == UNTOUCHED));
        }
        Deed::Seek(offset) => {
            file.seek(*offset as i64, Whence::Begin)?;
            model.own = *offset;
        }
        Deed::SeekEnd => {
            file.seek(0, Whence::End)?;
            model.own = model.end();
        }
        Deed::SetSize(size) => {
            file.opened().access().set_size(*size)?;
            model.bytes.resize(*size as usize, 0);
        }
    }
    Ok(())
}

/// Bytes of the gap behind each etype in a buffer.
const GAP: u64 = 3;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) })]

    #[test]
    fn accesses_reach_the_bytes_of_the_view(deeds in deeds()) {
        agrees(&deeds, |_| {})?;
    }
}

#[test]
fn a_lost_byte_is_found_out() {
    let write = Deed::Write {
        start: Way::Own,
        count: 3,
        first: 1,
    };
    let loses = |file: &mut File| {
        let _ = file.opened().access().set_size(5);
    };
    let deeds = [write];
    assert!(agrees(&deeds, |_| {}).is_ok());
    assert!(agrees(&deeds, loses).is_err());
}

#[test]
fn modes_that_do_not_go_together_are_refused() {
    use Flag::{Create, Exclusive, ReadOnly, ReadWrite, Sequential, WriteOnly};
    let class = |flags: &[Flag]| Mode::new(flags.to_vec()).map_err(|fault| fault.class);
    for wrong in [
        &[][..],
        &[ReadOnly, WriteOnly],
        &[ReadOnly, Create],
        &[ReadOnly, Exclusive],
        &[ReadWrite, Sequential],
    ] {
        assert_eq!(class(wrong), Err(ErrorClass::Amode), "{wrong:?}");
    }
    assert!(class(&[WriteOnly, Create, Exclusive, Sequential]).is_ok());
}

#[test]
fn views_that_make_no_sense_are_refused() {
    let of = |displacement, etype: &Datatype, filetype: &Datatype, writes| {
        let made = View::new(
            displacement,
            (etype, filetype),
            Representation::Native,
            writes,
        );
        made.map(drop).map_err(|fault| fault.class)
    };
    let int = Datatype::from(Basic::Int);
    let short = Datatype::from(Basic::Short);
    let none = Datatype::contiguous(0, &int);
    let back = Datatype::indexed(&[1, 1], &[2, 0], &int);
    let before = Datatype::indexed(&[1], &[-1], &int);
    let (Ok(none), Ok(back), Ok(before)) = (none, back, before) else {
        panic!("these datatypes can be made");
    };
    assert_eq!(of(0, &int, &int, true), Ok(()));
    assert_eq!(of(0, &int, &none, true), Ok(()));
    assert_eq!(of(-1, &int, &int, true), Err(ErrorClass::Arg));
    assert_eq!(of(0, &int, &short, true), Err(ErrorClass::Arg));
    assert_eq!(of(0, &none, &int, true), Err(ErrorClass::Arg));
    assert_eq!(of(0, &int, &before, true), Err(ErrorClass::Arg));
    assert_eq!(of(0, &int, &back, true), Err(ErrorClass::Io));
    assert_eq!(of(0, &int, &back, false), Ok(()));
}
