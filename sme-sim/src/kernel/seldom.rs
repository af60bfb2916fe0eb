//! Work that most runs never do.

/// Does `work`, such as tracing. Its code lies apart, so that the code around it, which every event
/// runs, takes less of the host's caches.
#[cold]
#[inline(never)]
pub fn seldom<T>(work: impl FnOnce() -> T) -> T {
    work()
}
