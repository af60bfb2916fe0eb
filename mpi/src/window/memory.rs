//! The memory of a rank's window where messages reach it: one region from address 0, or the regions
//! that were attached to a dynamic window. The library has a region's bytes, or a process has them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::access::{Access, Kind};
use crate::buffer::Outside;
use crate::error::{ErrorClass, Fault};

/// Memory for a window.
#[derive(Clone, Debug)]
pub enum Memory {
    /// Bytes that the library has from now on.
    Here(Vec<u8>),
    /// Memory of a process, which keeps it.
    Outside {
        /// The memory of the process.
        process: Arc<dyn Outside>,
        /// The first byte in it.
        address: u64,
        /// The number of bytes.
        bytes: u64,
    },
}

impl Memory {
    /// Bytes of it.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Here(bytes) => bytes.len() as u64,
            Self::Outside { bytes, .. } => *bytes,
        }
    }

    /// Appends `count` bytes from `begin` on, which it has, to `into`.
    fn read(&self, (begin, count): (u64, u64), into: &mut Vec<u8>) -> Result<(), Fault> {
        match self {
            Self::Here(bytes) => {
                into.extend_from_slice(&bytes[begin as usize..(begin + count) as usize]);
                Ok(())
            }
            Self::Outside {
                process, address, ..
            } => process.read(
                &mut [(address.saturating_add(begin), count as usize)].into_iter(),
                into,
            ),
        }
    }

    /// Writes bytes from `begin` on, for which it has room.
    fn write(&mut self, begin: u64, written: &[u8]) -> Result<(), Fault> {
        match self {
            Self::Here(bytes) => {
                bytes[begin as usize..][..written.len()].copy_from_slice(written);
                Ok(())
            }
            Self::Outside {
                process, address, ..
            } => process.write_at_once(
                &mut [(address.saturating_add(begin), written.len())].into_iter(),
                written,
            ),
        }
    }

    /// Its content where the library has it; that of a process's memory is there.
    pub(crate) fn into_content(self) -> Vec<u8> {
        match self {
            Self::Here(bytes) => bytes,
            Self::Outside { .. } => Vec::new(),
        }
    }
}

impl From<Vec<u8>> for Memory {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Here(bytes)
    }
}

/// Regions by their first address; none overlaps another.
#[derive(Debug, Default)]
pub(crate) struct Regions(BTreeMap<u64, Memory>);

/// A part of an access that is in one region: the region's first address, and where in it how many
/// bytes are.
type Part = (u64, (u64, u64));

/// Attached regions of the library begin at multiples of it.
const APART: u64 = 4096;

impl Regions {
    /// One region at address 0.
    pub(crate) fn one(memory: Memory) -> Self {
        Self(BTreeMap::from([(0, memory)]))
    }

    /// Attaches a region: at its address in its process, or at one that no region has. Returns the
    /// address.
    ///
    /// # Errors
    /// [`ErrorClass::RmaAttach`] if it overlaps one that is attached.
    pub(crate) fn attach(&mut self, memory: Memory) -> Result<u64, Fault> {
        let address = match memory {
            Memory::Outside { address, .. } => address,
            Memory::Here(_) => {
                let last = self.0.last_key_value();
                let end = last.map_or(0, |(begin, region)| begin.saturating_add(region.bytes()));
                // Address 0 is in no region.
                end.saturating_add(1).next_multiple_of(APART)
            }
        };
        let end = address.saturating_add(memory.bytes().max(1));
        let before = self.0.range(..end).next_back();
        let is_free = before
            .is_none_or(|(&begin, region)| begin.saturating_add(region.bytes().max(1)) <= address);
        if !is_free {
            let text = format!("{address:#x} is in memory that is attached already");
            return Err(Fault::new(ErrorClass::RmaAttach, "base", text));
        }
        self.0.insert(address, memory);
        Ok(address)
    }

    /// Detaches the region at `address`.
    ///
    /// # Errors
    /// [`ErrorClass::Base`] if none begins there.
    pub(crate) fn detach(&mut self, address: u64) -> Result<Memory, Fault> {
        self.0.remove(&address).ok_or_else(|| {
            let text = format!("no region is attached at {address:#x}");
            Fault::new(ErrorClass::Base, "base", text)
        })
    }

    /// The parts of `count` bytes from `begin` on: one region may begin where another ends.
    fn parts(&self, (begin, count): (u64, u64)) -> Result<Vec<Part>, Fault> {
        let outside = || {
            let text = format!("{count} bytes from {begin} on are not in the window");
            Fault::new(ErrorClass::RmaRange, "target_disp", text)
        };
        let mut parts = Vec::with_capacity(1);
        let (mut at, mut left) = (begin, count);
        loop {
            let region = self.0.range(..=at).next_back();
            let (&first, region) = region.ok_or_else(outside)?;
            let room = region.bytes().checked_sub(at - first);
            let now = room.ok_or_else(outside)?.min(left);
            if now == 0 && left > 0 {
                return Err(outside());
            }
            parts.push((first, (at - first, now)));
            left -= now;
            if left == 0 {
                return Ok(parts);
            }
            at = at.checked_add(now).ok_or_else(outside)?;
        }
    }

    /// Appends `count` bytes from `begin` on to `into`.
    ///
    /// # Errors
    /// [`ErrorClass::RmaRange`] if they are not in regions.
    pub(crate) fn read(&self, range: (u64, u64), into: &mut Vec<u8>) -> Result<(), Fault> {
        let mut parts = self.parts(range)?.into_iter();
        parts.try_for_each(|(first, part)| self.0[&first].read(part, into))
    }

    /// Writes bytes from `begin` on.
    ///
    /// # Errors
    /// As [`Self::read`].
    pub(crate) fn write(&mut self, begin: u64, written: &[u8]) -> Result<(), Fault> {
        let mut rest = written;
        for (first, (from, count)) in self.parts((begin, written.len() as u64))? {
            let (now, later) = rest.split_at(count as usize);
            if let Some(region) = self.0.get_mut(&first) {
                region.write(from, now)?;
            }
            rest = later;
        }
        Ok(())
    }

    /// The content of the first region, when the window is no more.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        let regions = std::mem::take(&mut self.0);
        let first = regions.into_values().next();
        first.map_or(Vec::new(), Memory::into_content)
    }

    /// Performs `access`; what its origin gets.
    ///
    /// # Errors
    /// It is not in the window, or not defined; then nothing has changed.
    pub(crate) fn perform(&mut self, access: &Access) -> Result<Option<Vec<u8>>, Fault> {
        let mut there = Vec::new();
        for &(begin, count) in &access.blocks {
            match access.kind {
                Kind::Put => self.parts((begin, count)).map(drop)?,
                _ => self.read((begin, count), &mut there)?,
            }
        }
        let performed = access.performed(there)?;
        if let Some(written) = performed.written {
            let mut rest = written.as_slice();
            for &(begin, count) in &access.blocks {
                let (now, later) = rest.split_at(rest.len().min(count as usize));
                self.write(begin, now)?;
                rest = later;
            }
        }
        Ok(performed.fetched)
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;

    /// A process whose memory begins at 100.
    #[derive(Debug)]
    struct Process(Mutex<Vec<u8>>);

    impl Outside for Process {
        fn read(
            &self,
            blocks: &mut dyn Iterator<Item = (u64, usize)>,
            into: &mut Vec<u8>,
        ) -> Result<(), Fault> {
            for (address, bytes) in blocks {
                into.extend_from_slice(&self.0.lock()[address as usize - 100..][..bytes]);
            }
            Ok(())
        }

        fn write(
            &self,
            blocks: &mut dyn Iterator<Item = (u64, usize)>,
            bytes: &[u8],
        ) -> Result<(), Fault> {
            for (address, count) in blocks {
                self.0.lock()[address as usize - 100..][..count].copy_from_slice(&bytes[..count]);
            }
            Ok(())
        }
    }

    fn part(process: &Arc<Process>, address: u64, bytes: u64) -> Memory {
        let process = Arc::clone(process) as Arc<dyn Outside>;
        Memory::Outside {
            process,
            address,
            bytes,
        }
    }

    #[test]
    fn accesses_act_on_the_memory_of_a_process() {
        let process = Arc::new(Process(Mutex::new((0..16).collect())));
        let mut regions = Regions::one(part(&process, 104, 8));
        let access = |kind, blocks: &[(u64, u64)], bytes: &[u8]| Access {
            kind,
            blocks: blocks.to_vec(),
            bytes: bytes.to_vec(),
        };
        let put = access(Kind::Put, &[(0, 1), (6, 2)], &[50, 51, 52]);
        assert_eq!(regions.perform(&put), Ok(None));
        assert_eq!(process.0.lock()[3..13], [3, 50, 5, 6, 7, 8, 9, 51, 52, 12]);
        let get = access(Kind::Get, &[(5, 3)], &[]);
        assert_eq!(regions.perform(&get), Ok(Some(vec![9, 51, 52])));
        // Nothing changes where a block is outside.
        let put = access(Kind::Put, &[(0, 1), (7, 2)], &[1, 1, 1]);
        let refused = regions.perform(&put).map_err(|fault| fault.class);
        assert_eq!(refused, Err(ErrorClass::RmaRange));
        assert_eq!(process.0.lock()[4], 50);
    }

    #[test]
    fn attached_regions_have_their_own_addresses_and_do_not_overlap() {
        let process = Arc::new(Process(Mutex::new(vec![0; 16])));
        let mut regions = Regions::default();
        assert_eq!(regions.attach(part(&process, 104, 4)), Ok(104));
        assert_eq!(regions.attach(part(&process, 108, 4)), Ok(108));
        for (address, bytes) in [(104, 4), (102, 3), (107, 1), (100, 16), (106, 0)] {
            let refused = regions.attach(part(&process, address, bytes));
            assert_eq!(refused.unwrap_err().class, ErrorClass::RmaAttach);
        }
        assert_eq!(regions.write(109, &[7]), Ok(()));
        assert_eq!(process.0.lock()[9], 7);
        // One access may reach over both, but not behind them.
        assert_eq!(regions.write(106, &[1, 2, 3, 4]), Ok(()));
        assert_eq!(process.0.lock()[5..11], [0, 1, 2, 3, 4, 0]);
        let mut all = Vec::new();
        assert_eq!(regions.read((104, 8), &mut all), Ok(()));
        assert_eq!(all, [0, 0, 1, 2, 3, 4, 0, 0]);
        let behind = regions.write(106, &[9; 7]).unwrap_err();
        assert_eq!(behind.class, ErrorClass::RmaRange);
        assert_eq!(process.0.lock()[6], 1);
        assert!(regions.detach(108).is_ok());
        assert_eq!(regions.detach(108).unwrap_err().class, ErrorClass::Base);
        let refused = regions.write(109, &[8]).unwrap_err();
        assert_eq!(refused.class, ErrorClass::RmaRange);
        assert_eq!(regions.attach(vec![1].into()), Ok(4096));
    }
}
