//! Where results go: to stdout, or to a file that appears whole or not at all.
//!
//! Called by every command. A file is opened before anything is simulated, so that a place
//! without write access is known at once; it is written under another name in the same directory
//! and renamed at the end. Devices and pipes are written to directly, and so is a file that is open
//! already: that stdout is redirected to (`/dev/stdout`), or that a shell has opened (`/dev/fd/3`).

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::{NamedTempFile, PersistError};

use super::collect::Collector;
use super::replace::replaceable;
use super::stop::Stop;
use super::temporary;

/// An open destination.
#[derive(Debug)]
pub struct Output {
    flag: String,
    path: PathBuf,
    to: To,
}

#[derive(Debug)]
enum To {
    Stdout(BufWriter<io::Stdout>),
    /// The collector that takes the place of stdout.
    Collected(Collector),
    /// The file that will be renamed to the target, once something is written.
    File(Option<BufWriter<NamedTempFile>>, PathBuf),
    Device(BufWriter<File>),
}

/// The kind of a path, for a command that writes results there.
#[derive(Debug, PartialEq, Eq)]
pub enum Target {
    /// A file, existing or not; symbolic links are followed.
    File(PathBuf),
    /// A target that must not be replaced: one that exists and is no file, such as a pipe or
    /// `/dev/null`, or a file that is open already and has other results before and behind these.
    Device(PathBuf),
}

impl Target {
    /// The kind of `path`; a directory is an error.
    pub fn of(path: &Path) -> io::Result<Self> {
        match fs::metadata(path) {
            // What a link points at may be made there; `metadata` has seen that links end
            // somewhere.
            Err(error) if error.kind() == io::ErrorKind::NotFound => match fs::read_link(path) {
                Ok(to) => Self::of(&directory(path).join(to)),
                Err(_) => Ok(Self::File(path.to_owned())),
            },
            Err(error) => Err(error),
            Ok(metadata) if metadata.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            Ok(metadata) if metadata.is_file() && !opened::is(path, &metadata) => {
                Ok(Self::File(fs::canonicalize(path)?))
            }
            Ok(_) => Ok(Self::Device(path.to_owned())),
        }
    }
}

impl Output {
    /// Stdout, or what takes its place on this thread: see [`super::collect`].
    pub fn stdout() -> Self {
        let stdout = || To::Stdout(BufWriter::new(io::stdout()));
        Self {
            flag: "stdout".to_owned(),
            path: PathBuf::new(),
            to: Collector::here().map_or_else(stdout, To::Collected),
        }
    }

    /// The file at `path`, given with `flag`; an error where it could not be written.
    pub fn file(flag: &str, path: &Path) -> Result<Self, Stop> {
        if path == Path::new("-") {
            return Err(Stop::flag(
                &format!("{flag} -"),
                "only -o writes to stdout so; write /dev/stdout, or ./- for a file of that name",
            ));
        }
        let unwritable = |error| Stop::unwritable(flag, path, &error);
        let to = match Target::of(path).map_err(unwritable)? {
            Target::Device(path) => {
                let file = opened::device(&path).map_err(unwritable)?;
                To::Device(BufWriter::new(file))
            }
            Target::File(target) => {
                // It only shows that files can be made there: what is interrupted before its first
                // result leaves nothing behind.
                drop(temporary::in_directory(directory(&target)).map_err(unwritable)?);
                replaceable(&target).map_err(unwritable)?;
                To::File(None, target)
            }
        };
        Ok(Self {
            flag: flag.to_owned(),
            path: path.to_owned(),
            to,
        })
    }

    /// The file at `path` of `-o`, or stdout where there is none or it is `-`.
    pub fn file_or_stdout(path: Option<&Path>) -> Result<Self, Stop> {
        match path {
            Some(path) if path != Path::new("-") => Self::file("-o", path),
            _ => Ok(Self::stdout()),
        }
    }

    /// Whether results go to a file that appears at the end, which is not read before that.
    pub fn is_file(&self) -> bool {
        matches!(self.to, To::File(..))
    }

    /// Whether results go to stdout.
    pub fn is_stdout(&self) -> bool {
        matches!(self.to, To::Stdout(_))
    }

    /// Adds `text`.
    pub fn push(&mut self, text: &str) -> Result<(), Stop> {
        self.push_bytes(text.as_bytes())
    }

    /// Adds `bytes`, which need not be text.
    pub fn push_bytes(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        let written = match &mut self.to {
            To::Stdout(writer) => writer.write_all(bytes),
            To::Collected(writer) => writer.write_all(bytes),
            To::File(writer, target) => {
                begun(writer, target).and_then(|writer| writer.write_all(bytes))
            }
            To::Device(writer) => writer.write_all(bytes),
        };
        written.map_err(|error| self.stopped(&error))
    }

    /// Adds `text` and hands everything on to a reader.
    pub fn push_now(&mut self, text: &str) -> Result<(), Stop> {
        self.push(text)?;
        self.flush().map_err(|error| self.stopped(&error))
    }

    /// Adds everything that `source` holds.
    pub fn push_all(&mut self, source: &mut impl io::Read) -> Result<(), Stop> {
        let copied = match &mut self.to {
            To::Stdout(writer) => io::copy(source, writer),
            To::Collected(writer) => io::copy(source, writer),
            To::File(writer, target) => {
                begun(writer, target).and_then(|writer| io::copy(source, writer))
            }
            To::Device(writer) => io::copy(source, writer),
        };
        copied.map(drop).map_err(|error| self.stopped(&error))
    }

    /// A file without a name, on the disk of the results, for what is not a result yet: nothing is
    /// left of it when the program ends, however it ends.
    pub fn scratch(&self) -> Result<File, Stop> {
        let file = match &self.to {
            To::File(_, target) => tempfile::tempfile_in(directory(target)),
            To::Stdout(_) | To::Collected(_) | To::Device(_) => tempfile::tempfile(),
        };
        file.map_err(|error| self.stopped(&error))
    }

    /// Everything is written: the file appears.
    pub fn commit(mut self) -> Result<(), Stop> {
        self.flush().map_err(|error| self.stopped(&error))?;
        let Self { flag, path, to } = self;
        let To::File(writer, target) = to else {
            return Ok(());
        };
        let persist = || -> io::Result<()> {
            let writer = match writer {
                Some(writer) => writer,
                None => BufWriter::new(temporary::in_directory(directory(&target))?),
            };
            let file = writer.into_inner().map_err(|error| error.into_error())?;
            // The same users may read this as may read what it replaces.
            if let Ok(replaced) = fs::metadata(&target) {
                file.as_file().set_permissions(replaced.permissions())?;
            }
            file.as_file().sync_all()?;
            file.persist(&target).map_err(kept)?;
            sync_directory(directory(&target));
            Ok(())
        };
        persist().map_err(|error| Stop::unwritable(&flag, &path, &error))
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.to {
            To::Stdout(writer) => writer.flush(),
            To::Collected(writer) => writer.flush(),
            To::File(Some(writer), _) => writer.flush(),
            To::File(None, _) => Ok(()),
            To::Device(writer) => writer.flush(),
        }
    }

    /// Why nothing more can be written, where that ended with `error`.
    pub fn stopped(&self, error: &io::Error) -> Stop {
        match &self.to {
            To::Stdout(_) | To::Collected(_) | To::Device(_)
                if error.kind() == io::ErrorKind::BrokenPipe =>
            {
                Stop::Unread
            }
            _ => Stop::unwritable(&self.flag, &self.path, error),
        }
    }
}

/// The files that are open before the program begins.
#[cfg(unix)]
mod opened {
    use std::fs::{File, Metadata, OpenOptions};
    use std::io;
    use std::os::fd::AsFd;
    use std::os::unix::fs::MetadataExt;
    use std::path::Path;

    use super::directory;

    /// Whether the file at `path` is open already.
    pub fn is(path: &Path, metadata: &Metadata) -> bool {
        stream(metadata).is_some() || is_descriptor(path)
    }

    /// Opens a [`super::Target::Device`]: where it is what a standard stream leads to, as a second
    /// name of that stream, so that what is written to either follows what was written before.
    pub fn device(path: &Path) -> io::Result<File> {
        match stream(&path.metadata()?) {
            Some(stream) => Ok(stream),
            None if is_descriptor(path) => OpenOptions::new().append(true).open(path),
            None => OpenOptions::new().write(true).open(path),
        }
    }

    /// The standard stream that leads to the file of `metadata`.
    fn stream(metadata: &Metadata) -> Option<File> {
        let streams = [
            io::stdout().as_fd().try_clone_to_owned(),
            io::stderr().as_fd().try_clone_to_owned(),
        ];
        let mut files = streams.into_iter().flatten().map(File::from);
        files.find(|file| (file.metadata()).is_ok_and(|open| same(&open, metadata)))
    }

    /// Whether stdout leads to the file of `metadata`, unless that forgets what it takes.
    pub fn is_stdout(metadata: &Metadata) -> bool {
        let is_same = |other: Metadata| same(metadata, &other);
        let forgets = std::fs::metadata("/dev/null").is_ok_and(is_same);
        let stdout = io::stdout().as_fd().try_clone_to_owned().map(File::from);
        !forgets && stdout.is_ok_and(|stdout| stdout.metadata().is_ok_and(is_same))
    }

    fn same(one: &Metadata, other: &Metadata) -> bool {
        (one.dev(), one.ino()) == (other.dev(), other.ino())
    }

    /// Whether `path` is the name that the system gives to a descriptor.
    fn is_descriptor(path: &Path) -> bool {
        let Ok(directory) = directory(path).canonicalize() else {
            return false;
        };
        let of_system = directory.starts_with("/proc") || directory.starts_with("/dev");
        of_system && directory.ends_with("fd")
    }
}

/// Where nothing is known of what is open.
#[cfg(not(unix))]
mod opened {
    use std::fs::{File, Metadata, OpenOptions};
    use std::io;
    use std::path::Path;

    /// Not known.
    pub fn is(_: &Path, _: &Metadata) -> bool {
        false
    }

    /// Not known.
    pub fn is_stdout(_: &Metadata) -> bool {
        false
    }

    /// Opens what is no file.
    pub fn device(path: &Path) -> io::Result<File> {
        OpenOptions::new().write(true).open(path)
    }
}

/// The writer of a file that is under way, made where nothing was written yet.
fn begun<'w>(
    writer: &'w mut Option<BufWriter<NamedTempFile>>,
    target: &Path,
) -> io::Result<&'w mut BufWriter<NamedTempFile>> {
    match writer {
        Some(writer) => Ok(writer),
        None => {
            let file = temporary::in_directory(directory(target))?;
            Ok(writer.insert(BufWriter::new(file)))
        }
    }
}

/// The error of a result that could not be put in its place. The result stays, and the error names
/// it.
fn kept(PersistError { error, file }: PersistError) -> io::Error {
    match file.keep() {
        Ok((_, path)) => {
            temporary::keep(&path);
            let text = format!("{error}; the result is in {}", path.display());
            io::Error::new(error.kind(), text)
        }
        Err(_) => error,
    }
}

/// Whether what is written to `path` comes out where stdout leads to, and is read there.
pub fn is_stdout(path: &Path) -> bool {
    let Ok(metadata) = fs::metadata(path) else {
        return false;
    };
    opened::is_stdout(&metadata)
}

/// Refuses two results in one file, of which it would keep only one; with each file the flag that
/// names it.
pub fn distinct(destinations: &[(&str, Option<&Path>)]) -> Result<(), Stop> {
    let mut known: Vec<(&str, PathBuf)> = Vec::new();
    for &(flag, path) in destinations {
        let Some(path) = path else { continue };
        let Some(file) = resolved(path) else { continue };
        if let Some((other, _)) = known.iter().find(|(_, other)| *other == file) {
            let flags = format!("{flag} {}", path.display());
            return Err(Stop::flag(
                &flags,
                format!("is the file of {other} already"),
            ));
        }
        known.push((flag, file));
    }
    Ok(())
}

/// Refuses a result in a file that the command reads.
pub fn apart_from_inputs(
    inputs: &[PathBuf],
    destinations: &[(&str, Option<&Path>)],
) -> Result<(), Stop> {
    let inputs: Vec<PathBuf> = inputs.iter().filter_map(|path| resolved(path)).collect();
    for &(flag, path) in destinations {
        let Some(path) = path.filter(|path| *path != Path::new("-")) else {
            continue;
        };
        if resolved(path).is_some_and(|file| inputs.contains(&file)) {
            return Err(Stop::flag(
                &format!("{flag} {}", path.display()),
                "is a file that is read, and would be overwritten; choose another name",
            ));
        }
    }
    Ok(())
}

/// The file that `path` stands for; `None` for a device, which takes any number of results.
fn resolved(path: &Path) -> Option<PathBuf> {
    match Target::of(path) {
        Ok(Target::Device(_)) => None,
        Ok(Target::File(file)) if file.exists() => Some(file),
        // Where a link leads to nothing yet, what it leads to.
        Ok(Target::File(file)) => in_its_directory(&file),
        Err(_) => in_its_directory(path),
    }
}

/// A file that is not there by the full name of its directory.
fn in_its_directory(file: &Path) -> Option<PathBuf> {
    let directory = directory(file).canonicalize().ok()?;
    Some(directory.join(file.file_name()?))
}

/// The directory `file` is in.
pub fn directory(file: &Path) -> &Path {
    match file.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// Makes a rename in `directory` survive a power failure, where the host can.
pub fn sync_directory(directory: &Path) {
    if let Ok(directory) = File::open(directory) {
        // Some file systems cannot sync a directory; the rename has happened nevertheless.
        let _ = directory.sync_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_complaint_names_no_file_but_ones_own() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("missing/a.csv");
        let Err(stop) = Output::file("-o", &path) else {
            panic!("there is no such directory");
        };
        let complaint = stop.to_string();
        assert!(
            complaint.contains("missing/a.csv: cannot be written: "),
            "{complaint}"
        );
        assert!(!complaint.contains(".sme-"), "{complaint}");
    }

    #[test]
    fn a_file_appears_when_it_is_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.csv");
        fs::write(&path, "before").unwrap();
        let mut output = Output::file("-o", &path).unwrap();
        output.push("after").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "before");
        output.commit().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "after");
        let begun = Output::file("-o", &path).unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        drop(begun);
        assert_eq!(fs::read_to_string(&path).unwrap(), "after");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_place_nobody_can_write_to_is_known_at_once() {
        let directory = tempfile::tempdir().unwrap();
        for path in [directory.path().to_owned(), directory.path().join("no/a")] {
            let Err(Stop::Input(line)) = Output::file("--per-thread", &path) else {
                panic!("{} is not writable", path.display());
            };
            assert!(line.starts_with("--per-thread "), "{line}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_device_stays_a_device_and_a_link_stays_a_link() {
        let null = Path::new("/dev/null");
        let mut output = Output::file("-o", null).unwrap();
        output.push("gone").unwrap();
        output.commit().unwrap();
        assert_eq!(Target::of(null).unwrap(), Target::Device(null.to_owned()));

        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        fs::write(&file, "before").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let mut output = Output::file("-o", &link).unwrap();
        output.push("after").unwrap();
        output.commit().unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "after");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());

        // Also where what it points at is not there yet.
        fs::remove_file(&file).unwrap();
        fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink("file", &link).unwrap();
        Output::file("-o", &link).unwrap().commit().unwrap();
        assert!(file.exists() && fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_is_replaced_keeps_its_permissions() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.csv");
        fs::write(&path, "before").unwrap();
        for mode in [0o600, 0o664] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            Output::file("-o", &path).unwrap().commit().unwrap();
            let permissions = fs::metadata(&path).unwrap().permissions();
            assert_eq!(permissions.mode() & 0o777, mode);
        }
    }
}
