//! Process management as invasive MPI has it (Comprés et al., Sec. 3.2): a *daemon* on each core, a
//! kernel *module* there that turns interrupts into signals, and the library through which programs
//! give daemons commands.
//!
//! * [`alert`]: how a core hears of commands, by interrupts or by bells in memory.
//! * `board`: where commands and results lie, in the message passing buffer of each core.
//! * [`module`]: takes interrupts, and signals to the daemon what has come.
//! * [`command`]: what a daemon can be told, and what it answers.
//! * [`daemon`]: holds its core for one program at a time.
//! * [`sigmod`]: `sigmod_command`, `sigmod_result` and `sigmod_command_sync`.
//! * [`invade`]: surveys cores and reserves them.
//! * [`lending`]: memory, which is reserved apart from cores.
//! * [`clocks`]: clocks of tiles and voltages of islands, which come with their cores.
//! * [`start`]: processes that daemons start.
//! * [`manager`]: `mpiexec`, which starts a program and serves its processes' requests.
//! * [`death`]: processes that die, and the end of their programs.
//! * `notice`: the signals that daemons and managers take.
//! * [`member`]: a process under a manager, from its begin to its end.
//!
//! A core is reserved by its own daemon, for the first program that asks. So no two programs hold
//! it, and no program waits for a core while it holds others.

pub mod alert;
mod board;
pub mod clocks;
pub mod command;
pub mod daemon;
pub mod death;
pub mod invade;
pub mod lending;
pub mod manager;
pub mod member;
pub mod module;
mod notice;
pub mod sigmod;
pub mod start;

pub use board::Board;
pub use notice::Exit;
