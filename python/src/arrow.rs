//! A table in Arrow's C data interface and C stream interface, whose structures these are
//! (<https://arrow.apache.org/docs/format/CDataInterface.html>, `CStreamInterface.html`): an
//! importer reads the columns where they are.
//!
//! Called by `super`, which puts a [`Stream`] or a [`Schema`] into a capsule (Arrow's PyCapsule
//! interface). A structure owns what it points to by its `private_data`; its `release` gives that
//! back once: the importer calls it, or the drop of a structure that was never imported. An
//! importer may move a structure elsewhere, and then marks the old place as released.
//!
//! The interface is C, so that this file has `unsafe`; what each use rests on stands beside it.
#![allow(unsafe_code, reason = "pointers are the interface")]

use std::ffi::{CString, c_char, c_int, c_void};
use std::mem;
use std::ptr::{null, null_mut};
use std::sync::Arc;

use super::columns::{Column, Table, Values};

/// `ARROW_FLAG_NULLABLE`
const NULLABLE: i64 = 2;

/// `struct ArrowSchema`: the name and type of a column, or of all columns.
#[repr(C)]
#[derive(Debug)]
pub struct Schema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut Schema,
    dictionary: *mut Schema,
    release: Option<unsafe extern "C" fn(*mut Schema)>,
    private_data: *mut c_void,
}

/// The memory that a [`Schema`] points to.
struct Described {
    format: CString,
    name: CString,
    metadata: Option<Vec<u8>>,
    children: Vec<*mut Schema>,
}

impl Schema {
    /// Of all columns of `table`.
    pub fn of_table(table: &Table) -> Self {
        Self::new(
            "+s",
            "",
            None,
            table.columns.iter().map(Self::of_column).collect(),
        )
    }

    fn of_column(column: &Column) -> Self {
        let format = match column.values {
            Values::None => "n",
            Values::Truths(_) => "b",
            Values::Integers(_) => "l",
            Values::Counts(_) => "L",
            Values::Reals(_) => "g",
            Values::Texts(..) => "U",
        };
        let metadata = column.unit.map(|unit| metadata("unit", unit));
        Self::new(format, &column.name, metadata, Vec::new())
    }

    fn new(format: &str, name: &str, metadata: Option<Vec<u8>>, children: Vec<Self>) -> Self {
        let text = |text: &str| CString::new(text.replace('\0', " ")).unwrap_or_default();
        let children = children
            .into_iter()
            .map(|child| Box::into_raw(Box::new(child)));
        let mut described = Box::new(Described {
            format: text(format),
            name: text(name),
            metadata,
            children: children.collect(),
        });
        Self {
            format: described.format.as_ptr(),
            name: described.name.as_ptr(),
            metadata: described
                .metadata
                .as_ref()
                .map_or(null(), |bytes| bytes.as_ptr().cast()),
            flags: NULLABLE,
            n_children: described.children.len() as i64,
            children: described.children.as_mut_ptr(),
            dictionary: null_mut(),
            release: Some(release_schema),
            private_data: Box::into_raw(described).cast(),
        }
    }
}

/// One key and its value, as Arrow writes metadata.
fn metadata(key: &str, value: &str) -> Vec<u8> {
    let mut bytes = 1i32.to_ne_bytes().to_vec();
    for text in [key, value] {
        bytes.extend((text.len() as i32).to_ne_bytes());
        bytes.extend(text.as_bytes());
    }
    bytes
}

/// # Safety
/// `schema` points to a schema that `Schema::new` made, wherever it was moved since, and that was
/// not released.
unsafe extern "C" fn release_schema(schema: *mut Schema) {
    // SAFETY: the caller's pointer is valid, and no other thread uses it meanwhile (the interface
    // lets one thread at a time use a structure). `private_data` came from `Box::into_raw` of this
    // type in `Schema::new`, and is taken once, as `release` is gone afterwards.
    let described = unsafe {
        (*schema).release = None;
        Box::from_raw((*schema).private_data.cast::<Described>())
    };
    for &child in &described.children {
        // SAFETY: it came from `Box::into_raw` in `Schema::new`; this is the one place that takes
        // it back. Its drop releases it, unless the importer has moved it elsewhere.
        drop(unsafe { Box::from_raw(child) });
    }
}

impl Drop for Schema {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: `self` was made by `Schema::new`, as there is no other constructor, and is
            // not released, as it has its `release`.
            unsafe { release(self) };
        }
    }
}

/// `struct ArrowArray`: the values of a column, or of all columns.
#[repr(C)]
#[derive(Debug)]
struct Array {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut Array,
    dictionary: *mut Array,
    release: Option<unsafe extern "C" fn(*mut Array)>,
    private_data: *mut c_void,
}

/// The memory that an [`Array`] points to: the table keeps the buffers where they are.
struct Held {
    _table: Arc<Table>,
    buffers: Vec<*const c_void>,
    children: Vec<*mut Array>,
}

impl Array {
    /// Of all columns of `table`.
    fn of_table(table: &Arc<Table>) -> Self {
        let children = table.columns.iter();
        let children = children
            .map(|column| Self::of_column(table, column))
            .collect();
        // Rows as such are never missing, which needs no bits.
        Self::new(table, 0, vec![null()], children)
    }

    fn of_column(table: &Arc<Table>, column: &Column) -> Self {
        let missing = column.valid.zeros();
        let valid = match missing {
            0 => null(),
            _ => column.valid.words().as_ptr().cast(),
        };
        let buffers = match &column.values {
            Values::None => vec![],
            Values::Truths(bits) => vec![valid, bits.words().as_ptr().cast()],
            Values::Integers(values) => vec![valid, values.as_ptr().cast()],
            Values::Counts(values) => vec![valid, values.as_ptr().cast()],
            Values::Reals(values) => vec![valid, values.as_ptr().cast()],
            Values::Texts(ends, bytes) => {
                vec![valid, ends.as_ptr().cast(), bytes.as_ptr().cast()]
            }
        };
        Self::new(table, missing, buffers, Vec::new())
    }

    /// `buffers` point into `table`, and each has what its type needs for all rows.
    fn new(
        table: &Arc<Table>,
        missing: usize,
        buffers: Vec<*const c_void>,
        children: Vec<Self>,
    ) -> Self {
        let children = children
            .into_iter()
            .map(|child| Box::into_raw(Box::new(child)));
        let mut held = Box::new(Held {
            _table: table.clone(),
            buffers,
            children: children.collect(),
        });
        Self {
            length: table.rows as i64,
            null_count: missing as i64,
            offset: 0,
            n_buffers: held.buffers.len() as i64,
            n_children: held.children.len() as i64,
            buffers: held.buffers.as_mut_ptr(),
            children: held.children.as_mut_ptr(),
            dictionary: null_mut(),
            release: Some(release_array),
            private_data: Box::into_raw(held).cast(),
        }
    }

    /// An array that is released: the end of a stream.
    fn end() -> Self {
        Self {
            length: 0,
            null_count: 0,
            offset: 0,
            n_buffers: 0,
            n_children: 0,
            buffers: null_mut(),
            children: null_mut(),
            dictionary: null_mut(),
            release: None,
            private_data: null_mut(),
        }
    }
}

/// # Safety
/// `array` points to an array that `Array::new` made, wherever it was moved since, and that was not
/// released.
unsafe extern "C" fn release_array(array: *mut Array) {
    // SAFETY: as in `release_schema`, with `Array::new`.
    let held = unsafe {
        (*array).release = None;
        Box::from_raw((*array).private_data.cast::<Held>())
    };
    for &child in &held.children {
        // SAFETY: as in `release_schema`, with `Array::new`.
        drop(unsafe { Box::from_raw(child) });
    }
}

impl Drop for Array {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: of the two constructors `Array::end` sets no `release`, so that `self` was
            // made by `Array::new`, and it is not released.
            unsafe { release(self) };
        }
    }
}

/// `struct ArrowArrayStream`: a table as a stream of one batch.
#[repr(C)]
#[derive(Debug)]
pub struct Stream {
    get_schema: unsafe extern "C" fn(*mut Stream, *mut Schema) -> c_int,
    get_next: unsafe extern "C" fn(*mut Stream, *mut Array) -> c_int,
    get_last_error: unsafe extern "C" fn(*mut Stream) -> *const c_char,
    release: Option<unsafe extern "C" fn(*mut Stream)>,
    private_data: *mut c_void,
}

/// How far a [`Stream`] is.
struct Streamed {
    table: Arc<Table>,
    is_read: bool,
}

// SAFETY: what a stream and a schema own, `Streamed` and `Described`, is on the heap and belongs to
// no thread: texts, and a table behind an `Arc`, which is never changed.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Send for Schema {}

impl Stream {
    /// Of `table`, from its beginning.
    pub fn new(table: Arc<Table>) -> Self {
        let streamed = Box::new(Streamed {
            table,
            is_read: false,
        });
        Self {
            get_schema,
            get_next,
            get_last_error,
            release: Some(release_stream),
            private_data: Box::into_raw(streamed).cast(),
        }
    }
}

/// # Safety
/// `stream` points to a stream that `Stream::new` made and that was not released, and no other
/// thread uses it meanwhile.
unsafe fn streamed<'s>(stream: *mut Stream) -> &'s mut Streamed {
    // SAFETY: `private_data` points to what `Stream::new` has put there until `release_stream`
    // takes it; the caller has the only use of it.
    unsafe { &mut *(*stream).private_data.cast::<Streamed>() }
}

/// # Safety
/// As [`streamed`]; and `out` may be written to.
unsafe extern "C" fn get_schema(stream: *mut Stream, out: *mut Schema) -> c_int {
    // SAFETY: as the caller says; `write` reads nothing of what was at `out`.
    unsafe { out.write(Schema::of_table(&streamed(stream).table)) };
    0
}

/// # Safety
/// As [`streamed`]; and `out` may be written to.
unsafe extern "C" fn get_next(stream: *mut Stream, out: *mut Array) -> c_int {
    // SAFETY: as the caller says.
    let streamed = unsafe { streamed(stream) };
    let next = match mem::replace(&mut streamed.is_read, true) {
        false => Array::of_table(&streamed.table),
        true => Array::end(),
    };
    // SAFETY: as the caller says; `write` reads nothing of what was at `out`.
    unsafe { out.write(next) };
    0
}

/// No call fails.
unsafe extern "C" fn get_last_error(_: *mut Stream) -> *const c_char {
    null()
}

/// # Safety
/// As [`streamed`].
unsafe extern "C" fn release_stream(stream: *mut Stream) {
    // SAFETY: as in `release_schema`, with `Stream::new`.
    drop(unsafe {
        (*stream).release = None;
        Box::from_raw((*stream).private_data.cast::<Streamed>())
    });
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: as for `Schema`.
            unsafe { release(self) };
        }
    }
}
