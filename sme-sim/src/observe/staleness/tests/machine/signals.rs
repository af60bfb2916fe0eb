//! The machine's words that synchronize: all that memory ever held of them is remembered.

use std::panic::Location;

use super::{LINES, Machine, PER_NODE, Signal, bytes};
use crate::observe::staleness::{Way, What};

impl Machine {
    /// Stores to a word that synchronizes.
    #[track_caller]
    pub fn signal(&mut self, thread: u32, line: usize, value: u64, way: Way) {
        let site = Location::caller();
        let event = self.event(thread, None);
        let cell = (value, Some(event));
        let now = self.now;
        let signal = &mut self.signals[line];
        match way {
            Way::Coherent => signal.held.push((cell, now)),
            _ => signal.posts.push((thread / PER_NODE, cell)),
        }
        let word = signal.word;
        self.tell(thread, What::access(word, value, site, way, true));
    }

    /// Lets the node's first post to the synchronizing word reach memory.
    pub fn arrive(&mut self, node: u32, line: usize) {
        let now = self.now;
        let signal = &mut self.signals[line];
        let Some(index) = signal.posts.iter().position(|post| post.0 == node) else {
            return;
        };
        signal.held.push((signal.posts.remove(index).1, now));
        let line = signal.word;
        self.tell(
            0,
            What::Performed {
                line,
                bytes: bytes(line),
                by_node: node * self.stride,
            },
        );
    }

    /// A load of a word that synchronizes, or the one with atomic operations, returns what memory
    /// held so many contents `ago`, or when the thread's last operation ended.
    #[track_caller]
    pub fn poll(&mut self, thread: u32, signal: usize, ago: usize, way: Way) {
        let site = Location::caller();
        let Signal { word, held, .. } = &self.signals[signal];
        let began = self.stepped[thread as usize];
        let later = held.iter().filter(|(_, since)| *since >= began).count();
        // It may have seen any of them, and the one before.
        let possible = &held[held.len().saturating_sub(later + 1)..];
        let (read, _) = possible[possible.len() - 1 - ago.min(possible.len() - 1)];
        let same = possible.iter().filter(|((value, _), _)| *value == read.0);
        let is_kept = possible.len() <= 8;
        let writers: Vec<_> = same.filter(|_| is_kept).map(|((_, by), _)| *by).collect();
        let (word, value) = (*word, read.0);
        assert!(!is_kept || writers.contains(&read.1));
        self.event_after(thread, &writers);
        self.tell(thread, What::access(word, value, site, way, false));
    }

    /// An atomic operation on a word that has no other use, or a load of it.
    #[track_caller]
    pub fn atomic(&mut self, thread: u32, is_load: bool) {
        if is_load {
            return self.poll(thread, LINES, 0, Way::Coherent);
        }
        let site = Location::caller();
        let current = (self.signals[LINES].held.last()).map_or((0, None), |(cell, _)| *cell);
        let event = self.event(thread, current.1);
        let after = current.0 + 1;
        let now = self.now;
        let signal = &mut self.signals[LINES];
        signal.held.push(((after, Some(event)), now));
        let word = signal.word;
        self.tell(thread, What::Update { word, after, site });
    }
}
