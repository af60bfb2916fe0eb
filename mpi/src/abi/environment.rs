//! Beginning and end, times, versions, names.

use std::sync::Arc;

use super::arguments::Arguments;
use super::facts::{Chapter, Interface};
use super::rank::{Ended, Failure, Rank, SUCCESS};
use super::server::Server;
use crate::channel::Channel;
use crate::error::ErrorClass;
use crate::info::Info;

/// The version of the standard in either interface.
const VERSIONS: [(i64, i64); 2] = [(4, 1), (5, 0)];

/// The resolution of times, in seconds: a nanosecond.
const TICK_S: f64 = 1e-9;

/// The sizes of Fortran's types.
const FORTRAN: [(&str, u32); 4] = [
    ("mpi_logical_size", 4),
    ("mpi_integer_size", 4),
    ("mpi_real_size", 4),
    ("mpi_double_precision_size", 8),
];

/// Fortran's types that need not be there.
const OPTIONAL: [&str; 19] = [
    "logical1",
    "logical2",
    "logical4",
    "logical8",
    "logical16",
    "integer1",
    "integer2",
    "integer4",
    "integer8",
    "integer16",
    "real2",
    "real4",
    "real8",
    "real16",
    "complex4",
    "complex8",
    "complex16",
    "complex32",
    "double_complex",
];

/// The name of a node, of which there are so many.
fn processor(machine: &str, node: u32) -> String {
    format!("{machine}-{node}")
}

impl<C: Channel> Server<'_, C> {
    pub(super) async fn environment(&mut self, a: &mut Arguments<'_>) -> Ended {
        match a.call.name {
            "Init" | "Init_thread" => {
                self.meets_parent().await?;
                self.rank.of_environment(a)
            }
            "Finalize" => self.finalize().await,
            "Wtime" => Ok(self.clock_s().await.to_bits()),
            _ => self.rank.of_environment(a),
        }
    }

    async fn finalize(&mut self) -> Ended {
        // The attributes of the rank's own communicator end first (MPI-4.1, Sec. 11.2.4).
        let own = self.rank.interface.handle("COMM_SELF");
        let attached = {
            let mut objects = self.rank.objects.lock();
            let object = objects.comms.get_mut(&own).map(|own| &mut own.object);
            object.map(|own| std::mem::take(&mut own.attributes))
        };
        self.deletes(own, &attached.unwrap_or_default()).await?;
        self.mpi.finishes().await?;
        self.rank.objects.lock().is_finalized = true;
        self.rank.program.is_finalized();
        SUCCESS
    }
}

impl Arguments<'_> {
    /// Checks that the call comes between MPI_Init and MPI_Finalize, or while there is a session,
    /// or may be made at any time (MPI-4.1, Sec. 11.4).
    pub(super) fn is_in_time(&self) -> Result<(), Failure> {
        let is_any_time = match self.call.chapter {
            Chapter::Info | Chapter::Sessions | Chapter::Tools => true,
            Chapter::Errors => !OF_OBJECTS.iter().any(|of| self.call.name.starts_with(of)),
            _ => ANY_TIME.contains(&self.call.name),
        };
        let objects = self.rank.objects.lock();
        let is_within = objects.is_initialized && !objects.is_finalized;
        if is_any_time || is_within || !objects.sessions.is_empty() {
            return Ok(());
        }
        let text = match objects.is_finalized {
            true => "MPI_Finalize has been called before",
            false => "MPI_Init has not been called",
        };
        Err(Failure::new(ErrorClass::Other, text))
    }
}

/// The calls that may be made at any time, of chapters most of whose calls may not; the times are
/// among them as programs expect.
const ANY_TIME: [&str; 10] = [
    "Abi_get_fortran_info",
    "Abi_get_info",
    "Abi_get_version",
    "Abort",
    "Get_library_version",
    "Get_version",
    "Init",
    "Init_thread",
    "Wtick",
    "Wtime",
];

/// Calls about errors of these objects begin so: the objects are not there at any time.
const OF_OBJECTS: [&str; 5] = ["Comm_", "Errhandler_get", "Errhandler_set", "File_", "Win_"];

impl Rank {
    /// MPI_Init of a process that has met those that have had it started.
    fn initialize(&self, threads: i64) -> Ended {
        let mut objects = self.objects.lock();
        if objects.is_initialized {
            let text = "MPI_Init has been called before";
            return Err(Failure::new(ErrorClass::Other, text));
        }
        objects.is_initialized = true;
        objects.threads = threads;
        self.program.is_initialized();
        SUCCESS
    }

    /// Those of these calls that need neither other ranks nor a clock.
    pub(super) fn of_environment(self: &Arc<Self>, a: &mut Arguments<'_>) -> Ended {
        match a.call.name {
            "Init" => self.initialize(a.interface().constant("THREAD_SINGLE")),
            "Init_thread" => {
                a.skip();
                a.skip();
                let required = a.number();
                let most = a.interface().constant("THREAD_SERIALIZED");
                let threads = required.min(most);
                self.initialize(threads)?;
                let provided = a.out();
                a.put(provided, threads)?;
                SUCCESS
            }
            "Query_thread" => {
                let provided = a.out();
                let threads = self.objects.lock().threads;
                a.put(provided, threads)?;
                SUCCESS
            }
            // The library of the process has found no memory.
            "Alloc_mem" => Err(match a.number() {
                bytes @ ..0 => Failure::new(ErrorClass::Arg, format!("size: {bytes} is negative")),
                bytes => {
                    let text = format!("size: there is no memory of {bytes} bytes");
                    Failure::new(ErrorClass::NoMem, text)
                }
            }),
            "Abort" => {
                a.skip();
                let status = a.number() as i32;
                let why = format!("MPI_Abort with {status}");
                self.program.abort(status, why);
                Err(Failure::Gone)
            }
            "Wtick" => Ok(TICK_S.to_bits()),
            "Get_version" => {
                let (version, subversion) = VERSIONS[a.interface() as usize];
                let (first, second) = (a.out(), a.out());
                a.put(first, version)?;
                a.put(second, subversion)?;
                SUCCESS
            }
            "Get_library_version" => {
                let text = concat!("sme ", env!("CARGO_PKG_VERSION"));
                self.name(a, text, "MAX_LIBRARY_VERSION_STRING")
            }
            "Get_processor_name" => {
                let node = self.objects.lock().node;
                let text = processor("node", node);
                self.name(a, &text, "MAX_PROCESSOR_NAME")
            }
            "Abi_get_version" => {
                // Of the standard's interface; -1 in another one (MPI-5.0, Sec. 20.2).
                let (major, minor) = match a.interface() {
                    Interface::Mpich => (-1, -1),
                    Interface::Standard => (1, 0),
                };
                let (first, second) = (a.out(), a.out());
                a.put(first, major)?;
                a.put(second, minor)?;
                SUCCESS
            }
            "Get_hw_resource_info" => {
                self.gives_info(a, Info::new())?;
                SUCCESS
            }
            "Abi_get_info" => {
                let mut info = Info::new();
                for name in ["mpi_aint_size", "mpi_count_size", "mpi_offset_size"] {
                    info.set(name, "8")?;
                }
                self.gives_info(a, info)?;
                SUCCESS
            }
            "Abi_get_fortran_info" => {
                let mut info = Info::new();
                for (name, bytes) in FORTRAN {
                    info.set(name, &bytes.to_string())?;
                }
                let of = a.interface();
                for name in OPTIONAL {
                    let handle = of.handle(&name.to_uppercase());
                    let is_there = self.objects.lock().types.contains_key(&handle);
                    let key = format!("mpi_{name}_supported");
                    info.set(&key, &is_there.to_string())?;
                }
                self.gives_info(a, info)?;
                SUCCESS
            }
            _ => self.unsupported(a),
        }
    }

    fn name(&self, a: &mut Arguments<'_>, text: &str, room: &str) -> Ended {
        let room = a.interface().constant(room) as usize;
        let (address, length) = (a.address(), a.out());
        let bytes = self.put_string(address, text, room)?;
        a.put(length, bytes as i64)?;
        SUCCESS
    }
}
