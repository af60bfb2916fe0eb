//! The passing of simulated time. No machine is known here: a machine is a set of [`window::Node`]s
//! that exchange messages, and on it run [`thread::Threads`], the simulated programs.
//!
//! * [`window`]: nodes advance independently within a window as long as the smallest latency
//!   between two of them.
//! * [`peers`]: the other processes that simulate the same machine.
//! * [`queue`]: what happens at one node, ordered by (time, source node, sequence number).
//! * [`site`]: places in programs, by number.
//! * [`thread`]: programs as futures; the operations they ask the machine for.
//! * [`draw`]: random numbers that can be looked up in any order.
//! * [`prefetch`]: asking for what lies far away.
//! * [`seldom`]: work that most runs never do.

pub mod draw;
pub mod peers;
pub mod prefetch;
pub mod queue;
pub mod seldom;
pub mod site;
pub mod thread;
pub mod window;
