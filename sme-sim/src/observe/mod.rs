//! Observers of a run, without any influence on it. Nothing here knows a family.
//!
//! * [`among`]: what several processes tell each other of a run that they share.
//! * [`calls`]: the calls of libraries that threads are in.
//! * [`energy`]: the energy that a machine has taken.
//! * [`failure`]: why a run did not end well.
//! * [`gauge`]: how far a run is.
//! * [`log`]: what nodes tell the checker of stale reads, and the timeline.
//! * [`marks`]: the marks of a trace, which grow without being moved.
//! * [`path`]: what made something take as long as it did.
//! * [`quantile`]: quantiles of measured times.
//! * [`spans`]: when threads were in what.
//! * [`staleness`]: which loads of a run returned stale data, and which flush was missing.
//! * [`stuck`]: threads that wait for ever, as a report tells of them.
//! * [`survey`]: what nodes are doing; who waits for what when nothing can happen any more.
//! * [`timeline`]: waits, and which write ended each.
//! * [`trace`]: traces for critical paths, for families without one of their own.
//! * [`traffic`]: what went over the network and through caches.
//! * [`unwritten`]: what a program has stored and not written back.
//! * [`waves`]: what passes the ports of clocked blocks, as waveforms.
//! * [`words`]: operations in words.

pub mod among;
pub mod calls;
pub mod energy;
pub mod failure;
pub mod gauge;
pub mod last_writes;
pub mod log;
pub mod marks;
pub mod path;
pub mod quantile;
pub mod spans;
pub mod staleness;
pub mod stuck;
pub mod survey;
pub mod timeline;
pub mod trace;
pub mod traffic;
pub mod unwritten;
pub mod waves;
pub mod words;
