//! The process as this computer sees it: memory in bytes; `None` on a host without `/proc`.

/// The most memory the process has had resident so far.
pub fn peak_rss_bytes() -> Option<u64> {
    status("VmHWM:")
}

/// Returns the memory that is resident now.
pub fn rss_bytes() -> Option<u64> {
    status("VmRSS:")
}

fn status(key: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}
