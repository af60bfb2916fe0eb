//! The interface that a program was compiled for, as far as its file tells.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::str;

use object::read::elf::{Dyn, FileHeader, Sym};
use object::{Endianness, elf, elf::FileHeader64};

/// The library that a program was compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompiledFor {
    /// Open MPI, whose interface is another one: the program would find that library, and each of
    /// its ranks would be alone in its world.
    OpenMpi,
    /// Any other library, or none.
    Other(Uses),
}

/// The libraries of MPICH's own that a program needs: their entry points make the calls of C.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    /// That of Fortran's module `mpi_f08`, whose entry points unpack array descriptors.
    pub module_f08: bool,
    /// That of the bindings for C++ (the namespace `MPI`, up to MPI-2.2).
    pub cxx: bool,
}

/// Open MPI's libraries, for C and for Fortran: a program may need no other than one of these.
const OPEN_MPI: [&str; 3] = [
    "libmpi.so.40",
    "libmpi_mpifh.so.40",
    "libmpi_usempif08.so.40",
];

/// The reason why such a program cannot be run.
pub const OF_OPEN_MPI: &str =
    "it was compiled for Open MPI; compile it with MPICH's mpicc or mpifort";

/// The ends of names of the entry points of `mpi_f08`, without and with a buffer.
const MODULE_F08: [&str; 2] = ["_f08_", "_f08ts_"];

/// MPICH's library for C++, as MPICH and distributions call it.
pub const CXX: [&str; 2] = ["libmpicxx.so.12", "libmpichcxx.so.12"];

/// The beginnings of names in its namespace: of functions and data, of constant functions, of what
/// belongs to a class.
const NAMESPACE_MPI: [&str; 4] = ["_ZN3MPI", "_ZNK3MPI", "_ZTVN3MPI", "_ZTIN3MPI"];

/// Returns the library that a program was compiled for.
pub fn of(program: &OsStr) -> CompiledFor {
    // A program that cannot be read says so when it is started.
    let file = found(program).and_then(|path| fs::read(path).ok());
    file.as_deref()
        .map_or(CompiledFor::Other(Uses::default()), of_file)
}

/// The same by the program's file. One that is no program for this computer, such as a script,
/// needs nothing.
fn of_file(file: &[u8]) -> CompiledFor {
    let names = Names::of(file).unwrap_or_default();
    let needs = |any: &[&str]| any.iter().any(|library| names.libraries.contains(library));
    if needs(&OPEN_MPI) {
        return CompiledFor::OpenMpi;
    }
    let is_of_f08 = |name: &&str| MODULE_F08.iter().any(|end| name.ends_with(end));
    let is_of_cxx = |name: &&str| NAMESPACE_MPI.iter().any(|begin| name.starts_with(begin));
    CompiledFor::Other(Uses {
        module_f08: names.symbols.iter().any(is_of_f08),
        cxx: needs(&CXX) && names.symbols.iter().any(is_of_cxx),
    })
}

/// The names by which a program is linked when it starts.
#[derive(Debug, Default)]
struct Names<'f> {
    /// The libraries that it needs.
    libraries: Vec<&'f str>,
    /// The functions and data that it has in common with libraries.
    symbols: Vec<&'f str>,
}

impl<'f> Names<'f> {
    /// Those of a file, as far as it is a program in ELF's form of 64 bits.
    fn of(file: &'f [u8]) -> object::Result<Self> {
        let header = FileHeader64::<Endianness>::parse(file)?;
        let endian = header.endian()?;
        let sections = header.sections(endian, file)?;
        let mut names = Self::default();
        if let Some((entries, link)) = sections.dynamic(endian, file)? {
            let strings = sections.strings(endian, file, link)?;
            let needed = entries
                .iter()
                .filter(|entry| entry.tag32(endian) == Some(elf::DT_NEEDED));
            let needed = needed.filter_map(|entry| entry.string(endian, strings).ok());
            names.libraries = needed
                .filter_map(|name| str::from_utf8(name).ok())
                .collect();
        }
        let symbols = sections.symbols(endian, file, elf::SHT_DYNSYM)?;
        let all = symbols.iter();
        let all = all.filter_map(|symbol| symbol.name(endian, symbols.strings()).ok());
        names.symbols = all.filter_map(|name| str::from_utf8(name).ok()).collect();
        Ok(names)
    }
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::launch::library::LIBRARY;

    #[test]
    fn a_library_has_its_names() {
        let names = Names::of(LIBRARY).unwrap();
        assert!(names.libraries.contains(&"libc.so.6"), "{names:?}");
        assert!(names.symbols.contains(&"MPI_Send"), "{names:?}");
        // It has entry points of mpi_f08 itself, and none of the bindings for C++.
        assert!(matches!(of_file(LIBRARY), CompiledFor::Other(uses) if !uses.cxx));
        assert_eq!(of_file(b"#!/bin/sh\n"), CompiledFor::Other(Uses::default()));
    }

    proptest! {
        /// A damaged file, or a part of one, needs nothing or something.
        #[test]
        fn no_file_panics(
            changes in prop::collection::vec((0..4096_usize, any::<u8>()), 0..8),
            ends in prop::collection::vec((0..LIBRARY.len(), any::<u8>()), 0..8),
            length in 0..2 * LIBRARY.len(),
        ) {
            let mut file = LIBRARY.to_vec();
            let all = changes.into_iter().chain(ends);
            all.for_each(|(at, byte)| file[at] = byte);
            file.truncate(length);
            of_file(&file);
        }
    }
}
