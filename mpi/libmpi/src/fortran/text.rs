//! Texts of Fortran: blanks stand where a text is shorter than its variable.

use std::slice;

/// Bytes that a text of a call fits into: MPI_MAX_LIBRARY_VERSION_STRING is the longest.
const MOST: usize = 8192;

/// A byte that no text begins with.
const UNWRITTEN: u8 = 0xff;

/// A text that a call reads, as C has it.
#[derive(Debug)]
pub struct Text(Vec<u8>);

impl Text {
    /// The text at an address, without the blanks at its end.
    pub fn new(at: usize, length: usize) -> Self {
        let mut text = characters(at, length).trim_ascii_end().to_vec();
        text.push(0);
        Self(text)
    }

    /// The text at an address, without the blanks at both ends.
    pub fn trimmed(at: usize, length: usize) -> Self {
        let mut text = characters(at, length).trim_ascii().to_vec();
        text.push(0);
        Self(text)
    }

    /// Returns whether there are but blanks.
    pub fn is_blank(&self) -> bool {
        self.0.len() == 1
    }

    /// Its address for a call.
    pub fn address(&self) -> usize {
        self.0.as_ptr() as usize
    }
}

/// The characters at an address.
fn characters<'a>(at: usize, length: usize) -> &'a [u8] {
    match at == 0 || length == 0 {
        true => &[],
        // SAFETY: the program gives the address of a CHARACTER of this length, as the call demands,
        // and leaves it alone while the call reads it.
        false => unsafe { slice::from_raw_parts(at as *const u8, length) },
    }
}

/// The room for a text that a call writes, as C has it.
#[derive(Debug)]
pub struct Room {
    at: usize,
    length: usize,
    text: Vec<u8>,
}

impl Room {
    /// Room for the text that the CHARACTER at an address is wanted to have.
    pub fn new(at: usize, length: usize) -> Self {
        let mut text = vec![0; MOST + 1];
        text[0] = UNWRITTEN;
        Self { at, length, text }
    }

    /// Its address for a call.
    pub fn address(&mut self) -> usize {
        self.text.as_mut_ptr() as usize
    }

    /// Writes the text to where the program wants it, if the call has written one.
    pub fn fill(&self) {
        if self.text[0] == UNWRITTEN || self.at == 0 {
            return;
        }
        let end = self.text.iter().position(|&byte| byte == 0);
        let text = &self.text[..end.unwrap_or(MOST)];
        for i in 0..self.length {
            let byte = text.get(i).copied().unwrap_or(b' ');
            super::give(self.at + i, byte);
        }
    }
}
