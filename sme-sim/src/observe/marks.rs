//! The marks of a trace. They are many, and stay where they are as more are added: a vector that
//! grows is moved, and for that time takes half as much memory again.

use std::ops::Index;

use super::path::MarkId;

/// Marks by their numbers, from [`BEFORE`](super::path::BEFORE) on.
#[derive(Debug)]
pub struct Marks<M> {
    /// Each has room for twice as many as the one before it; all but the last are full.
    chunks: Vec<Vec<M>>,
    count: usize,
}

/// The number of marks in the first chunk.
const FIRST: usize = 32;

impl<M> Marks<M> {
    /// `before` alone.
    pub fn new(before: M) -> Self {
        let (chunks, count) = (Vec::new(), 0);
        let mut marks = Self { chunks, count };
        marks.push(before);
        marks
    }

    /// Adds `mark`; returns its number.
    pub fn push(&mut self, mark: M) -> MarkId {
        let number = self.count;
        let (chunk, _) = place(number);
        if chunk == self.chunks.len() {
            self.chunks.push(Vec::with_capacity(FIRST << chunk));
        }
        self.chunks[chunk].push(mark);
        self.count += 1;
        number as MarkId
    }
}

/// The chunk of that mark, and the mark's place there.
fn place(number: usize) -> (usize, usize) {
    let chunk = (number / FIRST + 1).ilog2() as usize;
    (chunk, number - FIRST * ((1 << chunk) - 1))
}

impl<M> Index<MarkId> for Marks<M> {
    type Output = M;

    fn index(&self, number: MarkId) -> &M {
        let (chunk, place) = place(number as usize);
        &self.chunks[chunk][place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_keep_their_numbers_and_places() {
        let mut marks = Marks::new(0u32);
        let first: *const u32 = &marks[0];
        for number in 1..10_000 {
            assert_eq!(marks.push(number), number);
        }
        assert!((0..10_000).all(|number| marks[number] == number));
        assert_eq!(first, &raw const marks[0]);
    }
}
