//! Unfinished files. The program chooses their names, and removes them when it ends early.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use tempfile::{Builder, NamedTempFile, TempDir};

use super::stop::{Stop, one_line};

/// All that this program has made.
static MADE: Made = Made::new();

/// A file of any name in `directory`, with the permissions that a new file has there.
///
/// # Errors
/// If no file can be made there.
pub fn in_directory(directory: &Path) -> io::Result<NamedTempFile> {
    MADE.file_in(directory)
}

/// A directory of any name in `directory`, which is removed with all that is in it.
///
/// # Errors
/// If none can be made there.
pub fn directory_in(directory: &Path) -> io::Result<TempDir> {
    MADE.directory_in(directory)
}

/// A directory among the system's temporary files, for what other programs need as long as
/// they run.
///
/// # Errors
/// [`Stop::Input`] if none can be made there.
pub fn for_programs() -> Result<TempDir, Stop> {
    let directory = std::env::temp_dir();
    directory_in(&directory).map_err(|error| {
        let place = directory.display();
        Stop::Input(one_line(&format!(
            "temporary files (TMPDIR): {place}: {error}"
        )))
    })
}

/// The file called `path` stays in any case.
pub fn keep(path: &Path) {
    MADE.keep(path);
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
    MADE.remove_for_ever();
}

/// The names of what was made. Those that have been renamed or removed since exist no more.
struct Made(Mutex<Vec<PathBuf>>);

impl Made {
    const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    fn file_in(&self, directory: &Path) -> io::Result<NamedTempFile> {
        let mut builder = named();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(fs::Permissions::from_mode(0o666));
        }
        self.make(|| builder.tempfile_in(directory), NamedTempFile::path)
    }

    fn directory_in(&self, directory: &Path) -> io::Result<TempDir> {
        self.make(|| named().tempdir_in(directory), TempDir::path)
    }

    /// Makes something and remembers its name, with no time between the two at which
    /// [`Made::remove_for_ever`] could miss it. After that it does not return.
    fn make<T>(
        &self,
        make: impl FnOnce() -> io::Result<T>,
        name: impl FnOnce(&T) -> &Path,
    ) -> io::Result<T> {
        let mut names = self.0.lock();
        let made = make().map_err(without_name)?;
        names.push(name(&made).to_owned());
        Ok(made)
    }

    fn keep(&self, path: &Path) {
        self.0.lock().retain(|made| made != path);
    }

    /// Removes all, and lets nothing more be made.
    fn remove_for_ever(&self) {
        let mut names = self.0.lock();
        for path in names.drain(..) {
            // It may have been renamed or removed already.
            match path.is_dir() {
                true => remove_directory(&path),
                false => drop(fs::remove_file(path)),
            }
        }
        std::mem::forget(names);
    }
}

/// Gives names that no other file has.
fn named() -> Builder<'static, 'static> {
    let mut builder = Builder::new();
    builder.prefix(".sme-");
    builder
}

/// The error without the temporary name behind it, which no user has asked for.
fn without_name(error: io::Error) -> io::Error {
    let said = error.to_string();
    match said.split_once(" at path ") {
        Some((said, _)) => io::Error::new(error.kind(), said),
        None => error,
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
    use std::sync::Arc;
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[test]
    fn unfinished_files_are_removed_and_others_stay() {
        let made = Made::new();
        let directory = tempfile::tempdir().expect("a directory");
        let one = made.file_in(directory.path()).expect("a file");
        let two = made.file_in(directory.path()).expect("a file");
        let three = made.file_in(directory.path()).expect("a file");
        let inner = made.directory_in(directory.path()).expect("a directory");
        fs::write(inner.path().join("rows"), "").expect("a file");
        let (_, kept) = two.keep().expect("the file stays");
        made.keep(&kept);
        let renamed = directory.path().join("result");
        three.persist(&renamed).expect("renamed");
        made.remove_for_ever();
        assert!(!one.path().exists() && !inner.path().exists());
        assert!(kept.exists() && renamed.exists());
    }

    /// Whenever the end comes, also while files are being made.
    #[test]
    fn nothing_is_left_of_what_is_made_at_the_end() {
        for _ in 0..20 {
            let directory = tempfile::tempdir().expect("a directory");
            let made = Arc::new(Made::new());
            let (tell, told) = mpsc::channel();
            for _ in 0..2 {
                let (path, made, tell) = (directory.path().to_owned(), made.clone(), tell.clone());
                // It never ends, as in the program.
                thread::spawn(move || {
                    let mut all = Vec::new();
                    loop {
                        let is_made = made.directory_in(&path).map(|new| all.push(new));
                        is_made.expect("a directory");
                        // No one listens in the end.
                        let _ = tell.send(());
                    }
                });
            }
            told.iter().take(5).for_each(drop);
            made.remove_for_ever();
            let left = fs::read_dir(directory.path()).expect("a directory").count();
            assert_eq!(left, 0);
        }
    }
}
