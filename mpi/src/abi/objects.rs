//! The objects behind a rank's handles.

use std::fmt;
use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashMap;

use super::facts::Interface;
use super::file::FileObject;
use crate::comm::Comm;
use crate::datatype::{Basic, Datatype, Marker};
use crate::error::{ErrorClass, Fault};
use crate::group::Group;
use crate::info::Info;
use crate::op::Op;

use super::rank::Failure;
use super::tools::Tools;

/// A communicator.
#[derive(Clone, Debug)]
pub(super) struct CommObject {
    pub(super) comm: Comm,
    /// The properties that windows and datatypes have as well.
    pub(super) object: Object,
    pub(super) info: Info,
}

/// The properties that communicators, windows and datatypes have.
#[derive(Clone, Debug, Default)]
pub(super) struct Object {
    pub(super) name: String,
    /// The handle of its error handler.
    pub(super) handler: u64,
    /// Keys with their values, in the order in which they were set.
    pub(super) attributes: Vec<(i64, u64)>,
    /// The names of a window's predefined attributes, with what a program gets: addresses.
    pub(super) predefined: Vec<(&'static str, u64)>,
}

/// A datatype.
#[derive(Clone, Debug)]
pub(super) struct TypeObject {
    pub(super) datatype: Datatype,
    pub(super) object: Object,
    pub(super) is_predefined: bool,
    pub(super) is_committed: bool,
}

/// An operation.
#[derive(Clone, Debug)]
pub(super) struct OpObject {
    pub(super) op: Op,
    pub(super) is_predefined: bool,
    /// The proxy for its function, if there is one ([`Proxy`](super::program::Proxy)).
    pub(super) proxy: Arc<OnceLock<u64>>,
}

impl OpObject {
    fn predefined(op: Op) -> Self {
        Self {
            op,
            is_predefined: true,
            proxy: Arc::default(),
        }
    }
}

/// An error handler.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handler {
    pub(super) function: u64,
    /// The proxy for it, if there is one ([`Proxy`](super::program::Proxy)).
    pub(super) proxy: Option<u64>,
}

/// The kinds of objects that have attributes, each with keys of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bearer {
    Comm,
    Type,
    Window,
}

impl Bearer {
    /// The kind that a call about attributes is about; those of MPI-1 are about communicators.
    pub(super) fn of(call: &str) -> Self {
        match call.split('_').next() {
            Some("Type") => Self::Type,
            Some("Win") => Self::Window,
            _ => Self::Comm,
        }
    }
}

/// A key of attributes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    pub(super) of: Bearer,
    pub(super) copy: u64,
    pub(super) delete: u64,
    pub(super) extra: u64,
    /// The proxies for `copy` and `delete`, if there are any ([`Proxy`](super::program::Proxy)).
    pub(super) proxies: Option<[u64; 2]>,
    pub(super) is_freed: bool,
}

/// The kinds of handles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Comm,
    Type,
    Group,
    Op,
    Errhandler,
    Info,
    Window,
    Request,
    Message,
    Session,
    File,
}

/// The objects of a rank.
pub(super) struct Objects {
    interface: Interface,
    pub(super) comms: FxHashMap<u64, CommObject>,
    pub(super) types: FxHashMap<u64, TypeObject>,
    pub(super) groups: FxHashMap<u64, Group>,
    pub(super) ops: FxHashMap<u64, OpObject>,
    pub(super) infos: FxHashMap<u64, Info>,
    pub(super) handlers: FxHashMap<u64, Handler>,
    /// The properties that windows have like communicators.
    pub(super) windows: FxHashMap<u64, Object>,
    pub(super) sessions: FxHashMap<u64, Object>,
    pub(super) files: FxHashMap<u64, FileObject>,
    /// The properties of no file (MPI_FILE_NULL), which files begin with.
    no_file: Object,
    pub(super) keys: FxHashMap<i64, Key>,
    /// Classes, codes and strings of errors that the program has added.
    pub(super) codes: Codes,
    pub(super) tools: Tools,
    /// The ranks of the job, those on standby included (MPI_UNIVERSE_SIZE).
    pub(super) universe: i64,
    /// The number of the process's part of the program (MPI_APPNUM).
    pub(super) part: i64,
    /// The handle of the communicator with those that have had the process started.
    pub(super) parent: Option<u64>,
    /// This rank's number in the job.
    pub(super) me: u32,
    /// The number of its node.
    pub(super) node: u32,
    /// The level of threads that the program has asked for.
    pub(super) threads: i64,
    /// Whether MPI_Init has been called.
    pub(super) is_initialized: bool,
    /// Whether MPI_Finalize has returned.
    pub(super) is_finalized: bool,
    /// Whether those that have had its process started wait for it in MPI_Init.
    pub(super) is_awaited: bool,
    handles: u64,
    next_key: i64,
}

/// The errors that a program has added: codes with their classes, and strings of codes.
#[derive(Clone, Debug, Default)]
pub(super) struct Codes {
    pub(super) classes: FxHashMap<i64, i64>,
    pub(super) strings: FxHashMap<i64, String>,
    pub(super) last: i64,
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Objects").finish_non_exhaustive()
    }
}

/// The predefined datatypes that are those of C under another name: of Fortran, of C++, of sizes.
const ALIASES: [(&str, Basic); 27] = [
    ("LONG_LONG_INT", Basic::LongLong),
    ("MPIX_C_FLOAT16", Basic::Real2),
    ("C_COMPLEX", Basic::CFloatComplex),
    ("CXX_BOOL", Basic::CBool),
    ("CXX_FLOAT_COMPLEX", Basic::CFloatComplex),
    ("CXX_DOUBLE_COMPLEX", Basic::CDoubleComplex),
    ("CXX_LONG_DOUBLE_COMPLEX", Basic::CLongDoubleComplex),
    ("LOGICAL", Basic::Int),
    ("INTEGER", Basic::Int),
    ("REAL", Basic::Float),
    ("COMPLEX", Basic::CFloatComplex),
    ("DOUBLE_PRECISION", Basic::Double),
    ("DOUBLE_COMPLEX", Basic::CDoubleComplex),
    ("CHARACTER", Basic::Char),
    ("2INTEGER", Basic::TwoInt),
    ("INTEGER1", Basic::Int8),
    ("INTEGER2", Basic::Int16),
    ("INTEGER4", Basic::Int32),
    ("INTEGER8", Basic::Int64),
    ("LOGICAL1", Basic::Int8),
    ("LOGICAL2", Basic::Int16),
    ("LOGICAL4", Basic::Int32),
    ("LOGICAL8", Basic::Int64),
    ("REAL4", Basic::Float),
    ("REAL8", Basic::Double),
    ("COMPLEX8", Basic::CFloatComplex),
    ("COMPLEX16", Basic::CDoubleComplex),
];

impl Objects {
    /// Those that are there from the beginning, without communicators.
    pub(super) fn new(interface: Interface) -> Self {
        let mut types = FxHashMap::default();
        let mut ops = FxHashMap::default();
        for (name, value) in interface.constants() {
            let handle = value as u64;
            let full = || match name.starts_with("MPIX_") {
                true => name.to_string(),
                false => format!("MPI_{name}"),
            };
            let basic = Basic::ALL.iter().find(|basic| basic.name()[4..] == *name);
            let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
            let basic = basic.or(alias.map(|(_, basic)| basic));
            let marker = Marker::ALL
                .iter()
                .find(|marker| marker.name()[4..] == *name);
            let datatype = basic.map(|&basic| Datatype::from(basic));
            if let Some(datatype) = datatype.or(marker.map(|&marker| Datatype::from(marker))) {
                // A second name of a handle is not its own.
                types.entry(handle).or_insert_with(|| TypeObject {
                    datatype,
                    object: Object {
                        name: full(),
                        ..Object::default()
                    },
                    is_predefined: true,
                    is_committed: true,
                });
            }
            let op = Op::PREDEFINED.iter().find(|op| op.name()[4..] == *name);
            if let Some(op) = op {
                ops.insert(handle, OpObject::predefined(op.clone()));
            }
        }
        let empty = (interface.handle("GROUP_EMPTY"), Group::empty());
        Self {
            interface,
            comms: FxHashMap::default(),
            types,
            groups: FxHashMap::from_iter([empty]),
            ops,
            infos: FxHashMap::from_iter([(interface.handle("INFO_ENV"), Info::new())]),
            handlers: FxHashMap::default(),
            windows: FxHashMap::default(),
            sessions: FxHashMap::default(),
            files: FxHashMap::default(),
            no_file: Object {
                handler: interface.handle("ERRORS_RETURN"),
                ..Object::default()
            },
            keys: FxHashMap::default(),
            codes: Codes::default(),
            tools: Tools::default(),
            universe: 0,
            part: 0,
            parent: None,
            me: 0,
            node: 0,
            threads: 0,
            is_initialized: false,
            is_finalized: false,
            is_awaited: false,
            handles: 0,
            next_key: 0,
        }
    }

    /// A handle of this kind that no object has.
    pub(super) fn handle(&mut self, kind: Kind) -> u64 {
        self.handles += 1;
        // In MPICH's interface a handle's first bits are those of its kind.
        let begin = match (self.interface, kind) {
            (Interface::Standard, _) => 0x4000_0000,
            (_, Kind::Comm) => 0x8400_0000,
            (_, Kind::Group) => 0x8800_0000,
            (_, Kind::Type) => 0x8c00_0000,
            (_, Kind::Errhandler) => 0x9400_0000,
            (_, Kind::Op) => 0x9800_0000,
            (_, Kind::Info) => 0x9c00_0000,
            (_, Kind::Window) => 0xa000_0000,
            (_, Kind::Request | Kind::Message) => 0xac00_0000,
            (_, Kind::Session) => 0xb800_0000,
            // Fortran and MPI_File_c2f have it as an int.
            (_, Kind::File) => 0x4000_0000,
        };
        begin + PREDEFINED + self.handles
    }

    /// A key that no other one has.
    pub(super) fn new_key(&mut self, key: Key) -> i64 {
        self.next_key += 1;
        let number = FIRST_KEY + self.next_key;
        self.keys.insert(number, key);
        number
    }

    /// The handle of the errors that end the job, with which everything begins.
    pub(super) fn fatal(&self) -> u64 {
        self.interface.handle("ERRORS_ARE_FATAL")
    }

    /// Gives a communicator a handle, and the error handler of the one that it was made from.
    pub(super) fn add_comm(&mut self, comm: Comm, handler: u64) -> u64 {
        let handle = self.handle(Kind::Comm);
        self.set_comm(handle, comm, ("", handler));
        handle
    }

    /// The process has been started by others, which this communicator leads to.
    pub(super) fn has_parent(&mut self, comm: Comm) {
        let (handle, fatal) = (self.handle(Kind::Comm), self.fatal());
        self.set_comm(handle, comm, ("MPI_COMM_PARENT", fatal));
        self.parent = Some(handle);
    }

    /// Puts a communicator behind a handle.
    pub(super) fn set_comm(&mut self, handle: u64, comm: Comm, (name, handler): (&str, u64)) {
        let object = Object {
            name: name.to_owned(),
            handler,
            ..Object::default()
        };
        let info = Info::new();
        self.comms.insert(handle, CommObject { comm, object, info });
    }

    /// Gives a datatype a handle.
    pub(super) fn add_type(&mut self, datatype: Datatype) -> u64 {
        let handle = self.handle(Kind::Type);
        let object = TypeObject {
            datatype,
            object: Object::default(),
            is_predefined: false,
            is_committed: false,
        };
        self.types.insert(handle, object);
        handle
    }

    /// The handle of a datatype: the same one, or a predefined one that is alike.
    pub(super) fn handle_of_type(&self, datatype: &Datatype) -> Option<u64> {
        let all = || self.types.iter();
        let same = all().find(|(_, known)| known.datatype.is(datatype));
        let alike = || {
            let made_alike = |known: &Datatype| {
                let integers = &datatype.contents().integers;
                known.combiner() == datatype.combiner() && &known.contents().integers == integers
            };
            let mut alike: Vec<u64> = all()
                .filter(|(_, known)| known.is_predefined && made_alike(&known.datatype))
                .map(|(&handle, _)| handle)
                .collect();
            alike.sort_unstable();
            alike.first().copied()
        };
        same.map(|(&handle, _)| handle).or_else(alike)
    }

    /// The handle that a program is given for a datatype: its own one if it is predefined, or else
    /// a new one, which the program frees.
    pub(super) fn give_type(&mut self, datatype: &Datatype) -> u64 {
        if !datatype.combiner().is_predefined() {
            return self.add_type(datatype.clone());
        }
        self.handle_of_type(datatype).unwrap_or_else(|| {
            // One of Fortran's that is asked for the first time.
            let handle = self.add_type(datatype.clone());
            if let Some(made) = self.types.get_mut(&handle) {
                (made.is_predefined, made.is_committed) = (true, true);
            }
            handle
        })
    }

    /// The properties of the file with this handle, or of no file.
    pub(super) fn file_object(&self, handle: u64) -> Option<&Object> {
        match handle == self.interface.handle("FILE_NULL") {
            true => Some(&self.no_file),
            false => self.files.get(&handle).map(|file| &file.object),
        }
    }

    /// The same, to change.
    pub(super) fn file_object_mut(&mut self, handle: u64) -> Option<&mut Object> {
        match handle == self.interface.handle("FILE_NULL") {
            true => Some(&mut self.no_file),
            false => self.files.get_mut(&handle).map(|file| &mut file.object),
        }
    }

    /// Gives a file a handle, and the error handler of no file.
    pub(super) fn add_file(&mut self, mut file: FileObject) -> u64 {
        let handle = self.handle(Kind::File);
        file.object.handler = self.no_file.handler;
        self.files.insert(handle, file);
        handle
    }

    /// Gives a group a handle.
    pub(super) fn add_group(&mut self, group: Group) -> u64 {
        if group.size() == 0 {
            return self.interface.handle("GROUP_EMPTY");
        }
        let handle = self.handle(Kind::Group);
        self.groups.insert(handle, group);
        handle
    }

    /// Gives an info object a handle.
    pub(super) fn add_info(&mut self, info: Info) -> u64 {
        let handle = self.handle(Kind::Info);
        self.infos.insert(handle, info);
        handle
    }
}

/// More than a kind has predefined handles.
const PREDEFINED: u64 = 0x1000;

/// More than the keys that MPI predefines.
const FIRST_KEY: i64 = 1000;

/// The failure of a call with a handle that is not one.
pub(super) fn no_such(class: ErrorClass, what: &str, handle: u64) -> Failure {
    Failure::new(class, format!("{handle:#x} is no {what}"))
}

/// The fault of a call with a handle that is no file.
pub(super) fn no_file(handle: u64) -> Fault {
    Fault::new(ErrorClass::File, "fh", format!("{handle:#x} is no file"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of a predefined datatype, as its handle says them; nothing if it is a handle of
    /// something else, or does not.
    fn bytes(interface: Interface, handle: u64) -> Option<i64> {
        match interface {
            Interface::Mpich => (handle >> 24 == 0x4c).then_some((handle >> 8 & 0xff) as i64),
            // MPI-5.0, Sec. 20.3: of types whose sizes do not depend on the system.
            Interface::Standard => (576..768)
                .contains(&handle)
                .then_some(1 << (handle >> 3 & 7)),
        }
    }

    #[test]
    fn every_handle_of_a_datatype_is_one() {
        // MPICH has no integers of 16 bytes either.
        let absent = ["LOGICAL16", "INTEGER16"];
        for interface in [Interface::Mpich, Interface::Standard] {
            let objects = Objects::new(interface);
            let mut seen = 0;
            for (name, value) in interface.constants() {
                let is_window = name.starts_with("WIN_");
                let Some(bytes) = bytes(interface, value as u64).filter(|_| !is_window) else {
                    continue;
                };
                let found = objects.types.get(&(value as u64));
                assert_eq!(found.is_none(), absent.contains(&name), "{name}");
                if let Some(found) = found {
                    assert_eq!(found.datatype.size(), bytes, "{name}");
                    seen += 1;
                }
            }
            assert!(seen > 25, "{seen}");
        }
    }
}
