//! The parameters of a channel that commands take: which messages go which way.

use clap::Args;
use sme_mpi::channel::chunks::Ring;
use sme_mpi::channel::transfers::Modes;

use crate::cli::read::{self, Values};
use crate::messages::job::{Job, LAZY_BYTES, Library};
use crate::report::stop::Stop;

/// The flags.
#[derive(Args, Clone, Debug)]
pub(super) struct ModeFlags {
    /// Longest message that is sent at once, in bytes, or none; through channel queues in pieces of
    /// 96 bytes [default: 96 through channel queues, 960 through registered, else 16384]
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true)]
    eager: Option<String>,
    /// Longest message that is copied, in bytes, or none: a blocking send copies up to this length,
    /// and the resource manager sends the copy [default: none]
    #[arg(
        long,
        value_name = "BYTES",
        allow_negative_numbers = true,
        help_heading = "Channel queues"
    )]
    lazy: Option<String>,
    /// Shortest message by DMA, in bytes, or none: a DMA channel sends blocking sends from this
    /// length on [default: 4096]
    #[arg(
        long,
        value_name = "BYTES",
        allow_negative_numbers = true,
        help_heading = "Channel queues"
    )]
    dma: Option<String>,
    /// Bytes for such copies [default: 65536]
    #[arg(
        long,
        value_name = "BYTES",
        allow_negative_numbers = true,
        help_heading = "Channel queues"
    )]
    lazy_buffer: Option<String>,
    /// Control messages that each rank may have under way to each other one: slots of its queue
    /// [default: 8]
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        help_heading = "Channel queues"
    )]
    credits: Option<String>,
    /// Bytes of a chunk, a multiple of 64; Open MPI has 32768, MPICH 65536 [default: 32768]
    #[arg(
        long,
        value_name = "BYTES",
        allow_negative_numbers = true,
        help_heading = "Channel chunks"
    )]
    chunk: Option<String>,
    /// Chunks of the ring from each rank to each other one [default: 8]
    #[arg(
        long,
        value_name = "N",
        allow_negative_numbers = true,
        help_heading = "Channel chunks"
    )]
    ring: Option<String>,
}

/// The most slots of a queue that a rank has for each other one.
const MOST_CREDITS: u32 = 256;

impl ModeFlags {
    /// The flags that are given, each with the channels that have such a thing.
    fn all_given(&self) -> impl Iterator<Item = (&'static str, fn(Library) -> bool)> {
        let is_queues: fn(Library) -> bool = |library| library == Library::Queues;
        let is_chunks: fn(Library) -> bool = |library| library == Library::Chunks;
        let flags = [
            ("--lazy", &self.lazy, is_queues),
            ("--dma", &self.dma, is_queues),
            ("--lazy-buffer", &self.lazy_buffer, is_queues),
            ("--credits", &self.credits, is_queues),
            ("--chunk", &self.chunk, is_chunks),
            ("--ring", &self.ring, is_chunks),
            ("--eager", &self.eager, Library::is_mpi),
        ];
        let given = flags.into_iter().filter(|(_, value, _)| value.is_some());
        given.map(|(flag, _, is_of)| (flag, is_of))
    }

    /// A flag that says which way messages go, if one is given.
    pub(super) fn of_ways(&self) -> Option<&'static str> {
        let given = |flag, value: &Option<String>| value.as_ref().map(|_| flag);
        let dma = given("--dma", &self.dma);
        let lazy = given("--lazy", &self.lazy);
        given("--eager", &self.eager).or(lazy).or(dma)
    }

    /// The jobs with these parameters.
    pub(super) fn apply(&self, jobs: Vec<Job>) -> Result<Vec<Job>, Stop> {
        for (flag, is_of) in self.all_given() {
            if let Some(other) = jobs.iter().find(|job| !is_of(job.library)) {
                let why = format!("channel {} has no such thing", other.library);
                return Err(Stop::flag(flag, why));
            }
        }
        jobs.into_iter().map(|job| self.applied(job)).collect()
    }

    fn applied(&self, job: Job) -> Result<Job, Stop> {
        let bytes = |flag, text: &Option<String>, default| match text.as_deref() {
            None => Ok(default),
            Some("none") => Ok(None),
            Some(text) => {
                let bytes = read::numbers(flag, text, 0, u64::MAX, Values::One)?;
                Ok(Some(read::one(flag, bytes)?))
            }
        };
        let modes = Modes {
            eager_bytes: bytes("--eager", &self.eager, job.modes.eager_bytes)?,
            lazy_bytes: bytes("--lazy", &self.lazy, job.modes.lazy_bytes)?,
            engine_bytes: bytes("--dma", &self.dma, job.modes.engine_bytes)?,
        };
        let lazy_buffer = match &self.lazy_buffer {
            None => job.lazy_bytes,
            Some(text) => {
                let flag = "--lazy-buffer";
                read::one(flag, read::numbers(flag, text, 0, LAZY_BYTES, Values::One)?)?
            }
        };
        let credits = match &self.credits {
            None => job.credits,
            Some(text) => {
                let flag = "--credits";
                read::one(
                    flag,
                    read::counts(flag, text, 1, MOST_CREDITS, Values::One)?,
                )?
            }
        };
        Ok(Job {
            modes,
            lazy_bytes: lazy_buffer,
            credits,
            ring: self.ring(job.ring)?,
            ..job
        })
    }

    fn ring(&self, default: Ring) -> Result<Ring, Stop> {
        let chunk_bytes = match &self.chunk {
            None => default.chunk_bytes(),
            Some(text) => {
                let flag = "--chunk";
                let bytes = read::numbers(flag, text, 64, Ring::MOST_CHUNK_BYTES, Values::One)?;
                read::one(flag, bytes)?
            }
        };
        let chunks = match &self.ring {
            None => default.chunks(),
            Some(text) => {
                let flag = "--ring";
                read::one(
                    flag,
                    read::counts(flag, text, 1, Ring::MOST_CHUNKS, Values::One)?,
                )?
            }
        };
        let ring = default.resized(chunk_bytes, chunks);
        ring.map_err(|error| Stop::flag("--chunk or --ring", error))
    }
}
