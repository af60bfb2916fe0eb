//! The file of a sweep under way: whole rows, each on the disk before the next is written, under
//! the name `FILE.partial`, which becomes FILE when the sweep is complete.
//!
//! Called by [`crate::cli::sweep`]. The file is locked while a sweep writes it. After an
//! interruption at any byte, [`Partial::resume`] keeps every whole line, drops a torn last one, and
//! refuses a file whose rows are not the first rows of this sweep.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::output::{directory, sync_directory};
use super::replace::replaceable;
use super::stop::Stop;

/// More bytes than any sweep's rows have.
const LARGEST: u64 = 4 << 30;

/// A sweep's file, open for more rows.
#[derive(Debug)]
pub struct Partial {
    file: File,
    path: PathBuf,
    target: PathBuf,
}

impl Partial {
    /// An empty file beside `target`, beginning with `header` where the format has one; an error
    /// where an interrupted sweep has left one.
    pub fn create(target: &Path, header: Option<&str>) -> Result<Self, Stop> {
        let path = partial_path(target);
        replaceable(target).map_err(|error| Stop::unwritable("-o", target, &error))?;
        let mut options = OpenOptions::new();
        let file = match options.read(true).write(true).create_new(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                if let Ok(file) = File::open(&path) {
                    // Of a sweep that is running it must not be said that it can be removed.
                    unlocked(&file, &path)?;
                }
                return Err(Stop::flag(
                    &format!("-o {}", target.display()),
                    format!(
                        "{} holds an interrupted sweep; continue it with --resume, or remove it",
                        path.display()
                    ),
                ));
            }
            opened => opened.map_err(|error| Stop::unwritable("-o", &path, &error))?,
        };
        let mut partial = Self::locked(file, path, target)?;
        if let Some(header) = header {
            partial.append(header)?;
        }
        Ok(partial)
    }

    /// The file left by an interrupted sweep beside `target`, and its rows: those of whole lines
    /// that are not `header`. `None` where there is nothing.
    pub fn resume(
        target: &Path,
        header: Option<&str>,
    ) -> Result<Option<(Self, Vec<String>)>, Stop> {
        let path = partial_path(target);
        replaceable(target).map_err(|error| Stop::unwritable("-o", target, &error))?;
        resumable(&path)?;
        let file = match OpenOptions::new().read(true).write(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(|error| Stop::unwritable("-o", &path, &error))?,
        };
        let mut partial = Self::locked(file, path, target)?;
        let mut bytes = Vec::new();
        let read = partial.file.read_to_end(&mut bytes);
        read.map_err(|error| partial.unwritable(&error))?;
        let whole = bytes.iter().rposition(|&byte| byte == b'\n');
        bytes.truncate(whole.map_or(0, |end| end + 1));
        let rows = rows_of(&bytes, header)
            .map_err(|reason| Stop::flag("--resume", format!("{} {reason}", partial.shown())))?;
        let end = bytes.len() as u64;
        let cut = partial.file.set_len(end);
        let cut = cut.and_then(|()| partial.file.seek(SeekFrom::Start(end)));
        cut.map_err(|error| partial.unwritable(&error))?;
        if let (Some(header), true) = (header, bytes.is_empty()) {
            partial.append(header)?;
        }
        Ok(Some((partial, rows)))
    }

    /// Adds a line; it is on the disk when this returns.
    pub fn append(&mut self, line: &str) -> Result<(), Stop> {
        let line = format!("{line}\n");
        let written = self.file.write_all(line.as_bytes());
        let written = written.and_then(|()| self.file.sync_data());
        written.map_err(|error| self.unwritable(&error))
    }

    /// The sweep is complete: the file gets its name.
    pub fn finish(self) -> Result<(), Stop> {
        let renamed = fs::rename(&self.path, &self.target);
        renamed.map_err(|error| {
            let text = format!("{error}; the rows are in {}", self.shown());
            let error = io::Error::new(error.kind(), text);
            Stop::unwritable("-o", &self.target, &error)
        })?;
        sync_directory(directory(&self.target));
        Ok(())
    }

    /// The file's name, for messages.
    pub fn shown(&self) -> String {
        self.path.display().to_string()
    }

    fn locked(file: File, path: PathBuf, target: &Path) -> Result<Self, Stop> {
        unlocked(&file, &path)?;
        Ok(Self {
            file,
            path,
            target: target.to_owned(),
        })
    }

    fn unwritable(&self, error: &io::Error) -> Stop {
        Stop::unwritable("-o", &self.path, error)
    }
}

/// Takes the lock of the `file` at `path`, which a sweep that is running holds. Where the file
/// system has no locks, two sweeps into one file are the user's affair.
fn unlocked(file: &File, path: &Path) -> Result<(), Stop> {
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(Stop::flag(
            "-o",
            format!("another sweep is writing {}", path.display()),
        )),
        _ => Ok(()),
    }
}

/// Refuses what no sweep has left: it might have no end.
fn resumable(path: &Path) -> Result<(), Stop> {
    let reason = match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() && !metadata.is_dir() => {
            "is no file but a pipe or a device; remove it"
        }
        Ok(metadata) if metadata.len() > LARGEST => {
            "is larger than the rows of any sweep (4 GiB); remove it"
        }
        // The opening says what is wrong.
        _ => return Ok(()),
    };
    Err(Stop::flag(
        "--resume",
        format!("{} {reason}", path.display()),
    ))
}

/// The rows of a complete result file; `None` where it is none, or has no such header.
pub fn complete_rows(target: &Path, header: Option<&str>) -> Option<Vec<String>> {
    let bytes = fs::read(target).ok()?;
    let whole = bytes.last() == Some(&b'\n');
    rows_of(&bytes, header).ok().filter(|_| whole)
}

/// `FILE.partial`
fn partial_path(target: &Path) -> PathBuf {
    let mut name = OsString::from(target);
    name.push(".partial");
    PathBuf::from(name)
}

/// The lines of `bytes` behind the header, or what is wrong with them.
fn rows_of(bytes: &[u8], header: Option<&str>) -> Result<Vec<String>, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "is not text".to_owned())?;
    let mut lines = text.lines();
    if let Some(header) = header
        && lines.next().is_some_and(|line| line != header)
    {
        return Err("does not begin with this sweep's header (other version or flags?)".into());
    }
    Ok(lines.map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupted_sweep_is_not_overwritten_and_not_shared() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("a.csv");
        let mut first = Partial::create(&target, Some("h")).unwrap();
        first.append("1").unwrap();
        assert!(matches!(
            Partial::create(&target, Some("h")),
            Err(Stop::Input(_))
        ));
        assert!(matches!(
            Partial::resume(&target, Some("h")),
            Err(Stop::Input(_))
        ));
        drop(first);
        let (again, rows) = Partial::resume(&target, Some("h")).unwrap().unwrap();
        assert_eq!(rows, ["1"]);
        again.finish().unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "h\n1\n");
        assert_eq!(
            complete_rows(&target, Some("h")),
            Some(vec!["1".to_owned()])
        );
        assert!(Partial::resume(&target, Some("h")).unwrap().is_none());
    }

    #[test]
    fn another_header_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("a.csv");
        drop(Partial::create(&target, Some("old")).unwrap());
        let Err(Stop::Input(line)) = Partial::resume(&target, Some("new")) else {
            panic!("another header");
        };
        assert!(line.starts_with("--resume: "), "{line}");
    }
}
