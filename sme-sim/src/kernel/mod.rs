//! How simulated time passes. No machine is known here: a machine is a set of [`window::Node`]s
//! that exchange messages, and on it run [`thread::Threads`], the simulated programs.
//!
//! * [`window`]: nodes advance independently within a window as long as the smallest latency
//!   between two of them.
//! * [`peers`]: the other processes that simulate the same machine.
//! * [`queue`]: what happens at one node, ordered by (time, source node, sequence number).
//! * [`thread`]: programs as futures; the operations they ask the machine for.
//! * [`ahead`]: what programs do in their core's private caches without asking.
//! * [`draw`]: random numbers that can be looked up in any order.
//! * [`address`]: the global address space, its partitions and its faults.

pub mod address;
pub mod ahead;
pub mod draw;
pub mod peers;
pub mod queue;
pub mod thread;
pub mod window;
