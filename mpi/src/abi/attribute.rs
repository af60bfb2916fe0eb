//! Attributes of communicators, windows and datatypes: keys with functions of the program's.
//!
//! A program's functions are given handles and return error codes, which those of
//! [`crate::attributes`] are not and do not: so its attributes are kept here.

use std::sync::Arc;

use super::arguments::Arguments;
use super::facts::Interface;
use super::objects::{Key, Object, Objects, no_such};
use super::rank::{Ended, Failure, Rank, SUCCESS};
use crate::error::ErrorClass;

/// The place among the words for functions where what they are given lies.
const PLACE: usize = 8;

/// The function of the standard interface whose value duplicates share (MPI_COMM_DUP_FN).
const SHARES: u64 = 1;

impl Rank {
    /// The attributes of a duplicate of the object behind a handle.
    ///
    /// # Errors
    /// A function of the program's has failed.
    pub(super) fn copies(
        self: &Arc<Self>,
        handle: u64,
        object: &Object,
    ) -> Result<Vec<(i64, u64)>, Failure> {
        let mut copies = Vec::new();
        for &(number, value) in &object.attributes {
            let Some(key) = self.key(number) else {
                continue;
            };
            match key.copy {
                0 => {}
                SHARES if self.interface == Interface::Standard => copies.push((number, value)),
                function => {
                    let at = self.program.scratch(PLACE, &[value, 0]);
                    let arguments = [handle, number as u64, key.extra, value, at, at + 8];
                    let code = self.invoke(function, &arguments)? as i32;
                    if code != 0 {
                        return Err(Failure::Code(code));
                    }
                    if self.program.scratched(PLACE + 1) as u32 != 0 {
                        copies.push((number, self.program.scratched(PLACE)));
                    }
                }
            }
        }
        Ok(copies)
    }

    /// Tells the functions of attributes, of the last one first, that these are no more.
    ///
    /// # Errors
    /// As [`Self::copies`].
    pub(super) fn deletes(
        self: &Arc<Self>,
        handle: u64,
        attributes: &[(i64, u64)],
    ) -> Result<(), Failure> {
        for &(number, value) in attributes.iter().rev() {
            self.delete(handle, number, value)?;
        }
        Ok(())
    }

    fn delete(self: &Arc<Self>, handle: u64, number: i64, value: u64) -> Result<(), Failure> {
        let Some(key) = self.key(number).filter(|key| key.delete != 0) else {
            return Ok(());
        };
        let arguments = [handle, number as u64, value, key.extra];
        match self.invoke(key.delete, &arguments)? as i32 {
            0 => Ok(()),
            code => Err(Failure::Code(code)),
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
                    copy,
                    delete,
                    extra,
                    is_freed: false,
                };
                let number = self.objects.lock().new_key(key);
                a.put(out, number)?;
            }
            "Comm_free_keyval" | "Type_free_keyval" | "Win_free_keyval" | "Keyval_free" => {
                let out = a.out();
                let number = self.numbers(out.address, 1, 4)?[0];
                let mut objects = self.objects.lock();
                let key = objects.keys.get_mut(&number).filter(|key| !key.is_freed);
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
        let object = |objects: &mut Objects| -> Result<Object, Failure> {
            objects.object(name, handle).cloned()
        };
        match () {
            _ if name.contains("get") => {
                let (at, flag) = (a.address(), a.out());
                let found = object(&mut self.objects.lock())?;
                let value = match self.predefined(name, handle, number) {
                    Some(value) => Some(value),
                    None => {
                        if self.key(number).is_none() {
                            return Err(no_key(number));
                        }
                        let mut all = found.attributes.iter();
                        all.find(|(key, _)| *key == number).map(|&(_, value)| value)
                    }
                };
                a.put(flag, value.is_some().into())?;
                if let Some(value) = value {
                    self.put_numbers(at, &[value as i64], 8)?;
                }
            }
            _ if name.contains("set") || name.contains("put") => {
                let value = a.address();
                let found = object(&mut self.objects.lock())?;
                if self.key(number).is_none_or(|key| key.is_freed) {
                    return Err(no_key(number));
                }
                let old = found.attributes.iter().find(|(key, _)| *key == number);
                if let Some(&(_, old)) = old {
                    self.delete(handle, number, old)?;
                }
                let mut objects = self.objects.lock();
                let object = objects.object(name, handle)?;
                object.attributes.retain(|(key, _)| *key != number);
                object.attributes.push((number, value));
            }
            _ => {
                let found = object(&mut self.objects.lock())?;
                let old = found.attributes.iter().find(|(key, _)| *key == number);
                let &(_, old) = old.ok_or_else(|| no_key(number))?;
                self.delete(handle, number, old)?;
                let mut objects = self.objects.lock();
                let object = objects.object(name, handle)?;
                object.attributes.retain(|(key, _)| *key != number);
            }
        }
        SUCCESS
    }

    /// The value of a predefined attribute: the address of a number, or of a window's base.
    fn predefined(&self, name: &str, handle: u64, number: i64) -> Option<u64> {
        let of = self.interface;
        if name.starts_with("Win_") {
            let objects = self.objects.lock();
            let window = objects.windows.get(&handle)?;
            let all = window.predefined.iter();
            let mut all = all.filter(|(name, _)| of.constant(name) == number);
            return all.next().map(|&(_, value)| value);
        }
        if name.starts_with("Type_") {
            return None;
        }
        let known = [
            ("TAG_UB", i64::from(i32::MAX)),
            ("IO", of.constant("ANY_SOURCE")),
            ("HOST", of.constant("PROC_NULL")),
            ("WTIME_IS_GLOBAL", 1),
            ("APPNUM", 0),
            ("UNIVERSE_SIZE", self.objects.lock().universe),
            (
                "LASTUSEDCODE",
                self.objects
                    .lock()
                    .codes
                    .last
                    .max(of.constant("ERR_LASTCODE")),
            ),
        ];
        let place = known
            .iter()
            .position(|(name, _)| of.constant(name) == number)?;
        let value = known[place].1;
        Some(self.program.scratch(ATTRIBUTES + place, &[value as u64]))
    }
}

/// The place among the words for functions where the values of predefined attributes lie.
pub(super) const ATTRIBUTES: usize = 32;

fn no_key(number: i64) -> Failure {
    Failure::new(ErrorClass::Keyval, format!("keyval: {number} is none"))
}

impl Objects {
    /// What has the attributes that a call of this name is about.
    fn object(&mut self, call: &str, handle: u64) -> Result<&mut Object, Failure> {
        let (class, what, found) = match call.split('_').next() {
            Some("Type") => {
                let found = self.types.get_mut(&handle).map(|found| &mut found.object);
                (ErrorClass::Type, "datatype", found)
            }
            Some("Win") => (ErrorClass::Win, "window", self.windows.get_mut(&handle)),
            _ => {
                let found = self.comms.get_mut(&handle).map(|found| &mut found.object);
                (ErrorClass::Comm, "communicator", found)
            }
        };
        found.ok_or_else(|| no_such(class, what, handle))
    }
}
