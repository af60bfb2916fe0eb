//! Where copies and writes of a line are: which nodes hold a copy and what it lacked when it was
//! fetched, what is on its way to memory, what overwrote what. From this follows whether a load
//! could see a write and, if not, why. Called by the checker only.

use rustc_hash::FxHashMap;

use super::record::{Spot, Way};
use super::report::Cause;
use super::shadow::{Line, NONE};
use crate::parts::line_size::LineSize;
use crate::time::Time;

/// Copies and posts of all lines.
#[derive(Debug)]
pub(super) struct History {
    line: LineSize,
    threads_per_node: u32,
    /// For each node, its copies by line.
    copies: Vec<FxHashMap<u64, Copy>>,
    /// A list for each line that has any; the unused ones are a list too.
    posts: Vec<Post>,
    first_unused: u32,
    /// By word, the node that overwrote its last write.
    overwrote: FxHashMap<Spot, u32>,
}

/// A node's copy of a line. The masks have a bit for each word and are about its last write at the
/// time of the fill.
#[derive(Clone, Copy, Debug)]
struct Copy {
    filled: Time,
    /// Words whose last write was in another node's cache only.
    dirty: u8,
    /// Words whose last write was on its way.
    posted: u8,
    /// Memory had it no more.
    lost: u8,
    /// Words whose last write had happened before the fill.
    known: u8,
}

/// A store or a write-back that has been posted and not, or not wholly, performed.
#[derive(Clone, Copy, Debug)]
struct Post {
    at: Time,
    node: u32,
    next: u32,
    /// The words that are still on their way.
    words: u8,
    /// Words that the node has not itself modified.
    old: u8,
    /// Those of them of which it has the last write nevertheless.
    fresh: u8,
    is_write_back: bool,
}

fn words(mask: u8) -> impl Iterator<Item = (usize, u8)> {
    (0..8)
        .map(|word| (word, 1u8 << word))
        .filter(move |(_, bit)| mask & bit != 0)
}

impl History {
    pub fn new(nodes: usize, threads_per_node: u32, line: LineSize) -> Self {
        Self {
            line,
            threads_per_node,
            copies: vec![FxHashMap::default(); nodes],
            posts: Vec::new(),
            first_unused: NONE,
            overwrote: FxHashMap::default(),
        }
    }

    pub fn node_of(&self, thread: u32) -> u32 {
        thread / self.threads_per_node
    }

    pub fn core_of(&self, thread: u32) -> u32 {
        thread % self.threads_per_node
    }

    /// The bit of `node` in a line's masks of nodes.
    pub fn node_bit(node: u32) -> u64 {
        1 << (node % 64)
    }

    /// Returns whether a bit stands for one node only.
    #[inline]
    pub fn is_exact(&self) -> bool {
        self.copies.len() <= 64
    }

    /// `node` has fetched the line for a thread that knows what `row` says.
    pub fn filled(&mut self, at: Time, node: u32, spot: Spot, line: &mut Line, row: &[u32]) {
        let mut copy = Copy {
            filled: at,
            dirty: line.dirty,
            posted: line.posted,
            lost: line.lost,
            known: 0,
        };
        for (word, bit) in words(line.missing()) {
            let last = line.words[word].last;
            // A load does not overtake what its own node has posted, and a fill does not replace
            // what its own node has modified.
            if self.node_of(last.thread()) == node {
                copy.dirty &= !bit;
                copy.posted &= !bit;
            }
            if last.clock <= row[last.thread() as usize] {
                copy.known |= bit;
            }
        }
        let bit = Self::node_bit(node);
        line.holders |= bit;
        if copy.dirty | copy.posted | copy.lost != 0 {
            line.suspects |= bit;
        } else if self.is_exact() {
            line.suspects &= !bit;
        }
        if let Some(copies) = self.copies.get_mut(node as usize) {
            copies.insert(spot.line(self.line), copy);
        }
    }

    /// `node` has no copy of the line any more.
    pub fn dropped(&mut self, node: u32, spot: Spot, line: &mut Line) {
        if let Some(copies) = self.copies.get_mut(node as usize) {
            copies.remove(&spot.line(self.line));
        }
        if self.is_exact() {
            line.holders &= !Self::node_bit(node);
            line.suspects &= !Self::node_bit(node);
        }
    }

    /// `node` has no copies any more. The lines' masks keep its bit and are too large from now on.
    pub fn dropped_all(&mut self, node: u32) {
        if let Some(copies) = self.copies.get_mut(node as usize) {
            copies.clear();
        }
    }

    /// `node` has written the word; the line says so already, but not where the write is.
    #[inline]
    pub fn stored(&mut self, at: Time, node: u32, spot: Spot, way: Way, line: &mut Line) {
        let word = 1 << spot.word();
        if line.lost & word != 0 {
            line.lost &= !word;
            self.overwrote.remove(&spot);
        }
        let mut others = line.holders;
        match way {
            Way::Cached => {
                line.dirty |= word;
                line.posted &= !word;
                if self.is_exact() {
                    others &= !Self::node_bit(node);
                }
            }
            Way::Uncached => {
                line.dirty &= !word;
                line.posted |= word;
                self.post(
                    line,
                    Post {
                        at,
                        node,
                        next: NONE,
                        words: word,
                        old: 0,
                        fresh: 0,
                        is_write_back: false,
                    },
                );
            }
            Way::Coherent => {
                line.dirty &= !word;
                line.posted &= !word;
            }
        }
        line.suspects |= others;
    }

    /// `node` has posted these words, of which it has not modified the `old` ones.
    pub fn wrote_back(
        &mut self,
        at: Time,
        node: u32,
        spot: Spot,
        words_: (u8, u8),
        line: &mut Line,
    ) {
        let (all, old) = words_;
        for (word, bit) in words(all & !old & line.dirty) {
            if self.node_of(line.words[word].last.thread()) == node {
                line.dirty &= !bit;
                line.posted |= bit;
            }
        }
        let fresh = words(old)
            .filter(|&(word, _)| self.lack(node, spot.sibling(word), line).is_none())
            .fold(0, |mask, (_, bit)| mask | bit);
        self.post(
            line,
            Post {
                at,
                node,
                next: NONE,
                words: all,
                old,
                fresh,
                is_write_back: true,
            },
        );
    }

    /// The words `rest` of what `node` has posted have reached memory. Special words are `told`,
    /// and whether that was a write-back.
    pub fn performed(
        &mut self,
        node: u32,
        spot: Spot,
        mut rest: u8,
        line: &mut Line,
        mut told: impl FnMut(Spot, bool),
    ) {
        let mut before = NONE;
        let mut index = line.first_post;
        while let Some(&post) = self.posts.get(index as usize) {
            if rest == 0 {
                break;
            }
            let taken = if post.node == node {
                post.words & rest
            } else {
                0
            };
            rest &= !taken;
            for (word, bit) in words(taken) {
                self.reached(&post, spot.sibling(word), bit, line);
                if line.words[word].last.is_special() {
                    told(spot.sibling(word), post.is_write_back);
                }
            }
            let left = post.words & !taken;
            if left == 0 {
                match self.posts.get_mut(before as usize) {
                    Some(before) => before.next = post.next,
                    None => line.first_post = post.next,
                }
                self.posts[index as usize].next = self.first_unused;
                self.first_unused = index;
            } else {
                self.posts[index as usize].words = left;
                before = index;
            }
            index = post.next;
        }
    }

    /// One word of `post` has reached memory.
    fn reached(&mut self, post: &Post, spot: Spot, bit: u8, line: &mut Line) {
        let word = spot.word();
        let last = line.words[word].last;
        let is_after = line.words[word].at > post.at;
        let is_it = if post.old & bit != 0 {
            post.fresh & bit != 0 && !is_after
        } else {
            self.node_of(last.thread()) == post.node
                && last.is_cached() == post.is_write_back
                && !is_after
        };
        if is_it {
            line.posted &= !bit;
            // The node that had overwritten it stays known: there may be copies from then.
            line.lost &= !bit;
        } else if last.is_written() && line.missing() & bit == 0 {
            line.lost |= bit;
            self.overwrote.insert(spot, post.node);
            // Copies fetched from now on lack it, those that are there need not.
        }
    }

    /// Returns whether some of what was posted to these words of the line is on its way.
    pub fn is_posted(&self, words: u8, line: &Line) -> bool {
        let mut index = line.first_post;
        while let Some(post) = self.posts.get(index as usize) {
            if post.words & words != 0 {
                return true;
            }
            index = post.next;
        }
        false
    }

    fn post(&mut self, line: &mut Line, post: Post) {
        let index = self.first_unused;
        let index = match self.posts.get_mut(index as usize) {
            Some(unused) => {
                self.first_unused = unused.next;
                *unused = post;
                index
            }
            None => {
                self.posts.push(post);
                (self.posts.len() - 1) as u32
            }
        };
        let mut end = line.first_post;
        if end == NONE {
            line.first_post = index;
            return;
        }
        while let Some(last) = self.posts.get_mut(end as usize) {
            if last.next == NONE {
                last.next = index;
                return;
            }
            end = last.next;
        }
    }

    /// Returns the reason why the copy that `node` has of the word lacks the last write to it; none
    /// if it has that write, or if there is no copy.
    pub fn lack(&self, node: u32, spot: Spot, line: &Line) -> Option<Cause> {
        let word = spot.word();
        let bit = 1 << word;
        let last = line.words[word].last;
        let copy = self.copies.get(node as usize)?.get(&spot.line(self.line))?;
        if !last.is_written() {
            return None;
        }
        if line.words[word].at > copy.filled {
            let is_own = last.is_cached() && self.node_of(last.thread()) == node;
            return (!is_own).then(|| self.now_at(spot, line).unwrap_or(Cause::NotInvalidated));
        }
        let then = if copy.dirty & bit != 0 {
            Cause::NotWrittenBack
        } else if copy.posted & bit != 0 {
            Cause::InFlight
        } else if copy.lost & bit != 0 {
            self.lost_to(spot)
        } else {
            return None;
        };
        // Fetched although the write had happened before: the copy was not kept, it came wrong.
        if copy.known & bit != 0 {
            return Some(then);
        }
        Some(self.now_at(spot, line).unwrap_or(Cause::NotInvalidated))
    }

    /// Returns the reason why memory lacks the last write to the word; none if it has it.
    fn now_at(&self, spot: Spot, line: &Line) -> Option<Cause> {
        let bit = 1 << spot.word();
        if line.dirty & bit != 0 {
            Some(Cause::NotWrittenBack)
        } else if line.posted & bit != 0 {
            Some(Cause::InFlight)
        } else if line.lost & bit != 0 {
            Some(self.lost_to(spot))
        } else {
            None
        }
    }

    fn lost_to(&self, spot: Spot) -> Cause {
        Cause::LostUpdate {
            by_node: self.overwrote.get(&spot).copied().unwrap_or_default(),
        }
    }

    /// Returns the reason why a load that went this way has not returned the last write to the
    /// word.
    pub fn cause(&self, node: u32, spot: Spot, way: Way, line: &Line) -> Cause {
        if !line.words[spot.word()].last.is_written() {
            return Cause::NeverWritten;
        }
        if way != Way::Cached {
            // By now memory may have what it had not when it was read.
            return self.now_at(spot, line).unwrap_or(Cause::InFlight);
        }
        self.lack(node, spot, line)
            .or_else(|| self.now_at(spot, line))
            .unwrap_or(Cause::NotInvalidated)
    }
}
