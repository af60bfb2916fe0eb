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

use super::interface::CompiledFor;

/// The library of MPI programs, built from `mpi/libmpi`.
const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libmpi.so"));

/// The library that stands before the system's clocks, built from `mpi/libclocks`.
const CLOCKS_LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libclocks.so"));

/// The name under which that is laid down: no program looks for it.
const CLOCKS: &str = "libsme-clocks.so";

/// The name under which the library of MPI programs is laid down: MPICH's.
const NAME: &str = "libmpi.so.12";

/// Its other names: of the standard interface, of MPICH's library for C++ as MPICH and
/// distributions call it, and those that programs look for which load it themselves.
const OTHER_NAMES: [&str; 7] = [
    "libmpi_abi.so.1",
    "libmpi_abi.so",
    "libmpich.so.12",
    "libmpich.so",
    "libmpi.so",
    "libmpicxx.so.12",
    "libmpichcxx.so.12",
];

/// The directory of the names of MPICH's library for Fortran, below that of the others: a program
/// with the module `mpi_f08` must find MPICH's own under them.
const FORTRAN: &str = "fortran";

/// The names of MPICH's library for Fortran, as MPICH and distributions call it.
const FORTRAN_NAMES: [&str; 2] = ["libmpifort.so.12", "libmpichfort.so.12"];

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
    let fortran = directory.join(FORTRAN);
    fs::create_dir(&fortran)?;
    let mut names = FORTRAN_NAMES.iter();
    names.try_for_each(|name| symlink(Path::new("..").join(NAME), fortran.join(name)))
}

/// Lets a process find the libraries that have been laid down in `directory`, before all others.
///
/// # Errors
/// The name of the directory has a colon, or a space where libraries of it are to be loaded first.
pub fn lead(
    command: &mut Command,
    directory: &Path,
    compiled_for: CompiledFor,
    intercepts_clocks: bool,
) -> io::Result<()> {
    let has_module = compiled_for == CompiledFor::ModuleF08;
    let mut own = vec![directory.to_owned()];
    own.extend((!has_module).then(|| directory.join(FORTRAN)));
    let paths = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let paths = own.into_iter().chain(env::split_paths(&paths));
    let paths = env::join_paths(paths).map_err(io::Error::other)?;
    command.env("LD_LIBRARY_PATH", paths);
    // This library comes first: it replaces entry points of MPICH's library for Fortran that call
    // functions which MPICH has for itself.
    let first = [
        (intercepts_clocks, CLOCKS, "--intercept-clocks"),
        (has_module, NAME, "a program with the module mpi_f08"),
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
