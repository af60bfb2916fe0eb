//! Attributes: where C has the address of a value, Fortran has the value. It is an INTEGER of the
//! size of an address, or of 4 bytes with the calls of MPI-1.

use std::ffi::c_int;
use std::mem;

use super::{entries, give, number, word};
use crate::entries as c;

entries! {
    /// MPI_Comm_create_keyval.
    mpi_comm_create_keyval_ pmpi_comm_create_keyval_(copy, delete, key, extra, error) {
        let (copy, delete, extra) = Functions::given(copy, delete, word(extra));
        give(error, c::PMPI_Comm_create_keyval(copy, delete, key, extra));
    }

    /// MPI_Type_create_keyval.
    mpi_type_create_keyval_ pmpi_type_create_keyval_(copy, delete, key, extra, error) {
        let (copy, delete, extra) = Functions::given(copy, delete, word(extra));
        give(error, c::PMPI_Type_create_keyval(copy, delete, key, extra));
    }

    /// MPI_Win_create_keyval.
    mpi_win_create_keyval_ pmpi_win_create_keyval_(copy, delete, key, extra, error) {
        let (copy, delete, extra) = Functions::given(copy, delete, word(extra));
        give(error, c::PMPI_Win_create_keyval(copy, delete, key, extra));
    }

    /// MPI_Keyval_create: values are of 4 bytes.
    mpi_keyval_create_ pmpi_keyval_create_(copy, delete, key, extra, error) {
        let (copy, delete, extra) = Functions::given(copy, delete, number(extra));
        give(error, c::PMPI_Keyval_create(copy, delete, key, extra));
    }

    /// MPI_Comm_set_attr.
    mpi_comm_set_attr_ pmpi_comm_set_attr_(comm, key, value, error) {
        give(error, c::PMPI_Comm_set_attr(number(comm), number(key), word(value)));
    }

    /// MPI_Type_set_attr.
    mpi_type_set_attr_ pmpi_type_set_attr_(datatype, key, value, error) {
        give(error, c::PMPI_Type_set_attr(number(datatype), number(key), word(value)));
    }

    /// MPI_Win_set_attr.
    mpi_win_set_attr_ pmpi_win_set_attr_(win, key, value, error) {
        give(error, c::PMPI_Win_set_attr(number(win), number(key), word(value)));
    }

    /// MPI_Attr_put.
    mpi_attr_put_ pmpi_attr_put_(comm, key, value, error) {
        give(error, c::PMPI_Attr_put(number(comm), number(key), number(value)));
    }

    /// MPI_Comm_get_attr.
    mpi_comm_get_attr_ pmpi_comm_get_attr_(comm, key, value, flag, error) {
        let (code, found) = found(c::PMPI_Comm_get_attr, comm, key, flag);
        give(value, found);
        give(error, code);
    }

    /// MPI_Type_get_attr.
    mpi_type_get_attr_ pmpi_type_get_attr_(datatype, key, value, flag, error) {
        let (code, found) = found(c::PMPI_Type_get_attr, datatype, key, flag);
        give(value, found);
        give(error, code);
    }

    /// MPI_Win_get_attr.
    mpi_win_get_attr_ pmpi_win_get_attr_(win, key, value, flag, error) {
        let (code, found) = found(c::PMPI_Win_get_attr, win, key, flag);
        give(value, found);
        give(error, code);
    }

    /// MPI_Attr_get.
    mpi_attr_get_ pmpi_attr_get_(comm, key, value, flag, error) {
        let (code, found) = found(c::PMPI_Attr_get, comm, key, flag);
        give(value, found as i32);
        give(error, code);
    }
}

/// The form of an attribute's value in C.
enum Value {
    /// The value.
    Itself,
    /// The address of an int.
    OfInt,
    /// The address of an MPI_Aint.
    OfAddress,
}

/// The key that C has for one of Fortran's, and what its value is. The predefined ones are one more
/// in Fortran.
fn in_c(key: usize) -> (usize, Value) {
    match key {
        0x6440_0002..=0x6440_000e if key.is_multiple_of(2) => (key - 1, Value::OfInt),
        0x6600_0002 => (key - 1, Value::Itself),
        0x6600_0004 => (key - 1, Value::OfAddress),
        0x6600_0006 | 0x6600_0008 | 0x6600_000a => (key - 1, Value::OfInt),
        _ => (key, Value::Itself),
    }
}

/// The code of a call that asks for an attribute, and its value, which is 0 if there is none.
fn found(
    call: extern "C" fn(usize, usize, usize, usize) -> i32,
    object: usize,
    key: usize,
    flag: usize,
) -> (i32, usize) {
    let (key, kind) = in_c(number(key));
    let (mut value, mut is_there) = (0_usize, 0_i32);
    let places = ((&raw mut value) as usize, (&raw mut is_there) as usize);
    let code = call(number(object), key, places.0, places.1);
    give(flag, is_there);
    let value = match kind {
        _ if is_there == 0 => 0,
        Value::Itself => value,
        Value::OfInt => number(value),
        Value::OfAddress => word(value),
    };
    (code, value)
}

/// The functions of a key, and what they are given besides.
#[derive(Debug)]
struct Functions {
    copy: usize,
    delete: usize,
    extra: usize,
}

impl Functions {
    /// Functions of Fortran's, as a call in C takes them: two functions, and what these are given.
    /// A key may be used for as long as the program runs, after it has been freed as well.
    fn given(copy: usize, delete: usize, extra: usize) -> (usize, usize, usize) {
        let functions = Self {
            copy,
            delete,
            extra,
        };
        let functions: &Self = Box::leak(Box::new(functions));
        let [copy, delete] = [copied as *const (), deleted as *const ()];
        let extra = functions as *const Self;
        (copy as usize, delete as usize, extra as usize)
    }
}

extern "C" fn copied(
    object: c_int,
    key: c_int,
    functions: &Functions,
    value: usize,
    copy_at: usize,
    flag_at: usize,
) -> c_int {
    type Copy = extern "C" fn(&c_int, &c_int, &usize, &usize, &mut usize, &mut c_int, &mut c_int);
    // SAFETY: the program has given the address of such a subroutine.
    let function = unsafe { mem::transmute::<usize, Copy>(functions.copy) };
    let (mut copy, mut flag, mut error) = (0, 0, 0);
    let extra = &functions.extra;
    function(
        &object, &key, extra, &value, &mut copy, &mut flag, &mut error,
    );
    give(copy_at, copy);
    give(flag_at, c_int::from(flag != 0));
    error
}

extern "C" fn deleted(object: c_int, key: c_int, value: usize, functions: &Functions) -> c_int {
    type Delete = extern "C" fn(&c_int, &c_int, &usize, &usize, &mut c_int);
    // SAFETY: the program has given the address of such a subroutine.
    let function = unsafe { mem::transmute::<usize, Delete>(functions.delete) };
    let mut error = 0;
    function(&object, &key, &value, &functions.extra, &mut error);
    error
}
