//! The operating system of a node, as far as programs notice it: threads that sleep on words
//! ([`Sleepers`]), threads that start others and share cores with them ([`Sharing`]), signals from
//! thread to thread ([`Signals`]); what a call does ([`Host`]). The machine says how long each
//! step takes.

mod futex;
mod sharing;
mod signals;
mod system;

pub use futex::{Sleepers, Woken};
pub use sharing::{Costs, Next, Sharing, TimesOut, Turn};
pub use signals::Signals;
pub use system::{Activity, Deed, Delays, Event, Host, System};
