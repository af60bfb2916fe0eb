//! Unfinished files. The program chooses their names, and removes them when it ends early.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use tempfile::{NamedTempFile, TempDir};

/// The names of all that were made. Those that have been renamed or removed since exist no more.
static MADE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A file of any name in `directory`, with the permissions that a new file has there.
///
/// # Errors
/// If no file can be made there.
pub fn in_directory(directory: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".sme-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    let file = builder.tempfile_in(directory).map_err(without_name)?;
    MADE.lock().push(file.path().to_owned());
    Ok(file)
}

/// A directory of any name in `directory`, which is removed with all that is in it.
///
/// # Errors
/// If none can be made there.
pub fn directory_in(directory: &Path) -> io::Result<TempDir> {
    let made = tempfile::Builder::new()
        .prefix(".sme-")
        .tempdir_in(directory);
    let made = made.map_err(without_name)?;
    MADE.lock().push(made.path().to_owned());
    Ok(made)
}

/// The error without the temporary name behind it, which no user has asked for.
fn without_name(error: io::Error) -> io::Error {
    let said = error.to_string();
    match said.split_once(" at path ") {
        Some((said, _)) => io::Error::new(error.kind(), said),
        None => error,
    }
}

/// The file called `path` stays in any case.
pub fn keep(path: &Path) {
    MADE.lock().retain(|made| made != path);
}

/// Locked while results are put in their places, and for ever once the program ends.
static GATE: Mutex<()> = Mutex::new(());

/// Runs `does` to its end, even if a signal ends the program meanwhile. If the program is ending
/// already, it neither runs `does` nor returns.
pub fn unless_ending<T>(does: impl FnOnce() -> T) -> T {
    let _gate = GATE.lock();
    does()
}

/// Removes all unfinished files, for a program that ends now. It waits for the end of what
/// [`unless_ending`] runs.
pub fn remove_all() {
    // Other threads, which miss their files now, must not put what is left in its place.
    std::mem::forget(GATE.lock());
    remove(|_| true);
}

fn remove(which: impl Fn(&Path) -> bool) {
    for path in MADE.lock().extract_if(.., |path| which(path)) {
        // It may have been renamed or removed already.
        match path.is_dir() {
            true => remove_directory(&path),
            false => drop(fs::remove_file(path)),
        }
    }
}

/// Removes a directory to which other threads may still be writing.
fn remove_directory(path: &Path) {
    const TRIES: usize = 1_000;
    for _ in 0..TRIES {
        match fs::remove_dir_all(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => std::thread::yield_now(),
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unfinished_files_are_removed_and_others_stay() {
        let directory = tempfile::tempdir().expect("a directory");
        let one = in_directory(directory.path()).expect("a file");
        let two = in_directory(directory.path()).expect("a file");
        let three = in_directory(directory.path()).expect("a file");
        let inner = directory_in(directory.path()).expect("a directory");
        fs::write(inner.path().join("rows"), "").expect("a file");
        let (_, kept) = two.keep().expect("the file stays");
        keep(&kept);
        let renamed = directory.path().join("result");
        three.persist(&renamed).expect("renamed");
        // Only these: other tests have files of their own.
        remove(|path| path.starts_with(directory.path()));
        assert!(!one.path().exists() && !inner.path().exists());
        assert!(kept.exists() && renamed.exists());
    }
}
