//! Numbers for the places of a program, so that a word's shadow has room for one.

use rustc_hash::FxHashMap;

use super::record::Site;

const RECENT: usize = 256;

/// All places met so far.
#[derive(Debug)]
pub(super) struct Sites {
    /// Lately asked for, by address: the compiler may give one place several.
    recent: Box<[(usize, u32); RECENT]>,
    by_address: FxHashMap<usize, u32>,
    by_source: FxHashMap<Site, u32>,
    all: Vec<Site>,
    most: usize,
}

impl Sites {
    /// No places yet; numbers stay below `most`. The last number stands for all that find no room.
    pub fn new(most: usize) -> Self {
        Self {
            recent: Box::new([(0, 0); RECENT]),
            by_address: FxHashMap::default(),
            by_source: FxHashMap::default(),
            all: Vec::new(),
            most,
        }
    }

    /// The number of `site`.
    #[inline]
    pub fn number(&mut self, site: Option<Site>) -> u32 {
        let Some(site) = site else {
            return self.most as u32 - 1;
        };
        let address = std::ptr::from_ref(site).addr();
        let (known, number) = self.recent[address / 8 % RECENT];
        if known == address {
            return number;
        }
        self.look_up(site, address)
    }

    #[cold]
    fn look_up(&mut self, site: Site, address: usize) -> u32 {
        let number = match self.by_address.get(&address) {
            Some(&number) => number,
            None => {
                let all = &mut self.all;
                let most = self.most;
                let number = *self.by_source.entry(site).or_insert_with(|| {
                    if all.len() + 1 < most {
                        all.push(site);
                        all.len() as u32 - 1
                    } else {
                        most as u32 - 1
                    }
                });
                self.by_address.insert(address, number);
                number
            }
        };
        self.recent[address / 8 % RECENT] = (address, number);
        number
    }

    /// The place with this number.
    pub fn site(&self, number: u32) -> Option<Site> {
        self.all.get(number as usize).copied()
    }
}
