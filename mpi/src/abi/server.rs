//! The calls of one rank, performed one after the other on the machine.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use rustc_hash::FxHashMap;

use super::arguments::Arguments;
use super::clock::{Compute, first};
use super::facts::{Chapter, Interface};
use super::looks::Row;
use super::program::{Asked, Beside, Gone, Program};
use super::rank::{About, Ended, Failure, Rank};
use super::request::Pending;
use super::window::WindowObject;
use crate::channel::Channel;
use crate::comm::Comm;
use crate::error::ErrorClass;
use crate::rank::point::Message;
use crate::rank::{Begun, Mpi};

/// The calls of a rank.
pub(super) struct Server<'m, C> {
    pub(super) mpi: &'m Mpi<C>,
    pub(super) rank: Arc<Rank>,
    pub(super) compute: Compute,
    /// The time for which the process has computed and that has passed, if it is measured.
    pub(super) computed_ns: u64,
    pub(super) requests: FxHashMap<u64, Pending<'m, C>>,
    /// By request or message: the subject of the call that began it.
    pub(super) subjects: FxHashMap<u64, About>,
    pub(super) windows: FxHashMap<u64, WindowObject<'m, C>>,
    /// Messages that probes have taken, each with the communicator that it came over.
    pub(super) messages: FxHashMap<u64, (Message, Comm)>,
    /// The room for buffered sends that the program has attached: to a communicator, to a session,
    /// or (0) to the process.
    pub(super) attached: FxHashMap<u64, (u64, u64)>,
    /// The way to those that have had the process started, until it has met them.
    pub(super) begun: Option<Begun>,
    /// The looks in a row that the program is making.
    pub(super) row: Option<Row>,
}

/// Performs the calls of a process until it ends, one that was there from the beginning or has
/// begun later. Returns whether it has called MPI_Finalize, or never MPI_Init.
pub async fn serve<C: Channel>(
    mpi: &Mpi<C>,
    program: Arc<dyn Program>,
    interface: impl FnOnce() -> Interface,
    compute: Compute,
    begun: Option<Begun>,
) -> bool {
    let Ok(first) = first(mpi, &*program).await else {
        return true;
    };
    let mut server = Server {
        mpi,
        rank: Arc::new(Rank::new(program, interface())),
        compute,
        computed_ns: first.computed_ns,
        requests: FxHashMap::default(),
        subjects: FxHashMap::default(),
        windows: FxHashMap::default(),
        messages: FxHashMap::default(),
        attached: FxHashMap::default(),
        begun,
        row: None,
    };
    server.begins();
    mpi.leave_late();
    let mut asked = Ok(first);
    while let Ok(call) = asked {
        asked = match server.answer_to(call).await {
            Ok(result) => server.goes_on(&call, result).await,
            Err(gone) => Err(gone),
        };
    }
    let objects = server.rank.objects.lock();
    objects.is_finalized || !objects.is_initialized
}

impl<C: Channel> Server<'_, C> {
    /// The objects that are there from the beginning.
    fn begins(&self) {
        let mut objects = self.rank.objects.lock();
        let of = self.rank.interface;
        let fatal = objects.fatal();
        let channel = self.mpi.channel();
        objects.me = channel.rank();
        objects.node = channel.rank() / channel.per_node().max(1);
        objects.universe = self.mpi.channel().ranks().into();
        objects.is_awaited = self.begun.is_some();
        objects.part = self.begun.as_ref().map_or(0, |begun| begun.part).into();
        let both = [
            ("COMM_WORLD", self.mpi.world()),
            ("COMM_SELF", self.mpi.own()),
        ];
        for (name, communicator) in both {
            let full = format!("MPI_{name}");
            let comm = communicator.handle().clone();
            objects.set_comm(of.handle(name), comm, (&full, fatal));
        }
    }

    /// The result of what the process asks for between its calls of functions.
    async fn answer_to(&mut self, asked: Asked) -> Result<u64, Gone> {
        if let Some(result) = self.makes_up(&asked).await? {
            return Ok(result);
        }
        let (result, has_found) = match asked.beside {
            None => self.performs(asked, false).await?,
            // It computes when it has been answered.
            Some(Beside::Computes(_)) => (0, None),
            Some(beside) => {
                let result = self.beside(beside).await;
                (result.map_err(|_| Gone)?, None)
            }
        };
        self.has_looked(&asked, has_found);
        Ok(result)
    }

    /// Performs a call: its result, as the process gets it, and whether it has found something, if
    /// it has looked for it. If the call `is_again` a look, it writes nothing unless it finds
    /// something.
    pub(super) async fn performs(
        &mut self,
        asked: Asked,
        is_again: bool,
    ) -> Result<(u64, Option<bool>), Gone> {
        let rank = Arc::clone(&self.rank);
        let Some(mut arguments) = Arguments::new(&rank, &asked) else {
            return Ok((0, None));
        };
        arguments.is_again = is_again;
        let call = arguments.call;
        let has_failed = rank.failed.lock().take();
        let ended = match has_failed {
            Some(failure) => Err(failure),
            None => {
                *rank.about.lock() = About::Nothing;
                self.call(&mut arguments).await
            }
        };
        match ended {
            Ok(result) => Ok((result, arguments.has_found)),
            Err(failure) => {
                arguments.makes_none();
                Ok((self.responds(call, failure).await?, None))
            }
        }
    }

    /// Performs a call.
    async fn call(&mut self, a: &mut Arguments<'_>) -> Ended {
        if let Some(handle) = a.of_number() {
            return Ok(handle);
        }
        a.is_in_time()?;
        a.is_about()?;
        match a.call.chapter {
            _ if a.call.name.ends_with("_call_errhandler") => self.calls_handler(a).await,
            _ if a.call.name.ends_with("_errhandler") => a.rank.errors(a),
            Chapter::Environment => self.environment(a).await,
            Chapter::Point => self.point(a).await,
            Chapter::Partitioned => self.partitioned(a).await,
            Chapter::Collectives => self.collective(a).await,
            Chapter::Communicators => self.communicators(a).await,
            Chapter::Attributes => self.attributes(a).await,
            Chapter::Windows => self.windows(a).await,
            Chapter::Topologies => self.topologies(a).await,
            Chapter::Processes => self.processes(a).await,
            Chapter::Sessions => self.sessions(a).await,
            Chapter::Files => self.files(a).await,
            _ => a.rank.local(a),
        }
    }
}

impl Arguments<'_> {
    /// A call that was to make an object has failed: where its handle was to be is a null handle.
    pub(super) fn makes_none(&self) {
        const NULLS: [(&str, &str); 5] = [
            ("*comm", "COMM_NULL"),
            ("*group", "GROUP_NULL"),
            ("*type", "DATATYPE_NULL"),
            ("*win", "WIN_NULL"),
            ("*file", "FILE_NULL"),
        ];
        // These are given the address of a handle.
        let takes = ["_free", "_disconnect", "_close", "_commit"];
        if takes.iter().any(|end| self.call.name.ends_with(end)) {
            return;
        }
        let arguments = self
            .call
            .kinds
            .iter()
            .zip(&self.call.names)
            .zip(self.values);
        for ((kind, name), address) in arguments {
            let null = NULLS.iter().find(|(of, _)| of == kind);
            let Some((_, null)) = null.filter(|_| !name.starts_with("array_of_")) else {
                continue;
            };
            let handle = self.interface().handle(null);
            // The failure of the call is told, not that of this.
            let _ = match *kind {
                "*file" => self.put_file(address, handle),
                _ => self.put_handle(address, handle),
            };
        }
    }
}

impl Rank {
    /// Performs a call that needs no other rank.
    pub(super) fn call(self: &Arc<Self>, a: &mut Arguments<'_>) -> Ended {
        *self.about.lock() = About::Nothing;
        if let Some(handle) = a.of_number() {
            return Ok(handle);
        }
        a.is_in_time()?;
        a.is_about()?;
        self.local(a)
    }

    /// The same of one that is known to be about something.
    fn local(self: &Arc<Self>, a: &mut Arguments<'_>) -> Ended {
        if a.call.name.ends_with("_errhandler") {
            return self.errors(a);
        }
        match a.call.chapter {
            Chapter::Environment => self.of_environment(a),
            Chapter::Point => self.statuses(a),
            Chapter::Communicators => self.of_comm(a),
            Chapter::Groups => self.groups(a),
            Chapter::Topologies => self.topologies(a),
            Chapter::Types => self.types(a),
            Chapter::Operations => self.operations(a),
            Chapter::Attributes => self.attributes(a),
            Chapter::Windows => self.of_window(a),
            Chapter::Info => self.infos(a),
            Chapter::Errors => self.errors(a),
            Chapter::Files => self.of_file(a),
            Chapter::Tools => self.tools(a),
            _ => self.unsupported(a),
        }
    }

    /// Refuses a call that the library does not have, there or at all, and says so once.
    pub(super) fn unsupported(&self, a: &Arguments<'_>) -> Ended {
        let name = &a.call.full_name;
        let what = match self.depth.load(Relaxed) {
            0 => name.clone(),
            _ => format!("{name} within a function called by another call"),
        };
        self.program.tell(format!("{what} is not supported"));
        Err(Failure::unsupported(&what))
    }

    /// The object on which an error is raised, and its error handler. What is about no object, or
    /// about one that is no more, is raised on MPI_COMM_SELF (MPI-4.1, Sec. 9.3), or, where
    /// programs have left that alone, on MPI_COMM_WORLD, as up to MPI-3.1.
    pub(super) fn handler_of(&self, about: About) -> (u64, u64) {
        let objects = self.objects.lock();
        let of_comm = |handle| objects.comms.get(&handle).map(|comm| comm.object.handler);
        let found = match about {
            About::Nothing => None,
            About::Comm(handle) => of_comm(handle).map(|handler| (handle, handler)),
            About::Window(handle) => {
                let window = objects.windows.get(&handle);
                window.map(|window| (handle, window.handler))
            }
            About::File(handle) => {
                let file = objects.file_object(handle);
                file.map(|file| (handle, file.handler))
            }
            About::Session(handle) => {
                let session = objects.sessions.get(&handle);
                session.map(|session| (handle, session.handler))
            }
            About::Made(object, handler) => Some((object, handler)),
        };
        let predefined = ["COMM_SELF", "COMM_WORLD"].map(|name| self.interface.handle(name));
        let mut predefined = predefined
            .into_iter()
            .filter_map(|handle| Some((handle, of_comm(handle)?)));
        let fatal = objects.fatal();
        let changed = || predefined.find(|&(_, handler)| handler != fatal);
        let own = self.interface.handle("COMM_SELF");
        found.or_else(changed).unwrap_or((own, fatal))
    }

    /// The code of errors of a class, which is the class itself.
    pub(super) fn code(&self, class: ErrorClass) -> i64 {
        self.interface.constant(&class.name()[4..])
    }

    /// The name of the class of a code.
    pub(super) fn name_of_code(&self, code: i64) -> String {
        let mut constants = self.interface.constants();
        let found = constants.find(|(name, value)| name.starts_with("ERR_") && *value == code);
        found.map_or_else(
            || format!("error {code}"),
            |(name, _)| format!("MPI_{name}"),
        )
    }
}
