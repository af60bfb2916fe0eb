//! Processes that wait for something other than a call of MPI: another rank that connects to a
//! socket of theirs, or gives a lock on a file back. They would wait for ever if simulated time
//! stood still for them.

use std::fs;

use libc::c_long;
use rustix::process::Pid;

/// System calls in which a process waits for another one.
const WAITS: &[c_long] = &[
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_connect,
    libc::SYS_flock,
    libc::SYS_fcntl,
    libc::SYS_recvfrom,
    libc::SYS_recvmmsg,
    libc::SYS_recvmsg,
    libc::SYS_sendmmsg,
    libc::SYS_sendmsg,
    libc::SYS_sendto,
];

/// Those in which it may as well wait for a child of its own.
#[cfg(target_arch = "x86_64")]
const POLLS: &[c_long] = &[
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_wait,
    libc::SYS_poll,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_select,
];
#[cfg(not(target_arch = "x86_64"))]
const POLLS: &[c_long] = &[libc::SYS_epoll_pwait, libc::SYS_ppoll, libc::SYS_pselect6];

/// Those of them whose first argument counts the files to look at; of the others, the second does.
#[cfg(target_arch = "x86_64")]
const SELECTS: &[c_long] = &[libc::SYS_pselect6, libc::SYS_select];
#[cfg(not(target_arch = "x86_64"))]
const SELECTS: &[c_long] = &[libc::SYS_pselect6];

/// A process at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Moment {
    is_asleep: bool,
    parent: u32,
    /// The time that all its threads have computed, in ticks of the system's clock.
    ticks: u64,
}

impl Moment {
    /// Reads the text of `/proc/PID/stat` (proc_pid_stat(5)).
    fn read(stat: &str) -> Option<Self> {
        // The program's name is in parentheses, and may have any characters.
        let (_, after) = stat.rsplit_once(')')?;
        let words: Vec<&str> = after.split_whitespace().collect();
        let number = |place: usize| words.get(place)?.parse::<u64>().ok();
        Some(Self {
            is_asleep: *words.first()? == "S",
            parent: words.get(1)?.parse().ok()?,
            ticks: number(11)?.checked_add(number(12)?)?,
        })
    }

    fn of(process: u32) -> Option<Self> {
        Self::read(&fs::read_to_string(format!("/proc/{process}/stat")).ok()?)
    }
}

/// A process that is watched while it makes no call.
#[derive(Debug, Default)]
pub struct Watch {
    last: Option<Moment>,
}

impl Watch {
    /// Returns whether the process has computed nothing since the last look, and waits for another
    /// one.
    pub fn looks(&mut self, process: u32) -> bool {
        let now = Moment::of(process);
        let is_idle = now.is_some_and(|now| now.is_asleep) && now == self.last;
        self.last = now;
        is_idle && waits(process)
    }
}

fn waits(process: u32) -> bool {
    // Where the system does not tell, it is taken to compute.
    let call = fs::read_to_string(format!("/proc/{process}/syscall"));
    let Some((number, arguments)) = read_call(&call.unwrap_or_default()) else {
        return false;
    };
    WAITS.contains(&number)
        || POLLS.contains(&number) && !sleeps(number, arguments) && !has_children(process)
}

/// Returns whether a thread of a process is writing to a file, whose reader may be slow.
pub fn writes(process: Pid) -> bool {
    let process = process.as_raw_nonzero();
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else {
        return false;
    };
    let mut calls = threads.flatten().filter_map(|thread| {
        let call = fs::read_to_string(thread.path().join("syscall")).ok()?;
        read_call(&call)
    });
    calls.any(|(number, _)| [libc::SYS_write, libc::SYS_writev].contains(&number))
}

/// Reads the text of `/proc/PID/syscall`: the call's number, and its first two arguments.
fn read_call(text: &str) -> Option<(c_long, [u64; 2])> {
    let mut words = text.split_whitespace();
    let number = words.next()?.parse().ok()?;
    let mut argument = || u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok();
    Some((number, [argument()?, argument()?]))
}

/// Returns whether a call that polls has nothing to look at, and only sleeps.
fn sleeps(number: c_long, [first, second]: [u64; 2]) -> bool {
    if SELECTS.contains(&number) {
        return first == 0;
    }
    // Of epolls the second argument is an address.
    second == 0
}

fn has_children(process: u32) -> bool {
    let Ok(all) = fs::read_dir("/proc") else {
        return false;
    };
    let numbers = all.flatten().filter_map(|entry| {
        let name = entry.file_name();
        name.to_str()?.parse().ok()
    });
    let mut parents = numbers.filter_map(|number| Moment::of(number).map(|moment| moment.parent));
    parents.any(|parent| parent == process)
}

#[cfg(test)]
mod tests {
    use super::{Moment, read_call, sleeps};

    #[test]
    fn a_poll_of_nothing_is_a_sleep() {
        let call = |number, first: u64, second: u64| {
            let text = format!("{number} {first:#x} {second:#x} 0x1f4 0x0 0x0 0x0 0x7ffd 0x7fab");
            let (number, arguments) = read_call(&text).unwrap();
            sleeps(number, arguments)
        };
        assert!(call(libc::SYS_ppoll, 0, 0));
        assert!(!call(libc::SYS_ppoll, 0x7f00, 1));
        assert!(call(libc::SYS_pselect6, 0, 0));
        assert!(!call(libc::SYS_pselect6, 5, 0x7f00));
        assert!(!call(libc::SYS_epoll_pwait, 3, 0x7f00));
        for wrong in ["", "running", "-1 0x7ffd 0x7fab", "7"] {
            let sleeping = read_call(wrong).filter(|(number, _)| *number >= 0);
            assert_eq!(sleeping, None, "{wrong}");
        }
    }

    #[test]
    fn a_name_with_anything_in_it_is_no_obstacle() {
        let stat = "19 (a) S (b c) S 7 19 24 0 -1 41 141 0 1 0 30 12 0 0 20 0 1 0 204";
        let expected = Moment {
            is_asleep: true,
            parent: 7,
            ticks: 42,
        };
        assert_eq!(Moment::read(stat), Some(expected));
        let computes = stat.replace(") S 7", ") R 7");
        assert!(Moment::read(&computes).is_some_and(|moment| !moment.is_asleep));
        for wrong in ["", "19 (a", "19 (a) S", "19 (a) S 7 19 24 0 -1"] {
            assert_eq!(Moment::read(wrong), None, "{wrong}");
        }
    }
}
