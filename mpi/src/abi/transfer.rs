//! The calls that access the data of files. One that begins and ends apart, or has a request, has
//! accessed them when it begins.

use std::sync::Arc;

use super::arguments::{Arguments, Given};
use super::rank::{Ended, Failure, Rank, SUCCESS};
use super::request::Pending;
use super::server::Server;
use crate::channel::Channel;
use crate::error::{ErrorClass, Fault};
use crate::file::{Opened, Split, Start};
use crate::rank::files::FileCall;
use crate::rank::{Request, Status};

/// The form of an access, as its name tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AccessForm {
    /// The name of the call, without the part of an access that begins and ends apart.
    name: &'static str,
    writes: bool,
    pointer: Pointer,
    is_collective: bool,
    ends: Ends,
}

/// The place where an access begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pointer {
    /// At an offset among the arguments.
    Offset,
    /// At the rank's own pointer.
    Own,
    /// At the shared pointer.
    Shared,
    /// At the shared pointer, behind the ranks before this one.
    Ordered,
}

/// The end of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    /// In the same call.
    Here,
    /// When its request is over.
    ByRequest,
    /// In another call.
    Later,
    /// In this call, of an access that has begun in another one.
    Now,
}

/// An access, as the arguments of one rank say.
#[derive(Clone, Debug)]
struct Access {
    offset: i64,
    given: Given,
    bytes: u64,
    /// The same in etypes, where they count.
    etypes: u64,
}

impl AccessForm {
    /// The form of the call with this name, if it accesses data.
    pub(super) fn of(name: &'static str) -> Option<Self> {
        let form = name.strip_prefix("File_")?;
        let (is_immediate, form) = match form.strip_prefix('i') {
            Some(form) => (true, form),
            None => (false, form),
        };
        let (writes, form) = match form.strip_prefix("write") {
            Some(form) => (true, form),
            None => (false, form.strip_prefix("read")?),
        };
        let ends = match form {
            _ if is_immediate => Ends::ByRequest,
            _ if form.ends_with("_begin") => Ends::Later,
            _ if form.ends_with("_end") => Ends::Now,
            _ => Ends::Here,
        };
        let pointer = match form {
            _ if form.starts_with("_at") => Pointer::Offset,
            _ if form.starts_with("_shared") => Pointer::Shared,
            _ if form.starts_with("_ordered") => Pointer::Ordered,
            _ => Pointer::Own,
        };
        Some(Self {
            name: name.trim_end_matches("_begin").trim_end_matches("_end"),
            writes,
            pointer,
            is_collective: form.contains("_all") || pointer == Pointer::Ordered,
            ends,
        })
    }
}

impl<C: Channel> Server<'_, C> {
    /// The calls that access data.
    pub(super) async fn transfers(&mut self, a: &mut Arguments<'_>, form: AccessForm) -> Ended {
        let handle = a.file()?;
        if form.ends == Ends::Now {
            a.skip();
            let joins = self
                .rank
                .with_file(handle, |object| object.file.joins(form.name));
            return self.rank.put_accessed(a, joins?);
        }
        let own = self.rank.access(a, handle, form);
        if !form.is_collective {
            own.as_ref().map_err(Failure::clone)?;
        }
        let (comm, opened) = self.rank.with_file(handle, |object| {
            Ok((object.comm.clone(), Arc::clone(object.file.opened())))
        })?;
        let on = self.mpi.on(comm);
        let bytes = own.as_ref().map_or(0, |access| access.bytes);
        let call = on.enters_file(&a.call.full_name, bytes).await?;
        let start = match (form.pointer, &own) {
            (Pointer::Ordered, own) => {
                let etypes = own.as_ref().map_or(0, |access| access.etypes);
                ordered(&call, &opened, on.rank(), (Failure::class_of(own), etypes)).await
            }
            (Pointer::Offset, Ok(access)) => Ok(Start::Offset(access.offset)),
            (Pointer::Shared, _) => Ok(Start::Shared),
            (Pointer::Own | Pointer::Offset, _) => Ok(Start::Own),
        };
        // A rank whose arguments are wrong stays in step with the others.
        let done = start.and_then(|start| match &own {
            Err(_) => Ok(0),
            Ok(Access { given, .. }) => self.rank.with_file(handle, |object| match form.writes {
                true => object.file.write(start, &given.buffer()),
                false => object.file.read(start, &mut given.room()),
            }),
        });
        let meets = form.is_collective && form.pointer != Pointer::Ordered;
        let met = match meets && form.ends != Ends::ByRequest {
            true => call.meet().await,
            false => Ok(()),
        };
        let ended = call.ends(done.and_then(|bytes| met.map(|()| bytes))).await;
        own?;
        let done = ended?;
        match form.ends {
            Ends::ByRequest => {
                let request = Request::over(&on, accessed(done));
                let at = a.address();
                self.begun(a, at, Pending::Call(request))
            }
            Ends::Later => {
                let (call, bytes) = (form.name, done);
                self.rank.with_file(handle, |object| {
                    object.file.splits(Split { call, bytes });
                    Ok(())
                })?;
                SUCCESS
            }
            Ends::Here | Ends::Now => self.rank.put_accessed(a, done),
        }
    }
}

/// The part of this rank, of so many etypes, in an access of all ranks, in their order, at the
/// shared pointer.
async fn ordered<C: Channel>(
    call: &FileCall<'_, C>,
    opened: &Opened,
    rank: u32,
    (wrong, etypes): (Option<ErrorClass>, u64),
) -> Result<Start, Fault> {
    let all = call.shares(wrong, etypes).await?;
    let sum = |etypes: &[u64]| {
        etypes
            .iter()
            .fold(0_u64, |sum, &own| sum.saturating_add(own))
    };
    let begin = call.first(|| Ok(opened.moves_by(sum(&all)))).await?;
    let before = all.get(..rank as usize).unwrap_or_default();
    Ok(Start::Ordered(begin.saturating_add(sum(before))))
}

impl Rank {
    /// Reads the arguments of an access to a file.
    ///
    /// # Errors
    /// An argument is wrong, or the file has an access that has begun and not ended.
    fn access(
        self: &Arc<Self>,
        a: &mut Arguments<'_>,
        handle: u64,
        form: AccessForm,
    ) -> Result<Access, Failure> {
        let offset = match form.pointer {
            Pointer::Offset => a.number(),
            _ => 0,
        };
        let given = a.buffer()?;
        if given.is_in_place() {
            let text = "buf: MPI_IN_PLACE is no buffer of a file's data";
            return Err(Failure::new(ErrorClass::Buffer, text));
        }
        let bytes = given.buffer().bytes();
        let etypes = self.with_file(handle, |object| {
            if form.ends == Ends::Later {
                object.file.check_whole()?;
            }
            match form.pointer {
                Pointer::Ordered => object.file.view().etypes(bytes),
                _ => Ok(0),
            }
        })?;
        Ok(Access {
            offset,
            given,
            bytes,
            etypes,
        })
    }

    /// Ends a call that has accessed so many bytes with its status.
    fn put_accessed(&self, a: &mut Arguments<'_>, bytes: u64) -> Ended {
        let at = a.address();
        self.put_message(at, &accessed(bytes))?;
        SUCCESS
    }
}

/// The status of an access of so many bytes.
fn accessed(bytes: u64) -> Status {
    Status {
        bytes,
        ..Status::EMPTY
    }
}
