//! The interface that a program was compiled for, as far as its file tells.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// The first bytes of a program or a library.
const ELF: &[u8] = b"\x7fELF";

/// The name of Open MPI's library among those that a program needs, as its file has it.
const OPEN_MPI: &[u8] = b"\0libmpi.so.40\0";

/// The reason why such a program cannot be run.
pub const OF_OPEN_MPI: &str =
    "it was compiled for Open MPI; compile it with MPICH's mpicc or mpifort";

/// Returns whether a program was compiled for Open MPI, whose interface is another one: it would
/// find that library, and each of its ranks would be alone in its world.
pub fn is_for_open_mpi(program: &OsStr) -> bool {
    // A program that cannot be read says so when it is started.
    let file = found(program).and_then(|path| fs::read(path).ok());
    file.is_some_and(|file| {
        file.starts_with(ELF) && file.windows(OPEN_MPI.len()).any(|name| name == OPEN_MPI)
    })
}

/// The file of a program: where it says, or the first of its name where programs are looked for.
pub fn found(program: &OsStr) -> Option<PathBuf> {
    let path = Path::new(program);
    if path.components().count() > 1 {
        return Some(path.to_owned());
    }
    let places = env::var_os("PATH")?;
    let mut files = env::split_paths(&places).map(|place| place.join(path));
    files.find(|file| file.is_file())
}
