/* Calls of MPI in C, each with a result that is known. Prints "WRONG ..." where another one comes,
 * and what the rank has to say in the end. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

static void add(void *in, void *inout, int *count, MPI_Datatype *type)
{
    int bytes;
    MPI_Type_size(*type, &bytes);
    CHECK(bytes == sizeof(int));
    for (int i = 0; i < *count; i++)
        ((int *)inout)[i] += ((int *)in)[i];
}

static int copies, deletes;

static int copy(MPI_Comm comm, int key, void *extra, void *value, void *result, int *flag)
{
    copies++;
    CHECK(extra == &copies);
    *(void **)result = value;
    *flag = 1;
    return MPI_SUCCESS;
}

static int delete(MPI_Comm comm, int key, void *value, void *extra)
{
    deletes++;
    return MPI_SUCCESS;
}

static void point_to_point(void)
{
    int next = (rank + 1) % size, before = (rank + size - 1) % size, got = -1, count;
    MPI_Request requests[2];
    MPI_Status statuses[2], status;
    MPI_Isend(&rank, 1, MPI_INT, next, 7, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(&got, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, statuses);
    MPI_Get_count(&statuses[1], MPI_INT, &count);
    CHECK(got == before && statuses[1].MPI_SOURCE == before && statuses[1].MPI_TAG == 7);
    CHECK(count == 1 && requests[0] == MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL);

    /* Every second element of a matrix's row; the others stay as they are. */
    MPI_Datatype every_second;
    MPI_Type_vector(4, 1, 2, MPI_INT, &every_second);
    MPI_Type_commit(&every_second);
    int sent[8] = {0, 1, 2, 3, 4, 5, 6, 7}, came[8];
    memset(came, -1, sizeof came);
    MPI_Sendrecv(sent, 1, every_second, next, 1, came, 1, every_second, before, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    for (int i = 0; i < 8; i++)
        CHECK(came[i] == (i % 2 ? -1 : i));
    MPI_Type_free(&every_second);

    /* Longer than what is sent without asking. */
    int length = 100000, *large = malloc(length * sizeof(int)), *room = malloc(length * sizeof(int));
    for (int i = 0; i < length; i++)
        large[i] = rank * length + i;
    MPI_Sendrecv(large, length, MPI_INT, next, 2, room, length, MPI_INT, before, 2, MPI_COMM_WORLD,
                 &status);
    MPI_Get_count(&status, MPI_INT, &count);
    CHECK(count == length && room[0] == before * length && room[length - 1] == before * length + length - 1);
    free(large);
    free(room);

    /* A matched probe; a persistent request. */
    MPI_Message message;
    MPI_Request persistent;
    MPI_Send_init(&rank, 1, MPI_INT, next, 3, MPI_COMM_WORLD, &persistent);
    for (int i = 0; i < 2; i++) {
        MPI_Start(&persistent);
        MPI_Mprobe(before, 3, MPI_COMM_WORLD, &message, &status);
        MPI_Mrecv(&got, 1, MPI_INT, &message, MPI_STATUS_IGNORE);
        CHECK(got == before && message == MPI_MESSAGE_NULL);
        MPI_Wait(&persistent, MPI_STATUS_IGNORE);
        CHECK(persistent != MPI_REQUEST_NULL);
    }
    MPI_Request_free(&persistent);
}

/* A rank and itself: short messages leave at once, and one without a receive is taken back. */
static void with_oneself(void)
{
    MPI_Request requests[6];
    MPI_Status status, statuses[6];
    int got = -1, flag = 0, count = 0, places[6];
    for (int i = 0; i < 6; i++)
        MPI_Isend(&rank, 1, MPI_INT, rank, i, MPI_COMM_WORLD, &requests[i]);
    MPI_Testall(6, requests, &flag, statuses);
    CHECK(flag);
    for (int i = 0; i < 6; i++) {
        got = -1;
        MPI_Recv(&got, 1, MPI_INT, rank, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(got == rank);
    }
    for (int is_there = 0; is_there < 2; is_there++) {
        MPI_Issend(&rank, 1, MPI_INT, rank, 8, MPI_COMM_WORLD, &requests[0]);
        if (is_there) {
            MPI_Probe(rank, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
            CHECK(!flag);
        }
        MPI_Cancel(&requests[0]);
        do
            MPI_Request_get_status(requests[0], &flag, &status);
        while (!flag);
        MPI_Test_cancelled(&status, &flag);
        CHECK(flag);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        MPI_Iprobe(rank, 8, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        CHECK(!flag);
    }
    MPI_Waitsome(6, requests, &count, places, statuses);
    CHECK(count == MPI_UNDEFINED);
}

static void collectives(void)
{
    int sum = 0, all[64], parts[2] = {rank, 1}, sums[2];
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == size * (size - 1) / 2);
    MPI_Op op;
    MPI_Op_create(add, 1, &op);
    MPI_Allreduce(parts, sums, 2, MPI_INT, op, MPI_COMM_WORLD);
    CHECK(sums[0] == sum && sums[1] == size);
    MPI_Op_free(&op);
    all[rank] = rank * rank;
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, 1, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < size; i++)
        CHECK(all[i] == i * i);
    int counts[64], places[64], mine[64];
    for (int i = 0; i < size; i++) {
        counts[i] = i + 1;
        places[i] = i * (i + 1) / 2;
    }
    int *gathered = malloc(size * (size + 1) / 2 * sizeof(int));
    for (int i = 0; i <= rank; i++)
        mine[i] = rank;
    MPI_Gatherv(mine, rank + 1, MPI_INT, gathered, counts, places, MPI_INT, size - 1, MPI_COMM_WORLD);
    if (rank == size - 1)
        for (int i = 0; i < size; i++)
            CHECK(gathered[places[i]] == i && gathered[places[i] + i] == i);
    free(gathered);
    MPI_Request request;
    double value = rank == 0 ? 2.5 : 0;
    MPI_Ibcast(&value, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(value == 2.5);
    long double exact = 1.0L + 1e-18L * rank, product;
    MPI_Allreduce(&exact, &product, 1, MPI_LONG_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    CHECK(product == 1.0L + 1e-18L * (size - 1));
}

/* A function of the program's is called when the call that begins a reduction finds all there. */
static void reductions_that_end_at_once(void)
{
    MPI_Op op;
    MPI_Op_create(add, 1, &op);
    for (int i = 0; i < 5; i++) {
        int sum = -1, flag;
        MPI_Request request;
        /* Time enough for what the others send. */
        for (int k = 0; rank == 0 && k < 200; k++)
            MPI_Iprobe(MPI_ANY_SOURCE, 99, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        MPI_Ireduce(&rank, &sum, 1, MPI_INT, op, 0, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CHECK(rank > 0 || sum == size * (size - 1) / 2);
    }
    MPI_Op_free(&op);
}

/* An attribute that cannot be copied. */
static int refuse_comm(MPI_Comm comm, int key, void *extra, void *value, void *result, int *flag)
{
    return MPI_ERR_OTHER;
}

static int refuse_type(MPI_Datatype type, int key, void *extra, void *value, void *result, int *flag)
{
    return MPI_ERR_OTHER;
}

/* A duplicate that cannot have the attributes of the first is none. */
static void refused_duplicates(void)
{
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Datatype pair, type = MPI_INT;
    int keys[2];
    MPI_Comm_create_keyval(refuse_comm, MPI_COMM_NULL_DELETE_FN, &keys[0], NULL);
    MPI_Type_create_keyval(refuse_type, MPI_TYPE_NULL_DELETE_FN, &keys[1], NULL);
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Comm_set_attr(MPI_COMM_SELF, keys[0], NULL);
    MPI_Type_set_attr(pair, keys[1], NULL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK(MPI_Comm_dup(MPI_COMM_SELF, &comm) == MPI_ERR_OTHER && comm == MPI_COMM_NULL);
    CHECK(MPI_Type_dup(pair, &type) == MPI_ERR_OTHER && type == MPI_DATATYPE_NULL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_delete_attr(MPI_COMM_SELF, keys[0]);
    MPI_Comm_free_keyval(&keys[0]);
    MPI_Type_free(&pair);
    MPI_Type_free_keyval(&keys[1]);
}

/* Of two names of a datatype it has the first that the standard gives. */
static void names(void)
{
    char name[MPI_MAX_OBJECT_NAME];
    int length;
    MPI_Type_get_name(MPI_LONG_LONG, name, &length);
    CHECK(!strcmp(name, "MPI_LONG_LONG_INT"));
    MPI_Type_get_name(MPI_C_FLOAT_COMPLEX, name, &length);
    CHECK(!strcmp(name, "MPI_C_COMPLEX"));
}

static void communicators(void)
{
    MPI_Comm half, twin;
    int number, key, flag, *universe;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    MPI_Comm_rank(half, &number);
    int members;
    MPI_Comm_size(half, &members);
    CHECK(number == members - 1 - rank / 2);
    MPI_Comm_create_keyval(copy, delete, &key, &copies);
    MPI_Comm_set_attr(half, key, &rank);
    MPI_Comm_dup(half, &twin);
    void *value;
    MPI_Comm_get_attr(twin, key, &value, &flag);
    CHECK(flag && value == &rank && copies == 1);
    MPI_Comm_free(&twin);
    MPI_Comm_free(&half);
    CHECK(deletes == 2 && half == MPI_COMM_NULL);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &universe, &flag);
    CHECK(flag && *universe >= 32767);

    int dims[2] = {0, 0}, periods[2] = {1, 1}, coords[2], low, high;
    MPI_Comm grid;
    MPI_Dims_create(size, 2, dims);
    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
    MPI_Cart_coords(grid, rank, 2, coords);
    MPI_Cart_shift(grid, 0, 1, &low, &high);
    int around[4] = {-1, -1, -1, -1};
    MPI_Neighbor_allgather(&rank, 1, MPI_INT, around, 1, MPI_INT, grid);
    CHECK(around[0] == low && around[1] == high);
    MPI_Comm_free(&grid);
}

/* Two halves without a communicator of their own. */
static void halves(void)
{
    if (size < 2)
        return;
    MPI_Group world, low, high;
    MPI_Comm between;
    int half = size / 2, remote = 0, all = 0;
    int first[1][3] = {{0, half - 1, 1}}, second[1][3] = {{half, size - 1, 1}};
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_range_incl(world, 1, first, &low);
    MPI_Group_range_incl(world, 1, second, &high);
    int is_low = rank < half, last = size - half - 1;
    MPI_Intercomm_create_from_groups(is_low ? low : high, is_low ? 0 : last, is_low ? high : low,
                                     is_low ? last : 0, "halves", MPI_INFO_NULL, MPI_ERRORS_RETURN,
                                     &between);
    MPI_Comm_remote_size(between, &remote);
    CHECK(remote == (is_low ? size - half : half));
    /* What the other half has. */
    MPI_Allreduce(&rank, &all, 1, MPI_INT, MPI_SUM, between);
    CHECK(all == (is_low ? size * (size - 1) / 2 - half * (half - 1) / 2 : half * (half - 1) / 2));
    /* The first of each half, and with none of the upper one no communicator. */
    MPI_Group own, part;
    MPI_Comm firsts, none;
    MPI_Comm_group(between, &own);
    MPI_Group_incl(own, 1, (int[]){0}, &part);
    MPI_Comm_create(between, part, &firsts);
    MPI_Comm_create(between, is_low ? part : MPI_GROUP_EMPTY, &none);
    CHECK((firsts != MPI_COMM_NULL) == (rank == 0 || rank == half) && none == MPI_COMM_NULL);
    if (firsts != MPI_COMM_NULL) {
        MPI_Sendrecv(&rank, 1, MPI_INT, 0, 6, &all, 1, MPI_INT, 0, 6, firsts, MPI_STATUS_IGNORE);
        CHECK(all == (is_low ? half : 0));
        MPI_Comm_free(&firsts);
    }
    MPI_Group_free(&part);
    MPI_Group_free(&own);
    MPI_Comm_free(&between);
    MPI_Group_free(&high);
    MPI_Group_free(&low);
    MPI_Group_free(&world);
}

/* Counts the errors of the communicators that an error handler is called for. */
static int errors_of_world, errors_of_self;

/* Makes a call succeed that has failed. */
static void forget_errors(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    *code = MPI_SUCCESS;
}

static void count_errors(MPI_Comm *comm, int *code, ...)
{
    if (*code != MPI_SUCCESS) {
        errors_of_world += *comm == MPI_COMM_WORLD;
        errors_of_self += *comm == MPI_COMM_SELF;
    }
}

/* An error that is about no object is raised on MPI_COMM_WORLD if only that has a handler of the
 * program's, and else on MPI_COMM_SELF. */
static void errors_of_nothing(void)
{
    MPI_Errhandler counts;
    MPI_Comm twin, freed;
    int class;
    MPI_Comm_create_errhandler(count_errors, &counts);
    MPI_Comm_dup(MPI_COMM_SELF, &twin);
    freed = twin;
    MPI_Comm_free(&twin);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, counts);
    MPI_Error_class(MPI_Barrier(freed), &class);
    CHECK(class == MPI_ERR_COMM && errors_of_world == 1 && errors_of_self == 0);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, counts);
    twin = freed;
    MPI_Error_class(MPI_Comm_free(&twin), &class);
    CHECK(class == MPI_ERR_COMM && errors_of_world == 1 && errors_of_self == 1);
    MPI_Errhandler_free(&counts);
    /* A handler may change what the call returns. */
    MPI_Comm_create_errhandler(forget_errors, &counts);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, counts);
    CHECK(MPI_Barrier(freed) == MPI_SUCCESS);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Errhandler_free(&counts);
}

/* A session says which threads it lets call, and the names of sets have no case. */
static void sessions(void)
{
    MPI_Session session;
    MPI_Info info;
    MPI_Group all, own;
    char value[64] = "";
    int flag, members[2];
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &session);
    MPI_Session_get_info(session, &info);
    MPI_Info_get(info, "thread_level", sizeof value - 1, value, &flag);
    CHECK(flag && !strcmp(value, "MPI_THREAD_SERIALIZED"));
    MPI_Info_free(&info);
    MPI_Group_from_session_pset(session, "mpi://world", &all);
    MPI_Group_from_session_pset(session, "mpi://SELF", &own);
    MPI_Group_size(all, &members[0]);
    MPI_Group_size(own, &members[1]);
    CHECK(members[0] == size && members[1] == 1);
    MPI_Group_free(&all);
    MPI_Group_free(&own);
    MPI_Session_finalize(&session);
}

static void errors(void)
{
    int code, class, length;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    code = MPI_Send(&rank, 1, MPI_INT, size, 0, MPI_COMM_WORLD);
    MPI_Error_class(code, &class);
    MPI_Error_string(code, text, &length);
    CHECK(class == MPI_ERR_RANK && length > 0);
    /* Nothing needs no datatype. */
    CHECK(MPI_Send(NULL, 0, MPI_DATATYPE_NULL, MPI_PROC_NULL, 0, MPI_COMM_WORLD) == MPI_SUCCESS);
    MPI_Error_class(MPI_Send(&rank, 1, MPI_DATATYPE_NULL, rank, 0, MPI_COMM_WORLD), &class);
    CHECK(class == MPI_ERR_TYPE);
    /* A datatype has to be committed before data of it are moved. */
    MPI_Datatype pair;
    int values[2] = {0}, at = 0;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Error_class(MPI_Bcast(values, 1, pair, 0, MPI_COMM_WORLD), &class);
    CHECK(class == MPI_ERR_TYPE);
    MPI_Error_class(MPI_Pack(values, 1, pair, text, sizeof text, &at, MPI_COMM_WORLD), &class);
    CHECK(class == MPI_ERR_TYPE);
    MPI_Type_commit(&pair);
    CHECK(MPI_Bcast(values, 1, pair, 0, MPI_COMM_WORLD) == MPI_SUCCESS);
    MPI_Type_free(&pair);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

/* A receive of fewer elements than are sent: an error, a status, and the first elements. */
static void receives_too_few(int sent_ints)
{
    enum { ROOM = 2, WAYS = 5 };
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    int *sent = malloc(sent_ints * sizeof(int));
    for (int i = 0; i < sent_ints; i++)
        sent[i] = rank + i;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int way = 0; way < WAYS; way++) {
        int came[ROOM] = {-1, -1}, code, class, count, source = way % 2 ? MPI_ANY_SOURCE : before;
        MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
        MPI_Status status, statuses[2];
        MPI_Message message;
        if (way != 2)
            MPI_Isend(sent, sent_ints, MPI_INT, next, way, MPI_COMM_WORLD, &requests[0]);
        switch (way) {
        case 0:
            code = MPI_Recv(came, ROOM, MPI_INT, source, way, MPI_COMM_WORLD, &status);
            break;
        case 1:
            MPI_Irecv(came, ROOM, MPI_INT, source, way, MPI_COMM_WORLD, &requests[1]);
            code = MPI_Wait(&requests[1], &status);
            break;
        case 2:
            code = MPI_Sendrecv(sent, sent_ints, MPI_INT, next, way, came, ROOM, MPI_INT, source,
                                way, MPI_COMM_WORLD, &status);
            break;
        case 3:
            MPI_Mprobe(source, way, MPI_COMM_WORLD, &message, &status);
            MPI_Get_count(&status, MPI_INT, &count);
            CHECK(count == sent_ints);
            code = MPI_Mrecv(came, ROOM, MPI_INT, &message, &status);
            break;
        default:
            MPI_Irecv(came, ROOM, MPI_INT, source, way, MPI_COMM_WORLD, &requests[1]);
            MPI_Error_class(MPI_Waitall(2, requests, statuses), &class);
            CHECK(class == MPI_ERR_IN_STATUS && statuses[0].MPI_ERROR == MPI_SUCCESS);
            status = statuses[1];
            code = status.MPI_ERROR;
        }
        MPI_Error_class(code, &class);
        MPI_Get_count(&status, MPI_INT, &count);
        CHECK(class == MPI_ERR_TRUNCATE);
        CHECK(status.MPI_SOURCE == before && status.MPI_TAG == way && count == ROOM);
        CHECK(sent_ints > 1000 || (came[0] == before && came[1] == before + 1));
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    free(sent);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double begin = MPI_Wtime(), end = MPI_Wtime();
    CHECK(begin > 1 && end > begin);
    point_to_point();
    with_oneself();
    collectives();
    reductions_that_end_at_once();
    communicators();
    refused_duplicates();
    names();
    halves();
    errors();
    errors_of_nothing();
    sessions();
    receives_too_few(3);
    receives_too_few(100000);
    MPI_Barrier(MPI_COMM_WORLD);
    printf("rank %d of %d: %.9f s\n", rank, size, MPI_Wtime() - begin);
    MPI_Finalize();
    return 0;
}
