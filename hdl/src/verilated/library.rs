//! The loaded library of a verilated block: the only unsafe code of this package.
//!
//! The code relies, beyond the reasons given at each place, on this: the library is one that
//! [`super::Toolchain::build`] compiled from the source in [`super::interface`], just now or
//! earlier. Just now, it is in a new directory that only the user may enter. Of an earlier one
//! [`super::cache`] checks, before it is taken: beside it stands everything that it was made from,
//! that source too, and it is the same as now; on Unix, the cache's directory, the build's in it
//! and each file in that belong to the user, and neither the group nor others may write to them.
//! Nothing is checked of the directories above the cache's, nor anything on other systems.

#![allow(unsafe_code, reason = "a shared library's functions are foreign")]

use std::ffi::c_void;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;

use super::VerilatedError;
use super::interface::all_words;
use crate::device::Port;
use crate::value::Value;

type Words = unsafe extern "C" fn(u32) -> u32;
type New = unsafe extern "C" fn() -> *mut c_void;
type Reset = unsafe extern "C" fn(*mut c_void);
type Cycle = unsafe extern "C" fn(*mut c_void, *const u64, *mut u64);
type Free = unsafe extern "C" fn(*mut c_void);

/// The functions of a library, which stays loaded until the program ends.
#[derive(Debug)]
pub(super) struct Library {
    new: New,
    reset: Reset,
    cycle: Cycle,
    free: Free,
    input_bits: Vec<usize>,
    output_bits: Vec<usize>,
    input_words: usize,
    output_words: usize,
}

impl Library {
    /// The library at `path`, of a block with these ports.
    pub fn load(
        path: &Path,
        inputs: &[Port],
        outputs: &[Port],
    ) -> Result<Arc<Self>, VerilatedError> {
        let failed = |error: libloading::Error| VerilatedError::Load(error.to_string());
        // SAFETY: what runs when it is loaded are the initializers of Verilator's C++, which touch
        // nothing outside of the library (see the module's documentation for whose it is).
        let library = unsafe { libloading::Library::new(path) }.map_err(failed)?;
        // SAFETY: the types are those of the definitions in `interface::source`, five functions
        // with C linkage; plain integers and pointers pass.
        let (words, new, reset, cycle, free) = unsafe {
            (
                *library.get::<Words>(b"sme_rtl_words\0").map_err(failed)?,
                *library.get::<New>(b"sme_rtl_new\0").map_err(failed)?,
                *library.get::<Reset>(b"sme_rtl_reset\0").map_err(failed)?,
                *library.get::<Cycle>(b"sme_rtl_cycle\0").map_err(failed)?,
                *library.get::<Free>(b"sme_rtl_free\0").map_err(failed)?,
            )
        };
        // SAFETY: it returns one of two constants.
        let (input_words, output_words) = unsafe { (words(0) as usize, words(1) as usize) };
        if (input_words, output_words) != (all_words(inputs), all_words(outputs)) {
            return Err(VerilatedError::Load("it has other ports".into()));
        }
        // It is never unloaded, so that the pointers to its functions stay good.
        std::mem::forget(library);
        let bits = |ports: &[Port]| ports.iter().map(|port| port.bits).collect();
        Ok(Arc::new(Self {
            new,
            reset,
            cycle,
            free,
            input_bits: bits(inputs),
            output_bits: bits(outputs),
            input_words,
            output_words,
        }))
    }
}

/// An instance of the block.
#[derive(Debug)]
pub(super) struct Instance {
    library: Arc<Library>,
    pointer: NonNull<c_void>,
    inputs: Vec<u64>,
    outputs: Vec<u64>,
}

// SAFETY: an instance is a C++ object with a context of its own; nothing in it depends on the
// thread that made it, and there is no other pointer to it. It is not `Sync`, and need not be:
// everything takes it by `&mut`.
unsafe impl Send for Instance {}

impl Instance {
    /// # Panics
    /// If the library has no memory for it. Where there is none for what Verilator's constructors
    /// make in turn, the C++ ends the program.
    pub fn new(library: &Arc<Library>) -> Self {
        // SAFETY: it takes nothing, and returns an object that is ours alone, or null.
        let pointer = NonNull::new(unsafe { (library.new)() });
        Self {
            library: library.clone(),
            pointer: pointer.expect("there is no memory for a verilated block"),
            inputs: vec![0; library.input_words],
            outputs: vec![0; library.output_words],
        }
    }

    /// A cycle with reset high.
    pub fn reset(&mut self) {
        // SAFETY: the pointer is of this library's `new` and has not been freed.
        unsafe { (self.library.reset)(self.pointer.as_ptr()) }
    }

    /// A cycle; values that are missing are zero, bits beyond a port's width are cut off.
    pub fn cycle(&mut self, inputs: &[Value], outputs: &mut Vec<Value>) {
        self.inputs.clear();
        for (index, &bits) in self.library.input_bits.iter().enumerate() {
            let value = inputs.get(index).copied().unwrap_or_default();
            let words = (0..bits).step_by(64);
            self.inputs
                .extend(words.map(|word| value.get(word, (bits - word).min(64))));
        }
        assert_eq!(self.inputs.len(), self.library.input_words);
        assert_eq!(self.outputs.len(), self.library.output_words);
        let (inputs, words) = (self.inputs.as_ptr(), self.outputs.as_mut_ptr());
        // SAFETY: the pointer is of this library's `new` and has not been freed. The function
        // reads as many words of inputs and writes as many of outputs as `sme_rtl_words` said,
        // which are the lengths just asserted, and keeps neither pointer. No bit beyond a port's
        // width is set, which Verilator's code takes for granted.
        unsafe { (self.library.cycle)(self.pointer.as_ptr(), inputs, words) }
        outputs.clear();
        let mut words = self.outputs.iter();
        for &bits in &self.library.output_bits {
            let mut value = Value::default();
            for (word, &content) in (0..bits).step_by(64).zip(&mut words) {
                value.set(word, (bits - word).min(64), content);
            }
            outputs.push(value);
        }
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        // SAFETY: the pointer is of this library's `new`, and this is the only place that frees
        // it; no reference to it is left afterwards.
        unsafe { (self.library.free)(self.pointer.as_ptr()) }
    }
}
