//! The files that an experiment reads: machines, rows, litmus tests. Their names in an experiment
//! file are relative to it; a manifest holds their contents.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::report::stop::Stop;

/// The most bytes of a file that an experiment reads: a manifest holds all of it.
pub const MAX_BYTES: u64 = 4 << 20;

/// A file that an experiment reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Its name in the experiment file.
    pub file: String,
    /// The SHA-256 of its contents, in hexadecimal digits.
    pub sha256: String,
    /// Its contents.
    pub text: String,
}

/// The files that were met so far, and where they are.
#[derive(Debug)]
pub struct Inputs {
    origin: Origin,
    met: BTreeMap<String, Input>,
}

/// Where files are read.
#[derive(Debug)]
enum Origin {
    /// In the directory of the experiment file.
    Directory(PathBuf),
    /// In a manifest, from which they are written to this directory.
    Manifest(PathBuf, Vec<Input>),
}

impl Inputs {
    /// Files beside an experiment file, which is in `directory`.
    pub fn beside(directory: &Path) -> Self {
        Self {
            origin: Origin::Directory(directory.to_owned()),
            met: BTreeMap::new(),
        }
    }

    /// The files of a manifest, which are written to `directory` as they are needed.
    pub fn of_manifest(inputs: Vec<Input>, directory: &Path) -> Self {
        Self {
            origin: Origin::Manifest(directory.to_owned(), inputs),
            met: BTreeMap::new(),
        }
    }

    /// The path of the file that an experiment calls `name`.
    ///
    /// # Errors
    /// The file cannot be read, is too large for a manifest or is no text.
    pub fn path(&mut self, name: &str) -> Result<PathBuf, Stop> {
        let path = match &self.origin {
            Origin::Directory(directory) => directory.join(name),
            Origin::Manifest(directory, inputs) => {
                let at = inputs.iter().position(|input| input.file == name);
                let at =
                    at.ok_or_else(|| Stop::flag(name, "is not among the manifest's inputs"))?;
                let base = Path::new(name).file_name().unwrap_or(name.as_ref());
                let path = directory.join(format!("{at}-{}", base.to_string_lossy()));
                if !self.met.contains_key(name) {
                    fs::write(&path, &inputs[at].text)
                        .map_err(|error| Stop::unwritable("", &path, &error))?;
                }
                path
            }
        };
        if !self.met.contains_key(name) {
            let input = read(name, &path)?;
            self.met.insert(name.to_owned(), input);
        }
        Ok(path)
    }

    /// All files that were met, by name.
    pub fn met(&self) -> impl Iterator<Item = &Input> {
        self.met.values()
    }

    /// The paths of all files that were met.
    pub fn paths(&self) -> Vec<PathBuf> {
        match &self.origin {
            Origin::Directory(directory) => {
                self.met.keys().map(|name| directory.join(name)).collect()
            }
            Origin::Manifest(..) => Vec::new(),
        }
    }
}

fn read(name: &str, path: &Path) -> Result<Input, Stop> {
    let shown = path.display().to_string();
    let text = text_of(path, MAX_BYTES).map_err(|reason| Stop::flag(&shown, reason))?;
    Ok(Input {
        file: name.to_owned(),
        sha256: sha256(text.as_bytes()),
        text,
    })
}

/// The text of the file at `path`, which has at most `most` bytes.
///
/// # Errors
/// Why it cannot be read, or that it is too large, or no text.
pub fn text_of(path: &Path, most: u64) -> Result<String, String> {
    let unreadable = |error: std::io::Error| format!("cannot be read: {error}");
    let metadata = fs::metadata(path).map_err(unreadable)?;
    if !metadata.is_file() {
        return Err("is not a regular file".into());
    }
    if metadata.len() > most {
        return Err(format!("is larger than {} MiB", most >> 20));
    }
    let bytes = fs::read(path).map_err(unreadable)?;
    String::from_utf8(bytes).map_err(|_| "is not UTF-8 text".into())
}

/// The SHA-256 of `bytes`, in hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifests_files_are_those_that_were_met() {
        let directory = tempfile::tempdir().unwrap();
        let deep = directory.path().join("deep");
        fs::create_dir(&deep).unwrap();
        fs::write(directory.path().join("a.toml"), "one").unwrap();
        fs::write(deep.join("a.toml"), "two").unwrap();
        let mut inputs = Inputs::beside(directory.path());
        for name in ["deep/a.toml", "a.toml", "a.toml"] {
            assert_eq!(inputs.path(name).unwrap(), directory.path().join(name));
        }
        let met: Vec<Input> = inputs.met().cloned().collect();
        assert_eq!(met.len(), 2);
        assert_eq!(
            met[0].sha256,
            "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"
        );

        let other = tempfile::tempdir().unwrap();
        let mut again = Inputs::of_manifest(met.clone(), other.path());
        for (name, text) in [("deep/a.toml", "two"), ("a.toml", "one")] {
            let path = again.path(name).unwrap();
            assert_eq!(fs::read_to_string(path).unwrap(), text);
        }
        assert_eq!(again.met().cloned().collect::<Vec<_>>(), met);
        assert!(again.path("b.toml").is_err());
    }
}
