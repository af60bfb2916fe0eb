//! Threads that wait for ever, and how a report tells of them: equal waits together, and first
//! those on which the others hang.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use sme_memory::{Place, Until};

use super::words;
use crate::time::Time;

/// The most waits of a report, each of one thread or of several that wait alike.
const NAMED: usize = 16;
/// The most waiting threads that are looked at: of more, the first.
pub const LISTED: usize = 4096;
/// The most stretches of threads that wait alike and are named.
const STRETCHES: usize = 3;

/// A thread that waits for ever.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stuck {
    /// Its node.
    pub node: u32,
    /// Its number there.
    pub core: u16,
    /// Its activity, in words.
    pub doing: Cow<'static, str>,
    /// The call of a library that it is in, and the place in its program, as far as it has told.
    pub call: Option<String>,
    /// The source file and line from which it waits, where that is known.
    pub site: Option<String>,
    /// The address that it waits on, where there is one.
    pub awaited: Option<Awaited>,
}

/// The address a thread waits on, and what is there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Awaited {
    /// The address, as the program gave it.
    pub address: u64,
    /// The node whose memory holds it, and the offset in that node's shared memory, in bytes; none
    /// where it is in no shared memory.
    pub place: Option<(u32, u64)>,
    /// The name of the variable there, where it has one.
    pub name: Option<String>,
    /// The condition that would end the wait.
    #[serde(with = "told")]
    pub until: Option<Until>,
    /// The value in the home node's coherent domain: what a load there would bring.
    pub at_home: u64,
    /// The value in its memory alone: another where a cache has a newer one.
    pub in_memory: u64,
    /// The value in the waiting core's own copy, where it has one.
    pub cached: Option<u64>,
    /// Node and number of the thread that wrote to it last, or to its line where no
    /// [time](Self::written_at) is known.
    pub writer: Option<(u32, u16)>,
    /// The time at which that write took effect at home, where that is known.
    pub written_at: Option<Time>,
    /// The holder of another value that is not written back.
    pub unwritten: Option<Holder>,
}

/// A node and a core whose cache holds a value, and the value: where a node has one cache for all
/// its cores, without the core.
pub type Holder = (u32, Option<u16>, u64);

/// A wait's condition as one process tells it another: whether it is to be a value, or not to be
/// it.
mod told {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use sme_memory::Until;

    pub fn serialize<S: Serializer>(until: &Option<Until>, to: S) -> Result<S::Ok, S::Error> {
        let told = until.map(|until| match until {
            Until::Is(value) => (true, value),
            Until::IsNot(value) => (false, value),
        });
        told.serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Until>, D::Error> {
        let told = Option::<(bool, u8)>::deserialize(from)?;
        Ok(told.map(|(is, value)| match is {
            true => Until::Is(value),
            false => Until::IsNot(value),
        }))
    }
}

/// Threads that wait alike.
#[derive(Debug)]
struct Wait<'a> {
    /// One of them.
    of: &'a Stuck,
    /// All of them, by node and number.
    threads: Vec<(u32, u16)>,
    /// The number of waits between it and one that hangs on no other: a thread is taken to wait for
    /// the one that wrote its word last. In a circle none does.
    behind: usize,
}

/// The waits of `stuck`: those that hang on no other first, in the order of their first threads.
fn waits(stuck: &[Stuck]) -> Vec<Wait<'_>> {
    let mut waits: Vec<Wait<'_>> = Vec::new();
    for thread in stuck {
        let alike = |wait: &&mut Wait<'_>| {
            let of = &wait.of;
            of.doing == thread.doing
                && (&of.call, &of.site) == (&thread.call, &thread.site)
                && of.awaited == thread.awaited
        };
        let threads = match waits.iter_mut().find(alike) {
            Some(wait) => &mut wait.threads,
            None => {
                waits.push(Wait {
                    of: thread,
                    threads: Vec::new(),
                    behind: 0,
                });
                let last = waits.len() - 1;
                &mut waits[last].threads
            }
        };
        threads.push((thread.node, thread.core));
    }
    let of_thread: HashMap<(u32, u16), usize> = (0..)
        .zip(&waits)
        .flat_map(|(number, wait)| wait.threads.iter().map(move |&thread| (thread, number)))
        .collect();
    let waits_for = |number: usize| {
        let writer = waits[number].of.awaited.as_ref()?.writer?;
        let other = *of_thread.get(&writer)?;
        (other != number).then_some(other)
    };
    let behind = |number: usize| {
        let chain = std::iter::successors(Some(number), |&number| waits_for(number));
        let length = chain.take(waits.len() + 1).count();
        // A chain that is longer than all waits runs in a circle.
        if length > waits.len() { 0 } else { length - 1 }
    };
    let all: Vec<usize> = (0..waits.len()).map(behind).collect();
    for (wait, behind) in waits.iter_mut().zip(all) {
        wait.behind = behind;
    }
    waits.sort_by_key(|wait| wait.behind);
    waits
}

/// Writes what a run that came to a standstill at `at` reports of its `stuck` threads, beside which
/// `more` wait.
pub(super) fn write_report(
    f: &mut fmt::Formatter<'_>,
    at: Time,
    stuck: &[Stuck],
    more: u64,
) -> fmt::Result {
    let waiting = stuck.len() as u64 + more;
    let (plural, verb) = if waiting == 1 { ("", "s") } else { ("s", "") };
    write!(
        f,
        "deadlock: at {at} nothing can happen any more, and {waiting} thread{plural} wait{verb}"
    )?;
    let waits = waits(stuck);
    let mut told = 0;
    let mut is_behind = false;
    for wait in waits.iter().take(NAMED) {
        if wait.behind > 0 && !is_behind {
            write!(f, "\nbehind them, for what threads above wrote last:")?;
            is_behind = true;
        }
        write!(f, "\n  {wait}")?;
        told += wait.threads.len() as u64;
    }
    match waiting - told {
        0 => Ok(()),
        rest => write!(f, "\n  and {rest} more"),
    }
}

impl fmt::Display for Wait<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut stretches: Vec<(u32, u16, u16)> = Vec::new();
        for &(node, core) in &self.threads {
            match stretches.last_mut() {
                Some((of, _, last)) if *of == node && *last + 1 == core => *last = core,
                _ => stretches.push((node, core, core)),
            }
        }
        for (number, &(node, first, last)) in stretches.iter().take(STRETCHES).enumerate() {
            let comma = if number > 0 { ", " } else { "" };
            write!(f, "{comma}node {node} core")?;
            match first == last {
                true => write!(f, " {first}")?,
                false => write!(f, "s {first} to {last}")?,
            }
        }
        if stretches.len() > STRETCHES {
            write!(f, ", …")?;
        }
        if self.threads.len() > 1 {
            write!(f, ", {} threads, each", self.threads.len())?;
        }
        write!(f, " {}", self.of.doing)?;
        if let Some(awaited) = &self.of.awaited {
            awaited.write_place(f)?;
        }
        if let Some(call) = &self.of.call {
            write!(f, ", in {call}")?;
        }
        if let Some(site) = &self.of.site {
            write!(f, ", in {site}")?;
        }
        self.of
            .awaited
            .as_ref()
            .map_or(Ok(()), |awaited| awaited.write_contents(f))
    }
}

impl Awaited {
    /// The awaited place and condition, as they stand behind a thread's activity.
    fn write_place(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " at ")?;
        if let Some(name) = &self.name {
            write!(f, "{name}, ")?;
        }
        match self.place {
            Some((node, offset)) => {
                let place = words::place(Place { node, offset });
                write!(f, "{place} ({:#x})", self.address)?;
            }
            None => write!(f, "{:#x}", self.address)?,
        }
        let comma = if self.name.is_some() { "," } else { "" };
        match self.until {
            Some(Until::Is(value)) => write!(f, "{comma} until it is {value}"),
            Some(Until::IsNot(value)) => write!(f, "{comma} until it is not {value}"),
            None => Ok(()),
        }
    }

    /// The contents of the place, behind that.
    fn write_contents(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let awaited = self;
        if awaited.in_memory == awaited.at_home {
            write!(f, ": memory at home holds {}", awaited.at_home)?;
        } else {
            let (newest, memory) = (awaited.at_home, awaited.in_memory);
            write!(f, ": a cache at home holds {newest}, memory {memory}")?;
        }
        match awaited.cached {
            Some(value) => write!(f, ", its cache {value}")?,
            None => write!(f, ", its cache nothing")?,
        }
        match awaited.writer {
            Some((node, core)) => write!(f, "; last written by node {node} core {core}")?,
            None => write!(f, "; never written")?,
        }
        if let Some(at) = awaited.written_at {
            write!(f, " at {at}")?;
        }
        let Some((node, core, value)) = awaited.unwritten else {
            return Ok(());
        };
        write!(f, "; the cache of node {node}")?;
        core.map_or(Ok(()), |core| write!(f, " core {core}"))?;
        write!(f, " holds {value}, which is not written back")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Threads of node 0 that wait for a word of their own, each written by another.
    fn stuck(writers: &[(u16, Option<u16>)]) -> Vec<Stuck> {
        let wait = |&(core, writer): &(u16, Option<u16>)| Stuck {
            node: 0,
            core,
            doing: "spins in its cache".into(),
            call: None,
            site: None,
            awaited: Some(Awaited {
                address: 64 * u64::from(core),
                place: Some((0, 64 * u64::from(core))),
                until: Some(Until::Is(1)),
                at_home: 0,
                in_memory: 0,
                cached: None,
                name: None,
                writer: writer.map(|core| (0, core)),
                written_at: None,
                unwritten: None,
            }),
        };
        writers.iter().map(wait).collect()
    }

    fn order(writers: &[(u16, Option<u16>)]) -> Vec<(u16, usize)> {
        let stuck = stuck(writers);
        let waits = waits(&stuck);
        waits
            .iter()
            .map(|wait| (wait.threads[0].1, wait.behind))
            .collect()
    }

    #[test]
    fn a_chain_begins_with_its_root() {
        let chain = [(1, Some(2)), (2, Some(3)), (3, None), (4, Some(9))];
        assert_eq!(order(&chain), [(3, 0), (4, 0), (2, 1), (1, 2)]);
    }

    #[test]
    fn a_circle_has_no_root() {
        // The third hangs on it; the fourth wrote its word itself.
        let circle = [(1, Some(2)), (2, Some(1)), (3, Some(1)), (4, Some(4))];
        assert_eq!(order(&circle), [(1, 0), (2, 0), (3, 0), (4, 0)]);
    }

    #[test]
    fn equal_waits_stand_together() {
        let mut alike = stuck(&[(1, None); 6]);
        for (thread, (node, core)) in
            alike
                .iter_mut()
                .zip([(0, 1), (0, 2), (0, 4), (1, 0), (2, 0), (2, 1)])
        {
            (thread.node, thread.core) = (node, core);
        }
        let text = waits(&alike)[0].to_string();
        let begin = "node 0 cores 1 to 2, node 0 core 4, node 1 core 0, …, 6 threads, each spins in its \
                     cache at byte 64 of node 0 (0x40) until it is 1: ";
        assert!(text.starts_with(begin), "{text}");
    }
}
