//! Error handlers, and classes, codes and strings of errors.

use std::sync::Arc;

use super::arguments::Arguments;
use super::callback::Function;
use super::objects::{Codes, Handler, Kind, Object, Objects, no_file, no_such};
use super::rank::{Ended, Failure, Rank, SUCCESS};
use crate::error::ErrorClass;

/// The handlers that are there from the beginning.
const PREDEFINED: [&str; 4] = ["ERRORS_ARE_FATAL", "ERRORS_ABORT", "ERRORS_RETURN", THROWS];

/// The one with which MPICH's library for C++ throws exceptions: for it, calls of C return errors.
const THROWS: &str = "MPIR_ERRORS_THROW_EXCEPTIONS";

impl Rank {
    /// The calls about errors.
    pub(super) fn errors(self: &Arc<Self>, a: &mut Arguments<'_>) -> Ended {
        match a.call.name {
            "Comm_create_errhandler"
            | "Win_create_errhandler"
            | "File_create_errhandler"
            | "Session_create_errhandler"
            | "Errhandler_create" => {
                let (function, at) = (a.address(), a.address());
                let handle = a.new_handle(Kind::Errhandler);
                let handler = Handler {
                    function,
                    proxy: None,
                };
                self.objects.lock().handlers.insert(handle, handler);
                a.put_handle(at, handle)?;
            }
            "Errhandler_free" => {
                let at = a.address();
                let handle = a.handle_at(at)?;
                // Objects that have it keep it.
                if !self.is_handler(handle) {
                    return Err(no_handler(handle));
                }
                a.put_null(at, "ERRHANDLER_NULL")?;
            }
            "Comm_set_errhandler"
            | "Errhandler_set"
            | "Win_set_errhandler"
            | "File_set_errhandler"
            | "Session_set_errhandler" => {
                let object = a.handle();
                let handler = a.handle();
                if !self.is_handler(handler) {
                    return Err(no_handler(handler));
                }
                self.with_object(a.call.name, object, |found| found.handler = handler)?;
            }
            "Comm_get_errhandler"
            | "Errhandler_get"
            | "Win_get_errhandler"
            | "File_get_errhandler"
            | "Session_get_errhandler" => {
                let object = a.handle();
                let handler = self.with_object(a.call.name, object, |found| found.handler)?;
                let at = a.address();
                a.put_handle(at, handler)?;
            }
            name if name.ends_with("_call_errhandler") => {
                if let Some((function, arguments)) = self.called_handler(a)? {
                    self.invoke(function, &arguments)?;
                }
            }
            "Error_class" => {
                let (code, out) = (a.number(), a.out());
                let class = self.objects.lock().codes.classes.get(&code).copied();
                a.put(out, class.unwrap_or(code))?;
            }
            "Error_string" => {
                let (code, at, length) = (a.number(), a.address(), a.out());
                let added = self.objects.lock().codes.strings.get(&code).cloned();
                let text = match (added, code) {
                    (Some(text), _) => text,
                    (None, 0) => "No error".to_owned(),
                    (None, code) => self.name_of_code(code),
                };
                let room = a.interface().constant("MAX_ERROR_STRING") as usize;
                let bytes = self.put_string(at, &text, room)?;
                a.put(length, bytes as i64)?;
            }
            "Add_error_class" => {
                let out = a.out();
                let class = self.adds_code(|class| class);
                a.put(out, class)?;
            }
            "Add_error_code" => {
                let (class, out) = (a.number(), a.out());
                let code = self.adds_code(|_| class);
                a.put(out, code)?;
            }
            "Add_error_string" => {
                let (code, text) = (a.number(), a.string()?);
                let mut objects = self.objects.lock();
                if !objects.codes.classes.contains_key(&code) {
                    let text = format!("errorcode: {code} has not been added");
                    return Err(Failure::new(ErrorClass::Arg, text));
                }
                objects.codes.strings.insert(code, text);
            }
            "Remove_error_class" | "Remove_error_code" => {
                let code = a.number();
                let mut objects = self.objects.lock();
                let Codes {
                    classes, strings, ..
                } = &mut objects.codes;
                // One that has a string, or codes, is still in use.
                let has_string = strings.get(&code).is_some_and(|text| !text.is_empty());
                let mut others = classes.iter().filter(|&(&other, _)| other != code);
                let has_codes = others.any(|(_, &class)| class == code);
                if has_string || has_codes || classes.remove(&code).is_none() {
                    let text = format!("errorcode: {code} is in use, or has not been added");
                    return Err(Failure::new(ErrorClass::Arg, text));
                }
                strings.remove(&code);
            }
            "Remove_error_string" => {
                let code = a.number();
                let mut objects = self.objects.lock();
                let text = objects.codes.strings.get_mut(&code);
                let text = text.filter(|text| !text.is_empty()).ok_or_else(|| {
                    let text = format!("errorcode: {code} has no string");
                    Failure::new(ErrorClass::Arg, text)
                })?;
                text.clear();
            }
            _ => return self.unsupported(a),
        }
        SUCCESS
    }

    /// Adds a code, whose class `class` gives.
    fn adds_code(&self, class: impl FnOnce(i64) -> i64) -> i64 {
        let last = self.interface.constant("ERR_LASTCODE");
        let mut objects = self.objects.lock();
        let codes = &mut objects.codes;
        let code = codes.last.max(last) + 1;
        codes.last = code;
        codes.classes.insert(code, class(code));
        codes.strings.insert(code, String::new());
        code
    }

    fn is_handler(&self, handle: u64) -> bool {
        self.is_one_of(&PREDEFINED, handle) || self.objects.lock().handlers.contains_key(&handle)
    }

    /// Returns whether a handler leaves errors to the program.
    pub(super) fn returns_errors(&self, handler: u64) -> bool {
        self.is_one_of(&["ERRORS_RETURN", THROWS], handler)
    }

    /// Returns whether a handle is one of these constants, as far as the interface has them.
    fn is_one_of(&self, names: &[&str], handle: u64) -> bool {
        let mut all = names.iter().map(|name| self.interface.handle(name));
        handle != 0 && all.any(|known| known == handle)
    }

    /// The function that a call of an error handler calls, if there is one.
    ///
    /// # Errors
    /// There is no such object; [`Failure::Gone`]: the handler ends the job.
    pub(super) fn called_handler(
        &self,
        a: &mut Arguments<'_>,
    ) -> Result<Option<Function>, Failure> {
        let (object, code) = (a.handle(), a.number());
        let handler = self.with_object(a.call.name, object, |found| found.handler)?;
        let found = self.objects.lock().handlers.get(&handler).copied();
        if let Some(found) = found {
            return Ok(Some(self.told(found, object, code)));
        }
        if self.returns_errors(handler) {
            return Ok(None);
        }
        let why = format!(
            "the error handler was called with {}",
            self.name_of_code(code)
        );
        self.program.abort(code as i32, why);
        Err(Failure::Gone)
    }

    fn with_object<T>(
        &self,
        call: &str,
        handle: u64,
        does: impl FnOnce(&mut Object) -> T,
    ) -> Result<T, Failure> {
        let mut objects = self.objects.lock();
        if call.starts_with("File") {
            let found = objects.file_object_mut(handle);
            return Ok(does(found.ok_or_else(|| no_file(handle))?));
        }
        let Objects {
            comms,
            windows,
            sessions,
            ..
        } = &mut *objects;
        let (class, what, found) = match call.split('_').next() {
            Some("Win") => (ErrorClass::Win, "window", windows.get_mut(&handle)),
            Some("Session") => (ErrorClass::Session, "session", sessions.get_mut(&handle)),
            _ => {
                let found = comms.get_mut(&handle).map(|found| &mut found.object);
                (ErrorClass::Comm, "communicator", found)
            }
        };
        Ok(does(found.ok_or_else(|| no_such(class, what, handle))?))
    }
}

fn no_handler(handle: u64) -> Failure {
    no_such(ErrorClass::Arg, "error handler", handle)
}
