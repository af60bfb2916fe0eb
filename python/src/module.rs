//! What Python calls when it imports the extension module (PEP 489): the definition of the module,
//! and the function that fills it.
#![allow(unsafe_code, reason = "Python's interface for modules is C")]

use std::cell::UnsafeCell;
use std::ffi::{c_int, c_void};
use std::ptr::null_mut;

use pyo3::ffi;
use pyo3::prelude::*;

/// A definition that Python writes into.
struct Definition(UnsafeCell<ffi::PyModuleDef>);

// SAFETY: Python alone reads and writes it, with its lock held.
unsafe impl Sync for Definition {}

/// The function that fills a new module, and the end of the list.
struct Slots(UnsafeCell<[ffi::PyModuleDef_Slot; 2]>);

// SAFETY: Python alone reads it, and it is never written.
unsafe impl Sync for Slots {}

static SLOTS: Slots = Slots(UnsafeCell::new([
    ffi::PyModuleDef_Slot {
        slot: ffi::Py_mod_exec,
        value: exec as *mut c_void,
    },
    ffi::PyModuleDef_Slot {
        slot: 0,
        value: null_mut(),
    },
]));

static DEFINITION: Definition = Definition(UnsafeCell::new(ffi::PyModuleDef {
    m_base: ffi::PyModuleDef_HEAD_INIT,
    m_name: c"_native".as_ptr(),
    m_doc: c"The command line of sme as functions.".as_ptr(),
    m_size: 0,
    m_methods: null_mut(),
    m_slots: SLOTS.0.get().cast(),
    m_traverse: None,
    m_clear: None,
    m_free: None,
}));

/// Gives Python the definition of the module.
///
/// # Safety
/// Python calls it, with its lock held.
// SAFETY: no other symbol has this name, which is that of this module's file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PyInit__native() -> *mut ffi::PyObject {
    // SAFETY: the definition lives as long as the program, is complete, and its slots have an end.
    unsafe { ffi::PyModuleDef_Init(DEFINITION.0.get()) }
}

/// Fills `module`; returns 0, or -1 with an exception set.
///
/// # Safety
/// Python calls it, with its lock held and a new module.
unsafe extern "C" fn exec(module: *mut ffi::PyObject) -> c_int {
    // PyO3 would wait for ever for the main interpreter, whose lock this thread may hold.
    // SAFETY: the caller's thread is attached to an interpreter, whose number this is.
    if unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) } != 0 {
        let reason = c"sme runs in the main interpreter only";
        // SAFETY: the lock is held, the exception exists, and the text is copied.
        unsafe { ffi::PyErr_SetString(ffi::PyExc_ImportError, reason.as_ptr()) };
        return -1;
    }
    Python::attach(|py| {
        // SAFETY: it is an object for as long as the call takes; that it is a module is checked.
        let module = unsafe { Bound::from_borrowed_ptr(py, module) };
        let module = module.cast::<PyModule>().map_err(PyErr::from);
        match module.and_then(|module| super::fill(module)) {
            Ok(()) => 0,
            Err(error) => {
                error.restore(py);
                -1
            }
        }
    })
}
