//! Processes that are started later: the arguments of MPI_Comm_spawn and MPI_Comm_spawn_multiple,
//! and what a process that has been started so does first.

use std::sync::Arc;

use super::arguments::Arguments;
use super::program::Part;
use super::rank::{Ended, Failure, Rank, SUCCESS};
use super::server::Server;
use crate::channel::Channel;
use crate::error::{ErrorClass, Fault};
use crate::info::Info;
use crate::processor::Work;

/// The most texts of a list, or parts of a program.
const MOST: usize = 1 << 16;

/// The most bytes of all names and arguments of a program: those that Linux takes.
const MOST_BYTES: usize = 2 << 20;

/// Codes of errors that are written at a time: the program may ask for more than it has room for.
const PIECE: u64 = 1024;

impl<C: Channel> Server<'_, C> {
    /// MPI_Comm_spawn, MPI_Comm_spawn_multiple.
    pub(super) async fn spawn(&mut self, a: &mut Arguments<'_>) -> Ended {
        let is_one = a.call.name == "Comm_spawn";
        let place = a.call.names.iter().position(|&name| name == "root");
        let place = place.unwrap_or_default();
        let (root, comm) = (a.root_at(place)?, a.names_comm(place + 1)?);
        let parts = match (root == comm.rank(), is_one) {
            // The other ranks' arguments say nothing.
            (false, _) => Ok(Vec::new()),
            (true, true) => part(a).map(|part| vec![part]).and_then(checked),
            (true, false) => parts(a).and_then(checked),
        };
        a.goes_to(place + 1);
        let (_, object) = a.comm_object()?;
        let (at, codes) = (a.address(), a.out());
        let counts = parts.as_deref().unwrap_or_default();
        let counts: Vec<u32> = counts.iter().map(|part| part.count).collect();
        let on = self.mpi.on(object.comm);
        let program = Arc::clone(&self.rank.program);
        // The root tells the others what is wrong with its arguments.
        let starter = self.mpi.on_standby(|_| match &parts {
            Ok(parts) => program.start(parts),
            Err(failure) => Err(Fault::new(ErrorClass::Spawn, "command", failure.text())),
        });
        let made = match is_one {
            true => {
                let count = counts.first().copied().unwrap_or_default();
                on.spawn(&starter, count, root).await
            }
            false => on.spawn_multiple(&starter, &counts, root).await,
        };
        let (code, count) = match &made {
            Ok(made) => (0, made.handle().peers().size().into()),
            // The other ranks have not been told of how many processes.
            Err(error) => {
                let count = counts.iter().map(|&count| u64::from(count)).sum();
                (self.rank.code(error.class), count)
            }
        };
        if codes.address != 0 {
            for begin in (0..count).step_by(PIECE as usize) {
                let piece = vec![code; PIECE.min(count - begin) as usize];
                a.put_all(codes.behind(begin), &piece)?;
            }
        }
        self.made(a, at, Some(made?), object.object.handler)?;
        SUCCESS
    }

    /// Connects the process with those that have had it started, if some have: a part of MPI_Init.
    pub(super) async fn meets_parent(&mut self) -> Result<(), Failure> {
        let Some(begun) = self.begun.take() else {
            return Ok(());
        };
        self.mpi.channel().work(&[(Work::Init, 1)]).await;
        self.mpi.enters_later().await;
        self.mpi.has_parent(&begun.port).await?;
        self.rank.objects.lock().is_awaited = false;
        if let Some(parent) = self.mpi.parent() {
            let mut objects = self.rank.objects.lock();
            objects.has_parent(parent.handle().clone());
        }
        Ok(())
    }
}

/// The parts of a program that has a process.
fn checked(parts: Vec<Part>) -> Result<Vec<Part>, Failure> {
    match parts.iter().all(|part| part.count == 0) {
        true => {
            let text = "maxprocs: no process is wanted";
            Err(Failure::new(ErrorClass::Arg, text))
        }
        false => Ok(parts),
    }
}

/// The part of a program that the first four arguments of MPI_Comm_spawn describe.
fn part(a: &mut Arguments<'_>) -> Result<Part, Failure> {
    let (command, arguments) = (a.address(), a.address());
    let (count, info) = (a.number(), a.info()?);
    described(a.rank, (command, arguments), (count, &info), &mut 0)
}

/// The parts that the first five arguments of MPI_Comm_spawn_multiple describe: their number, and
/// an array of each property.
fn parts(a: &mut Arguments<'_>) -> Result<Vec<Part>, Failure> {
    let all = a.length()?;
    if all == 0 || all > MOST {
        let text = format!("count: a program of {all} parts is not possible");
        return Err(Failure::new(ErrorClass::Arg, text));
    }
    let rank = a.rank;
    let commands = rank.numbers(a.address(), all, 8)?;
    let arguments = match a.address() {
        0 => vec![0; all],
        lists => rank.numbers(lists, all, 8)?,
    };
    let counts = a.numbers(all)?;
    let infos = a.address();
    let infos = a.handles_at(infos, all)?;
    let texts = commands.into_iter().zip(arguments);
    let all = texts.zip(counts).zip(infos);
    let mut bytes = 0;
    all.map(|(((command, arguments), count), info)| {
        let info = a.info_behind(info)?;
        let texts = (command as u64, arguments as u64);
        described(rank, texts, (count, &info), &mut bytes)
    })
    .collect()
}

/// The part of a program whose name is at an address and its arguments at another one; the parts
/// before it have so many bytes.
fn described(
    rank: &Rank,
    (command, arguments): (u64, u64),
    (count, info): (i64, &Info),
    bytes: &mut usize,
) -> Result<Part, Failure> {
    let count = u32::try_from(count).map_err(|_| {
        let text = format!("maxprocs: {count} processes are not possible");
        Failure::new(ErrorClass::Arg, text)
    })?;
    let value = |key| Ok::<_, Failure>(info.get(key)?.map(|value| value.as_bytes().to_vec()));
    Ok(Part {
        command: text(rank, command, bytes)?,
        arguments: texts(rank, arguments, bytes)?,
        count,
        directory: value("wdir")?,
        path: value("path")?,
    })
}

/// The text at an address, behind so many bytes of others.
fn text(rank: &Rank, address: u64, bytes: &mut usize) -> Result<Vec<u8>, Failure> {
    let text = rank.bytes_of_string(address)?;
    *bytes += text.len() + 1;
    match *bytes > MOST_BYTES {
        true => {
            let text = format!("argv: the program and its arguments are longer than {MOST_BYTES}");
            Err(Failure::new(ErrorClass::Arg, text + " bytes"))
        }
        false => Ok(text),
    }
}

/// The texts whose addresses are at an address, with a null pointer behind them; none without such
/// a list.
fn texts(rank: &Rank, list: u64, bytes: &mut usize) -> Result<Vec<Vec<u8>>, Failure> {
    let mut texts = Vec::new();
    if list == 0 {
        return Ok(texts);
    }
    while texts.len() < MOST {
        let at = list.wrapping_add(8 * texts.len() as u64);
        match rank.numbers(at, 1, 8)?[..] {
            [0] | [] => return Ok(texts),
            [address, ..] => texts.push(text(rank, address as u64, bytes)?),
        }
    }
    let text = "argv: a list without an end";
    Err(Failure::new(ErrorClass::Arg, text))
}
