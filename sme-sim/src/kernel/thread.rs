//! Simulated programs: futures that ask their machine for something, and go on with its answer.
//!
//! A program is polled only when what it asked for has been done. Question and answer pass
//! through a mailbox of the host thread that polls, so a suspended program holds nothing but its
//! own state, and needs neither locks nor wakers. What can be asked is for the machine to say: any type
//! is a [`Question`] that has a mailbox.

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::thread::LocalKey;

/// A place in a program.
pub type Site = &'static Location<'static>;

/// What programs ask of a machine.
///
/// ```
/// use std::thread::LocalKey;
/// use sme_sim::kernel::thread::{Mailbox, Program, Question, Threads, ask};
///
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// struct Double(u64);
///
/// impl Question for Double {
///     fn mailbox() -> &'static LocalKey<Mailbox<Self>> {
///         thread_local!(static MAILBOX: Mailbox<Double> = const { Mailbox::new() });
///         &MAILBOX
///     }
/// }
///
/// let program: Program = Box::pin(async {
///     let doubled: u64 = ask(|| Double(4)).await;
///     assert_eq!(doubled, 8);
/// });
/// let mut threads = Threads::new([program]);
/// let Some(Double(number)) = threads.resume(0, 0) else { panic!("it asks") };
/// assert_eq!(threads.resume::<Double>(0, 2 * number), None);
/// ```
pub trait Question: Copy + 'static {
    /// Where questions of this type are left for the machine, one for each thread of the host.
    fn mailbox() -> &'static LocalKey<Mailbox<Self>>;

    /// The answer, if the program can have it without asking.
    #[inline]
    fn in_place(&self) -> Option<u64> {
        None
    }
}

/// Where a program leaves its question, and finds the answer.
pub struct Mailbox<Q> {
    question: Cell<Option<Q>>,
    answer: Cell<u64>,
}

impl<Q> Mailbox<Q> {
    /// With nothing in it.
    pub const fn new() -> Self {
        Self {
            question: Cell::new(None),
            answer: Cell::new(0),
        }
    }
}

impl<Q> Default for Mailbox<Q> {
    fn default() -> Self {
        Self::new()
    }
}

impl<Q> fmt::Debug for Mailbox<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mailbox")
    }
}

/// One operation of a program: asks when first polled (or is performed there and then), has its answer
/// when polled again. `F` makes the question and is no larger than what this one operation is about: a
/// waiting program keeps it.
#[derive(Debug)]
pub struct Asked<Q, F, T> {
    question: Option<F>,
    kind: PhantomData<fn() -> (Q, T)>,
}

impl<Q: Question, F: FnOnce() -> Q + Unpin, T: Answer> Future for Asked<Q, F, T> {
    type Output = T;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<T> {
        Q::mailbox().with(|mailbox| match self.question.take() {
            Some(question) => {
                let question = question();
                if let Some(answer) = question.in_place() {
                    return Poll::Ready(T::from_mailbox(answer));
                }
                mailbox.question.set(Some(question));
                Poll::Pending
            }
            None => Poll::Ready(T::from_mailbox(mailbox.answer.get())),
        })
    }
}

/// What a machine can answer: 64 bits, or a part of them.
pub trait Answer {
    /// The answer that `answer` carries.
    fn from_mailbox(answer: u64) -> Self;
}

impl Answer for () {
    fn from_mailbox(_: u64) {}
}

impl Answer for u8 {
    fn from_mailbox(answer: u64) -> u8 {
        answer as u8
    }
}

impl Answer for u32 {
    fn from_mailbox(answer: u64) -> u32 {
        answer as u32
    }
}

impl Answer for u64 {
    fn from_mailbox(answer: u64) -> u64 {
        answer
    }
}

/// Asks what `question` makes. Not an `async fn`: that would keep the question twice in every waiting
/// program.
#[inline]
pub fn ask<Q: Question, F: FnOnce() -> Q, T>(question: F) -> Asked<Q, F, T> {
    Asked {
        question: Some(question),
        kind: PhantomData,
    }
}

/// What a thread runs. Its type is erased, so that a machine is compiled once and not once for each
/// program; a program is polled through one pointer and compiled as a whole.
pub type Program = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The programs of one node, numbered from 0.
pub struct Threads {
    programs: Vec<Option<Program>>,
    unfinished: u32,
    /// What all programs take together; a program is given back when it ends.
    program_bytes: usize,
}

impl Threads {
    /// One thread for each program.
    pub fn new(programs: impl IntoIterator<Item = Program>) -> Self {
        let programs: Vec<_> = programs.into_iter().map(Some).collect();
        let unfinished = programs.len() as u32;
        let bytes = programs
            .iter()
            .flatten()
            .map(|program| size_of_val(&**program));
        Self {
            program_bytes: bytes.sum(),
            programs,
            unfinished,
        }
    }

    /// Hands `answer` to thread `number`; returns what it asks for next, `None` when it has
    /// finished. A program that suspends itself in any other way than by a memory operation can
    /// never be woken: that is a mistake in the program, and it counts as finished.
    #[inline]
    pub fn resume<Q: Question>(&mut self, number: usize, answer: u64) -> Option<Q> {
        let program = self.programs[number].as_mut()?;
        let question = Q::mailbox().with(|mailbox| {
            mailbox.answer.set(answer);
            mailbox.question.set(None);
            match program
                .as_mut()
                .poll(&mut Context::from_waker(Waker::noop()))
            {
                Poll::Ready(()) => None,
                Poll::Pending => mailbox.question.take(),
            }
        });
        if question.is_none() {
            self.programs[number] = None;
            self.unfinished -= 1;
        }
        question
    }

    /// How many threads there are.
    pub fn len(&self) -> usize {
        self.programs.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.programs.is_empty()
    }

    /// How many have not finished.
    pub fn unfinished(&self) -> u32 {
        self.unfinished
    }

    /// Bytes of memory held at most, allocator overhead not counted.
    pub fn bytes(&self) -> usize {
        self.programs.capacity() * size_of::<Option<Program>>() + self.program_bytes
    }
}
