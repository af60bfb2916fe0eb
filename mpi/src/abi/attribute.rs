//! Attributes of communicators, windows and datatypes: keys with functions of the program's.
//!
//! A program's functions are given handles and return error codes, which those of
//! [`crate::attributes`] are not and do not: so its attributes are kept here.

use std::sync::Arc;

use super::arguments::Arguments;
use super::callback::Function;
use super::facts::Interface;
use super::objects::{Bearer, Key, Object, Objects, no_such};
use super::program::place;
use super::rank::{Ended, Failure, Rank, SUCCESS};
use super::server::Server;
use crate::channel::Channel;
use crate::error::ErrorClass;

/// The function of the standard interface whose value duplicates share (MPI_COMM_DUP_FN).
const SHARES: u64 = 1;

/// The kind of value that an attribute has, for a proxy: an address.
const ADDRESS: u64 = 0;

/// The copy of an attribute.
enum Copy {
    /// A duplicate has none.
    None,
    /// A duplicate has the same value.
    Same,
    /// A function says what it has.
    Asks(Function),
}

impl<C: Channel> Server<'_, C> {
    /// The calls about attributes: a function that is told of the end of one may make any call.
    pub(super) async fn attributes(&mut self, a: &mut Arguments<'_>) -> Ended {
        let name = a.call.name;
        let is_asked = name.contains("get") || name.ends_with("keyval");
        if is_asked || name.starts_with("Keyval") || name.starts_with("Type") {
            return a.rank.attributes(a);
        }
        let (handle, number) = (a.handle(), a.number());
        let rank = Arc::clone(&self.rank);
        let value = rank.new_value(a)?;
        if let Some(old) = rank.old_value(name, handle, number, value)? {
            self.deletes(handle, &[(number, old)]).await?;
        }
        rank.replace(name, handle, (number, value))?;
        SUCCESS
    }

    /// The attributes of a duplicate of the object behind a handle.
    ///
    /// # Errors
    /// A function of the program's has failed.
    pub(super) async fn copies(
        &mut self,
        handle: u64,
        object: &Object,
    ) -> Result<Vec<(i64, u64)>, Failure> {
        let mut copies = Vec::new();
        for &(number, value) in &object.attributes {
            match self.rank.copy(handle, number, value) {
                Copy::None => {}
                Copy::Same => copies.push((number, value)),
                Copy::Asks((function, arguments)) => {
                    let code = self.invoke(function, &arguments).await?;
                    copies.extend(self.rank.copied(code, number)?);
                }
            }
        }
        Ok(copies)
    }

    /// Tells the functions of attributes, of the last one first, that these are no more.
    ///
    /// # Errors
    /// As [`Self::copies`].
    pub(super) async fn deletes(
        &mut self,
        handle: u64,
        attributes: &[(i64, u64)],
    ) -> Result<(), Failure> {
        for &(number, value) in attributes.iter().rev() {
            if let Some((function, arguments)) = self.rank.deletion(handle, number, value) {
                deleted(self.invoke(function, &arguments).await?)?;
            }
        }
        Ok(())
    }
}

/// The outcome of a function that was told of the end of an attribute.
fn deleted(code: u64) -> Result<(), Failure> {
    match code as i32 {
        0 => Ok(()),
        code => Err(Failure::Code(code)),
    }
}

impl Rank {
    /// The copy of an attribute of the object behind a handle.
    fn copy(&self, handle: u64, number: i64, value: u64) -> Copy {
        let Some(key) = self.key(number) else {
            return Copy::None;
        };
        match key.copy {
            0 => Copy::None,
            SHARES if self.interface == Interface::Standard => Copy::Same,
            function => {
                let at = self.gives(&[value, 0]);
                let (about, extra, copy) = ([handle, number as u64], key.extra, [at, at + 8]);
                Copy::Asks(match key.proxies {
                    None => (function, [&about[..], &[extra, value], &copy].concat()),
                    Some([proxy, _]) => {
                        let rest = [extra, ADDRESS, value];
                        (proxy, [&[function], &about[..], &rest, &copy].concat())
                    }
                })
            }
        }
    }

    /// The copy that a function has told of, if it wants one.
    fn copied(&self, code: u64, number: i64) -> Result<Option<(i64, u64)>, Failure> {
        match code as i32 {
            0 if self.given(1) as u32 != 0 => Ok(Some((number, self.given(0)))),
            0 => Ok(None),
            code => Err(Failure::Code(code)),
        }
    }

    /// The function that is told of the end of an attribute.
    fn deletion(&self, handle: u64, number: i64, value: u64) -> Option<Function> {
        let key = self.key(number).filter(|key| key.delete != 0)?;
        let (function, extra, number) = (key.delete, key.extra, number as u64);
        Some(match key.proxies {
            None => (function, vec![handle, number, value, extra]),
            Some([_, proxy]) => (proxy, vec![function, handle, number, ADDRESS, value, extra]),
        })
    }

    /// The attributes of a duplicate of a datatype: see [`Server::copies`].
    ///
    /// # Errors
    /// As there.
    pub(super) fn copies(
        self: &Arc<Self>,
        handle: u64,
        object: &Object,
    ) -> Result<Vec<(i64, u64)>, Failure> {
        let mut copies = Vec::new();
        for &(number, value) in &object.attributes {
            match self.copy(handle, number, value) {
                Copy::None => {}
                Copy::Same => copies.push((number, value)),
                Copy::Asks((function, arguments)) => {
                    let code = self.invoke(function, &arguments)?;
                    copies.extend(self.copied(code, number)?);
                }
            }
        }
        Ok(copies)
    }

    /// Tells of the end of attributes of a datatype: see [`Server::deletes`].
    ///
    /// # Errors
    /// As there.
    pub(super) fn deletes(
        self: &Arc<Self>,
        handle: u64,
        attributes: &[(i64, u64)],
    ) -> Result<(), Failure> {
        let mut all = attributes.iter().rev();
        all.try_for_each(|&(number, value)| self.delete(handle, number, value))
    }

    fn delete(self: &Arc<Self>, handle: u64, number: i64, value: u64) -> Result<(), Failure> {
        match self.deletion(handle, number, value) {
            Some((function, arguments)) => deleted(self.invoke(function, &arguments)?),
            None => Ok(()),
        }
    }

    fn key(&self, number: i64) -> Option<Key> {
        self.objects.lock().keys.get(&number).copied()
    }

    /// The calls about attributes and keys.
    pub(super) fn attributes(self: &Arc<Self>, a: &mut Arguments<'_>) -> Ended {
        let name = a.call.name;
        match name {
            "Comm_create_keyval" | "Type_create_keyval" | "Win_create_keyval" | "Keyval_create" => {
                let (copy, delete, out, extra) = (a.address(), a.address(), a.out(), a.address());
                let key = Key {
                    of: Bearer::of(name),
                    copy,
                    delete,
                    extra,
                    proxies: None,
                    is_freed: false,
                };
                let number = self.objects.lock().new_key(key);
                a.put(out, number)?;
            }
            "Comm_free_keyval" | "Type_free_keyval" | "Win_free_keyval" | "Keyval_free" => {
                let out = a.out();
                let number = self.numbers(out.address, 1, 4)?[0];
                let mut objects = self.objects.lock();
                // A key that is in use stays one, as with MPICH: also while the function is called
                // that is told of its last attribute's end.
                let is_used = self.calls_function() || objects.uses_key(number);
                let key = objects.key_of(name, number);
                let key = key.filter(|key| is_used || !key.is_freed);
                key.ok_or_else(|| no_key(number))?.is_freed = true;
                drop(objects);
                a.put(out, a.interface().constant("KEYVAL_INVALID"))?;
            }
            _ => return self.attribute(a),
        }
        SUCCESS
    }

    /// The calls about one attribute of an object.
    fn attribute(self: &Arc<Self>, a: &mut Arguments<'_>) -> Ended {
        let name = a.call.name;
        let handle = a.handle();
        let number = a.number();
        match name.contains("get") {
            true => {
                let (at, flag) = (a.address(), a.out());
                self.objects.lock().object(name, handle)?;
                let value = match self.predefined(name, handle, number) {
                    Some(value) => Some(value),
                    None => {
                        let mut objects = self.objects.lock();
                        objects.key_of(name, number).ok_or_else(|| no_key(number))?;
                        let mut all = objects.object(name, handle)?.attributes.iter();
                        all.find(|(key, _)| *key == number).map(|&(_, value)| value)
                    }
                };
                a.put(flag, value.is_some().into())?;
                if let Some(value) = value {
                    self.put_numbers(at, &[value as i64], 8)?;
                }
            }
            false => {
                let value = self.new_value(a)?;
                if let Some(old) = self.old_value(name, handle, number, value)? {
                    self.delete(handle, number, old)?;
                }
                self.replace(name, handle, (number, value))?;
            }
        }
        SUCCESS
    }

    /// The value that a call sets; none of one that deletes.
    fn new_value(&self, a: &mut Arguments<'_>) -> Result<Option<u64>, Failure> {
        let name = a.call.name;
        let sets = name.contains("set") || name.contains("put");
        Ok(sets.then(|| a.address()))
    }

    /// The value that an attribute has before it is set, or deleted.
    fn old_value(
        &self,
        name: &str,
        handle: u64,
        number: i64,
        new: Option<u64>,
    ) -> Result<Option<u64>, Failure> {
        let mut objects = self.objects.lock();
        let key = objects.key_of(name, number).copied();
        let mut all = objects.object(name, handle)?.attributes.iter();
        let old = all.find(|(key, _)| *key == number).map(|&(_, value)| value);
        let is_right = match new {
            Some(_) => key.is_some_and(|key| !key.is_freed),
            None => old.is_some(),
        };
        match is_right {
            true => Ok(old),
            false => Err(no_key(number)),
        }
    }

    /// Sets an attribute, or removes it.
    fn replace(
        &self,
        name: &str,
        handle: u64,
        (number, value): (i64, Option<u64>),
    ) -> Result<(), Failure> {
        let mut objects = self.objects.lock();
        let object = objects.object(name, handle)?;
        object.attributes.retain(|(key, _)| *key != number);
        object.attributes.extend(value.map(|value| (number, value)));
        Ok(())
    }

    /// The value of a predefined attribute: the address of a number, or of a window's base.
    fn predefined(&self, name: &str, handle: u64, number: i64) -> Option<u64> {
        let of = self.interface;
        let bearer = Bearer::of(name);
        if bearer == Bearer::Window {
            let objects = self.objects.lock();
            let window = objects.windows.get(&handle)?;
            let all = window.predefined.iter();
            let mut all = all.filter(|(name, _)| of.constant(name) == number);
            return all.next().map(|&(_, value)| value);
        }
        if bearer == Bearer::Type {
            return None;
        }
        let objects = self.objects.lock();
        let last = objects.codes.last.max(of.constant("ERR_LASTCODE"));
        let known = [
            ("TAG_UB", i64::from(i32::MAX)),
            ("IO", of.constant("ANY_SOURCE")),
            ("HOST", of.constant("PROC_NULL")),
            ("WTIME_IS_GLOBAL", 1),
            ("APPNUM", objects.part),
            ("UNIVERSE_SIZE", objects.universe),
            ("LASTUSEDCODE", last),
        ];
        let mut known = (0..).zip(known);
        let (at, (_, value)) = known.find(|(_, (name, _))| of.constant(name) == number)?;
        let words = [value as u64];
        Some(self.program.scratch(place::PREDEFINED + at, &words))
    }
}

fn no_key(number: i64) -> Failure {
    Failure::new(ErrorClass::Keyval, format!("keyval: {number} is none"))
}

impl Objects {
    /// Returns whether an object has an attribute with the key of this number.
    fn uses_key(&self, number: i64) -> bool {
        let comms = self.comms.values().map(|comm| &comm.object);
        let types = self.types.values().map(|found| &found.object);
        let mut all = comms.chain(types).chain(self.windows.values());
        all.any(|object| object.attributes.iter().any(|&(key, _)| key == number))
    }

    /// The key of this number, if a call of this name may be about it.
    fn key_of(&mut self, call: &str, number: i64) -> Option<&mut Key> {
        let key = self.keys.get_mut(&number);
        key.filter(|key| key.of == Bearer::of(call))
    }

    /// The object whose attributes a call of this name is about.
    fn object(&mut self, call: &str, handle: u64) -> Result<&mut Object, Failure> {
        let (class, what, found) = match Bearer::of(call) {
            Bearer::Type => {
                let found = self.types.get_mut(&handle).map(|found| &mut found.object);
                (ErrorClass::Type, "datatype", found)
            }
            Bearer::Window => (ErrorClass::Win, "window", self.windows.get_mut(&handle)),
            Bearer::Comm => {
                let found = self.comms.get_mut(&handle).map(|found| &mut found.object);
                (ErrorClass::Comm, "communicator", found)
            }
        };
        found.ok_or_else(|| no_such(class, what, handle))
    }
}
