//! The names that a barrier, a lock or a program of one's own needs, in one import:
//! `use sme::prelude::*;`.
//!
//! | For | Names |
//! |---|---|
//! | every program | [`Machine`], [`Time`], [`Arc`], [`exit_code`] |
//! | memory as a thread sees it | [`Memory`], [`Cacheable`], [`Atomic`], [`Place`], [`Route`], [`Until`], [`Flag`], [`Word`] |
//! | a barrier | [`Barrier`], [`Member`]; to run it: [`Experiment`], [`Algorithm`], [`Observe`], [`Silent`] |
//! | a program | [`Kernel`], [`Program`], [`Mapped`], [`CoherencePoint`], [`Team`] |
//! | its data | [`Array`], [`Pool`], [`Placement`] |
//! | its lock | [`Lock`], [`Cohort`], [`Coherence`], [`Copies`] |
//!
//! [`Placement`] is that of an array's pages. The place of a barrier's variables is
//! [`VariablePlacement`](crate::experiment::VariablePlacement), which [`Experiment::new`] chooses.
//!
//! A barrier in which the last thread to arrive is not waited for is caught:
//!
//! ```
//! use sme::prelude::*;
//!
//! struct Open;
//!
//! impl<M: Memory> Barrier<M> for Open {
//!     type Local = ();
//!     async fn wait(&self, memory: &M, me: Member, _: &mut ()) {
//!         let place = Place { node: 0, offset: 64 * u64::from(me.node) };
//!         memory.set(memory.flag(place, Route::Nearest), 1).await;
//!     }
//! }
//!
//! let machine = Arc::new(Machine::builtin("sme-prototype")?);
//! let two = Experiment { nodes: 2, cores: 1, ..Experiment::new(machine) };
//! let error = two.simulate(Open, &Observe::default(), &Silent).unwrap_err();
//! assert!(matches!(error, sme::experiment::Error::Overtaken(_)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use std::sync::Arc;

pub use sme_barrier::lock::{Coherence, Cohort, Copies, Lock};
pub use sme_barrier::{Barrier, Member};
pub use sme_memory::{Atomic, Cacheable, Flag, Memory, Place, Route, Until, Word};
pub use sme_sim::machine::Machine;
pub use sme_sim::time::Time;

pub use crate::experiment::{Algorithm, Experiment, Observe};
pub use crate::program::{Array, CoherencePoint, Kernel, Mapped, Placement, Pool, Program, Team};
pub use crate::progress::Silent;
pub use crate::report::stop::exit_code;
