//! The files that processes open, which the simulator reads and writes for them. Accesses take no
//! simulated time.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{Error, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, OFlags, fallocate};
use rustix::io::Errno;
use sme_mpi::error::{ErrorClass, Fault};
use sme_mpi::file::{Flag, Mode, Storage};

/// The path of a name, which a process gives from its working directory on.
pub fn path(process: u32, name: &[u8]) -> Result<PathBuf, Fault> {
    let name = Path::new(OsStr::from_bytes(name));
    if name.is_absolute() {
        return Ok(name.to_owned());
    }
    let directory = fs::read_link(format!("/proc/{process}/cwd"));
    Ok(directory
        .map_err(|error| fault("filename", &error))?
        .join(name))
}

/// Opens a file with a mode.
pub fn open(path: &Path, mode: &Mode) -> Result<Box<dyn Storage>, Fault> {
    let mut options = OpenOptions::new();
    options.read(mode.reads()).write(mode.writes());
    match (mode.has(Flag::Create), mode.has(Flag::Exclusive)) {
        (true, true) => options.create_new(true),
        (creates, _) => options.create(creates),
    };
    // The simulator must not wait for another process at the other end of a pipe.
    options.custom_flags((OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32);
    let wrong = |error: Error| fault("filename", &error);
    let file = options.open(path).map_err(wrong)?;
    if file.metadata().map_err(wrong)?.is_dir() {
        return Err(wrong(ErrorKind::IsADirectory.into()));
    }
    let path = path.to_owned();
    Ok(Box::new(OnDisk { file, path }))
}

/// Deletes a file.
pub fn delete(path: &Path) -> Result<(), Fault> {
    fs::remove_file(path).map_err(|error| fault("filename", &error))
}

/// A file of this computer.
#[derive(Debug)]
struct OnDisk {
    file: File,
    path: PathBuf,
}

impl Storage for OnDisk {
    fn read(&self, at: u64, into: &mut [u8]) -> Result<usize, Fault> {
        let mut read = 0;
        while read < into.len() {
            match self.file.read_at(&mut into[read..], at + read as u64) {
                Ok(0) => break,
                Ok(bytes) => read += bytes,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(fault("fh", &error)),
            }
        }
        Ok(read)
    }

    fn write(&self, at: u64, bytes: &[u8]) -> Result<(), Fault> {
        let written = self.file.write_all_at(bytes, at);
        written.map_err(|error| fault("fh", &error))
    }

    fn size(&self) -> Result<u64, Fault> {
        let metadata = self.file.metadata();
        Ok(metadata.map_err(|error| fault("fh", &error))?.len())
    }

    fn set_size(&self, bytes: u64) -> Result<(), Fault> {
        self.file
            .set_len(bytes)
            .map_err(|error| fault("size", &error))
    }

    fn reserve(&self, bytes: u64) -> Result<(), Fault> {
        if bytes == 0 {
            return Ok(());
        }
        match fallocate(&self.file, FallocateFlags::empty(), 0, bytes) {
            // This file system has no such call.
            Err(Errno::OPNOTSUPP) => self.set_size(bytes.max(self.size()?)),
            reserved => reserved.map_err(|error| fault("size", &error.into())),
        }
    }

    fn sync(&self) -> Result<(), Fault> {
        match self.file.sync_all() {
            // A device has nothing to write back.
            Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(()),
            synced => synced.map_err(|error| fault("fh", &error)),
        }
    }

    fn delete(&self) -> Result<(), Fault> {
        delete(&self.path)
    }
}

/// An error of the file system as one of MPI.
fn fault(argument: &'static str, error: &Error) -> Fault {
    let class = match error.kind() {
        ErrorKind::NotFound => ErrorClass::NoSuchFile,
        ErrorKind::AlreadyExists => ErrorClass::FileExists,
        ErrorKind::PermissionDenied => ErrorClass::Access,
        ErrorKind::ReadOnlyFilesystem => ErrorClass::ReadOnly,
        ErrorKind::StorageFull | ErrorKind::FileTooLarge => ErrorClass::NoSpace,
        ErrorKind::QuotaExceeded => ErrorClass::Quota,
        ErrorKind::ExecutableFileBusy | ErrorKind::ResourceBusy => ErrorClass::FileInUse,
        ErrorKind::NotADirectory
        | ErrorKind::IsADirectory
        | ErrorKind::InvalidFilename
        | ErrorKind::InvalidInput => ErrorClass::BadFile,
        _ if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => ErrorClass::BadFile,
        _ => ErrorClass::Io,
    };
    Fault::new(class, argument, error.to_string())
}
