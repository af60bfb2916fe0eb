//! A cache of earlier builds, found by their content.
//!
//! Each build is a directory, named by a hash of everything that it was made from, which also
//! stands in it (`made-from`), so that two builds of the same hash are told apart, with the length
//! of each file. A directory appears whole or not at all, also beside other builds. A build that is
//! found is run, so only the user may have been able to write to it. Where nothing can be kept that
//! is said on stderr, once, and what is built lasts as long as it is needed.

use std::fs::{self, DirEntry, Metadata};
use std::hash::Hasher;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::Duration;

use rustc_hash::FxHasher;
use tempfile::TempDir;

use super::{VerilatedError, file_error};

/// A directory of builds.
#[derive(Clone, Debug)]
pub(super) struct Cache {
    /// None where the user has none: what is built is kept no longer than it is needed.
    directory: Option<PathBuf>,
    /// Whether an existing build is taken, not replaced.
    finds: bool,
}

/// A build; what could not be kept is removed with it.
#[derive(Debug)]
pub(super) struct Build {
    place: BuildDirectory,
    /// Whether it was there already.
    pub found: bool,
}

/// The directory of a build.
#[derive(Debug)]
enum BuildDirectory {
    Kept(PathBuf),
    Temporary(TempDir),
}

impl Build {
    /// Its directory.
    pub fn path(&self) -> &Path {
        match &self.place {
            BuildDirectory::Kept(path) => path,
            BuildDirectory::Temporary(directory) => directory.path(),
        }
    }

    fn kept(path: PathBuf, found: bool) -> Self {
        let place = BuildDirectory::Kept(path);
        Self { place, found }
    }

    fn temporary(directory: TempDir) -> Self {
        Self {
            place: BuildDirectory::Temporary(directory),
            found: false,
        }
    }
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
            finds: true,
        }
    }

    /// In `directory`.
    pub fn at(directory: &Path) -> Self {
        Self {
            directory: Some(directory.to_owned()),
            finds: true,
        }
    }

    /// The same, but everything is built anew, and replaces what is there.
    pub fn renewing(&self) -> Self {
        Self {
            directory: self.directory.clone(),
            finds: false,
        }
    }

    /// Returns the build of `key`: one left by an earlier `build`, or by this one.
    pub fn get(
        &self,
        key: &[&str],
        build: impl FnOnce(&Path) -> Result<(), VerilatedError>,
    ) -> Result<Build, VerilatedError> {
        let made_from = key.join("\n--\n");
        let mut hasher = FxHasher::default();
        hasher.write(made_from.as_bytes());
        let name = format!("verilated-{:016x}", hasher.finish());
        let mut directory = self.own_directory();
        let target = directory.map(|directory| directory.join(name));
        let is_it = |path: &Path| {
            let told = fs::read_to_string(path.join(MADE_FROM));
            let is_told = |files: String| told.is_ok_and(|told| told == made_from.clone() + &files);
            is_own_build(path) && files(path).is_ok_and(is_told)
        };
        if let Some(path) = target.as_ref().filter(|path| self.finds && is_it(path)) {
            return Ok(Build::kept(path.clone(), true));
        }
        if let Some(directory) = directory {
            remove_leftovers(directory);
        }
        let new = match temporary(directory) {
            Err(error) if directory.is_some() => {
                say_unkept(&error);
                directory = None;
                temporary(None)?
            }
            new => new?,
        };
        let path = new.path();
        build(path)?;
        let file = path.join(MADE_FROM);
        let content = files(path).map(|files| made_from.clone() + &files);
        let written = content.and_then(|content| fs::write(&file, content));
        written.map_err(|error| file_error(&file, error))?;
        close_to_others(path).map_err(|error| file_error(path, error))?;
        let (Some(directory), Some(target)) = (directory, target) else {
            return Ok(Build::temporary(new));
        };
        let moved = |new: TempDir| {
            // It is where it belongs, and no longer what `new` would remove.
            let _ = new.keep();
            Ok(Build::kept(target.clone(), false))
        };
        if fs::rename(path, &target).is_ok() {
            return moved(new);
        }
        if self.finds && is_it(&target) {
            // Another process was faster.
            return Ok(Build::kept(target, true));
        }
        let there = fs::read(target.join(MADE_FROM)).unwrap_or_default();
        if !there.is_empty() && !there.starts_with(made_from.as_bytes()) {
            // Another build of the same hash, which stays.
            return Ok(Build::temporary(new));
        }
        // A directory replaces only an empty one: what is there goes with `aside`.
        let aside = temporary(Some(directory))?;
        let _ = fs::rename(&target, aside.path());
        match fs::rename(path, &target) {
            Ok(()) => moved(new),
            // Another process was faster again, or what is there cannot be moved.
            Err(_) => Ok(Build::temporary(new)),
        }
    }

    /// The directory, made if need be; None if it cannot be, or if another user could have put
    /// something into it.
    fn own_directory(&self) -> Option<&Path> {
        let directory = self.directory.as_deref()?;
        match private(directory).and_then(|()| fs::metadata(directory)) {
            Ok(metadata) => is_own(&metadata).then_some(directory),
            Err(error) => {
                say_unkept(&file_error(directory, error));
                None
            }
        }
    }
}

/// Says why nothing is kept: the next run will build everything once more.
fn say_unkept(error: &VerilatedError) {
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        // Where stderr is closed, nothing happens.
        let _ = writeln!(
            io::stderr().lock(),
            "what Verilator builds is not kept: {error}"
        );
    });
}

/// The file that says what a build was made from.
const MADE_FROM: &str = "made-from";

/// The files of the build at `path` and the length of each, as they stand behind what it was made
/// from: what a full disk or a loss of power has cut off would end the process that runs it.
fn files(path: &Path) -> io::Result<String> {
    let mut lines = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        if metadata.is_file() && entry.file_name() != MADE_FROM {
            lines.push(format!("{:?} {}\n", entry.file_name(), metadata.len()));
        }
    }
    lines.sort();
    Ok("\n--\n".to_owned() + &lines.concat())
}

/// The prefix of the name of a build that is not ready, before [`RANDOM`] letters and digits.
const UNREADY: &str = ".verilated-";

const RANDOM: usize = 6;

/// A new directory that other users cannot look into: in the cache's `directory`, beside what it
/// will be renamed to, or where there is none among the system's temporary files.
fn temporary(directory: Option<&Path>) -> Result<TempDir, VerilatedError> {
    let directory = directory.map_or_else(std::env::temp_dir, Path::to_owned);
    let mut builder = tempfile::Builder::new();
    builder.prefix(UNREADY).rand_bytes(RANDOM);
    // At any umask.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
    builder
        .tempdir_in(&directory)
        .map_err(|error| file_error(&directory, error))
}

/// A time that no build takes.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Removes from the cache's `directory` what builds have left that were killed.
fn remove_leftovers(directory: &Path) {
    let is_leftover = |entry: &DirEntry| {
        let name = entry.file_name();
        let random = name.to_str().and_then(|name| name.strip_prefix(UNREADY));
        let is_named = random.is_some_and(|random| {
            random.len() == RANDOM && random.bytes().all(|byte| byte.is_ascii_alphanumeric())
        });
        is_named
            && entry.metadata().is_ok_and(|metadata| {
                let age = metadata.modified().map(|time| time.elapsed());
                metadata.is_dir() && matches!(age, Ok(Ok(age)) if age > DAY)
            })
    };
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if is_leftover(&entry) {
            // Another process may be removing it, too. A directory that stays does no harm.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Returns whether no other user could have written to the directory of a build, or to a file in
/// it.
fn is_own_build(path: &Path) -> bool {
    let is_own_entry = |entry: io::Result<DirEntry>| {
        let metadata = entry.and_then(|entry| entry.metadata());
        metadata.is_ok_and(|metadata| is_own(&metadata))
    };
    let is_own_directory = |metadata: Metadata| metadata.is_dir() && is_own(&metadata);
    fs::symlink_metadata(path).is_ok_and(is_own_directory)
        && fs::read_dir(path).is_ok_and(|mut entries| entries.all(is_own_entry))
}

/// Returns whether something belongs to this user, and neither the group nor others may write to
/// it.
#[cfg(unix)]
fn is_own(metadata: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    use std::sync::OnceLock;

    /// The user: whose the files are that this process makes.
    static USER: OnceLock<Option<u32>> = OnceLock::new();
    let user = USER.get_or_init(|| {
        let metadata = tempfile::tempfile().and_then(|file| file.metadata());
        metadata.ok().map(|metadata| metadata.uid())
    });
    *user == Some(metadata.uid()) && metadata.mode() & WRITABLE_BY_OTHERS == 0
}

#[cfg(not(unix))]
fn is_own(_metadata: &Metadata) -> bool {
    true
}

/// Of a file's mode: the group or others may write to it.
#[cfg(unix)]
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// Lets neither the group nor others write to what is in the directory of a build, at any
/// umask with which the tools have made it.
#[cfg(unix)]
fn close_to_others(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;

    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let mut permissions = fs::metadata(&path)?.permissions();
        permissions.set_mode(permissions.mode() & !WRITABLE_BY_OTHERS);
        fs::set_permissions(&path, permissions)?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn close_to_others(_directory: &Path) -> io::Result<()> {
    Ok(())
}

/// Makes `directory`, which no other user may look into, and those above it.
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

    use super::super::write;

    #[test]
    fn what_is_made_from_the_same_is_made_once() {
        let directory = temporary(None).unwrap();
        let cache = Cache::at(&directory.path().join("a/b"));
        let built = Cell::new(0);
        let get = |key: &[&str]| {
            let made = cache.get(key, |path| {
                built.set(built.get() + 1);
                write(&path.join("result"), key[0])
            });
            let made = made.unwrap();
            let result = fs::read_to_string(made.path().join("result")).unwrap();
            (result, made.found, built.get())
        };
        assert_eq!(get(&["x", "1"]), ("x".into(), false, 1));
        assert_eq!(get(&["x", "1"]), ("x".into(), true, 1));
        assert_eq!(get(&["y", "1"]), ("y".into(), false, 2));
    }

    #[test]
    fn another_build_of_the_same_hash_is_not_taken_for_it() {
        let directory = temporary(None).unwrap();
        let cache = Cache::at(directory.path());
        let first = cache.get(&["x"], |_| Ok(())).unwrap();
        fs::write(first.path().join(MADE_FROM), "something else").unwrap();
        let second = cache.get(&["x"], |_| Ok(())).unwrap();
        assert_ne!(first.path(), second.path());
        assert_eq!(
            fs::read_to_string(first.path().join(MADE_FROM)).unwrap(),
            "something else"
        );
        drop(second);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_build_that_fails_leaves_nothing() {
        let directory = temporary(None).unwrap();
        let cache = Cache::at(directory.path());
        let failed = cache.get(&["x"], |_| Err(VerilatedError::Load("no".into())));
        assert!(failed.is_err());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn where_no_directory_can_be_made_a_build_is_temporary() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let cache = Cache::at(&file.path().join("below"));
        let build = cache.get(&["x"], |path| write(&path.join("result"), "x"));
        let build = build.unwrap();
        assert!(!build.found && build.path().join("result").exists());
        let path = build.path().to_owned();
        drop(build);
        assert!(!path.exists());
    }

    #[test]
    fn a_build_that_is_renewed_replaces_what_is_there() {
        let directory = temporary(None).unwrap();
        let cache = Cache::at(directory.path());
        let get = |cache: &Cache, result| {
            let made = cache.get(&["x"], |path| write(&path.join("result"), result));
            fs::read_to_string(made.unwrap().path().join("result")).unwrap()
        };
        assert_eq!(get(&cache, "first"), "first");
        assert_eq!(get(&cache.renewing(), "second"), "second");
        assert_eq!(get(&cache, "third"), "second");
        // As after a loss of power.
        let kept = cache.get(&["x"], |_| Ok(())).unwrap();
        fs::write(kept.path().join(MADE_FROM), "").unwrap();
        assert_eq!(get(&cache, "fourth"), "fourth");
        assert_eq!(get(&cache, "fifth"), "fourth");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_build_of_which_something_is_cut_off_is_replaced() {
        let directory = temporary(None).unwrap();
        let cache = Cache::at(directory.path());
        let get = || {
            let build = |path: &Path| write(&path.join("result"), "whole");
            cache.get(&["x"], build).unwrap()
        };
        let result = get().path().join("result");
        assert!(get().found);
        fs::write(&result, "who").unwrap();
        assert!(!get().found);
        assert_eq!(fs::read_to_string(&result).unwrap(), "whole");
        fs::remove_file(&result).unwrap();
        assert!(!get().found && get().found);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn without_a_directory_a_build_lasts_as_long_as_it_is_needed() {
        let cache = Cache {
            directory: None,
            finds: true,
        };
        let made = cache.get(&["x"], |_| Ok(())).unwrap();
        let path = made.path().to_owned();
        assert!(path.exists());
        drop(made);
        assert!(!path.exists());
    }

    #[cfg(unix)]
    fn set_mode(path: &Path, mode: u32) {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn nobody_else_may_look_into_a_build() {
        use std::os::unix::fs::MetadataExt;
        let directory = temporary(None).unwrap();
        let kept = Cache::at(directory.path());
        let not_kept = Cache {
            directory: None,
            finds: true,
        };
        for cache in [kept, not_kept] {
            let made = cache.get(&["x"], |_| Ok(())).unwrap();
            let mode = fs::metadata(made.path()).unwrap().mode();
            assert_eq!(mode & 0o777, 0o700, "{mode:o}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_directory_that_others_may_write_to_is_not_used() {
        for mode in [0o770, 0o702] {
            let directory = temporary(None).unwrap();
            let cache = Cache::at(directory.path());
            let kept = cache.get(&["x"], |_| Ok(())).unwrap();
            set_mode(directory.path(), mode);
            let made = cache.get(&["x"], |_| Ok(())).unwrap();
            assert!(!made.found && made.path() != kept.path(), "{mode:o}");
            drop(made);
            assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_build_that_others_may_write_to_is_replaced() {
        let directory = temporary(None).unwrap();
        let cache = Cache::at(directory.path());
        let get = || {
            let build = |path: &Path| {
                write(&path.join("result"), "")?;
                // As with a wide umask.
                set_mode(&path.join("result"), 0o666);
                Ok(())
            };
            cache.get(&["x"], build).unwrap()
        };
        let kept = get().path().to_owned();
        assert!(get().found);
        for file in ["", "result", MADE_FROM] {
            for mode in [0o720, 0o702] {
                set_mode(&kept.join(file), mode);
                assert!(!get().found, "{file} {mode:o}");
                assert!(get().found, "{file} {mode:o}");
            }
        }
        // A link leads to what was not looked at.
        let elsewhere = directory.path().join("elsewhere");
        fs::rename(&kept, &elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, &kept).unwrap();
        assert!(!get().found);
    }

    #[test]
    fn what_killed_builds_have_left_is_removed_after_a_day() {
        let directory = temporary(None).unwrap();
        let names = [
            ".verilated-aB3xYz",
            ".verilated-aB3xYz1",
            ".verilated-a-3xYz",
            "verilated-aB3xYz",
            ".verilated-000000",
        ];
        for name in names {
            let path = directory.path().join(name);
            fs::create_dir(&path).unwrap();
            write(&path.join("file"), "").unwrap();
            let age = if name.ends_with("000000") {
                DAY / 2
            } else {
                DAY * 2
            };
            let time = std::time::SystemTime::now() - age;
            fs::File::open(&path).unwrap().set_modified(time).unwrap();
        }
        let cache = Cache::at(directory.path());
        let made = cache.get(&["x"], |_| Ok(())).unwrap();
        assert_eq!(made.path().parent(), Some(directory.path()));
        let is_left = |name: &str| directory.path().join(name).exists();
        assert_eq!(names.map(is_left), [false, true, true, true, true]);
    }
}
