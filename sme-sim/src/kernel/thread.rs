//! Simulated programs: futures that ask their machine for something, and go on with its answer.
//!
//! A program is polled only when what it asked for has been done. Question and answer pass through
//! a mailbox of the host thread that polls, so a suspended program holds nothing but its own state,
//! and needs neither locks nor wakers. The machine defines its questions: any type is a
//! [`Question`] that has a mailbox.

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::thread::LocalKey;

use serde::{Deserialize, Serialize};

/// A place in a program.
pub type Site = &'static Location<'static>;

/// A request of a program to its machine.
///
/// ```
/// use std::thread::LocalKey;
/// use sme_sim::kernel::thread::{Mailbox, Question, Threads, ask, programs};
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
/// let program = async {
///     let doubled: u64 = ask(|| Double(4)).await;
///     assert_eq!(doubled, 8);
/// };
/// let mut threads = Threads::new(programs([program]));
/// let Ok(Some(Double(number))) = threads.resume(0, 0) else { panic!("it asks") };
/// assert_eq!(threads.resume::<Double>(0, 2 * number), Ok(None));
/// ```
pub trait Question: Copy + 'static {
    /// Returns the mailbox in which questions of this type are left for the machine, one for each
    /// thread of the host.
    fn mailbox() -> &'static LocalKey<Mailbox<Self>>;

    /// The answer, if the program can have it without asking.
    #[inline]
    fn in_place(&self) -> Option<u64> {
        None
    }
}

/// The mailbox in which a program leaves its question, and finds the answer.
pub struct Mailbox<Q> {
    question: Cell<Option<Q>>,
    answer: Cell<u64>,
    /// Whether the program has asked, and whether it has asked again, since it was last resumed.
    has_asked: Cell<bool>,
    has_asked_again: Cell<bool>,
}

/// A mistake in how a program waits, for which its thread cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Misuse {
    /// It began an operation while another was under way, or ended while one was.
    #[error("a thread has one operation under way: await it before the next")]
    SeveralOperations,
    /// It awaits a future that is no operation of the machine.
    #[error("the program awaits what is no operation of its memory, and would wait for ever")]
    NoOperation,
}

impl<Q> Mailbox<Q> {
    /// With nothing in it.
    pub const fn new() -> Self {
        Self {
            question: Cell::new(None),
            answer: Cell::new(0),
            has_asked: Cell::new(false),
            has_asked_again: Cell::new(false),
        }
    }

    /// Swaps the contents of two mailboxes.
    pub fn swap(&self, other: &Self) {
        self.question.swap(&other.question);
        self.answer.swap(&other.answer);
        self.has_asked.swap(&other.has_asked);
        self.has_asked_again.swap(&other.has_asked_again);
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

/// One operation of a program: asks when first polled (or is performed there and then), has its
/// answer when polled again. `F` makes the question and is no larger than what this one operation
/// is about: a waiting program keeps it.
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
                if mailbox.has_asked.get() {
                    mailbox.has_asked_again.set(true);
                    return Poll::Pending;
                }
                let question = question();
                if let Some(answer) = question.in_place() {
                    return Poll::Ready(T::from_mailbox(answer));
                }
                mailbox.has_asked.set(true);
                mailbox.question.set(Some(question));
                Poll::Pending
            }
            None => Poll::Ready(T::from_mailbox(mailbox.answer.get())),
        })
    }
}

/// An answer of a machine: 64 bits, or a part of them.
pub trait Answer {
    /// The answer that `answer` carries.
    fn from_mailbox(answer: u64) -> Self;
}

impl Answer for () {
    fn from_mailbox(_: u64) {}
}

impl Answer for bool {
    fn from_mailbox(answer: u64) -> bool {
        answer != 0
    }
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

/// Asks what `question` makes. Not an `async fn`: that would keep the question twice in every
/// waiting program.
#[inline]
pub fn ask<Q: Question, F: FnOnce() -> Q, T>(question: F) -> Asked<Q, F, T> {
    Asked {
        question: Some(question),
        kind: PhantomData,
    }
}

/// The program of a thread, with its type erased.
pub type Program = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The programs that a node begins with, all of one type. That type is erased for all of them
/// together: a machine is compiled once and not once for each program, and a thread costs one
/// pointer and not two.
pub trait Programs: Send {
    /// Returns the number of threads.
    fn len(&self) -> usize;

    /// Returns whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Lets one of them go on; one that has ended is forgotten, and has ended from then on.
    fn poll(&mut self, number: usize, context: &mut Context<'_>) -> Poll<()>;

    /// Forgets one of them.
    fn forget(&mut self, number: usize);

    /// Bytes of memory held at most, allocator overhead not counted.
    fn bytes(&self) -> usize;
}

/// Programs of type `F`, by number; those that have ended are gone.
struct Same<F>(Vec<Option<Pin<Box<F>>>>);

impl<F: Future<Output = ()> + Send> Programs for Same<F> {
    fn len(&self) -> usize {
        self.0.len()
    }

    #[inline]
    fn poll(&mut self, number: usize, context: &mut Context<'_>) -> Poll<()> {
        let program = &mut self.0[number];
        let polled = program
            .as_mut()
            .map_or(Poll::Ready(()), |program| program.as_mut().poll(context));
        if polled.is_ready() {
            *program = None;
        }
        polled
    }

    fn forget(&mut self, number: usize) {
        self.0[number] = None;
    }

    fn bytes(&self) -> usize {
        self.0.capacity() * size_of::<Option<Pin<Box<F>>>>() + self.0.len() * size_of::<F>()
    }
}

/// The programs of a node's threads, numbered from 0.
pub fn programs<F: Future<Output = ()> + Send + 'static>(
    programs: impl IntoIterator<Item = F>,
) -> Box<dyn Programs> {
    let programs = programs.into_iter();
    // Not `collect`: that would keep the allocation of the programs for the pointers to them.
    let mut boxed = Vec::with_capacity(programs.size_hint().0);
    boxed.extend(programs.map(|program| Some(Box::pin(program))));
    Box::new(Same(boxed))
}

/// The threads of one node.
pub struct Threads {
    programs: Box<dyn Programs>,
    /// The programs of those that were started while it ran, numbered after the others.
    started: Vec<Option<Program>>,
}

impl Threads {
    /// One thread for each of `programs`.
    pub fn new(programs: Box<dyn Programs>) -> Self {
        Self {
            programs,
            started: Vec::new(),
        }
    }

    /// One thread more, which runs `program`; its number.
    pub fn start(&mut self, program: Program) -> usize {
        self.started.push(Some(program));
        self.len() - 1
    }

    #[inline]
    fn poll(&mut self, number: usize, context: &mut Context<'_>) -> Poll<()> {
        match number.checked_sub(self.programs.len()) {
            None => self.programs.poll(number, context),
            Some(number) => {
                let program = self.started[number].as_mut();
                program.map_or(Poll::Ready(()), |program| program.as_mut().poll(context))
            }
        }
    }

    /// Ends thread `number` where it is, if it has not finished.
    pub fn forget(&mut self, number: usize) {
        match number.checked_sub(self.programs.len()) {
            None => self.programs.forget(number),
            Some(number) => self.started[number] = None,
        }
    }

    /// Hands `answer` to thread `number`; returns what it asks for next, `None` when it has
    /// finished. A thread that misuses its machine is forgotten, too.
    ///
    /// # Errors
    /// [`Misuse`] if it asks for several operations at a time, or suspends itself in any other way
    /// than by asking for one: then it could never be woken.
    #[inline]
    pub fn resume<Q: Question>(&mut self, number: usize, answer: u64) -> Result<Option<Q>, Misuse> {
        let next = Q::mailbox().with(|mailbox| {
            mailbox.answer.set(answer);
            mailbox.question.set(None);
            mailbox.has_asked.set(false);
            mailbox.has_asked_again.set(false);
            let mut context = Context::from_waker(Waker::noop());
            let is_over = self.poll(number, &mut context).is_ready();
            let has_asked = mailbox.has_asked.get();
            if mailbox.has_asked_again.get() || is_over && has_asked {
                return Err(Misuse::SeveralOperations);
            }
            match is_over || has_asked {
                true => Ok(mailbox.question.take()),
                false => Err(Misuse::NoOperation),
            }
        });
        if !matches!(next, Ok(Some(_))) {
            self.forget(number);
        }
        next
    }

    /// Returns the number of threads.
    pub fn len(&self) -> usize {
        self.programs.len() + self.started.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory held at most, allocator overhead not counted.
    pub fn bytes(&self) -> usize {
        let started = self.started.iter().flatten();
        let own: usize = started.map(|program| size_of_val(&**program)).sum();
        self.programs.bytes() + self.started.capacity() * size_of::<Option<Program>>() + own
    }
}
