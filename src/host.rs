//! This computer: its processor, and the memory of this process in bytes; `None` on a host without
//! `/proc`.

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

/// The name of the processor, or of its architecture where the system tells none.
pub fn processor() -> String {
    let name = cpuinfo("model name").filter(|name| !name.is_empty());
    name.unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

/// The first value of `key` in `/proc/cpuinfo`.
pub fn cpuinfo(key: &str) -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let value = |line: &str| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim().to_owned())
    };
    text.lines().find_map(value)
}
