/* Mistakes of programs that a call tells: each call has the error of the class that it must have,
   and the next one works. */
#include <mpi.h>

#include "check.h"

/* The class of a call's error. */
static int class_of(int code) {
    int class;
    MPI_Error_class(code, &class);
    return class;
}

#define FAILS(call, class) CHECK(class_of(call) == (class))

/* The result of a collective call goes where its data are. */
static void results_over_data(void) {
    int data[64], result[64], counts[2] = {1, 1};
    MPI_Request request;
    for (int i = 0; i < 64; i++)
        data[i] = i;
    const MPI_Comm world = MPI_COMM_WORLD;
    FAILS(MPI_Allreduce(data, data, 2, MPI_INT, MPI_SUM, world), MPI_ERR_BUFFER);
    FAILS(MPI_Iallreduce(data, data, 2, MPI_INT, MPI_SUM, world, &request), MPI_ERR_BUFFER);
    FAILS(MPI_Allreduce_init(data, data, 2, MPI_INT, MPI_SUM, world, MPI_INFO_NULL, &request),
          MPI_ERR_BUFFER);
    FAILS(MPI_Scan(data, data, 1, MPI_INT, MPI_SUM, world), MPI_ERR_BUFFER);
    FAILS(MPI_Reduce_scatter(data, data, counts, MPI_INT, MPI_SUM, world), MPI_ERR_BUFFER);
    FAILS(MPI_Reduce_scatter_block(data, data, 1, MPI_INT, MPI_SUM, world), MPI_ERR_BUFFER);
    FAILS(MPI_Alltoall(data, 1, MPI_INT, data, 1, MPI_INT, world), MPI_ERR_BUFFER);
    FAILS(MPI_Allgather(data + rank, 1, MPI_INT, data, 1, MPI_INT, world), MPI_ERR_BUFFER);
    FAILS(MPI_Reduce_local(data, data, 1, MPI_INT, MPI_SUM), MPI_ERR_BUFFER);
    FAILS(MPI_Reduce_local(MPI_IN_PLACE, data, 1, MPI_INT, MPI_SUM), MPI_ERR_BUFFER);
    /* What matters at the root alone, the root alone can tell. */
    if (rank == 1) {
        FAILS(MPI_Exscan(data, data, 1, MPI_INT, MPI_SUM, world), MPI_ERR_BUFFER);
        FAILS(MPI_Gather(data + 1, 1, MPI_INT, data, 1, MPI_INT, 1, world), MPI_ERR_BUFFER);
        FAILS(MPI_Gather(data, 1, MPI_INT, data, 1, MPI_INT, 1, world), MPI_ERR_BUFFER);
        FAILS(MPI_Scatter(data, 1, MPI_INT, data + 1, 1, MPI_INT, 1, world), MPI_ERR_BUFFER);
        FAILS(MPI_Reduce(data, data, 1, MPI_INT, MPI_SUM, 1, world), MPI_ERR_BUFFER);
    }
    /* These are right: no data at all, blocks of one array, and what does not matter. */
    CHECK(MPI_Allreduce(data, data, 0, MPI_INT, MPI_SUM, world) == MPI_SUCCESS);
    CHECK(MPI_Allreduce(NULL, NULL, 0, MPI_INT, MPI_SUM, world) == MPI_SUCCESS);
    const int out[2] = {0, 1}, in[2] = {2, 3};
    CHECK(MPI_Alltoallv(data, counts, out, MPI_INT, data, counts, in, MPI_INT, world) ==
          MPI_SUCCESS);
    CHECK(data[2] == rank && data[3] == rank);
    /* The result of an exclusive scan says nothing at the first rank. */
    CHECK(MPI_Exscan(data, rank == 0 ? data : result, 1, MPI_INT, MPI_SUM, world) == MPI_SUCCESS);
    CHECK(rank == 0 || result[0] == 0);
    void *other = rank == 0 ? (void *)result : (void *)data;
    CHECK(MPI_Reduce(data, other, 1, MPI_INT, MPI_SUM, 0, world) == MPI_SUCCESS);
    CHECK(MPI_Gather(data, 1, MPI_INT, other, 1, MPI_INT, 0, world) == MPI_SUCCESS);
    CHECK(MPI_Allreduce(MPI_IN_PLACE, data + 5, 1, MPI_INT, MPI_SUM, world) == MPI_SUCCESS);
    CHECK(data[5] == 5 * size);
}

/* A key is one of communicators, of datatypes or of windows. */
static void keys_of_others(void) {
    int of_comm, of_type, of_window, *value, flag;
    MPI_Win window;
    MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &of_comm, NULL);
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &of_type, NULL);
    MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, MPI_WIN_NULL_DELETE_FN, &of_window, NULL);
    FAILS(MPI_Comm_set_attr(MPI_COMM_WORLD, of_type, &flag), MPI_ERR_KEYVAL);
    FAILS(MPI_Comm_set_attr(MPI_COMM_WORLD, of_window, &flag), MPI_ERR_KEYVAL);
    FAILS(MPI_Type_set_attr(MPI_INT, of_comm, &flag), MPI_ERR_KEYVAL);
    FAILS(MPI_Win_set_attr(window, of_type, &flag), MPI_ERR_KEYVAL);
    FAILS(MPI_Comm_get_attr(MPI_COMM_WORLD, of_type, &value, &flag), MPI_ERR_KEYVAL);
    FAILS(MPI_Type_get_attr(MPI_INT, of_window, &value, &flag), MPI_ERR_KEYVAL);
    FAILS(MPI_Win_get_attr(window, of_comm, &value, &flag), MPI_ERR_KEYVAL);
    FAILS(MPI_Comm_delete_attr(MPI_COMM_WORLD, of_type), MPI_ERR_KEYVAL);
    FAILS(MPI_Comm_free_keyval(&of_window), MPI_ERR_KEYVAL);
    FAILS(MPI_Type_free_keyval(&of_comm), MPI_ERR_KEYVAL);
    FAILS(MPI_Win_free_keyval(&of_type), MPI_ERR_KEYVAL);
    CHECK(MPI_Comm_free_keyval(&of_comm) == MPI_SUCCESS && of_comm == MPI_KEYVAL_INVALID);
    CHECK(MPI_Type_free_keyval(&of_type) == MPI_SUCCESS);
    CHECK(MPI_Win_free_keyval(&of_window) == MPI_SUCCESS);
    MPI_Win_free(&window);
}

/* What a call was to make, and has not, is a null handle. */
static void objects_that_are_not_made(void) {
    MPI_Comm comm = MPI_COMM_WORLD;
    const int dims[1] = {size + 1}, periods[1] = {0}, ranks[1] = {size};
    FAILS(MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &comm), MPI_ERR_DIMS);
    CHECK(comm == MPI_COMM_NULL);
    MPI_Group world, group = MPI_GROUP_EMPTY;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    FAILS(MPI_Group_incl(world, 1, ranks, &group), MPI_ERR_RANK);
    CHECK(group == MPI_GROUP_NULL);
    MPI_Group_free(&world);
    MPI_Datatype type = MPI_INT;
    FAILS(MPI_Type_contiguous(-1, MPI_INT, &type), MPI_ERR_COUNT);
    CHECK(type == MPI_DATATYPE_NULL);
    int lengths[2] = {1, -1};
    MPI_Aint places[2] = {0, 8};
    MPI_Datatype types[2] = {MPI_INT, MPI_DOUBLE};
    CHECK(MPI_Type_struct(2, lengths, places, types, &type) != MPI_SUCCESS);
    CHECK(type == MPI_DATATYPE_NULL);
    CHECK(types[0] == MPI_INT && types[1] == MPI_DOUBLE);
    MPI_File file;
    CHECK(MPI_File_open(MPI_COMM_SELF, "no/such/file", MPI_MODE_RDONLY, MPI_INFO_NULL, &file) !=
          MPI_SUCCESS);
    CHECK(file == MPI_FILE_NULL);
    /* What was there before stays. */
    comm = MPI_COMM_WORLD;
    FAILS(MPI_Comm_free(&comm), MPI_ERR_COMM);
    CHECK(comm == MPI_COMM_WORLD);
}

static int told;

static void tell_of_session(MPI_Session *session, int *code, ...) {
    told += *session == MPI_SESSION_NULL ? 100 : class_of(*code) == MPI_ERR_ARG;
}

static void tell_of_comm(MPI_Comm *comm, int *code, ...) {
    told += 10 * (class_of(*code) == MPI_ERR_ARG);
}

/* The error handler of a session is told of its errors, and that of a communicator of those of the
   call that makes it. */
static void errors_of_sessions(void) {
    MPI_Session session;
    MPI_Info info;
    MPI_Group group;
    MPI_Errhandler of_session, of_comm;
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    FAILS(MPI_Session_get_pset_info(session, "no set", &info), MPI_ERR_ARG);
    FAILS(MPI_Group_from_session_pset(session, "no set", &group), MPI_ERR_ARG);
    CHECK(group == MPI_GROUP_NULL);
    MPI_Session_create_errhandler(tell_of_session, &of_session);
    MPI_Comm_create_errhandler(tell_of_comm, &of_comm);
    CHECK(MPI_Session_set_errhandler(session, MPI_ERRHANDLER_NULL) != MPI_SUCCESS);
    MPI_Session_set_errhandler(session, of_session);
    FAILS(MPI_Session_get_pset_info(session, "no set", &info), MPI_ERR_ARG);
    CHECK(told == 1);
    MPI_Group_from_session_pset(session, "mpi://SELF", &group);
    FAILS(MPI_Comm_create_from_group(group, "a tag", MPI_INFO_NULL, of_comm, NULL), MPI_ERR_ARG);
    CHECK(told == 11);
    MPI_Session none;
    MPI_Session_init(0x7f000000, of_session, &none);
    CHECK(told == 111);
    MPI_Group_free(&group);
    MPI_Errhandler_free(&of_session);
    MPI_Errhandler_free(&of_comm);
    MPI_Session_finalize(&session);
}

/* Only integers, logical values and bytes are compared and swapped. */
static void what_is_not_compared(void) {
    double memory = 0, given[3] = {0, 1, 2};
    MPI_Win window;
    MPI_Datatype derived;
    MPI_Type_contiguous(4, MPI_BYTE, &derived);
    MPI_Type_commit(&derived);
    MPI_Win_create(&memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_set_errhandler(window, MPI_ERRORS_RETURN);
    MPI_Win_fence(0, window);
    FAILS(MPI_Compare_and_swap(given, given + 1, given + 2, MPI_DOUBLE, 0, 0, window),
          MPI_ERR_TYPE);
    FAILS(MPI_Compare_and_swap(given, given + 1, given + 2, derived, 0, 0, window), MPI_ERR_TYPE);
    CHECK(MPI_Compare_and_swap(given, given + 1, given + 2, MPI_AINT, rank, 0, window) ==
          MPI_SUCCESS);
    MPI_Datatype of_fortran;
    MPI_Type_create_f90_integer(9, &of_fortran);
    CHECK(MPI_Compare_and_swap(given, given + 1, given + 2, of_fortran, rank, 0, window) ==
          MPI_SUCCESS);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
    MPI_Type_free(&derived);
}

int main(void) {
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    results_over_data();
    keys_of_others();
    objects_that_are_not_made();
    what_is_not_compared();
    errors_of_sessions();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("mistakes: told\n");
    MPI_Finalize();
    return 0;
}
