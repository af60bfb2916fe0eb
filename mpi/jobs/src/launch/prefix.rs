//! The output of a process, copied with its rank before each line.

use std::io::{self, PipeWriter, Read, Write};
use std::os::fd::AsFd;
use std::thread::{self, JoinHandle};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, ioctl_fionread};

/// A thread that copies a process's output.
#[derive(Debug)]
pub struct Copying {
    thread: JoinHandle<()>,
    /// It is over when this is closed.
    open: PipeWriter,
}

impl Copying {
    /// Copies from here to there, with `rank` before each line.
    ///
    /// # Errors
    /// There are no more threads, or files.
    pub fn new(
        from: impl AsFd + Read + Send + 'static,
        to: impl Write + Send + 'static,
        rank: u32,
    ) -> io::Result<Self> {
        let (is_open, open) = io::pipe()?;
        let lines = Lines {
            to,
            prefix: format!("[{rank}] "),
            begun: Vec::new(),
        };
        let thread = thread::Builder::new().spawn(move || copy(from, lines, is_open))?;
        Ok(Self { thread, open })
    }

    /// Waits until all is copied that the process has written, which has ended. A process that this
    /// one has left behind may keep the output open, and is not waited for.
    pub fn ends(self) {
        drop(self.open);
        // It does not panic.
        let _ = self.thread.join();
    }
}

/// Copies all, but from the time on at which `is_open` is closed only what is there then.
fn copy(mut from: impl AsFd + Read, mut lines: Lines<impl Write>, is_open: impl AsFd) {
    let mut bytes = vec![0; 1 << 16];
    let mut left: Option<usize> = None;
    while left != Some(0) {
        if left.is_none() {
            let mut both = [
                PollFd::new(&from, PollFlags::IN),
                PollFd::new(&is_open, PollFlags::IN),
            ];
            match poll(&mut both, None) {
                Err(Errno::INTR) => continue,
                Err(_) => break,
                Ok(_) if both[1].revents().is_empty() => {}
                Ok(_) => {
                    left = Some(ioctl_fionread(&from).map_or(0, |there| there as usize));
                    continue;
                }
            }
        }
        let most = left.map_or(bytes.len(), |left| left.min(bytes.len()));
        match from.read(&mut bytes[..most]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(0) | Err(_) => break,
            Ok(read) => {
                left = left.map(|left| left - read);
                lines.write(&bytes[..read]);
            }
        }
    }
    lines.end();
}

/// Lines that are written whole.
struct Lines<W> {
    to: W,
    prefix: String,
    /// The beginning of the next line.
    begun: Vec<u8>,
}

impl<W: Write> Lines<W> {
    fn write(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.begun.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                let line = [self.prefix.as_bytes(), &self.begun].concat();
                self.begun.clear();
                // A reader that has gone away needs nothing.
                let _ = self.to.write_all(&line);
            }
        }
    }

    /// Ends the last line if it has no end.
    fn end(&mut self) {
        if !self.begun.is_empty() {
            self.write(b"\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::{Duration, Instant};

    use super::*;

    /// Takes what is copied.
    #[derive(Clone, Default)]
    struct Taken(Arc<Mutex<Vec<u8>>>);

    impl Write for Taken {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn all_lines_are_copied_with_the_rank() {
        let (from, mut into) = io::pipe().unwrap();
        let taken = Taken::default();
        let copying = Copying::new(from, taken.clone(), 3).unwrap();
        for piece in ["one\ntw", "o\n", "\nlast"] {
            into.write_all(piece.as_bytes()).unwrap();
            thread::sleep(Duration::from_millis(5));
        }
        drop(into);
        copying.ends();
        assert_eq!(
            *taken.0.lock().unwrap(),
            b"[3] one\n[3] two\n[3] \n[3] last\n"
        );
    }

    /// Another process may keep the output open, and go on writing.
    #[test]
    fn what_is_written_later_is_not_waited_for() {
        let (from, mut into) = io::pipe().unwrap();
        let taken = Taken::default();
        let copying = Copying::new(from, taken.clone(), 0).unwrap();
        into.write_all(b"before").unwrap();
        let mut other = into.try_clone().unwrap();
        let begin = Instant::now();
        let writes = thread::spawn(move || {
            while begin.elapsed() < Duration::from_secs(20) && other.write_all(b"later\n").is_ok() {
            }
        });
        copying.ends();
        assert!(begin.elapsed() < Duration::from_secs(10));
        assert!(taken.0.lock().unwrap().starts_with(b"[0] before"));
        drop(into);
        writes.join().unwrap();
    }
}
