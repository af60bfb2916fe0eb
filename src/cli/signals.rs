//! Signals that end the program: they leave no file behind that is not whole, and one line on
//! stderr.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use signal_hook::{flag, low_level};

use crate::report::stop::to_stderr;
use crate::report::temporary;

/// From now on a signal that ends the program removes its unfinished files first. A file that grows
/// beyond the limit of its size (`ulimit -f`) is an error of the write, as a full disk is.
pub fn watch() {
    // A handler of any kind takes the place of the default, which kills. If it cannot be installed,
    // the default stays.
    let _ = flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
    let ignored = ignored();
    let ends = [SIGINT, SIGTERM, SIGHUP].into_iter();
    let ends = ends.filter(|signal| ignored >> (signal - 1) & 1 == 0);
    let Ok(mut signals) = Signals::new(ends) else {
        return;
    };
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            temporary::remove_all();
            let name = low_level::signal_name(signal).unwrap_or("a signal");
            to_stderr(&format!("sme: ended by {name}\n"));
            // It does not return from a signal that kills.
            let _ = low_level::emulate_default_handler(signal);
        }
    });
}

/// The signals that the program was started to ignore, as by `nohup`: bit *n* − 1 for
/// signal *n*.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}
