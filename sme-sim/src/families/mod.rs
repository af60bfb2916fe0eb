//! The families of machines, a folder each, which only [`crate::machine`] names.

pub(crate) mod coherent;
pub mod ideal;
pub(crate) mod mppa;
pub(crate) mod scc;
pub mod sme;
