//! The state of a master from one episode to the next where flags are used in turns (parity) and
//! with alternating values (sense): J. Mellor-Crummey, M. Scott, "Algorithms for Scalable
//! Synchronization on Shared-Memory Multiprocessors", ACM TOCS 9(1), 1991.
//!
//! A master may be an episode ahead of another, never two. With two sets of flags it then writes a
//! flag on which no thread waits any more; with one it would overwrite an unseen value.

/// The number of an episode, modulo 4; begins with 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Episode(u8);

impl Episode {
    /// Counts an episode: this one, and `self` becomes the next.
    pub(crate) fn next(&mut self) -> Self {
        let this = *self;
        self.0 = (self.0 + 1) % 4;
        this
    }

    /// The phase of the node before this episode: 0, 1, 0, 1, ….
    pub(crate) const fn phase(self) -> u8 {
        self.0 % 2
    }

    /// Returns the set of flags that this episode uses: 0, 1, 0, 1, ….
    pub(crate) const fn parity(self) -> u32 {
        self.0 as u32 % 2
    }

    /// The value that says "arrived" in this episode: 1, 1, 0, 0, ….
    pub(crate) const fn sense(self) -> u8 {
        1 - self.0 / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_changes_whenever_its_set_is_used() {
        let mut local = Episode::default();
        let mut flags = [0, 0];
        for number in 0..20u8 {
            let episode = local.next();
            assert_eq!(episode.phase(), number % 2);
            let flag = &mut flags[episode.parity() as usize];
            assert_ne!(*flag, episode.sense());
            *flag = episode.sense();
        }
    }
}
