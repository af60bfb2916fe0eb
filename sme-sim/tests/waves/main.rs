//! Waveforms of engines, read back with other people's readers and compared with a log that was
//! kept beside.

// A failure here fails the test.
#![allow(clippy::unwrap_used)]

mod cluster;
mod decode;
mod log;
mod random;
