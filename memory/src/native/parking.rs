//! Where threads sleep: a small table of buckets, each a lock, a condition variable and the list
//! of those who sleep there, found by the address they sleep on (as the kernel's futex table is).
//! Called by [`super::Thread`] when spinning has not helped, and by its futex operations.

use crossbeam::utils::CachePadded;

use super::sync::Monitor;

/// Buckets in the table, a power of two. Two addresses in one bucket cost a needless look by the
/// sleepers, never a wrong wake-up.
const BUCKETS: usize = if cfg!(loom) { 4 } else { 64 };

/// The table of sleepers.
pub(super) struct Parking {
    buckets: [CachePadded<Monitor<Bucket>>; BUCKETS],
}

#[derive(Default)]
struct Bucket {
    /// The threads that sleep here, the longest sleeper first.
    sleepers: Vec<Sleeper>,
    /// The next sleeper's ticket.
    next_ticket: u64,
}

struct Sleeper {
    address: u64,
    ticket: u64,
}

impl Parking {
    pub(super) fn new() -> Self {
        Self {
            buckets: std::array::from_fn(|_| CachePadded::new(Monitor::new(Bucket::default()))),
        }
    }

    /// Sleeps on `address` until woken, if `still` holds when the bucket is locked.
    ///
    /// No wake-up is lost when the waker changes what `still` reads before it calls [`wake`]: both
    /// lock the bucket, so either the waker is first and `still` sees the change, or this thread
    /// is on the list when the waker looks.
    ///
    /// [`wake`]: Self::wake
    pub(super) fn sleep_if(&self, address: u64, mut still: impl FnMut() -> bool) {
        let mut mine = None;
        self.bucket(address).wait_while(|bucket| match mine {
            None => {
                if !still() {
                    return false;
                }
                let ticket = bucket.next_ticket;
                bucket.next_ticket += 1;
                bucket.sleepers.push(Sleeper { address, ticket });
                mine = Some(ticket);
                true
            }
            Some(ticket) => bucket.sleepers.iter().any(|s| s.ticket == ticket),
        });
    }

    /// Wakes at most `count` of those who sleep on `address`, the longest sleepers first; returns
    /// how many.
    #[cold]
    pub(super) fn wake(&self, address: u64, count: u32) -> u32 {
        self.bucket(address).change(|bucket| {
            let mut woken = 0;
            bucket.sleepers.retain(|sleeper| {
                let stays = sleeper.address != address || woken == count;
                woken += u32::from(!stays);
                stays
            });
            (woken, woken > 0)
        })
    }

    fn bucket(&self, address: u64) -> &Monitor<Bucket> {
        let hash = if cfg!(loom) {
            // A word apart is a bucket apart, a byte apart is the same: both cases are checked.
            address / 8
        } else {
            // Fibonacci hashing: neighbours and multiples of a line both spread over the table.
            address.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32
        };
        &self.buckets[hash as usize % BUCKETS]
    }
}
