//! The extension module `sme._native`: the command line as functions. `python/sme/` makes of them
//! what users see, and says there what they take and return.
//!
//! PyO3's macros would change the features of crates that the program has too, so that either's
//! build would compile everything again: functions are closures here, and `module` is by hand.
//! The same goes for the crates of Arrow: `arrow` is its C interface, `columns` what that hands
//! on.

mod arrow;
mod columns;
mod module;

use std::ffi::OsString;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyCapsule, PyDict, PyTuple};

use arrow::{Schema, Stream};
use columns::Table;
use sme::cli::rows::{self, Done};
use sme::report::records::{self, Record};
use sme::report::temporary;

/// The program's, for its large pages.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How often a call looks whether its user has pressed Ctrl-C.
const LOOK: Duration = Duration::from_millis(20);

/// Arguments in their order, and those by name, of which no function has any.
type Arguments<'a, 'py> = &'a Bound<'py, PyTuple>;
type Named<'a, 'py> = Option<&'a Bound<'py, PyDict>>;

/// A flag's name, and its values if it takes any.
type Flag = (String, Option<Vec<OsString>>);

/// Names of the columns, the number of rows, and two functions that return capsules.
type Parts<'py> = (
    Vec<String>,
    usize,
    Bound<'py, PyCFunction>,
    Bound<'py, PyCFunction>,
);

/// Puts the functions into `module`.
fn fill(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    let main = |given: Arguments<'_, '_>, _: Named<'_, '_>| -> PyResult<u8> {
        let (arguments,): (Vec<OsString>,) = given.extract()?;
        Ok(given.py().detach(|| sme::cli::status(arguments)))
    };
    let run = |given: Arguments<'_, '_>, _: Named<'_, '_>| -> PyResult<Py<PyAny>> {
        let (path, flags): (Vec<OsString>, Vec<Flag>) = given.extract()?;
        let py = given.py();
        let done = run(py, rows::words(path, flags))?;
        let stop = done.stop.map(|stop| (stop.status(), stop.to_string()));
        let answer = (stop, parts(py, &done.rows)?).into_pyobject(py)?;
        Ok(answer.into_any().unbind())
    };
    let read = |given: Arguments<'_, '_>, _: Named<'_, '_>| -> PyResult<Py<PyAny>> {
        let (file, bytes): (String, Vec<u8>) = given.extract()?;
        let py = given.py();
        let (rows, error) = match records::read_all(&file, bytes.as_slice()) {
            Ok(rows) => (rows, None),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        let answer = (error, parts(py, &rows)?).into_pyobject(py)?;
        Ok(answer.into_any().unbind())
    };
    let remove_unfinished = |_: Arguments<'_, '_>, _: Named<'_, '_>| temporary::remove_all();
    module.add(
        "main",
        PyCFunction::new_closure(py, Some(c"main"), None, main)?,
    )?;
    module.add(
        "run",
        PyCFunction::new_closure(py, Some(c"run"), None, run)?,
    )?;
    module.add(
        "read",
        PyCFunction::new_closure(py, Some(c"read"), None, read)?,
    )?;
    let name = c"remove_unfinished";
    let remove_unfinished = PyCFunction::new_closure(py, Some(name), None, remove_unfinished)?;
    module.add("remove_unfinished", remove_unfinished)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}

/// Runs the command line of `words` on a thread of its own, while other threads of Python go on.
///
/// # Errors
/// `KeyboardInterrupt` after Ctrl-C. The thread is then no longer waited for: a sweep stops at
/// its next row, another command at its end.
fn run(py: Python<'_>, words: Vec<OsString>) -> PyResult<Done> {
    let ended = Arc::new(AtomicBool::new(false));
    let (done, mut awaited) = mpsc::channel();
    let thread = thread::Builder::new().stack_size(sme::cli::STACK_BYTES);
    let job = {
        let ended = ended.clone();
        // After Ctrl-C there is no receiver.
        move || drop(done.send(rows::rows(words, &ended)))
    };
    let job = thread.spawn(job)?;
    loop {
        let awaited = &mut awaited;
        match py.detach(move || awaited.recv_timeout(LOOK)) {
            Ok(done) => return Ok(done),
            Err(RecvTimeoutError::Timeout) => py
                .check_signals()
                .inspect_err(|_| ended.store(true, Ordering::Relaxed))?,
            Err(RecvTimeoutError::Disconnected) => match job.join() {
                // PyO3 makes an exception of it.
                Err(panic) => std::panic::resume_unwind(panic),
                Ok(()) => return Err(PyRuntimeError::new_err("the command has no result")),
            },
        }
    }
}

/// `rows` for Python.
fn parts<'py>(py: Python<'py>, rows: &[Record]) -> PyResult<Parts<'py>> {
    let table = Arc::new(Table::new(rows));
    let names = table.columns.iter().map(|column| column.name.clone());
    let (names, rows) = (names.collect(), table.rows);
    let of_schema = table.clone();
    let stream = move |given: Arguments<'_, '_>, _: Named<'_, '_>| {
        let stream = Stream::new(table.clone());
        let capsule = PyCapsule::new_with_value(given.py(), stream, c"arrow_array_stream");
        capsule.map(Bound::unbind)
    };
    let schema = move |given: Arguments<'_, '_>, _: Named<'_, '_>| {
        let schema = Schema::of_table(&of_schema);
        let capsule = PyCapsule::new_with_value(given.py(), schema, c"arrow_schema");
        capsule.map(Bound::unbind)
    };
    Ok((
        names,
        rows,
        PyCFunction::new_closure(py, Some(c"stream"), None, stream)?,
        PyCFunction::new_closure(py, Some(c"schema"), None, schema)?,
    ))
}
