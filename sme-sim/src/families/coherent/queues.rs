//! The queues of accesses: places in buffers, and parts that serve one after the other.

use crate::time::Time;

/// Places, each with the time from which it is free.
#[derive(Clone, Debug)]
pub(super) struct Places(Vec<Time>);

impl Places {
    /// So many, all free.
    pub(super) fn new(count: u32) -> Self {
        Self(vec![Time::ZERO; count as usize])
    }

    /// The time from which one is free.
    pub(super) fn free_from(&self) -> Time {
        self.0.iter().copied().min().unwrap_or(Time::ZERO)
    }

    /// Takes the place that is free first, until then.
    pub(super) fn take(&mut self, until: Time) {
        if let Some(place) = self.0.iter_mut().min() {
            *place = until;
        }
    }
}

/// A part that serves one after the other. Arrivals are announced not quite in the order of time,
/// since a transaction is worked out when it begins: an arrival waits for the work that is there,
/// and not for another that was announced earlier and arrives later.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Server {
    /// The time of the latest arrival.
    last: Time,
    /// The work that was there then.
    work: Time,
}

impl Server {
    /// Serves who comes at `at`, for so long; when that begins.
    pub(super) fn serve(&mut self, at: Time, busy: Time) -> Time {
        if at > self.last {
            let passed = at.since(self.last);
            self.work = Time::from_ps(self.work.as_ps().saturating_sub(passed.as_ps()));
            self.last = at;
        }
        let begin = at + self.work;
        self.work += busy;
        begin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_third_of_two_waits_for_the_first_that_goes() {
        let mut places = Places::new(2);
        places.take(Time::from_ns(30));
        assert_eq!(places.free_from(), Time::ZERO);
        places.take(Time::from_ns(20));
        assert_eq!(places.free_from(), Time::from_ns(20));
        places.take(Time::from_ns(50));
        assert_eq!(places.free_from(), Time::from_ns(30));
    }

    #[test]
    fn a_server_takes_one_after_the_other() {
        let mut server = Server::default();
        let (at, busy) = (Time::from_ns(10), Time::from_ns(4));
        assert_eq!(server.serve(at, busy), at);
        assert_eq!(server.serve(at, busy), Time::from_ns(14));
        assert_eq!(server.serve(Time::from_ns(40), busy), Time::from_ns(40));
        // One who comes earlier waits for the work of that one, and not until it comes.
        assert_eq!(server.serve(Time::from_ns(20), busy), Time::from_ns(24));
    }
}
