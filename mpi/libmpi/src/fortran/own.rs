//! Calls that take other arguments in Fortran than in C, and those that the library answers itself.

use super::text::{Room, Text};
use super::{entries, give, number, place, word};
use crate::{entries as c, own};

/// The class of other errors (MPI_ERR_OTHER).
const OTHER: i32 = 15;

entries! {
    /// MPI_Init: Fortran has no arguments of a program's.
    mpi_init_ pmpi_init_(error) {
        give(error, c::PMPI_Init(0, 0));
    }

    /// MPI_Init_thread.
    mpi_init_thread_ pmpi_init_thread_(required, provided, error) {
        give(error, c::PMPI_Init_thread(0, 0, number(required), provided));
    }

    /// MPI_Initialized.
    mpi_initialized_ pmpi_initialized_(flag, error) {
        give(error, own::PMPI_Initialized(flag as *mut i32));
    }

    /// MPI_Finalized.
    mpi_finalized_ pmpi_finalized_(flag, error) {
        give(error, own::PMPI_Finalized(flag as *mut i32));
    }

    /// MPI_Is_thread_main.
    mpi_is_thread_main_ pmpi_is_thread_main_(flag, error) {
        give(error, own::PMPI_Is_thread_main(flag as *mut i32));
    }

    /// MPI_Pcontrol, which tells of no error.
    mpi_pcontrol_ pmpi_pcontrol_(level) {
        own::PMPI_Pcontrol(number(level) as i32);
    }

    /// MPI_Get_address.
    mpi_get_address_ pmpi_get_address_(location, address, error) {
        give(address, place(location));
        give(error, 0);
    }

    /// MPI_Address: an address that an INTEGER cannot hold is an error, as it is with MPICH.
    mpi_address_ pmpi_address_(location, address, error) {
        let whole = place(location) as isize;
        let part = whole as i32;
        give(address, part);
        give(error, if part as isize == whole { 0 } else { OTHER });
    }

    /// MPI_Aint_add.
    mpi_aint_add_ pmpi_aint_add_(base, displacement) -> usize {
        own::PMPI_Aint_add(word(base), word(displacement))
    }

    /// MPI_Aint_diff.
    mpi_aint_diff_ pmpi_aint_diff_(address, base) -> usize {
        own::PMPI_Aint_diff(word(address), word(base))
    }

    /// MPI_Alloc_mem.
    mpi_alloc_mem_ pmpi_alloc_mem_(bytes, info, base, error) {
        give(error, own::PMPI_Alloc_mem(word(bytes), number(info), base as *mut _));
    }

    /// MPI_Alloc_mem with a C_PTR.
    mpi_alloc_mem_cptr_ pmpi_alloc_mem_cptr_(bytes, info, base, error) {
        give(error, own::PMPI_Alloc_mem(word(bytes), number(info), base as *mut _));
    }

    /// MPI_Free_mem: Fortran passes what has been allocated.
    mpi_free_mem_ pmpi_free_mem_(base, error) {
        give(error, own::PMPI_Free_mem(base));
    }

    /// MPI_Buffer_detach: Fortran does not tell the buffer.
    mpi_buffer_detach_ pmpi_buffer_detach_(_buffer, size, error) {
        let mut buffer = 0_usize;
        give(error, c::PMPI_Buffer_detach((&raw mut buffer) as usize, size));
    }

    /// MPI_Info_create_env: Fortran has no arguments of a program's.
    mpi_info_create_env_ pmpi_info_create_env_(info, error) {
        give(error, c::PMPI_Info_create_env(0, 0, info));
    }

    /// MPI_Info_get_string.
    mpi_info_get_string_ pmpi_info_get_string_(
        info, key, length, value, flag, error, key_length, value_length
    ) {
        let key = Text::trimmed(key, key_length);
        let call = |length, text| {
            let info = number(info);
            c::PMPI_Info_get_string(info, key.address(), length, text, flag)
        };
        give(error, with_room(length, (value, value_length), call));
    }

    /// MPI_Session_get_nth_pset.
    mpi_session_get_nth_pset_ pmpi_session_get_nth_pset_(
        session, info, n, length, name, error, name_length
    ) {
        let call = |length, text| {
            let (session, info) = (number(session), number(info));
            c::PMPI_Session_get_nth_pset(session, info, number(n), length, text)
        };
        give(error, with_room(length, (name, name_length), call));
    }

    /// MPI_Type_hvector: the stride is an INTEGER.
    mpi_type_hvector_ pmpi_type_hvector_(count, block, stride, old, new, error) {
        let (count, block, stride) = (number(count), number(block), number(stride));
        give(error, c::PMPI_Type_hvector(count, block, stride, number(old), new));
    }

    /// MPI_Type_hindexed: displacements are INTEGERs.
    mpi_type_hindexed_ pmpi_type_hindexed_(count, blocks, displacements, old, new, error) {
        let wide = widened(count, displacements);
        let (count, wide) = (number(count), wide.as_ptr() as usize);
        give(error, c::PMPI_Type_hindexed(count, blocks, wide, number(old), new));
    }

    /// MPI_Type_struct: displacements are INTEGERs.
    mpi_type_struct_ pmpi_type_struct_(count, blocks, displacements, types, new, error) {
        let wide = widened(count, displacements);
        let (count, wide) = (number(count), wide.as_ptr() as usize);
        give(error, c::PMPI_Type_struct(count, blocks, wide, types, new));
    }

    /// MPI_Grequest_start.
    mpi_grequest_start_ pmpi_grequest_start_(query, free, cancel, extra, request, error) {
        let functions = Functions { query, free, cancel, extra };
        let functions = Box::into_raw(Box::new(functions));
        let all = [asked as *const (), freed as *const (), cancelled as *const ()];
        let [query, free, cancel] = all.map(|function| function as usize);
        let code = c::PMPI_Grequest_start(query, free, cancel, functions as usize, request);
        give(error, code);
    }
}

/// Makes a call that is told the room for a text and tells its length: in C with the 0 at the end.
fn with_room(
    length: usize,
    (at, bytes): (usize, usize),
    call: impl FnOnce(usize, usize) -> i32,
) -> i32 {
    let mut room = Room::new(at, bytes);
    let in_fortran = number(length) as i32;
    // No room at all is a question for the length.
    let mut in_c = if in_fortran > 0 {
        in_fortran + 1
    } else {
        in_fortran
    };
    let code = call((&raw mut in_c) as usize, room.address());
    if in_c > 0 {
        give(length, in_c - 1);
    }
    room.fill();
    code
}

/// Displacements that are INTEGERs, as addresses.
fn widened(count: usize, displacements: usize) -> Vec<usize> {
    let count = usize::try_from(number(count) as i32).unwrap_or(0);
    (0..count).map(|i| number(displacements + 4 * i)).collect()
}

/// The functions of a generalized request.
#[derive(Debug)]
struct Functions {
    query: usize,
    free: usize,
    cancel: usize,
    /// The address of the program's variable: a function may change it, as with MPICH and Open MPI.
    extra: usize,
}

extern "C" fn asked(functions: &Functions, status: usize) -> i32 {
    type Query = extern "C" fn(usize, usize, &mut i32);
    // SAFETY: the program has given the address of such a subroutine.
    let query = unsafe { std::mem::transmute::<usize, Query>(functions.query) };
    let mut error = 0;
    query(functions.extra, status, &mut error);
    error
}

extern "C" fn freed(functions: *mut Functions) -> i32 {
    // SAFETY: the address is that of a box which the start of the request has let go; this function
    // is called once, and no other one after it.
    let functions = unsafe { Box::from_raw(functions) };
    type Free = extern "C" fn(usize, &mut i32);
    // SAFETY: the program has given the address of such a subroutine.
    let free = unsafe { std::mem::transmute::<usize, Free>(functions.free) };
    let mut error = 0;
    free(functions.extra, &mut error);
    error
}

extern "C" fn cancelled(functions: &Functions, is_complete: i32) -> i32 {
    type Cancel = extern "C" fn(usize, &i32, &mut i32);
    // SAFETY: the program has given the address of such a subroutine.
    let cancel = unsafe { std::mem::transmute::<usize, Cancel>(functions.cancel) };
    let mut error = 0;
    cancel(functions.extra, &is_complete, &mut error);
    error
}
