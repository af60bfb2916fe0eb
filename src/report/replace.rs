//! Checks whether a file can be put in the place of another one, before there is anything to put
//! there.
//!
//! A new file that can be made in the same directory does not prove it: the old file may be the
//! root of a mount, may be protected by its attributes, or may belong to another user in a
//! directory with the sticky bit.

use std::io;
use std::path::Path;

/// Whether the file at `target`, if there is one, can be replaced by renaming another one in its
/// directory.
///
/// # Errors
/// The reason why not.
#[cfg(target_os = "linux")]
pub fn replaceable(target: &Path) -> io::Result<()> {
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};
    use rustix::process::geteuid;

    let Ok(file) = fs::metadata(target) else {
        return Ok(());
    };
    let refuse = |why: &str| Err(io::Error::other(why.to_owned()));
    // If the kernel or the file system does not tell, the rename will.
    if let Ok(found) = statx(CWD, target, AtFlags::empty(), StatxFlags::empty()) {
        let has = |attributes| found.stx_attributes.intersects(attributes);
        if has(StatxAttributes::MOUNT_ROOT) {
            return refuse("it is mounted there, and cannot be replaced");
        }
        if has(StatxAttributes::IMMUTABLE.union(StatxAttributes::APPEND)) {
            return refuse("its attributes do not let it be replaced");
        }
    }
    let directory = fs::metadata(super::output::directory(target))?;
    if is_kept(
        directory.mode(),
        [file.uid(), directory.uid()],
        geteuid().as_raw(),
    ) {
        return refuse("it is another user's, in a directory where only its owner may replace it");
    }
    Ok(())
}

/// Whether a directory of this mode keeps a file from being replaced by `user`; `owners` are those
/// of the file and of the directory.
#[cfg(target_os = "linux")]
fn is_kept(mode: u32, owners: [u32; 2], user: u32) -> bool {
    const STICKY: u32 = 0o1000;
    mode & STICKY != 0 && user != 0 && !owners.contains(&user)
}

/// Not known.
#[cfg(not(target_os = "linux"))]
pub fn replaceable(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_sticky_directory_keeps_the_files_of_others() {
        assert!(is_kept(0o41777, [7, 0], 8));
        assert!(!is_kept(0o41777, [7, 0], 7), "one's own file");
        assert!(!is_kept(0o41777, [7, 8], 8), "one's own directory");
        assert!(!is_kept(0o41777, [7, 7], 0), "root may");
        assert!(!is_kept(0o40777, [7, 0], 8), "no sticky bit");
    }

    #[test]
    fn an_ordinary_file_can_be_replaced_and_so_can_none() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("file");
        assert!(replaceable(&file).is_ok());
        std::fs::write(&file, "").expect("a file");
        assert!(replaceable(&file).is_ok());
        // The system keeps the root of a mount.
        assert!(replaceable(Path::new("/proc")).is_err());
    }
}
