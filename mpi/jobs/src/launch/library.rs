//! The libraries that programs find: this program carries them within itself, and lays them down in
//! a directory of its own under the names that programs look for.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

use tempfile::TempDir;

/// The library of MPI programs, built from `mpi/libmpi`.
const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libmpi.so"));

/// The library that stands before the system's clocks, built from `mpi/libclocks`.
const CLOCKS_LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libclocks.so"));

/// The name under which that is laid down: no program looks for it.
pub const CLOCKS: &str = "libsme-clocks.so";

/// The name under which the library of MPI programs is laid down: MPICH's.
const NAME: &str = "libmpi.so.12";

/// Its other names: of the standard interface, of MPICH's libraries for Fortran and C++ as MPICH
/// and distributions call them, and those that programs look for which load it themselves.
const OTHER_NAMES: [&str; 9] = [
    "libmpi_abi.so.1",
    "libmpi_abi.so",
    "libmpich.so.12",
    "libmpich.so",
    "libmpi.so",
    "libmpifort.so.12",
    "libmpichfort.so.12",
    "libmpicxx.so.12",
    "libmpichcxx.so.12",
];

/// Lays the libraries down; the directory is removed when it is dropped.
///
/// # Errors
/// They cannot be written.
pub fn laid_down() -> io::Result<TempDir> {
    let directory = tempfile::Builder::new().prefix("sme-mpi-").tempdir()?;
    let path = directory.path();
    fs::write(path.join(NAME), LIBRARY)?;
    fs::write(path.join(CLOCKS), CLOCKS_LIBRARY)?;
    OTHER_NAMES.iter().try_for_each(|name| named(path, name))?;
    Ok(directory)
}

fn named(directory: &Path, name: &str) -> io::Result<()> {
    match name.starts_with("libmpi_abi") {
        // The library tells by the name of its own file which interface is meant: the loader takes
        // one file under two names for one library.
        true => fs::write(directory.join(name), LIBRARY),
        false => symlink(NAME, directory.join(name)),
    }
}
