//! Ordinary shared-memory programs, written once over the contract of `sme-memory`: kernels after
//! SPLASH-2's and litmus tests. They run on real threads and on simulated machines, through caches
//! that nothing keeps coherent between nodes, and know neither.
//!
//! A kernel is a description that all its threads share, and an `async` function that each of them
//! runs as a member of a [`Team`]; its data lies in [`Array`]s spread over the nodes' memory.
//! Between two barriers no thread reads what another writes, and no line is written by two nodes:
//! so the barrier is the only point at which memory has to be made coherent (Fröning et al.,
//! Sec. VII).

mod array;
pub mod fft;
pub mod litmus;
pub mod lu;
pub mod native;
pub mod npy;
pub mod radix;
mod team;
mod words;

pub use array::{Array, ArrayError, LEAST_GRANULE_BYTES, Placement, Pool};
pub use team::Team;
