//! Places in programs by number: four bytes where a reference takes eight, for a waiting thread
//! keeps one.

use std::cell::Cell;
use std::panic::Location;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use super::thread::Site;

/// A power of two; more than a program has places from which it waits often.
const RECENT: usize = 64;

/// The place of a program from which a thread waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitSite(u32);

impl WaitSite {
    /// The place from which the caller was called.
    #[inline]
    #[track_caller]
    pub fn caller() -> Self {
        let site = Location::caller();
        let address = std::ptr::from_ref(site).addr();
        RECENT_SITES.with(|recent| {
            let slot = &recent[address / 8 % RECENT];
            let (known, number) = slot.get();
            if known == address {
                return Self(number);
            }
            let number = all().number(site, address);
            slot.set((address, number));
            Self(number)
        })
    }

    /// The place itself.
    pub fn site(self) -> Site {
        all().sites[self.0 as usize]
    }
}

thread_local! {
    /// Lately asked for by this thread of the host, by address.
    static RECENT_SITES: [Cell<(usize, u32)>; RECENT] = const { [const { Cell::new((0, 0)) }; RECENT] };
}

/// All places so far, of all programs of this process. They are part of its code, and as few as
/// that has.
static ALL: Mutex<Sites> = Mutex::new(Sites {
    sites: Vec::new(),
    by_address: FxHashMap::with_hasher(rustc_hash::FxBuildHasher),
});

struct Sites {
    sites: Vec<Site>,
    by_address: FxHashMap<usize, u32>,
}

fn all() -> MutexGuard<'static, Sites> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sites {
    #[cold]
    fn number(&mut self, site: Site, address: usize) -> u32 {
        let sites = &mut self.sites;
        *self.by_address.entry(address).or_insert_with(|| {
            sites.push(site);
            sites.len() as u32 - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn here() -> WaitSite {
        WaitSite::caller()
    }

    #[test]
    fn a_number_stands_for_its_place_on_every_thread() {
        let mut met = Vec::new();
        for _ in 0..2 {
            met.push(((here(), here()), line!()));
        }
        let ((first, second), line) = met[0];
        assert_eq!(met[1], met[0]);
        assert_ne!(first, second);
        assert_eq!((first.site().file(), first.site().line()), (file!(), line));
        assert!(first.site().column() < second.site().column());
        let elsewhere = std::thread::spawn(move || first.site().line());
        assert_eq!(elsewhere.join().expect("it does not panic"), line);
    }
}
