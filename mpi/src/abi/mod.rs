//! The calls as programs in C make them: by number, with arguments that are words, handles and
//! addresses in the memory of a process of its own. It is a thin layer on [`crate::rank`]: it takes
//! arguments apart, keeps the objects behind handles, and responds to errors as the program wants.
//!
//! * [`facts`]: the tables of calls and constants, in MPICH's interface and in that of MPI-5.0.
//! * [`program`]: the process of a rank.
//! * `rank`, `objects`: a rank's memory, handles and functions.
//! * `arguments`, `status`: what calls take and give.
//! * [`server`]: the calls of a rank, one after the other; a file for each chapter of the table,
//!   `access` for the calls that access windows, and `transfer` for those that access files.
//! * `alone`: calls that concern their rank alone, whose turn is not waited for.
//! * `callback`: functions of the program's that calls call.
//! * `clock`: the time that passes between calls.
//! * `looks`: calls that look again and again for what has not come.

mod access;
mod alone;
mod arguments;
mod attribute;
mod callback;
mod clock;
mod collective;
mod communicator;
mod contents;
mod environment;
mod errors;
pub mod facts;
mod file;
mod group;
mod info;
mod looks;
mod objects;
mod operation;
mod pack;
mod partitioned;
mod point;
pub mod process;
pub mod program;
mod rank;
mod request;
pub mod server;
mod session;
mod spawn;
mod status;
mod tools;
mod topology;
mod transfer;
mod types;
mod window;

pub use clock::Compute;
pub use rank::{Failure, Rank};
pub use server::serve;
