//! The libraries that programs find: this program carries them within itself, and lays them down in
//! a directory under the names that programs look for.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use super::interface::{CXX, Uses};

/// The library of MPI programs, built from `mpi/libmpi`.
pub(super) const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libmpi.so"));

/// The library that stands before the system's clocks, built from `mpi/libclocks`.
const CLOCKS_LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libclocks.so"));

/// The name under which that is laid down: no program looks for it.
const CLOCKS: &str = "libsme-clocks.so";

/// The name under which the library of MPI programs is laid down: MPICH's.
const NAME: &str = "libmpi.so.12";

/// Its other names: that of the standard interface, distributions' names for MPICH's, and those
/// under which programs load it themselves.
const OTHER_NAMES: [&str; 5] = [
    "libmpi_abi.so.1",
    "libmpi_abi.so",
    "libmpich.so.12",
    "libmpich.so",
    "libmpi.so",
];

/// Directories below that of the others, with the names of MPICH's libraries for Fortran and for
/// C++ as MPICH and distributions call them: a program with the module `mpi_f08`, or with the
/// bindings for C++, must find MPICH's own under them.
const LANGUAGES: [(&str, [&str; 2]); 2] = [
    ("fortran", ["libmpifort.so.12", "libmpichfort.so.12"]),
    ("cxx", CXX),
];

/// Lays the libraries down in `directory`.
///
/// # Errors
/// They cannot be written.
pub fn lay_down(directory: &Path) -> io::Result<()> {
    fs::write(directory.join(NAME), LIBRARY)?;
    fs::write(directory.join(CLOCKS), CLOCKS_LIBRARY)?;
    OTHER_NAMES
        .iter()
        .try_for_each(|name| named(directory, name))?;
    LANGUAGES.iter().try_for_each(|(language, names)| {
        let below = directory.join(language);
        fs::create_dir(&below)?;
        let mut names = names.iter();
        names.try_for_each(|name| symlink(Path::new("..").join(NAME), below.join(name)))
    })
}

/// Lets a process find the libraries that have been laid down in `directory`, before all others.
///
/// # Errors
/// The name of the directory has a colon, or a space where libraries of it are to be loaded first.
pub fn lead(
    command: &mut Command,
    directory: &Path,
    uses: Uses,
    intercepts_clocks: bool,
) -> io::Result<()> {
    let needs_mpich = [uses.module_f08, uses.cxx];
    let below = LANGUAGES.iter().zip(needs_mpich);
    let below = below.filter(|(_, needs_mpich)| !needs_mpich);
    let below = below.map(|((language, _), _)| directory.join(language));
    // An empty path would be the directory in which the process begins.
    let paths = env::var_os("LD_LIBRARY_PATH").filter(|paths| !paths.is_empty());
    let paths = paths.iter().flat_map(env::split_paths);
    let paths = [directory.to_owned()].into_iter().chain(below).chain(paths);
    let paths = env::join_paths(paths).map_err(io::Error::other)?;
    command.env("LD_LIBRARY_PATH", paths);
    // This library comes first: it replaces entry points of MPICH's library for Fortran that call
    // functions which MPICH has for itself.
    let first = [
        (intercepts_clocks, CLOCKS, "--intercept-clocks"),
        (uses.module_f08, NAME, "a program with the module mpi_f08"),
    ];
    let mut all = Vec::new();
    for (_, name, of) in first.into_iter().filter(|(is_wanted, ..)| *is_wanted) {
        // The loader takes these for the ends of names.
        let ends_name = |byte: &u8| b" :".contains(byte);
        if directory.as_os_str().as_bytes().iter().any(ends_name) {
            let why = "needs a directory for temporary files (TMPDIR) without spaces or colons in \
                       its name";
            return Err(io::Error::other(format!("{of} {why}")));
        }
        all.push(directory.join(name).into_os_string());
    }
    if !all.is_empty() {
        all.extend(env::var_os("LD_PRELOAD"));
        command.env("LD_PRELOAD", all.join(OsStr::new(":")));
    }
    Ok(())
}

fn named(directory: &Path, name: &str) -> io::Result<()> {
    match name.starts_with("libmpi_abi") {
        // The library tells by the name of its own file which interface is meant: the loader takes
        // one file under two names for one library.
        true => fs::write(directory.join(name), LIBRARY),
        false => symlink(NAME, directory.join(name)),
    }
}
