//! The arguments of a call, one after the other, as what they stand for.

use std::sync::Arc;

use super::facts::{CALLS, Chapter, Interface, Signature};
use super::objects::{CommObject, Kind, TypeObject, no_file, no_such};
use super::program::Asked;
use super::rank::{About, Failure, Rank};
use crate::buffer::{Buffer, BufferMut, Outside};
use crate::comm::Comm;
use crate::datatype::{Basic, Datatype};
use crate::error::ErrorClass;
use crate::group::Group;
use crate::info::Info;
use crate::op::Op;
use crate::rank::{PROC_NULL, ROOT, Sent, Source, Tag};

/// The arguments that are left of a call.
pub(super) struct Arguments<'r> {
    pub(super) rank: &'r Arc<Rank>,
    pub(super) call: &'static Signature,
    pub(super) values: [u64; 16],
    next: usize,
    /// Whether the call has found what it has looked for.
    pub(super) has_found: Option<bool>,
    /// Whether the process has been told before that it found nothing.
    pub(super) is_again: bool,
}

/// A place, or places, to which a call writes numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Out {
    pub(super) address: u64,
    width: usize,
}

/// A buffer of the program's.
#[derive(Clone, Debug)]
pub(super) struct Given {
    pub(super) address: u64,
    pub(super) count: i64,
    pub(super) datatype: Datatype,
    memory: Arc<Rank>,
    is_in_place: bool,
}

impl Out {
    /// The place behind so many numbers.
    pub(super) fn behind(self, numbers: u64) -> Self {
        let bytes = numbers.wrapping_mul(self.width as u64);
        Self {
            address: self.address.wrapping_add(bytes),
            ..self
        }
    }
}

impl Given {
    /// A buffer of the process of `rank`.
    pub(super) fn new(rank: &Arc<Rank>, address: u64, count: i64, datatype: &Datatype) -> Self {
        Self {
            address,
            count,
            datatype: datatype.clone(),
            memory: Arc::clone(rank),
            is_in_place: address == rank.interface.handle("IN_PLACE"),
        }
    }

    /// Returns whether it is MPI_IN_PLACE.
    pub(super) fn is_in_place(&self) -> bool {
        self.is_in_place
    }

    fn memory(&self) -> Arc<dyn Outside> {
        Arc::clone(&self.memory.program) as Arc<dyn Outside>
    }

    /// The address of its first byte of data; none if it has none, or is MPI_IN_PLACE.
    pub(super) fn first_byte(&self) -> Option<u64> {
        let is_empty = self.is_in_place || self.count <= 0 || self.datatype.size() == 0;
        let first = self.datatype.true_lower_bound();
        (!is_empty).then(|| self.address.wrapping_add(first as u64))
    }

    /// The same with this many elements.
    pub(super) fn with_count(self, count: i64) -> Self {
        Self { count, ..self }
    }

    /// Its elements, to read.
    pub(super) fn buffer(&self) -> Buffer<'static> {
        Buffer::outside(self.memory(), self.address, self.count, &self.datatype)
    }

    /// Room for its elements.
    pub(super) fn room(&self) -> BufferMut<'static> {
        BufferMut::outside(self.memory(), self.address, self.count, &self.datatype)
    }

    /// Its elements as a contribution.
    pub(super) fn sent(&self) -> Sent<'static> {
        match self.is_in_place {
            true => Sent::InPlace,
            false => Sent::Buffer(self.buffer()),
        }
    }
}

impl<'r> Arguments<'r> {
    /// Those of a call that the process of `rank` makes; none of a number that is no call.
    pub(super) fn new(rank: &'r Arc<Rank>, asked: &Asked) -> Option<Self> {
        Some(Self {
            rank,
            call: CALLS.get(asked.number)?,
            values: asked.values,
            next: 0,
            has_found: None,
            is_again: false,
        })
    }

    pub(super) fn interface(&self) -> Interface {
        self.rank.interface
    }

    /// The next argument, as it is, and its number.
    fn take(&mut self) -> (usize, u64) {
        let place = self.next;
        self.next += 1;
        (place, self.values.get(place).copied().unwrap_or_default())
    }

    /// An argument that says nothing here.
    pub(super) fn skip(&mut self) {
        self.take();
    }

    /// The `place`th argument is the next one.
    pub(super) fn goes_to(&mut self, place: usize) {
        self.next = place;
    }

    /// A number.
    pub(super) fn number(&mut self) -> i64 {
        let (place, value) = self.take();
        match self.call.width(place) {
            4 => (value as i32).into(),
            _ => value as i64,
        }
    }

    /// A number that must not be negative.
    pub(super) fn count(&mut self) -> Result<i64, Failure> {
        let name = self.call.names.get(self.next).copied().unwrap_or_default();
        let count = self.number();
        match count < 0 {
            true => {
                let text = format!("{name}: {count} is negative");
                Err(Failure::new(ErrorClass::Count, text))
            }
            false => Ok(count),
        }
    }

    /// A number of things in memory, which must not be negative.
    pub(super) fn length(&mut self) -> Result<usize, Failure> {
        Ok(self.count()? as usize)
    }

    /// Whether a number is not 0.
    pub(super) fn flag(&mut self) -> bool {
        self.number() != 0
    }

    /// `count` numbers in memory.
    pub(super) fn numbers(&mut self, count: usize) -> Result<Vec<i64>, Failure> {
        let (place, address) = self.take();
        self.rank.numbers(address, count, self.call.width(place))
    }

    /// An address.
    pub(super) fn address(&mut self) -> u64 {
        self.take().1
    }

    /// The address of numbers that the call writes.
    pub(super) fn out(&mut self) -> Out {
        let (place, address) = self.take();
        let width = self.call.width(place);
        Out { address, width }
    }

    /// Bytes of each number there.
    pub(super) fn width_of(&self, out: Out) -> usize {
        out.width
    }

    /// Writes a number to where the program wants it.
    pub(super) fn put(&self, out: Out, number: i64) -> Result<(), Failure> {
        self.put_all(out, &[number])
    }

    /// Writes numbers to where the program wants them.
    pub(super) fn put_all(&self, out: Out, numbers: &[i64]) -> Result<(), Failure> {
        self.write(out.address, numbers, out.width)
    }

    /// Writes numbers to an address, unless they say once more that nothing was found.
    fn write(&self, address: u64, numbers: &[i64], width: usize) -> Result<(), Failure> {
        if !numbers.is_empty() {
            self.check_place(address)?;
        }
        match self.is_again && self.has_found == Some(false) {
            true => Ok(()),
            false => self.rank.put_numbers(address, numbers, width),
        }
    }

    /// Writes MPI_UNDEFINED if there is no number.
    pub(super) fn put_or_undefined(&self, out: Out, number: Option<i64>) -> Result<(), Failure> {
        let undefined = self.interface().constant("UNDEFINED");
        self.put(out, number.unwrap_or(undefined))
    }

    /// A string.
    pub(super) fn string(&mut self) -> Result<String, Failure> {
        let address = self.address();
        self.rank.string(address)
    }

    /// A handle.
    pub(super) fn handle(&mut self) -> u64 {
        let value = self.address();
        match self.interface() {
            Interface::Mpich => value & 0xffff_ffff,
            Interface::Standard => value,
        }
    }

    /// Returns whether the next argument is the null handle of this name, and takes it if it is.
    pub(super) fn is_null(&mut self, name: &str) -> bool {
        let next = self.next;
        let is_null = self.handle() == self.interface().handle(name);
        if !is_null {
            self.next = next;
        }
        is_null
    }

    /// `count` handles at an address.
    pub(super) fn handles_at(&self, address: u64, count: usize) -> Result<Vec<u64>, Failure> {
        let width = self.interface().handle_bytes();
        let numbers = self.rank.numbers(address, count, width)?;
        let handle = |number: &i64| match width {
            4 => u64::from(*number as u32),
            _ => *number as u64,
        };
        Ok(numbers.iter().map(handle).collect())
    }

    /// The handle at an address.
    pub(super) fn handle_at(&self, address: u64) -> Result<u64, Failure> {
        self.check_place(address)?;
        let handles = self.handles_at(address, 1)?;
        Ok(handles.first().copied().unwrap_or_default())
    }

    /// Writes handles from an address on.
    pub(super) fn put_handles(&self, address: u64, handles: &[u64]) -> Result<(), Failure> {
        let numbers: Vec<i64> = handles.iter().map(|&handle| handle as i64).collect();
        self.write(address, &numbers, self.interface().handle_bytes())
    }

    /// Writes a handle to an address.
    pub(super) fn put_handle(&self, address: u64, handle: u64) -> Result<(), Failure> {
        self.put_handles(address, &[handle])
    }

    /// Writes a null handle of this name to an address.
    pub(super) fn put_null(&self, address: u64, name: &str) -> Result<(), Failure> {
        self.put_handle(address, self.interface().handle(name))
    }

    /// A communicator, which the call is about from now on.
    pub(super) fn comm_object(&mut self) -> Result<(u64, CommObject), Failure> {
        self.comm_with(CommObject::clone)
    }

    /// A communicator, which the call is about from now on.
    pub(super) fn comm(&mut self) -> Result<Comm, Failure> {
        Ok(self.comm_with(|object| object.comm.clone())?.1)
    }

    /// A communicator's handle and the part of its object that `part` takes.
    fn comm_with<T>(&mut self, part: impl FnOnce(&CommObject) -> T) -> Result<(u64, T), Failure> {
        let handle = self.handle();
        let found = self.rank.objects.lock().comms.get(&handle).map(part);
        let found = found.ok_or_else(|| no_such(ErrorClass::Comm, "communicator", handle))?;
        let mut about = self.rank.about.lock();
        if *about == About::Nothing {
            *about = About::Comm(handle);
        }
        Ok((handle, found))
    }

    /// A window, which the call is about from now on.
    pub(super) fn window(&mut self) -> Result<u64, Failure> {
        let handle = self.handle();
        self.is_window(handle)?;
        Ok(handle)
    }

    /// Checks that this is a window, which the call is about from now on.
    pub(super) fn is_window(&self, handle: u64) -> Result<(), Failure> {
        if !self.rank.objects.lock().windows.contains_key(&handle) {
            return Err(no_such(ErrorClass::Win, "window", handle));
        }
        *self.rank.about.lock() = About::Window(handle);
        Ok(())
    }

    /// A file, which the call is about from now on. Its handle is a pointer in MPICH's interface.
    pub(super) fn file(&mut self) -> Result<u64, Failure> {
        let handle = self.address();
        self.is_file(handle)?;
        Ok(handle)
    }

    /// Checks that this is a file, which the call is about from now on.
    pub(super) fn is_file(&self, handle: u64) -> Result<(), Failure> {
        if !self.rank.objects.lock().files.contains_key(&handle) {
            return Err(no_file(handle).into());
        }
        *self.rank.about.lock() = About::File(handle);
        Ok(())
    }

    /// The handle of a file at an address.
    pub(super) fn file_at(&self, address: u64) -> Result<u64, Failure> {
        let handles = self.rank.numbers(address, 1, 8)?;
        Ok(handles.first().copied().unwrap_or_default() as u64)
    }

    /// Writes the handle of a file to an address.
    pub(super) fn put_file(&self, address: u64, handle: u64) -> Result<(), Failure> {
        self.rank.put_numbers(address, &[handle as i64], 8)
    }

    /// Checks that the program has given an address to write to.
    pub(super) fn check_place(&self, address: u64) -> Result<(), Failure> {
        match address {
            0 => Err(Failure::new(ErrorClass::Arg, "a null pointer")),
            _ => Ok(()),
        }
    }

    /// The result of `takes` for the arguments from the `place`th on, which come later.
    pub(super) fn ahead<T>(&mut self, place: usize, takes: impl FnOnce(&mut Self) -> T) -> T {
        let next = std::mem::replace(&mut self.next, place);
        let taken = takes(self);
        self.next = next;
        taken
    }

    /// A communicator whose handle comes later: the `place`th argument.
    pub(super) fn names_comm(&mut self, place: usize) -> Result<Comm, Failure> {
        self.ahead(place, Self::comm)
    }

    /// A root that comes later: the `place`th argument.
    pub(super) fn root_at(&mut self, place: usize) -> Result<u32, Failure> {
        self.ahead(place, Self::root)
    }

    /// An operation that comes later: the `place`th argument.
    pub(super) fn op_at(&mut self, place: usize) -> Result<Op, Failure> {
        self.ahead(place, Self::op)
    }

    /// The handle of a number, or the number of a handle, if that is what the call is for: they are
    /// the same.
    pub(super) fn of_number(&mut self) -> Option<u64> {
        let name = self.call.name;
        if name.ends_with("_toint") || name == "File_c2f" {
            return Some(self.handle());
        }
        let is_of_number = name.ends_with("_fromint") || name == "File_f2c";
        is_of_number.then(|| u64::from(self.number() as u32))
    }

    /// Makes the call one about the communicator, the window or the file among its arguments, if
    /// there is one, so that errors of arguments before it are its own. Calls about files that have
    /// none are about no file (MPI-4.1, Sec. 14.7).
    pub(super) fn is_about(&mut self) -> Result<(), Failure> {
        if self.call.chapter == Chapter::Files {
            *self.rank.about.lock() = About::File(self.interface().handle("FILE_NULL"));
            let is_of_file = self.call.kinds.first() == Some(&"file");
            let is_handler = self.call.name.ends_with("_errhandler");
            return match is_of_file && !is_handler {
                true => self.ahead(0, Self::file).map(drop),
                false => Ok(()),
            };
        }
        if self.call.chapter == Chapter::Sessions {
            self.is_about_session();
            return Ok(());
        }
        // The names of null handles can be asked for.
        if self.call.name.ends_with("_get_name") {
            return Ok(());
        }
        let mut kinds = self.call.kinds.iter();
        let Some(place) = kinds.position(|kind| ["comm", "win"].contains(kind)) else {
            return Ok(());
        };
        match self.call.kinds[place] {
            "comm" => self.names_comm(place).map(drop),
            _ => self.ahead(place, Self::window).map(drop),
        }
    }

    /// A datatype's object.
    pub(super) fn type_object(&mut self) -> Result<(u64, TypeObject), Failure> {
        let handle = self.handle();
        Ok((handle, self.type_behind(handle)?))
    }

    /// The datatype behind a handle.
    pub(super) fn type_behind(&self, handle: u64) -> Result<TypeObject, Failure> {
        self.type_with(handle, TypeObject::clone)
    }

    /// The part of a datatype's object that `part` takes.
    fn type_with<T>(&self, handle: u64, part: impl FnOnce(&TypeObject) -> T) -> Result<T, Failure> {
        let found = self.rank.objects.lock().types.get(&handle).map(part);
        found.ok_or_else(|| no_such(ErrorClass::Type, "datatype", handle))
    }

    /// A datatype.
    pub(super) fn datatype(&mut self) -> Result<Datatype, Failure> {
        let handle = self.handle();
        self.type_with(handle, |object| object.datatype.clone())
    }

    /// A datatype of data that are moved.
    pub(super) fn committed(&mut self) -> Result<Datatype, Failure> {
        let handle = self.handle();
        self.type_with(handle, usable)?
    }

    /// The same of `count` elements. None at all need no datatype: MPICH does not look at it then.
    pub(super) fn committed_of(&mut self, count: i64) -> Result<Datatype, Failure> {
        if count == 0 && self.is_null("DATATYPE_NULL") {
            return Ok(Datatype::from(Basic::Byte));
        }
        self.committed()
    }

    /// `count` datatypes in memory, of data that are moved.
    pub(super) fn all_committed(&mut self, count: usize) -> Result<Vec<Datatype>, Failure> {
        let address = self.address();
        let handles = self.handles_at(address, count)?;
        let datatype = |&handle: &u64| self.type_with(handle, usable)?;
        handles.iter().map(datatype).collect()
    }

    /// `count` datatypes in memory.
    pub(super) fn datatypes(&mut self, count: usize) -> Result<Vec<Datatype>, Failure> {
        let address = self.address();
        let handles = self.handles_at(address, count)?;
        let datatype = |&handle: &u64| self.type_with(handle, |object| object.datatype.clone());
        handles.iter().map(datatype).collect()
    }

    /// An operation.
    pub(super) fn op(&mut self) -> Result<Op, Failure> {
        let handle = self.handle();
        let objects = self.rank.objects.lock();
        let found = objects.ops.get(&handle).map(|object| object.op.clone());
        found.ok_or_else(|| no_such(ErrorClass::Op, "operation", handle))
    }

    /// A group.
    pub(super) fn group(&mut self) -> Result<Group, Failure> {
        let handle = self.handle();
        let found = self.rank.objects.lock().groups.get(&handle).cloned();
        found.ok_or_else(|| no_such(ErrorClass::Group, "group", handle))
    }

    /// An info object; MPI_INFO_NULL has no keys.
    pub(super) fn info(&mut self) -> Result<Info, Failure> {
        let handle = self.handle();
        self.info_behind(handle)
    }

    /// The info object behind a handle.
    pub(super) fn info_behind(&self, handle: u64) -> Result<Info, Failure> {
        if handle == self.interface().handle("INFO_NULL") {
            return Ok(Info::new());
        }
        let found = self.rank.objects.lock().infos.get(&handle).cloned();
        found.ok_or_else(|| no_such(ErrorClass::Info, "info object", handle))
    }

    /// A buffer: its address, a count, a datatype.
    pub(super) fn buffer(&mut self) -> Result<Given, Failure> {
        let address = self.address();
        let is_in_place = address == self.interface().handle("IN_PLACE");
        if is_in_place {
            // The count and the datatype behind it say nothing.
            self.skip();
            self.skip();
            let byte = Datatype::from(Basic::Byte);
            return Ok(Given::new(self.rank, address, 0, &byte));
        }
        let count = self.count()?;
        let datatype = self.committed_of(count)?;
        Ok(Given::new(self.rank, address, count, &datatype))
    }

    /// A buffer that says nothing at this rank.
    pub(super) fn no_buffer(&mut self) -> Given {
        for _ in 0..3 {
            self.skip();
        }
        let byte = Datatype::from(Basic::Byte);
        Given::new(self.rank, 0, 0, &byte)
    }

    /// The rank of a peer.
    pub(super) fn peer(&mut self) -> Result<u32, Failure> {
        let number = self.number();
        let of = self.interface();
        match number {
            _ if number == of.constant("PROC_NULL") => Ok(PROC_NULL),
            _ if number == of.constant("ROOT") => Ok(ROOT),
            _ => u32::try_from(number)
                .map_err(|_| Failure::new(ErrorClass::Rank, format!("there is no rank {number}"))),
        }
    }

    /// The root of a collective call.
    pub(super) fn root(&mut self) -> Result<u32, Failure> {
        self.peer().map_err(|failure| match failure {
            Failure::Wrong { text, .. } => Failure::new(ErrorClass::Root, text),
            other => other,
        })
    }

    /// The sender that a receive wants.
    pub(super) fn source(&mut self) -> Result<Source, Failure> {
        let any = self.interface().constant("ANY_SOURCE");
        let value = self.values.get(self.next);
        if value.is_some_and(|&value| i64::from(value as i32) == any) {
            self.skip();
            return Ok(Source::Any);
        }
        self.peer().map(Source::Rank)
    }

    /// The tag of a message.
    pub(super) fn tag(&mut self) -> Result<i32, Failure> {
        let tag = self.number();
        match i32::try_from(tag).ok().filter(|tag| *tag >= 0) {
            Some(tag) => Ok(tag),
            None => Err(Failure::new(ErrorClass::Tag, format!("{tag} is no tag"))),
        }
    }

    /// The tag that a receive wants.
    pub(super) fn wanted_tag(&mut self) -> Result<Tag, Failure> {
        let any = self.interface().constant("ANY_TAG");
        let value = self.values.get(self.next);
        if value.is_some_and(|&value| i64::from(value as i32) == any) {
            self.skip();
            return Ok(Tag::Any);
        }
        self.tag().map(Tag::Is)
    }

    /// A handle of this kind that no object of the rank's has.
    pub(super) fn new_handle(&self, kind: Kind) -> u64 {
        self.rank.objects.lock().handle(kind)
    }
}

/// The datatype of an object, if data of it can be moved (MPI-4.1, Sec. 5.1.9).
fn usable(object: &TypeObject) -> Result<Datatype, Failure> {
    match object.is_committed {
        true => Ok(object.datatype.clone()),
        false => {
            let text = "the datatype has not been committed";
            Err(Failure::new(ErrorClass::Type, text))
        }
    }
}
