//! Letters: the envelopes that go from one process to another in a window.
//!
//! Called by `workers`. A letter without envelopes has no bytes. Any other begins with the start
//! of the window in which it was written (8 bytes, little-endian, picoseconds), so that one which
//! comes a window too late is found. Each envelope follows as
//! [postcard](https://postcard.jamesmunns.com/wire-format) writes it: target node, time in
//! picoseconds, source node, sequence number, message. [`FORMAT`] names this form; processes
//! compare it before they begin.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::super::peers::{PeerError, garbled};
use super::Envelope;
use crate::time::Time;

/// The version of the form in which messages go between processes. A change of that form, of a
/// message's fields too, must increment it.
pub const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
struct Written<M> {
    to: u32,
    at: u64,
    from: u32,
    sequence: u64,
    message: M,
}

/// Appends `envelope` to those from one worker to one process in one window.
pub(super) fn write<M: Serialize>(
    envelope: &Envelope<M>,
    letter: &mut Vec<u8>,
) -> Result<(), postcard::Error> {
    let written = Written {
        to: envelope.to,
        at: envelope.at.as_ps(),
        from: envelope.from,
        sequence: envelope.sequence,
        message: &envelope.message,
    };
    *letter = postcard::to_extend(&written, std::mem::take(letter))?;
    Ok(())
}

/// Appends `envelopes`, written in the window that began at `window`, to a letter.
pub(super) fn append(letter: &mut Vec<u8>, window: Time, envelopes: &[u8]) {
    if envelopes.is_empty() {
        return;
    }
    if letter.is_empty() {
        letter.extend_from_slice(&window.as_ps().to_le_bytes());
    }
    letter.extend_from_slice(envelopes);
}

/// The envelopes of `letter`, which `process` wrote in the window that began at `window`, one by
/// one to `take`. None arrives before `start`, where the next window starts.
pub(super) fn read<M: DeserializeOwned>(
    process: usize,
    letter: &[u8],
    (window, start): (Time, Time),
    mut take: impl FnMut(Envelope<M>) -> Result<(), PeerError>,
) -> Result<(), PeerError> {
    if letter.is_empty() {
        return Ok(());
    }
    let Some((stamp, mut rest)) = letter.split_first_chunk() else {
        return Err(garbled(process, "a letter without a window"));
    };
    let stamp = Time::from_ps(u64::from_le_bytes(*stamp));
    if stamp != window {
        let reason = format!("a letter of the window at {stamp} in the one at {window}");
        return Err(garbled(process, reason));
    }
    while !rest.is_empty() {
        let (written, left): (Written<M>, _) =
            postcard::take_from_bytes(rest).map_err(|error| garbled(process, error))?;
        rest = left;
        let at = Time::from_ps(written.at);
        if at < start {
            return Err(garbled(
                process,
                format!("a message for {at}, after {start}"),
            ));
        }
        take(Envelope {
            to: written.to,
            at,
            from: written.from,
            sequence: written.sequence,
            message: written.message,
        })?;
    }
    Ok(())
}
