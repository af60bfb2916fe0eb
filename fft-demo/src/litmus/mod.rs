//! Litmus tests: programs of a few instructions whose outcomes tell which memory they run on.
//!
//! [`parse`] reads a test in the format of herd7 and litmus7 for X86 (Alglave, Maranget, Sarkar and
//! Sewell, *Litmus: Running Tests against Hardware*, TACAS 2011), as far as it consists of loads,
//! stores, MFENCE and a final condition. A [`Test`] is run elsewhere; what came out is counted in a
//! [`Histogram`] and shown by a [`Report`] as litmus7 does. [`outcomes`] tells by exhaustive search
//! which outcomes a [`Model`] of memory allows at all.
//!
//! Every location and every register holds one whole number of 32 bits with a sign.

#[cfg(test)]
mod axioms;
mod condition;
mod cycle;
mod model;
#[cfg(test)]
mod model_tests;
mod parse;
mod parse_condition;
mod report;
mod scanner;
mod test;
#[cfg(test)]
mod tests;

pub use condition::{Condition, Observable, Proposition, Quantifier};
pub use cycle::{Access, Cycle, CycleError, Edge};
pub use model::{Behaviours, MOST_MODEL_STATES, Model, Step, TooLarge, Way, outcomes};
pub use parse::{
    MOST_BYTES, MOST_DEPTH, MOST_INSTRUCTIONS, MOST_LOCATIONS, MOST_THREADS, ParseError, parse,
};
pub use report::{Histogram, Report, Seen, Verdict};
pub use test::{FinalState, Instruction, Register, Source, Test};
