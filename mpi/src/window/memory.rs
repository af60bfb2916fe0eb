//! The memory of a rank's window where the library owns it: one region from address 0, or the
//! regions that were attached to a dynamic window.

use std::collections::BTreeMap;

use super::access::Access;
use crate::error::{ErrorClass, Fault};

/// Regions by their first address; none overlaps another.
#[derive(Debug, Default)]
pub(crate) struct Regions(BTreeMap<u64, Vec<u8>>);

/// Attached regions begin at multiples of it.
const APART: u64 = 4096;

impl Regions {
    /// One region at address 0.
    pub(crate) fn one(memory: Vec<u8>) -> Self {
        Self(BTreeMap::from([(0, memory)]))
    }

    /// Attaches a region of zeros; its address.
    pub(crate) fn attach(&mut self, bytes: usize) -> u64 {
        let last = self.0.last_key_value();
        let end = last.map_or(0, |(begin, region)| begin + region.len() as u64);
        // Address 0 is in no region.
        let address = (end + 1).next_multiple_of(APART);
        self.0.insert(address, vec![0; bytes]);
        address
    }

    /// Detaches the region at `address`.
    ///
    /// # Errors
    /// [`ErrorClass::Base`] if none begins there.
    pub(crate) fn detach(&mut self, address: u64) -> Result<Vec<u8>, Fault> {
        self.0.remove(&address).ok_or_else(|| {
            let text = format!("no region is attached at {address:#x}");
            Fault::new(ErrorClass::Base, "base", text)
        })
    }

    /// The bytes from `begin` on.
    ///
    /// # Errors
    /// [`ErrorClass::RmaRange`] if they are not in one region.
    pub(crate) fn bytes(&mut self, begin: u64, count: u64) -> Result<&mut [u8], Fault> {
        let outside = || {
            let text = format!("{count} bytes from {begin} on are not in the window");
            Fault::new(ErrorClass::RmaRange, "target_disp", text)
        };
        let (first, region) = (self.0.range_mut(..=begin).next_back()).ok_or_else(outside)?;
        let from = begin - first;
        let end = from.checked_add(count).ok_or_else(outside)?;
        region
            .get_mut(from as usize..end as usize)
            .ok_or_else(outside)
    }

    /// The first region, when the window is no more.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.0)
            .into_values()
            .next()
            .unwrap_or_default()
    }

    /// Performs `access`; what its origin gets.
    ///
    /// # Errors
    /// It is not in the window, or not defined; then nothing has changed.
    pub(crate) fn perform(&mut self, access: &Access) -> Result<Option<Vec<u8>>, Fault> {
        let mut there = Vec::new();
        for &(begin, count) in &access.blocks {
            there.extend_from_slice(self.bytes(begin, count)?);
        }
        let performed = access.performed(there)?;
        if let Some(written) = performed.written {
            let mut rest = written.as_slice();
            for &(begin, count) in &access.blocks {
                let (now, later) = rest.split_at(rest.len().min(count as usize));
                let there = self.bytes(begin, count)?;
                there[..now.len()].copy_from_slice(now);
                rest = later;
            }
        }
        Ok(performed.fetched)
    }
}
