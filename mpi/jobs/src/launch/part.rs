//! Parts of programs that processes have started: where the program is, and the directory in which
//! it begins.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use sme_mpi::abi::program::Part;
use sme_mpi::error::{ErrorClass, Fault};

use super::files;
use super::interface::{self, CompiledFor, Uses};

/// A part, as it is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundPart {
    /// The file of the program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// The directory in which its processes begin.
    pub directory: PathBuf,
    /// The use that it makes of MPICH's own libraries.
    pub uses: Uses,
}

/// Finds the part that the process of this number has started. Relative paths begin at the
/// directory of that process, or at the one that the part names. A program without a path is looked
/// for in the directories of the part, then where programs are looked for, then in the directory in
/// which it begins.
///
/// # Errors
/// [`ErrorClass::Spawn`] if it is not found, or cannot be run here.
pub fn find(by: u32, part: &Part) -> Result<FoundPart, Fault> {
    let directory = files::path(by, part.directory.as_deref().unwrap_or_default())?;
    let name = OsStr::from_bytes(&part.command);
    let command = Path::new(name);
    let within = part.path.as_deref().unwrap_or_default();
    let own =
        env::split_paths(OsStr::from_bytes(within)).filter(|path| !path.as_os_str().is_empty());
    let mut candidates = own
        .map(|path| directory.join(path).join(command))
        .chain(interface::found(name).map(|path| directory.join(path)))
        .chain([directory.join(command)]);
    let wrong = |why: &str| {
        let text = format!("{}: {why}", command.display());
        Fault::new(ErrorClass::Spawn, "command", text)
    };
    let is_program = |path: &PathBuf| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    let program = candidates.find(is_program);
    let program = program.ok_or_else(|| wrong("there is no such program"))?;
    let CompiledFor::Other(uses) = interface::of(program.as_os_str()) else {
        return Err(wrong(interface::OF_OPEN_MPI));
    };
    if !directory.is_dir() {
        return Err(wrong("the directory in which it is to begin is not there"));
    }
    let arguments = part.arguments.iter().cloned().map(OsString::from_vec);
    Ok(FoundPart {
        program,
        arguments: arguments.collect(),
        directory,
        uses,
    })
}

#[cfg(test)]
mod tests {
    // A failure here fails the test.
    #![allow(clippy::unwrap_used)]

    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn programs_are_found_where_the_part_says() {
        let by = std::process::id();
        let root = tempfile::tempdir().unwrap();
        let (inner, program) = (root.path().join("inner"), root.path().join("inner/child"));
        fs::create_dir(&inner).unwrap();
        fs::write(&program, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        fs::write(root.path().join("child"), "no program").unwrap();
        let bytes = |path: &Path| path.as_os_str().as_bytes().to_vec();
        let part = |command: &str, directory: &Path, path: Option<&str>| Part {
            command: command.as_bytes().to_vec(),
            arguments: vec![b"a b".to_vec()],
            count: 1,
            directory: Some(bytes(directory)),
            path: path.map(|path| path.as_bytes().to_vec()),
        };
        for (part, expected) in [
            (part("./child", &inner, None), Some(program.clone())),
            (part("child", &inner, None), Some(program.clone())),
            (
                part("inner/child", root.path(), None),
                Some(program.clone()),
            ),
            (
                part("child", root.path(), Some("none:inner")),
                Some(program.clone()),
            ),
            (part("child", root.path(), None), None),
            (part("", root.path(), None), None),
            (part("inner", root.path(), None), None),
        ] {
            let found = find(by, &part);
            let found = found.map(|found| fs::canonicalize(found.program).unwrap());
            let expected = expected.map(|path| fs::canonicalize(path).unwrap());
            assert_eq!(found.as_ref().ok(), expected.as_ref(), "{part:?}");
            if let Err(fault) = found {
                assert_eq!(fault.class, ErrorClass::Spawn);
            }
        }
        let here = find(by, &part("sh", root.path(), None)).unwrap();
        assert_eq!(here.arguments, [OsString::from("a b")]);
        assert_eq!(here.program.file_name(), Some(OsStr::new("sh")));
    }
}
