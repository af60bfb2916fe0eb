//! Files: opened, seen in other ways, asked for what they are, closed. The calls that access their
//! data are in `transfer`. The simulator does for the process what the file system is to do.

use std::sync::Arc;

use super::arguments::Arguments;
use super::objects::{Object, no_file};
use super::rank::{About, Ended, Failure, Rank, SUCCESS};
use super::server::Server;
use super::transfer::AccessForm;
use crate::channel::Channel;
use crate::comm::Comm;
use crate::error::{ErrorClass, Fault};
use crate::file::{File, Flag, Mode, Opened, Representation, View, Whence, without_prefix};
use crate::info::Info;

/// A file with what its calls need.
#[derive(Debug)]
pub(super) struct FileObject {
    pub(super) file: File,
    /// The ranks that have it open, for its calls alone.
    pub(super) comm: Comm,
    pub(super) object: Object,
    /// The mode as the program has given it.
    amode: i64,
    info: Info,
}

impl<C: Channel> Server<'_, C> {
    /// The calls about files.
    pub(super) async fn files(&mut self, a: &mut Arguments<'_>) -> Ended {
        if let Some(form) = AccessForm::of(a.call.name) {
            return self.transfers(a, form).await;
        }
        match a.call.name {
            "File_open" => return self.opens(a).await,
            "File_close" => return self.closes(a).await,
            "File_set_view" => return self.sets_view(a).await,
            "File_set_size" | "File_preallocate" => {
                let (handle, bytes) = (a.file()?, a.number());
                let own = self.rank.new_size(handle, bytes);
                let cuts = a.call.name == "File_set_size";
                let acts = |file: &File, size: &u64| {
                    let storage = file.opened().access();
                    let set = match cuts {
                        true => storage.set_size(*size),
                        false => storage.reserve(*size),
                    };
                    set.map(|()| 0)
                };
                self.together(a, handle, (own, &[bytes]), acts).await?;
            }
            "File_seek_shared" => {
                let (handle, offset, number) = (a.file()?, a.number(), a.number());
                let own = (whence(a, number), &[offset, number][..]);
                let acts = |file: &File, whence: &Whence| file.seek_shared(offset, *whence);
                self.together(a, handle, own, acts).await?;
            }
            "File_set_atomicity" => {
                let (handle, flag) = (a.file()?, a.flag());
                let own = (Ok(()), &[flag.into()][..]);
                self.together(a, handle, own, |_, ()| Ok(0)).await?;
                self.rank.with_file(handle, |object| {
                    object.file.is_atomic = flag;
                    Ok(())
                })?;
            }
            "File_set_info" => {
                let (handle, info) = (a.file()?, a.info());
                let (info, _) = self.together(a, handle, (info, &[]), |_, _| Ok(0)).await?;
                self.rank
                    .with_file(handle, |object| object.info.update(&info))?;
            }
            "File_sync" => {
                let handle = a.file()?;
                let acts = |file: &File, (): &()| file.opened().access().sync().map(|()| 0);
                self.together(a, handle, (Ok(()), &[]), acts).await?;
            }
            _ => return self.rank.of_file(a),
        }
        SUCCESS
    }

    /// Makes a collective call on a file: all ranks have got right arguments, among them the same
    /// numbers, and then rank 0 acts for all. Gives what this rank has got, and the number that has
    /// come of the act.
    async fn together<T: Send + Sync>(
        &self,
        a: &Arguments<'_>,
        handle: u64,
        (own, same): (Result<T, Failure>, &[i64]),
        acts: impl FnOnce(&File, &T) -> Result<u64, Fault> + Send,
    ) -> Result<(T, u64), Failure> {
        let rank = &self.rank;
        let comm = rank.with_file(handle, |object| Ok(object.comm.clone()))?;
        let on = self.mpi.on(comm);
        let call = on.enters_file(&a.call.full_name, 0).await?;
        let agreed = call.agree(Failure::class_of(&own), same).await;
        let acted = match (agreed, &own) {
            (Ok(()), Ok(own)) => {
                let acts = || rank.with_file(handle, |object| acts(&object.file, own));
                call.first(acts).await
            }
            (agreed, _) => agreed.map(|()| 0),
        };
        let ended = call.ends(acted).await;
        let own = own?;
        Ok((own, ended?))
    }

    /// MPI_File_open: rank 0 opens the file for all ranks.
    async fn opens(&mut self, a: &mut Arguments<'_>) -> Ended {
        let (comm, name, amode) = (a.comm()?, a.address(), a.number());
        let (info, at) = (a.info(), a.address());
        if comm.remote_group().is_some() {
            let text = "comm: it is an intercommunicator";
            return Err(Failure::new(ErrorClass::Comm, text));
        }
        let own = self.rank.opening(name, amode).and_then(|opening| {
            a.check_place(at)?;
            Ok((opening, info?))
        });
        let program = &self.rank.program;
        let on = self.mpi.on(comm);
        let call = on.enters_file(&a.call.full_name, 0).await?;
        let agreed = call.agree(Failure::class_of(&own), &[amode]).await;
        let ((name, mode), info) = match (agreed, own) {
            (Ok(()), Ok(own)) => own,
            (agreed, own) => {
                let ended = call.ends(agreed).await;
                own?;
                return Ok(ended.map(|()| 0)?);
            }
        };
        let mut opened = None;
        let opens = || {
            let storage = program.open(without_prefix(&name), &mode)?;
            let new = Arc::new(Opened::new(storage, &mode)?);
            let number = program.handover().leave(&new, on.size() - 1);
            opened = Some(new);
            Ok(number)
        };
        let made = match call.first(opens).await {
            Ok(number) => call.duplicate().await.map(|comm| (number, comm)),
            Err(fault) => Err(fault),
        };
        let (number, comm) = call.ends(made).await?;
        let opened = opened.or_else(|| program.handover().take(number));
        let opened = opened.ok_or_else(|| {
            let text = "filename: rank 0 has not left it for this rank";
            Failure::new(ErrorClass::Intern, text)
        })?;
        let handle = self.rank.objects.lock().add_file(FileObject {
            file: File::new(opened, mode),
            comm,
            object: Object::default(),
            amode,
            info,
        });
        a.put_file(at, handle)?;
        SUCCESS
    }

    /// MPI_File_close.
    async fn closes(&mut self, a: &mut Arguments<'_>) -> Ended {
        let at = a.address();
        a.check_place(at)?;
        let handle = a.file_at(at)?;
        a.is_file(handle)?;
        let (comm, opened, deletes, own) = self.rank.with_file(handle, |object| {
            let file = &object.file;
            let deletes = file.mode().has(Flag::DeleteOnClose);
            let own = file.check_whole().map_err(Failure::from);
            Ok((object.comm.clone(), Arc::clone(file.opened()), deletes, own))
        })?;
        let on = self.mpi.on(comm.clone());
        let call = on.enters_file(&a.call.full_name, 0).await?;
        let agreed = call.agree(Failure::class_of(&own), &[]).await;
        if agreed.is_err() {
            let ended = call.ends(agreed).await;
            own?;
            return Ok(ended.map(|()| 0)?);
        }
        // All accesses have ended: they have come to this call.
        let deleted = match deletes {
            true => call.first(|| opened.access().delete().map(|()| 0)).await,
            false => Ok(0),
        };
        comm.set_freed();
        let ended = call.ends(deleted).await;
        self.rank.objects.lock().files.remove(&handle);
        *self.rank.about.lock() = About::File(a.interface().handle("FILE_NULL"));
        a.put_file(at, a.interface().handle("FILE_NULL"))?;
        Ok(ended.map(|_| 0)?)
    }

    /// MPI_File_set_view.
    async fn sets_view(&mut self, a: &mut Arguments<'_>) -> Ended {
        let handle = a.file()?;
        let displacement = a.number();
        let is_current = displacement == a.interface().constant("DISPLACEMENT_CURRENT")
            && self
                .rank
                .with_file(handle, |object| Ok(object.file.mode().is_sequential()))?;
        let displacement = if is_current { 0 } else { displacement };
        let own = self.rank.new_view(a, handle, displacement);
        let same = own.as_ref().map_or([0; 2], |(view, _)| {
            let representation = view.representation() as i64;
            [view.etype().extent(), representation]
        });
        // The shared pointer moves until all ranks are here.
        let acts = |file: &File, _: &(View, Info)| {
            let current = match is_current {
                true => file.shared_byte_offset()?,
                false => 0,
            };
            file.opened().set_shared(0);
            Ok(current)
        };
        let ((view, info), current) = self.together(a, handle, (own, &same), acts).await?;
        self.rank.with_file(handle, |object| {
            object.file.set_view(match is_current {
                true => view.at(current),
                false => view,
            });
            object.info.update(&info)
        })?;
        SUCCESS
    }
}

impl Rank {
    /// The calls about a file that need no other rank.
    pub(super) fn of_file(&self, a: &mut Arguments<'_>) -> Ended {
        match a.call.name {
            "File_delete" => {
                let name = self.bytes_of_string(a.address())?;
                a.info()?;
                self.program.delete(without_prefix(&name))?;
            }
            "File_get_size" => {
                let bytes = |object: &mut FileObject| object.file.opened().access().size();
                self.tells(a, bytes)?;
            }
            "File_get_amode" => self.tells(a, |object| Ok(object.amode as u64))?,
            "File_get_atomicity" => self.tells(a, |object| Ok(object.file.is_atomic.into()))?,
            "File_get_position" => self.tells(a, |object| Ok(object.file.position()))?,
            "File_get_position_shared" => {
                self.tells(a, |object| Ok(object.file.opened().shared()))?;
            }
            "File_get_byte_offset" => {
                let (handle, offset, out) = (a.file()?, a.number(), a.out());
                let place = self.with_file(handle, |object| object.file.byte_offset(offset))?;
                a.put(out, place as i64)?;
            }
            "File_get_type_extent" => {
                a.file()?;
                let (datatype, out) = (a.datatype()?, a.out());
                a.put(out, datatype.extent())?;
            }
            "File_seek" => {
                let (handle, offset, number) = (a.file()?, a.number(), a.number());
                let whence = whence(a, number)?;
                self.with_file(handle, |object| object.file.seek(offset, whence))?;
            }
            "File_get_group" => {
                let (handle, at) = (a.file()?, a.address());
                let group = self.with_file(handle, |object| Ok(object.comm.group().clone()))?;
                let group = self.objects.lock().add_group(group);
                a.put_handle(at, group)?;
            }
            "File_get_info" => {
                let handle = a.file()?;
                let info = self.with_file(handle, |object| Ok(object.info.clone()))?;
                self.gives_info(a, info)?;
            }
            "File_get_view" => {
                let handle = a.file()?;
                let view = self.with_file(handle, |object| Ok(object.file.view().clone()))?;
                let (displacement, etype, filetype) = (a.out(), a.address(), a.address());
                let name = a.address();
                a.put(displacement, view.displacement() as i64)?;
                for (at, datatype) in [(etype, view.etype()), (filetype, view.filetype())] {
                    let mut objects = self.objects.lock();
                    let handle = objects.give_type(datatype);
                    if let Some(given) = objects.types.get_mut(&handle) {
                        given.is_committed = true;
                    }
                    drop(objects);
                    a.put_handle(at, handle)?;
                }
                let room = a.interface().constant("MAX_DATAREP_STRING") as usize;
                self.put_string(name, view.representation().name(), room)?;
            }
            _ => return self.unsupported(a),
        }
        SUCCESS
    }

    /// Does something with the file that has this handle.
    pub(super) fn with_file<T>(
        &self,
        handle: u64,
        does: impl FnOnce(&mut FileObject) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let mut objects = self.objects.lock();
        let object = objects.files.get_mut(&handle);
        does(object.ok_or_else(|| no_file(handle))?)
    }

    /// Ends a call that asks for a number of a file.
    fn tells(
        &self,
        a: &mut Arguments<'_>,
        number: impl FnOnce(&mut FileObject) -> Result<u64, Fault>,
    ) -> Result<(), Failure> {
        let (handle, out) = (a.file()?, a.out());
        let number = self.with_file(handle, number)?;
        a.put(out, number as i64)
    }

    /// The name and the mode of a file that is to be opened.
    fn opening(&self, name: u64, amode: i64) -> Result<(Vec<u8>, Mode), Failure> {
        let name = self.bytes_of_string(name)?;
        let (mut left, mut flags) = (amode, Vec::new());
        for (constant, flag) in Flag::ALL {
            let bit = self.interface.constant(constant);
            if left & bit != 0 {
                left &= !bit;
                flags.push(flag);
            }
        }
        if left != 0 {
            let text = format!("amode: there is no mode {left:#x}");
            return Err(Failure::new(ErrorClass::Amode, text));
        }
        Ok((name, Mode::new(flags)?))
    }

    /// The size that a file is to have.
    fn new_size(&self, handle: u64, bytes: i64) -> Result<u64, Failure> {
        self.with_file(handle, |object| object.file.check_writable())?;
        u64::try_from(bytes)
            .map_err(|_| Failure::new(ErrorClass::Arg, format!("size: {bytes} is negative")))
    }

    /// The view that a file is to have, and what comes with it, from the etype on.
    fn new_view(
        &self,
        a: &mut Arguments<'_>,
        handle: u64,
        displacement: i64,
    ) -> Result<(View, Info), Failure> {
        let (etype, filetype) = (a.datatype()?, a.datatype()?);
        let (name, info) = (a.string()?, a.info()?);
        let representation = Representation::named(&name)?;
        let view = self.with_file(handle, |object| {
            let writes = object.file.mode().writes();
            View::new(displacement, (&etype, &filetype), representation, writes)
        })?;
        Ok((view, info))
    }
}

/// The origin of a seek.
fn whence(a: &Arguments<'_>, number: i64) -> Result<Whence, Failure> {
    let known = [
        ("SEEK_SET", Whence::Begin),
        ("SEEK_CUR", Whence::Pointer),
        ("SEEK_END", Whence::End),
    ];
    let found = known
        .into_iter()
        .find(|(name, _)| a.interface().constant(name) == number);
    found.map(|(_, whence)| whence).ok_or_else(|| {
        let text = format!("whence: {number} is none");
        Failure::new(ErrorClass::Arg, text)
    })
}
