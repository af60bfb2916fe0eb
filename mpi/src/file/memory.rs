//! Files in memory, on which the tests of this crate run, those in `tests/` too.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::mode::{Flag, Mode};
use super::storage::{Directory, Storage};
use crate::error::{ErrorClass, Fault};

/// Files in memory by their names; each is small.
#[derive(Clone, Debug, Default)]
pub struct InMemory(Arc<Mutex<BTreeMap<Vec<u8>, Content>>>);

/// The bytes of a file, which several may have open.
type Content = Arc<Mutex<Vec<u8>>>;

/// Bytes of the longest file in memory.
const MOST_BYTES: u64 = 1 << 16;

/// A file in memory, and where it is.
#[derive(Debug)]
struct Bytes {
    bytes: Content,
    name: Vec<u8>,
    directory: InMemory,
}

impl Bytes {
    fn grow(bytes: &mut Vec<u8>, size: u64) -> Result<(), Fault> {
        if size > MOST_BYTES {
            let text = format!("a file has at most {MOST_BYTES} bytes");
            return Err(Fault::new(ErrorClass::NoSpace, "fh", text));
        }
        let size = bytes.len().max(size as usize);
        bytes.resize(size, 0);
        Ok(())
    }
}

impl Storage for Bytes {
    fn read(&self, at: u64, into: &mut [u8]) -> Result<usize, Fault> {
        let bytes = self.bytes.lock();
        let from = usize::try_from(at).ok().and_then(|at| bytes.get(at..));
        let from = from.unwrap_or_default();
        let read = from.len().min(into.len());
        into[..read].copy_from_slice(&from[..read]);
        Ok(read)
    }

    fn write(&self, at: u64, bytes: &[u8]) -> Result<(), Fault> {
        let mut own = self.bytes.lock();
        let end = at.saturating_add(bytes.len() as u64);
        Self::grow(&mut own, end)?;
        own[at as usize..end as usize].copy_from_slice(bytes);
        Ok(())
    }

    fn size(&self) -> Result<u64, Fault> {
        Ok(self.bytes.lock().len() as u64)
    }

    fn set_size(&self, bytes: u64) -> Result<(), Fault> {
        let mut own = self.bytes.lock();
        Self::grow(&mut own, bytes)?;
        own.truncate(bytes as usize);
        Ok(())
    }

    fn reserve(&self, bytes: u64) -> Result<(), Fault> {
        Self::grow(&mut self.bytes.lock(), bytes)
    }

    fn sync(&self) -> Result<(), Fault> {
        Ok(())
    }

    fn delete(&self) -> Result<(), Fault> {
        self.directory.delete(&self.name)
    }
}

impl Directory for InMemory {
    fn open(&self, name: &[u8], mode: &Mode) -> Result<Box<dyn Storage>, Fault> {
        let mut files = self.0.lock();
        let bytes = match files.get(name) {
            Some(_) if mode.has(Flag::Create) && mode.has(Flag::Exclusive) => {
                let text = "it is there";
                return Err(Fault::new(ErrorClass::FileExists, "filename", text));
            }
            Some(bytes) => Arc::clone(bytes),
            None if mode.has(Flag::Create) => {
                let bytes = Arc::default();
                files.insert(name.to_vec(), Arc::clone(&bytes));
                bytes
            }
            None => return Err(no_such_file()),
        };
        Ok(Box::new(Bytes {
            bytes,
            name: name.to_vec(),
            directory: self.clone(),
        }))
    }

    fn delete(&self, name: &[u8]) -> Result<(), Fault> {
        let deleted = self.0.lock().remove(name);
        deleted.map(drop).ok_or_else(no_such_file)
    }
}

fn no_such_file() -> Fault {
    Fault::new(ErrorClass::NoSuchFile, "filename", "it is not there")
}
