//! The calls of libraries that threads are in, for reports of threads that wait for ever, and for
//! timelines. Programs tell of them in [`Mark`]s, which take no simulated time.

use std::fmt;

use crate::kernel::thread::Site;
use crate::parts::contract::{Call, Mark};
use crate::time::Time;

/// A call of one thread that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadCall {
    /// The call.
    pub call: Call,
    /// Thread number in its node.
    pub thread: u16,
    /// The time at which it began.
    pub begin: Time,
    /// The time at which it ended.
    pub end: Time,
}

/// A call that a thread is in.
#[derive(Clone, Copy, Debug)]
pub struct OpenCall {
    call: Call,
    begin: Time,
    /// The place in the thread's program on whose behalf it waits, where it has told.
    site: Option<Site>,
}

/// The calls of a node's threads.
#[derive(Clone, Debug, Default)]
pub struct CallRecord {
    threads: Vec<Calls>,
    /// In the order in which they ended, where they are to be kept.
    ended: Vec<ThreadCall>,
}

/// The calls of one thread.
#[derive(Clone, Debug, Default)]
struct Calls {
    /// Those that it is in, the outermost first.
    open: Vec<OpenCall>,
    /// The time at which the next one has begun, if it has.
    ahead: Option<Time>,
}

impl CallRecord {
    /// Thread number `thread` says `mark` at `now`; a call that is over is kept if `keeps`.
    pub fn mark(&mut self, now: Time, thread: u16, mark: Mark, keeps: bool) {
        let number = usize::from(thread);
        if number >= self.threads.len() {
            self.threads.resize(number + 1, Calls::default());
        }
        let Calls { open, ahead } = &mut self.threads[number];
        match mark {
            Mark::Ahead(ago) => *ahead = Some(now.since(ago)),
            Mark::Enters(call) => open.push(OpenCall {
                call,
                begin: ahead.take().unwrap_or(now),
                site: None,
            }),
            Mark::At(site) => {
                if let Some(innermost) = open.last_mut() {
                    innermost.site = Some(site);
                }
            }
            Mark::Leaves => {
                if let Some(OpenCall { call, begin, .. }) = open.pop()
                    && keeps
                {
                    self.ended.push(ThreadCall {
                        call,
                        thread,
                        begin,
                        end: now,
                    });
                }
            }
            Mark::Begin(_) | Mark::End(_) | Mark::Counts => {}
        }
    }

    /// The innermost call that `thread` is in.
    pub fn open(&self, thread: u16) -> Option<&OpenCall> {
        self.threads.get(usize::from(thread))?.open.last()
    }

    /// The calls that are over, in the order of their ends, if they were kept.
    pub fn ended(&self) -> &[ThreadCall] {
        &self.ended
    }
}

/// `MPI_Recv from rank 3 at src/main.rs:7`
impl fmt::Display for OpenCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.call)?;
        match self.site {
            Some(site) => write!(f, " at {}:{}", site.file(), site.line()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::Location;

    use super::*;
    use crate::parts::contract::Toward;

    #[test]
    fn a_thread_is_in_the_innermost_call_that_it_has_not_left() {
        let mut record = CallRecord::default();
        let outer = Call::new("gather", 0);
        let inner = Call::new("receive", 8).of(Toward::From, 3);
        let told = |record: &CallRecord, thread| record.open(thread).map(ToString::to_string);
        let site = Location::caller();
        for (at, mark) in [
            (1, Mark::Enters(outer)),
            (2, Mark::Enters(inner)),
            (3, Mark::At(site)),
        ] {
            record.mark(Time::from_ns(at), 1, mark, true);
        }
        let place = format!("receive from rank 3 at {}:{}", site.file(), site.line());
        assert_eq!(told(&record, 1), Some(place));
        assert_eq!(told(&record, 0), None);
        record.mark(Time::from_ns(5), 1, Mark::Leaves, true);
        assert_eq!(told(&record, 1).as_deref(), Some("gather"));
        record.mark(Time::from_ns(6), 1, Mark::Leaves, false);
        assert_eq!(told(&record, 1), None);
        let kept = ThreadCall {
            call: inner,
            thread: 1,
            begin: Time::from_ns(2),
            end: Time::from_ns(5),
        };
        assert_eq!(record.ended(), [kept]);
    }

    #[test]
    fn a_call_begins_with_the_work_that_was_done_ahead() {
        let mut record = CallRecord::default();
        let [first, second] = ["first", "second"].map(|name| Call::new(name, 0));
        let marks = [
            (2, Mark::Ahead(Time::ZERO)),
            (3, Mark::Ahead(Time::from_ns(2))),
            (3, Mark::Enters(first)),
            (4, Mark::Leaves),
            (6, Mark::Enters(second)),
            (7, Mark::Leaves),
        ];
        for (at, mark) in marks {
            record.mark(Time::from_ns(at), 0, mark, true);
        }
        let begins = record.ended().iter().map(|call| call.begin);
        assert!(begins.eq([1, 6].map(Time::from_ns)));
    }

    #[test]
    fn leaving_no_call_is_no_panic() {
        let mut record = CallRecord::default();
        record.mark(Time::ZERO, 0, Mark::Leaves, true);
        assert!(record.ended().is_empty());
    }
}
