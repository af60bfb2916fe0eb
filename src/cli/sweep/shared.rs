//! The points of a sweep shared by several processes: each simulates every so many-th, and sends
//! the rows to process 0, which puts them in order. With one process nothing is sent.
//!
//! Called by [`super`]; what the processes are connected by is behind [`Crew`].

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sme_sim::kernel::peers::PeerError;

use super::{Experiment, Row, Stop};
use crate::distributed::{Crew, gone};

/// The row of a point, or why it has none, under the point's number.
pub type Numbered = (usize, Result<Row, Stop>);

/// Sleep of a process that waits for a message, before it looks again: a point takes longer.
const NAP: Duration = Duration::from_millis(1);

/// Messages between processes.
#[derive(Serialize, Deserialize)]
enum Said {
    /// The first: simulate your share of the points from this number on.
    Begin(u64),
    /// The first: take no further point.
    Stop,
    /// Another: this came out.
    Row(u64, Result<Row, Stop>),
    /// Another: my share is done.
    Done,
}

/// The points that fall to one process.
#[derive(Debug)]
pub struct Share {
    next: AtomicUsize,
    step: usize,
}

impl Share {
    /// Of this process of `crew`, from point `first` on.
    pub fn new(crew: &dyn Crew, first: usize) -> Self {
        Self {
            next: AtomicUsize::new(first + crew.me()),
            step: crew.count(),
        }
    }

    /// The next point and its number.
    pub fn next<'p>(&self, points: &'p [Experiment]) -> Option<(usize, &'p Experiment)> {
        let index = self.next.fetch_add(self.step, Ordering::Relaxed);
        Some((index, points.get(index)?))
    }

    /// Processes that still work take none of these `points` any more.
    pub fn stop(&self, points: usize) {
        self.next.store(points, Ordering::Relaxed);
    }
}

/// The other processes, as the first sees them.
pub struct Leading<'c> {
    pub crew: &'c mut dyn Crew,
    begun: bool,
    /// Number of processes that have not said that they are done.
    busy: usize,
}

impl<'c> Leading<'c> {
    /// Those of `crew`, who wait to be told to begin.
    pub fn new(crew: &'c mut dyn Crew) -> Self {
        Self {
            busy: crew.count() - 1,
            crew,
            begun: false,
        }
    }

    /// Tells them to begin with point `first`.
    pub fn begin(&mut self, first: usize) -> Result<(), Stop> {
        self.begun = true;
        self.tell_all(&Said::Begin(first as u64))
    }

    /// The results of all processes as they come; this one's come from `own`.
    pub fn results(
        &mut self,
        own: mpsc::Receiver<Numbered>,
    ) -> impl Iterator<Item = Result<Numbered, Stop>> {
        let mut open = true;
        std::iter::from_fn(move || {
            while open || self.busy > 0 {
                let received = match self.busy {
                    0 => own.recv().map_err(|_| mpsc::RecvTimeoutError::Disconnected),
                    _ => own.recv_timeout(NAP),
                };
                match received {
                    Ok(numbered) => return Some(Ok(numbered)),
                    Err(mpsc::RecvTimeoutError::Timeout) => {}
                    Err(mpsc::RecvTimeoutError::Disconnected) if open => open = false,
                    Err(mpsc::RecvTimeoutError::Disconnected) => std::thread::sleep(NAP),
                }
                match self.hear() {
                    Ok(Some(numbered)) => return Some(Ok(numbered)),
                    Ok(None) => {}
                    Err(stop) => return Some(Err(stop)),
                }
            }
            None
        })
    }

    /// Waits until all are done; they take no further point.
    pub fn end(&mut self) -> Result<(), Stop> {
        if self.busy > 0 {
            self.tell_all(&Said::Stop)?;
        }
        while self.busy > 0 {
            if self.hear()?.is_none() {
                std::thread::sleep(NAP);
            }
        }
        Ok(())
    }

    /// Lets them go if they have not been told to begin.
    pub fn dismiss(&mut self) -> Result<(), Stop> {
        match self.begun {
            true => Ok(()),
            false => self.tell_all(&Said::Stop),
        }
    }

    fn tell_all(&mut self, said: &Said) -> Result<(), Stop> {
        for process in 1..self.crew.count() {
            tell(self.crew, process, said)?;
        }
        Ok(())
    }

    /// A result that another process has sent, if there is one now.
    fn hear(&mut self) -> Result<Option<Numbered>, Stop> {
        match hear(self.crew)? {
            Some(Said::Row(number, result)) => Ok(Some((number as usize, result))),
            Some(Said::Done) => {
                self.busy -= 1;
                Ok(None)
            }
            Some(Said::Begin(_) | Said::Stop) | None => Ok(None),
        }
    }
}

/// From which point on this process is to simulate its share; `None` if there is nothing to do.
pub fn awaited_beginning(crew: &mut dyn Crew) -> Result<Option<usize>, Stop> {
    loop {
        match hear(crew)? {
            Some(Said::Begin(first)) => return Ok(Some(first as usize)),
            Some(Said::Stop) => return Ok(None),
            Some(Said::Row(..) | Said::Done) | None => std::thread::sleep(NAP),
        }
    }
}

/// Sends the results of this process to the first as they come, and calls `stop` if that wants no
/// more.
pub fn send_results(
    crew: &mut dyn Crew,
    own: mpsc::Receiver<Numbered>,
    stop: impl Fn(),
) -> Result<(), Stop> {
    loop {
        match own.recv_timeout(NAP) {
            Ok((number, result)) => tell(crew, 0, &Said::Row(number as u64, result))?,
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
        }
        if let Some(Said::Stop) = hear(crew)? {
            stop();
        }
    }
    tell(crew, 0, &Said::Done)
}

fn tell(crew: &mut dyn Crew, process: usize, said: &Said) -> Result<(), Stop> {
    let sent = match postcard::to_stdvec(said) {
        Ok(message) => crew.send(process, message),
        Err(error) => Err(PeerError::Garbled {
            process: crew.me(),
            reason: error.to_string(),
        }),
    };
    sent.map_err(|error| gone(crew, &error))
}

fn hear(crew: &mut dyn Crew) -> Result<Option<Said>, Stop> {
    let heard = match crew.receive() {
        Ok(None) => Ok(None),
        Ok(Some((process, message))) => match postcard::from_bytes(&message) {
            Ok(said) => Ok(Some(said)),
            Err(error) => Err(PeerError::Garbled {
                process,
                reason: error.to_string(),
            }),
        },
        Err(error) => Err(error),
    };
    heard.map_err(|error| gone(crew, &error))
}
