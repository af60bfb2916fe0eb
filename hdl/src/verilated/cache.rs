//! What was built before, found by its content.
//!
//! Each build is a directory, named by a hash of everything that it was made from, which also
//! stands in it (`made-from`), so that two builds of the same hash are told apart. A directory
//! appears whole or not at all, whoever builds at the same time.

use std::fs;
use std::hash::Hasher;
use std::io;
use std::path::{Path, PathBuf};

use rustc_hash::FxHasher;

use super::{VerilatedError, file_error};

/// A directory of builds.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    /// None where there is none of the user's own: what is built is left in a temporary directory.
    directory: Option<PathBuf>,
}

impl Cache {
    /// `$XDG_CACHE_HOME/sme`, else `~/.cache/sme`.
    pub fn of_user() -> Self {
        let variable = |name| {
            std::env::var_os(name)
                .map(PathBuf::from)
                .filter(|p| p.is_absolute())
        };
        let home = || variable("HOME").map(|home| home.join(".cache"));
        Self {
            directory: variable("XDG_CACHE_HOME")
                .or_else(home)
                .map(|cache| cache.join("sme")),
        }
    }

    /// In `directory`.
    pub fn at(directory: &Path) -> Self {
        Self {
            directory: Some(directory.to_owned()),
        }
    }

    /// The directory of what is made from `key`: as it was left by an earlier `build`, or by this
    /// one.
    pub fn get(
        &self,
        key: &[&str],
        build: impl FnOnce(&Path) -> Result<(), VerilatedError>,
    ) -> Result<PathBuf, VerilatedError> {
        let made_from = key.join("\n--\n");
        let mut hasher = FxHasher::default();
        hasher.write(made_from.as_bytes());
        let name = format!("verilated-{:016x}", hasher.finish());
        let found = self
            .directory
            .as_ref()
            .map(|directory| directory.join(&name));
        let is_it = |path: &Path| {
            fs::read(path.join(MADE_FROM)).is_ok_and(|content| content == made_from.as_bytes())
        };
        if let Some(path) = found.as_ref().filter(|path| is_it(path)) {
            return Ok(path.clone());
        }
        let new = self.temporary()?;
        let path = new.path();
        build(path)?;
        let file = path.join(MADE_FROM);
        fs::write(&file, &made_from).map_err(|error| file_error(&file, error))?;
        let Some(target) = found else {
            return Ok(new.keep());
        };
        match fs::rename(path, &target) {
            Ok(()) => {
                // It is where it belongs, and no longer what `new` would remove.
                let _ = new.keep();
                Ok(target)
            }
            // Somebody else was faster.
            Err(_) if is_it(&target) => Ok(target),
            // Another build of the same hash: this one stays where it is, unknown to later ones.
            Err(_) => Ok(new.keep()),
        }
    }

    /// A new directory, beside what it will be renamed to.
    fn temporary(&self) -> Result<tempfile::TempDir, VerilatedError> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(".verilated-");
        match &self.directory {
            Some(directory) => {
                private(directory).map_err(|error| file_error(directory, error))?;
                builder
                    .tempdir_in(directory)
                    .map_err(|error| file_error(directory, error))
            }
            None => builder
                .tempdir()
                .map_err(|error| file_error(&std::env::temp_dir(), error)),
        }
    }
}

/// What a build was made from.
const MADE_FROM: &str = "made-from";

/// Makes `directory`, which nobody else may look into, and those above it.
fn private(directory: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn what_is_made_from_the_same_is_made_once() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::at(&directory.path().join("a/b"));
        let built = Cell::new(0);
        let get = |key: &[&str]| {
            let made = cache.get(key, |path| {
                built.set(built.get() + 1);
                super::super::write(&path.join("result"), key[0])
            });
            fs::read_to_string(made.unwrap().join("result")).unwrap()
        };
        assert_eq!((get(&["x", "1"]), built.get()), ("x".into(), 1));
        assert_eq!((get(&["x", "1"]), built.get()), ("x".into(), 1));
        assert_eq!((get(&["y", "1"]), built.get()), ("y".into(), 2));
    }

    #[test]
    fn another_build_of_the_same_hash_is_not_taken_for_it() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::at(directory.path());
        let first = cache.get(&["x"], |_| Ok(())).unwrap();
        fs::write(first.join(MADE_FROM), "something else").unwrap();
        let second = cache.get(&["x"], |_| Ok(())).unwrap();
        assert_ne!(first, second);
        assert_eq!(
            fs::read_to_string(first.join(MADE_FROM)).unwrap(),
            "something else"
        );
    }

    #[test]
    fn a_build_that_fails_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let cache = Cache::at(directory.path());
        let failed = cache.get(&["x"], |_| Err(VerilatedError::Load("no".into())));
        assert!(failed.is_err());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
