//! The epochs of one rank's window (MPI-4.1, Sec. 12.5): which calls may follow which. Ranks are
//! those of the window's communicator.

use std::collections::BTreeMap;

use crate::error::{ErrorClass, Fault};

/// The epochs that are open.
#[derive(Debug, Default)]
pub(crate) struct Epochs {
    access: Access,
    /// The origins of the exposure epoch.
    exposed_to: Option<Vec<u32>>,
}

/// The access epoch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Access {
    #[default]
    None,
    /// Between two fences; whether anything has been accessed.
    Fence { is_used: bool },
    /// To these targets, from MPI_Win_start on.
    Started(Vec<u32>),
    /// To locked targets, which are locked exclusively or not.
    Locked(BTreeMap<u32, bool>),
    /// To all, from MPI_Win_lock_all on.
    LockedAll,
}

fn wrong(text: impl Into<String>) -> Fault {
    Fault::new(ErrorClass::RmaSync, "win", text.into())
}

impl Epochs {
    /// Returns whether an access epoch or another reason is in the way of one that begins.
    fn begins(&self) -> Result<(), Fault> {
        match &self.access {
            Access::None | Access::Fence { is_used: false } => Ok(()),
            Access::Fence { .. } => Err(wrong(
                "the accesses since the last fence need a fence first",
            )),
            Access::Started(_) => Err(wrong("an access epoch of MPI_Win_start is open")),
            Access::Locked(_) | Access::LockedAll => Err(wrong("a lock is held")),
        }
    }

    /// MPI_Win_fence.
    pub(crate) fn fence(&mut self) -> Result<(), Fault> {
        if !matches!(self.access, Access::Fence { .. }) {
            self.begins()?;
        }
        if self.exposed_to.is_some() {
            return Err(wrong("an exposure epoch of MPI_Win_post is open"));
        }
        self.access = Access::Fence { is_used: false };
        Ok(())
    }

    /// MPI_Win_start.
    pub(crate) fn start(&mut self, targets: Vec<u32>) -> Result<(), Fault> {
        self.begins()?;
        self.access = Access::Started(targets);
        Ok(())
    }

    /// MPI_Win_complete: the targets.
    pub(crate) fn complete(&mut self) -> Result<Vec<u32>, Fault> {
        match std::mem::take(&mut self.access) {
            Access::Started(targets) => Ok(targets),
            other => {
                self.access = other;
                Err(wrong("no access epoch of MPI_Win_start is open"))
            }
        }
    }

    /// MPI_Win_post.
    pub(crate) fn post(&mut self, origins: Vec<u32>) -> Result<(), Fault> {
        if self.exposed_to.is_some() {
            return Err(wrong("an exposure epoch of MPI_Win_post is open"));
        }
        if matches!(self.access, Access::Fence { is_used: true }) {
            return self.begins();
        }
        self.exposed_to = Some(origins);
        Ok(())
    }

    /// Returns whether there is something to wait for (MPI_Win_wait, MPI_Win_test).
    pub(crate) fn is_exposed(&self) -> Result<(), Fault> {
        match self.exposed_to {
            Some(_) => Ok(()),
            None => Err(wrong("no exposure epoch of MPI_Win_post is open")),
        }
    }

    /// The exposure epoch is over.
    pub(crate) fn ends_exposure(&mut self) {
        self.exposed_to = None;
    }

    /// MPI_Win_lock.
    pub(crate) fn lock(&mut self, target: u32, is_exclusive: bool) -> Result<(), Fault> {
        if let Access::Locked(locked) = &mut self.access {
            return match locked.insert(target, is_exclusive) {
                None => Ok(()),
                Some(before) => {
                    locked.insert(target, before);
                    Err(wrong(format!("rank {target} is locked already")))
                }
            };
        }
        self.begins()?;
        self.access = Access::Locked(BTreeMap::from([(target, is_exclusive)]));
        Ok(())
    }

    /// MPI_Win_unlock: whether the lock was exclusive.
    pub(crate) fn unlock(&mut self, target: u32) -> Result<bool, Fault> {
        let Access::Locked(locked) = &mut self.access else {
            return Err(wrong(format!("rank {target} is not locked")));
        };
        let Some(is_exclusive) = locked.remove(&target) else {
            return Err(wrong(format!("rank {target} is not locked")));
        };
        if locked.is_empty() {
            self.access = Access::None;
        }
        Ok(is_exclusive)
    }

    /// MPI_Win_lock_all.
    pub(crate) fn lock_all(&mut self) -> Result<(), Fault> {
        self.begins()?;
        self.access = Access::LockedAll;
        Ok(())
    }

    /// MPI_Win_unlock_all.
    pub(crate) fn unlock_all(&mut self) -> Result<(), Fault> {
        if self.access != Access::LockedAll {
            return Err(wrong("MPI_Win_lock_all has not been called"));
        }
        self.access = Access::None;
        Ok(())
    }

    /// The locked ranks that a flush of `target`, or of all, is about; there are `ranks`.
    pub(crate) fn flush(&self, target: Option<u32>, ranks: u32) -> Result<Vec<u32>, Fault> {
        match (&self.access, target) {
            (Access::LockedAll, Some(target)) => Ok(vec![target]),
            (Access::LockedAll, None) => Ok((0..ranks).collect()),
            (Access::Locked(locked), Some(target)) if locked.contains_key(&target) => {
                Ok(vec![target])
            }
            (Access::Locked(locked), None) => Ok(locked.keys().copied().collect()),
            (_, Some(target)) => Err(wrong(format!("rank {target} is not locked"))),
            (_, None) => Err(wrong("no lock is held")),
        }
    }

    /// Returns whether `target` may be accessed now; the epoch in which it is.
    pub(crate) fn access(&mut self, target: u32) -> Result<&Access, Fault> {
        let may = match &mut self.access {
            Access::None => false,
            Access::Fence { is_used } => {
                *is_used = true;
                true
            }
            Access::Started(targets) => targets.contains(&target),
            Access::Locked(locked) => locked.contains_key(&target),
            Access::LockedAll => true,
        };
        match may {
            true => Ok(&self.access),
            false => Err(Fault::new(
                ErrorClass::RmaSync,
                "target_rank",
                format!("rank {target} is in no access epoch of this rank"),
            )),
        }
    }

    /// Returns whether the window may be freed.
    pub(crate) fn free(&self) -> Result<(), Fault> {
        if self.exposed_to.is_some() {
            return Err(wrong("an exposure epoch of MPI_Win_post is open"));
        }
        self.begins()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_needs_its_epoch() {
        let mut epochs = Epochs::default();
        let refused = |result: Result<(), Fault>| result.unwrap_err().class == ErrorClass::RmaSync;
        assert!(refused(epochs.access(1).map(drop)));
        assert!(refused(epochs.complete().map(drop)));
        assert!(refused(epochs.is_exposed()));
        assert!(refused(epochs.unlock(1).map(drop)));
        assert!(refused(epochs.unlock_all()));
        assert!(refused(epochs.flush(None, 2).map(drop)));

        assert_eq!(epochs.start(vec![1]), Ok(()));
        assert!(epochs.access(1).is_ok());
        assert!(refused(epochs.access(2).map(drop)));
        assert!(refused(epochs.start(vec![2])));
        assert!(refused(epochs.lock(2, false)));
        assert!(refused(epochs.fence()));
        assert!(refused(epochs.free()));
        assert_eq!(epochs.complete(), Ok(vec![1]));

        assert_eq!(epochs.post(vec![1]), Ok(()));
        assert!(refused(epochs.post(vec![2])));
        assert!(refused(epochs.fence()));
        // A rank may be origin and target at once.
        assert_eq!(epochs.start(vec![1]), Ok(()));
        assert!(epochs.complete().is_ok());
        epochs.ends_exposure();

        assert_eq!(epochs.fence(), Ok(()));
        assert!(epochs.access(0).is_ok());
        assert!(refused(epochs.start(vec![1])));
        assert!(refused(epochs.post(vec![1])));
        assert_eq!(epochs.fence(), Ok(()));
        assert_eq!(epochs.lock(0, true), Ok(()));
        assert!(refused(epochs.lock(0, false)));
        assert_eq!(epochs.lock(1, false), Ok(()));
        assert!(refused(epochs.lock_all()));
        assert_eq!(epochs.flush(None, 4), Ok(vec![0, 1]));
        assert_eq!(epochs.unlock(0), Ok(true));
        assert_eq!(epochs.unlock(1), Ok(false));
        assert_eq!(epochs.lock_all(), Ok(()));
        assert_eq!(epochs.flush(None, 3), Ok(vec![0, 1, 2]));
        assert_eq!(epochs.unlock_all(), Ok(()));
        assert_eq!(epochs.free(), Ok(()));
    }
}
