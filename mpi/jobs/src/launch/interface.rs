//! The interface that a program was compiled for, as far as its file tells.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// The first bytes of a program or a library.
const ELF: &[u8] = b"\x7fELF";

/// The library that a program was compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompiledFor {
    /// Open MPI, whose interface is another one: the program would find that library, and each of
    /// its ranks would be alone in its world.
    OpenMpi,
    /// None that is known to be another one, with what it uses of MPICH's own libraries.
    Other(Uses),
}

/// The use of a program of MPICH's own libraries, whose entry points make the calls of C.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    /// Fortran's module `mpi_f08`, whose entry points unpack array descriptors.
    pub module_f08: bool,
    /// The bindings for C++ (the namespace `MPI`, up to MPI-2.2).
    pub cxx: bool,
}

/// The names of Open MPI's libraries among those that a program needs: for C, and those for
/// Fortran, which may be all that it names.
const OPEN_MPI: [&[u8]; 3] = [
    b"libmpi.so.40",
    b"libmpi_mpifh.so.40",
    b"libmpi_usempif08.so.40",
];

/// The reason why such a program cannot be run.
pub const OF_OPEN_MPI: &str =
    "it was compiled for Open MPI; compile it with MPICH's mpicc or mpifort";

/// The ends of names of that module's entry points, without and with a buffer.
const MODULE_F08: [&[u8]; 2] = [b"_f08_", b"_f08ts_"];

/// The names that every program has which uses the bindings for C++: the communicator of all ranks,
/// and the begin of the functions that initialize MPI.
const CXX: [&[u8]; 2] = [b"_ZN3MPI10COMM_WORLDE", b"_ZN3MPI4Init"];

/// Returns the library that a program was compiled for.
pub fn of(program: &OsStr) -> CompiledFor {
    // A program that cannot be read says so when it is started.
    let file = found(program).and_then(|path| fs::read(path).ok());
    let file = file.filter(|file| file.starts_with(ELF));
    let mut uses = Uses::default();
    // Names have a 0 at their end, and another one before them.
    for name in file.unwrap_or_default().split(|&byte| byte == 0) {
        if OPEN_MPI.contains(&name) {
            return CompiledFor::OpenMpi;
        }
        uses.module_f08 |= MODULE_F08.iter().any(|end| name.ends_with(end));
        uses.cxx |= CXX.iter().any(|begin| name.starts_with(begin));
    }
    CompiledFor::Other(uses)
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
