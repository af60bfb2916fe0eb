//! Vectors of complex doubles in NumPy's files: the input and the output of `sme fft`. Format:
//! NumPy Enhancement Proposal 1 and `numpy.lib.format`.
//!
//! Taken is what `numpy.save` writes for a vector of `complex128` on a little-endian machine:
//! version 1.0 or 2.0, `<c16`, one dimension (whose order, C or Fortran, is then the same).
//! Anything else is refused with a reason. A file may be hostile: nothing is allocated before its
//! size bears out what its header claims. Sizes count bytes unless they say points.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

use num_complex::Complex64;
use thiserror::Error;

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// Magic, version and the length of the header of version 1.
const PREFIX: usize = 10;
/// The header ends where the data may be mapped into memory with this alignment.
const ALIGNMENT: usize = 64;
/// NumPy leaves room in the header for the length to grow to so many digits.
const GROWTH_DIGITS: usize = 21;
/// Longer headers NumPy does not read by default, either.
const HEADER_MOST: u32 = 10_000;
const POINT_BYTES: u64 = 16;
const ELEMENT_TYPE: &str = "<c16";

/// The longest vector that is read: 16 GiB.
pub const POINTS_MOST: u64 = 1 << 30;

/// The reason why a file cannot be read.
#[derive(Debug, Error)]
pub enum NpyError {
    /// The operating system says so.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file does not begin as NumPy's files do.
    #[error("not a NumPy file (.npy)")]
    NotNpy,
    /// A version that is not known.
    #[error("version {major}.{minor} of the .npy format: 1.0 and 2.0 are known")]
    Version {
        /// Before the dot.
        major: u8,
        /// After the dot.
        minor: u8,
    },
    /// The header is not what the format asks for.
    #[error("garbled header: {0}")]
    Header(&'static str),
    /// The file holds other things than complex doubles.
    #[error("elements of type `{0}`: they must be `<c16` (little-endian complex128)")]
    ElementType(String),
    /// The array is not a vector.
    #[error("an array of {dimensions} dimensions: it must have one")]
    Dimensions {
        /// The number of dimensions.
        dimensions: usize,
    },
    /// The vector is too long, or claims to be.
    #[error("{points} points: at most {POINTS_MOST} are read")]
    TooLong {
        /// The number that the header claims.
        points: u64,
    },
    /// The data are not as long as the header says.
    #[error("{points} points take {expected} bytes, and the file has {found} for them")]
    Size {
        /// The number that the header claims.
        points: u64,
        /// Bytes they take.
        expected: u64,
        /// Bytes behind the header.
        found: u64,
    },
}

/// Reads the vector in the file at `path`.
///
/// # Errors
/// If the file cannot be read or is not such a vector.
pub fn read(path: &Path) -> Result<Vec<Complex64>, NpyError> {
    let file = File::open(path)?;
    let bytes = file.metadata()?.len();
    read_from(file, bytes)
}

/// Reads the vector in `input`, which has `bytes` bytes.
///
/// # Errors
/// If it cannot be read or is not such a vector.
pub fn read_from(input: impl Read, bytes: u64) -> Result<Vec<Complex64>, NpyError> {
    let mut input = BufReader::new(input);
    let mut prefix = [0; PREFIX];
    exact(&mut input, &mut prefix, NpyError::NotNpy)?;
    let [magic @ .., major, minor, low, high] = prefix;
    if magic != *MAGIC {
        return Err(NpyError::NotNpy);
    }
    let mut header_bytes = u32::from(u16::from_le_bytes([low, high]));
    let mut before = PREFIX as u64;
    match (major, minor) {
        (1, 0) => {}
        (2, 0) => {
            let mut upper = [0; 2];
            exact(&mut input, &mut upper, NpyError::Header("it ends early"))?;
            header_bytes |= u32::from(u16::from_le_bytes(upper)) << 16;
            before += 2;
        }
        _ => return Err(NpyError::Version { major, minor }),
    }
    if header_bytes > HEADER_MOST {
        return Err(NpyError::Header("it is too long"));
    }
    let mut text = vec![0; header_bytes as usize];
    exact(&mut input, &mut text, NpyError::Header("it ends early"))?;
    let text = std::str::from_utf8(&text).map_err(|_| NpyError::Header("it is not text"))?;
    let points = Header::parse(text)?.points()?;

    let expected = points * POINT_BYTES;
    let found = bytes.saturating_sub(before + u64::from(header_bytes));
    if expected != found {
        return Err(NpyError::Size {
            points,
            expected,
            found,
        });
    }
    let mut vector = Vec::new();
    vector
        .try_reserve_exact(points as usize)
        .map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
    let mut word = || {
        let mut word = [0; 8];
        input
            .read_exact(&mut word)
            .map(|()| f64::from_le_bytes(word))
    };
    for _ in 0..points {
        vector.push(Complex64::new(word()?, word()?));
    }
    Ok(vector)
}

/// Writes `vector` as `numpy.save` would.
///
/// # Errors
/// If `output` cannot be written.
pub fn write_to(output: impl Write, vector: &[Complex64]) -> io::Result<()> {
    let points = vector.len().to_string();
    let room = GROWTH_DIGITS - points.len();
    let mut header = format!(
        "{{'descr': '{ELEMENT_TYPE}', 'fortran_order': False, 'shape': ({points},), }}{:room$}",
        ""
    );
    let bytes = (PREFIX + header.len() + 1).next_multiple_of(ALIGNMENT) - PREFIX;
    header.extend(std::iter::repeat_n(' ', bytes - 1 - header.len()));
    header.push('\n');

    let mut output = BufWriter::new(output);
    output.write_all(MAGIC)?;
    output.write_all(&[1, 0])?;
    // The longest header has 118 bytes.
    output.write_all(&(bytes as u16).to_le_bytes())?;
    output.write_all(header.as_bytes())?;
    for point in vector {
        output.write_all(&point.re.to_le_bytes())?;
        output.write_all(&point.im.to_le_bytes())?;
    }
    output.flush()
}

/// Fills `buffer`, or fails with `short` if the input ends before.
fn exact(input: &mut impl Read, buffer: &mut [u8], short: NpyError) -> Result<(), NpyError> {
    input
        .read_exact(buffer)
        .map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => short,
            _ => NpyError::Io(error),
        })
}

/// The contents of a header, which is a dictionary as Python writes it. Of that language only the
/// part that the format needs here is read, without recursion.
#[derive(Debug, Default)]
struct Header<'t> {
    element_type: Option<&'t str>,
    fortran_order: Option<bool>,
    shape: Option<Vec<u64>>,
}

impl<'t> Header<'t> {
    fn parse(text: &'t str) -> Result<Self, NpyError> {
        let mut header = Self::default();
        let mut text = Text(text);
        text.expect('{', "it does not begin with `{`")?;
        while !text.eat('}') {
            let key = text.quoted().ok_or(NpyError::Header("a key is missing"))?;
            text.expect(':', "a key without `:`")?;
            let twice = match key {
                "descr" => {
                    let value = text.quoted().ok_or_else(|| text.structured())?;
                    header.element_type.replace(value).is_some()
                }
                "fortran_order" => header.fortran_order.replace(text.truth()?).is_some(),
                "shape" => header.shape.replace(text.shape()?).is_some(),
                _ => return Err(NpyError::Header("a key that is not known")),
            };
            if twice {
                return Err(NpyError::Header("a key twice"));
            }
            if !text.eat(',') {
                text.expect('}', "it does not end with `}`")?;
                break;
            }
        }
        if text.0.trim_ascii().is_empty() {
            Ok(header)
        } else {
            Err(NpyError::Header("something stands behind it"))
        }
    }

    /// Returns the number of points of the vector; an error if it is no vector, or not of complex
    /// doubles.
    fn points(self) -> Result<u64, NpyError> {
        let (Some(element_type), Some(_), Some(shape)) =
            (self.element_type, self.fortran_order, self.shape)
        else {
            return Err(NpyError::Header(
                "`descr`, `fortran_order` or `shape` is missing",
            ));
        };
        if element_type != ELEMENT_TYPE {
            let shown = element_type.chars().take(32).collect();
            return Err(NpyError::ElementType(shown));
        }
        match shape[..] {
            [points] if points <= POINTS_MOST => Ok(points),
            [points] => Err(NpyError::TooLong { points }),
            _ => Err(NpyError::Dimensions {
                dimensions: shape.len(),
            }),
        }
    }
}

/// The rest of a header.
struct Text<'t>(&'t str);

impl<'t> Text<'t> {
    /// Takes `mark` away if it comes next.
    fn eat(&mut self, mark: char) -> bool {
        let rest = self.0.trim_ascii_start().strip_prefix(mark);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn expect(&mut self, mark: char, or: &'static str) -> Result<(), NpyError> {
        self.eat(mark).then_some(()).ok_or(NpyError::Header(or))
    }

    /// A string between quotes of either kind; none here needs escapes.
    fn quoted(&mut self) -> Option<&'t str> {
        let text = self.0.trim_ascii_start();
        let quote = text.chars().next().filter(|c| ['\'', '"'].contains(c))?;
        let (inside, rest) = text[1..].split_once(quote)?;
        self.0 = rest;
        Some(inside)
    }

    /// Makes the error that the next text is not an element type.
    fn structured(&self) -> NpyError {
        if self.0.trim_ascii_start().starts_with('[') {
            NpyError::ElementType("a record".to_owned())
        } else {
            NpyError::Header("`descr` is not a string")
        }
    }

    fn truth(&mut self) -> Result<bool, NpyError> {
        let text = self.0.trim_ascii_start();
        for (name, value) in [("True", true), ("False", false)] {
            if let Some(rest) = text.strip_prefix(name) {
                self.0 = rest;
                return Ok(value);
            }
        }
        Err(NpyError::Header("`fortran_order` is not True or False"))
    }

    fn shape(&mut self) -> Result<Vec<u64>, NpyError> {
        self.expect('(', "`shape` is not a tuple")?;
        let mut shape = Vec::new();
        while !self.eat(')') {
            let text = self.0.trim_ascii_start();
            let end = text.find(|c: char| !c.is_ascii_digit());
            let (digits, rest) = text.split_at(end.unwrap_or(text.len()));
            let length = digits.parse();
            shape.push(length.map_err(|_| NpyError::Header("`shape` holds no lengths"))?);
            self.0 = rest;
            // Python 2 wrote long integers with an L.
            self.eat('L');
            if !self.eat(',') {
                self.expect(')', "`shape` does not end with `)`")?;
                // To Python a number in parentheses is that number.
                if shape.len() == 1 {
                    return Err(NpyError::Header("`shape` is not a tuple"));
                }
                break;
            }
        }
        Ok(shape)
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// The bytes that NumPy 2.4.6 writes for `numpy.array([1-2j, 0.5, 3j])`; the data are the last
    /// 48 bytes.
    const BY_NUMPY: &[u8] = b"\x93NUMPY\x01\x00v\x00{'descr': '<c16', 'fortran_order': False, \
        'shape': (3,), }                                                           \n\
        \x00\x00\x00\x00\x00\x00\xf0?\x00\x00\x00\x00\x00\x00\x00\xc0\
        \x00\x00\x00\x00\x00\x00\xe0?\x00\x00\x00\x00\x00\x00\x00\x00\
        \x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x08@";

    fn vector() -> [Complex64; 3] {
        [(1.0, -2.0), (0.5, 0.0), (0.0, 3.0)].map(|(real, imaginary)| Complex64 {
            re: real,
            im: imaginary,
        })
    }

    fn parse(bytes: &[u8]) -> Result<Vec<Complex64>, NpyError> {
        read_from(bytes, bytes.len() as u64)
    }

    /// A file with this header and data for three points.
    fn file(version: u8, header: &str) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend([version, 0]);
        match version {
            1 => bytes.extend((header.len() as u16).to_le_bytes()),
            _ => bytes.extend((header.len() as u32).to_le_bytes()),
        }
        bytes.extend(header.as_bytes());
        bytes.extend(&BY_NUMPY[BY_NUMPY.len() - 48..]);
        bytes
    }

    fn refused(version: u8, header: &str) -> String {
        match parse(&file(version, header)) {
            Ok(vector) => panic!("{header} was taken as {vector:?}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_file_of_numpy_is_read_and_written_byte_for_byte() {
        assert_eq!(parse(BY_NUMPY).expect("a file of NumPy"), vector());
        let mut written = Vec::new();
        write_to(&mut written, &vector()).expect("memory can be written");
        assert_eq!(written, BY_NUMPY);
    }

    #[test]
    fn what_the_format_allows_is_read() {
        for header in [
            "{'descr': '<c16', 'fortran_order': True, 'shape': (3,), }\n",
            "{'shape':(3L,),\"fortran_order\":False,'descr':\"<c16\"}",
            " { 'descr' : '<c16' , 'fortran_order' : False , 'shape' : ( 3 , ) , } \n",
        ] {
            for version in [1, 2] {
                let read = parse(&file(version, header)).expect(header);
                assert_eq!(read, vector(), "{header}");
            }
        }
    }

    #[test]
    fn anything_else_is_refused_with_a_reason() {
        let header = |descr: &str, shape: &str| {
            format!("{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n")
        };
        for (descr, shape, reason) in [
            ("'<f8'", "(3,)", "elements of type `<f8`"),
            ("'>c16'", "(3,)", "elements of type `>c16`"),
            ("[('a', '<c16')]", "(3,)", "elements of type `a record`"),
            ("3", "(3,)", "`descr` is not a string"),
            ("'<c16'", "(3, 1)", "an array of 2 dimensions"),
            ("'<c16'", "()", "an array of 0 dimensions"),
            (
                "'<c16'",
                "(4,)",
                "4 points take 64 bytes, and the file has 48",
            ),
            (
                "'<c16'",
                "(2,)",
                "2 points take 32 bytes, and the file has 48",
            ),
            (
                "'<c16'",
                "(18446744073709551615,)",
                "18446744073709551615 points: at most",
            ),
            (
                "'<c16'",
                "(18446744073709551616,)",
                "`shape` holds no lengths",
            ),
            (
                "'<c16'",
                "(1152921504606846979,)",
                "1152921504606846979 points: at most",
            ),
            ("'<c16'", "(-3,)", "`shape` holds no lengths"),
            ("'<c16'", "(3,", "`shape` holds no lengths"),
            ("'<c16'", "(,)", "`shape` holds no lengths"),
            ("'<c16'", "3", "`shape` is not a tuple"),
            ("'<c16'", "(3)", "`shape` is not a tuple"),
            ("'<c16'", "(3,), 'shape': (3,)", "a key twice"),
            ("'<c16'", "(3,), 'order': 1", "a key that is not known"),
            ("'<c16'", "(3,)} {", "something stands behind it"),
            ("'<c16", "(3,)", "a key is missing"),
        ] {
            let found = refused(1, &header(descr, shape));
            // A quote that is left open swallows what follows it, up to the next.
            let found_one = found.contains(reason) || descr == "'<c16";
            assert!(found_one, "{descr} {shape}: {found}");
        }
        assert!(refused(3, &header("'<c16'", "(3,)")).contains("version 3.0"));
        assert!(refused(1, "{'descr': '<c16', 'shape': (3,)}").contains("is missing"));
        assert!(refused(1, &"{".repeat(9_000)).contains("a key is missing"));
        assert!(refused(1, &" ".repeat(10_001)).contains("too long"));
    }

    #[test]
    fn what_is_cut_off_is_refused() {
        for end in 0..BY_NUMPY.len() {
            assert!(parse(&BY_NUMPY[..end]).is_err(), "{end} bytes");
        }
        // The file has shrunk since its size was asked for.
        let cut = &BY_NUMPY[..BY_NUMPY.len() - 1];
        assert!(matches!(
            read_from(cut, BY_NUMPY.len() as u64),
            Err(NpyError::Io(_))
        ));
        // Four gigabytes of header.
        let hostile = b"\x93NUMPY\x02\x00\xff\xff\xff\xff{";
        let error = parse(hostile).expect_err("such a header");
        assert!(error.to_string().contains("too long"), "{error}");
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(words in vec(any::<(u64, u64)>(), 0..200)) {
            let bits = |(re, im)| Complex64 { re: f64::from_bits(re), im: f64::from_bits(im) };
            let vector: Vec<_> = words.iter().copied().map(bits).collect();
            let mut bytes = Vec::new();
            write_to(&mut bytes, &vector)?;
            prop_assert_eq!((bytes.len() - 16 * vector.len()) % 64, 0);
            let read = parse(&bytes)?;
            // As bits, for not a number is not equal to itself.
            let read = read.iter().map(|point| (point.re.to_bits(), point.im.to_bits()));
            prop_assert!(read.eq(words));
        }

        /// Garbled files are refused or give as many points as they have room for.
        #[test]
        fn garbled_files_do_no_harm(
            changes in vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..3), 1..12),
        ) {
            let mut bytes = BY_NUMPY.to_vec();
            for (at, byte, kind) in changes {
                let at = at.index(bytes.len());
                match kind {
                    0 => bytes[at] = byte,
                    1 => bytes.insert(at, byte),
                    _ => drop(bytes.remove(at)),
                }
            }
            if let Ok(vector) = parse(&bytes) {
                prop_assert!(vector.len() * 16 < bytes.len());
            }
        }

        #[test]
        fn hostile_headers_do_no_harm(
            version in 1u8..3, text in "[{}()\\[\\]',: \"L0-9a-z<>\n]{0,80}",
            key in "descr|shape|fortran_order", tail: bool,
        ) {
            let known = "'descr': '<c16', 'fortran_order': False, 'shape': (3,), }";
            let header = format!("{{'{key}': {text}{}", if tail { known } else { "" });
            if let Ok(vector) = parse(&file(version, &header)) {
                prop_assert_eq!(vector.len(), 3);
            }
        }
    }
}
