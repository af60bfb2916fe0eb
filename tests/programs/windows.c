/* One-sided communication: each check prints a line that begins with WRONG if it fails, and rank 0
 * prints "windows: right" at the end if none has. It is for any number of ranks from 2 on. */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks, wrong;

static void check(int is_right, const char *what) {
    if (!is_right) {
        printf("WRONG on rank %d: %s\n", rank, what);
        wrong += 1;
    }
}

/* The rank behind this one, and the one before it. */
static int next(void) {
    return (rank + 1) % ranks;
}

static int before(void) {
    return (rank + ranks - 1) % ranks;
}

/* Puts and gets between fences, into memory of the program's. */
static void fences(void) {
    int memory[8], got[4] = {-1, -1, -1, -1}, put[3];
    MPI_Win win;
    for (int place = 0; place < 8; place++) {
        memory[place] = 100 * rank + place;
    }
    MPI_Win_create(memory, sizeof memory, sizeof memory[0], MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
    for (int place = 0; place < 3; place++) {
        put[place] = 1000 * rank + place;
    }
    MPI_Put(put, 3, MPI_INT, next(), 5, 3, MPI_INT, win);
    MPI_Get(got, 3, MPI_INT, before(), 1, 3, MPI_INT, win);
    MPI_Put(put, 3, MPI_INT, MPI_PROC_NULL, 0, 3, MPI_INT, win);
    MPI_Win_fence(0, win);
    for (int place = 0; place < 3; place++) {
        check(got[place] == 100 * before() + 1 + place, "a get between fences");
        check(memory[5 + place] == 1000 * before() + place, "a put between fences");
    }
    check(got[3] == -1 && memory[4] == 100 * rank + 4, "memory beside it");
    /* Every rank adds to rank 0; rank 0 adds to itself as well. */
    int one = rank + 1;
    memory[0] = 10;
    MPI_Win_fence(0, win);
    MPI_Accumulate(&one, 1, MPI_INT, 0, 0, 1, MPI_INT, MPI_SUM, win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    int sum = rank == 0 ? 10 + ranks * (ranks + 1) / 2 : 10;
    check(memory[0] == sum, "an accumulate between fences");
    MPI_Win_free(&win);
    check(win == MPI_WIN_NULL, "the handle of a freed window");
}

/* Locks of all kinds, and the calls with requests. */
static void locks(void) {
    long *memory;
    MPI_Win win;
    MPI_Win_allocate(4 * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    memset(memory, 0, 4 * sizeof(long));
    MPI_Barrier(MPI_COMM_WORLD);

    long mine = rank + 1, seen = -1;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Get(&seen, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win);
    MPI_Win_flush(0, win);
    seen += mine;
    MPI_Put(&seen, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win);
    MPI_Win_unlock(0, win);

    MPI_Win_lock(MPI_LOCK_SHARED, next(), 0, win);
    MPI_Accumulate(&mine, 1, MPI_LONG, next(), 1, 1, MPI_LONG, MPI_MAX, win);
    MPI_Win_unlock(next(), win);
    MPI_Barrier(MPI_COMM_WORLD);

    long all = (long)ranks * (ranks + 1) / 2;
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    check(rank != 0 || memory[0] == all, "sums under an exclusive lock");
    check(memory[1] == before() + 1, "an accumulate under a shared lock");
    MPI_Win_unlock(rank, win);
    MPI_Barrier(MPI_COMM_WORLD);

    MPI_Request requests[3];
    MPI_Status statuses[3];
    long sent = 7 + rank, came = -1, old = -1, add = 5;
    MPI_Win_lock_all(0, win);
    MPI_Rput(&sent, 1, MPI_LONG, next(), 2, 1, MPI_LONG, win, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Win_flush(next(), win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Rget(&came, 1, MPI_LONG, rank, 2, 1, MPI_LONG, win, &requests[0]);
    MPI_Rget_accumulate(&add, 1, MPI_LONG, &old, 1, MPI_LONG, next(), 3, 1, MPI_LONG, MPI_SUM, win,
                        &requests[1]);
    MPI_Rput(&sent, 1, MPI_LONG, MPI_PROC_NULL, 2, 1, MPI_LONG, win, &requests[2]);
    MPI_Waitall(3, requests, statuses);
    check(came == 7 + before(), "a put and a get with requests");
    check(old == 0, "an accumulate with a request");
    MPI_Raccumulate(&add, 1, MPI_LONG, next(), 3, 1, MPI_LONG, MPI_SUM, win, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Win_flush_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_sync(win);
    check(memory[3] == 10, "accumulates with requests");
    MPI_Get(&came, 1, MPI_LONG, next(), 3, 1, MPI_LONG, win);
    MPI_Win_flush_local(next(), win);
    check(came == 10, "a get that a local flush ends");
    MPI_Get(&old, 1, MPI_LONG, next(), 2, 1, MPI_LONG, win);
    MPI_Win_unlock_all(win);
    check(old == 7 + rank, "a get that an unlock ends");

    /* The data of a get with a request are there after an unlock, and do not come again. */
    came = old = -1;
    MPI_Win_lock_all(0, win);
    MPI_Rget(&came, 1, MPI_LONG, next(), 3, 1, MPI_LONG, win, &requests[0]);
    MPI_Rget(&old, 1, MPI_LONG, next(), 2, 1, MPI_LONG, win, &requests[1]);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    MPI_Win_unlock_all(win);
    check(came == 10 && old == 7 + rank, "gets with requests that an unlock ends");
    came = -2;
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    check(came == -2 && requests[0] == MPI_REQUEST_NULL, "a wait behind the unlock");
    MPI_Win_free(&win);
}

/* Accumulates that get what was there before. */
static void atomics(void) {
    int *counter;
    MPI_Win win;
    MPI_Win_allocate(rank == 0 ? 64 : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &counter, &win);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
    if (rank == 0) {
        memset(counter, 0, 64);
    }
    MPI_Win_unlock(rank, win);
    MPI_Barrier(MPI_COMM_WORLD);

    int one = 1, ticket = -1;
    MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
    MPI_Fetch_and_op(&one, &ticket, MPI_INT, 0, 0, MPI_SUM, win);
    MPI_Win_flush(0, win);
    int tickets = 0, bit = 1 << ticket;
    MPI_Allreduce(&bit, &tickets, 1, MPI_INT, MPI_BOR, MPI_COMM_WORLD);
    check(tickets == (1 << ranks) - 1, "tickets of MPI_Fetch_and_op");
    int now = -1;
    MPI_Fetch_and_op(NULL, &now, MPI_INT, 0, 0, MPI_NO_OP, win);
    MPI_Win_flush(0, win);
    check(now == ranks, "MPI_Fetch_and_op with MPI_NO_OP");

    /* One rank alone finds 0. */
    long none = 0, me = rank + 1, found = -1;
    MPI_Compare_and_swap(&me, &none, &found, MPI_LONG, 0, 16, win);
    MPI_Win_flush(0, win);
    int won = found == 0, winners = 0;
    MPI_Allreduce(&won, &winners, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    check(winners == 1, "MPI_Compare_and_swap");
    long winner = -1;
    MPI_Get(&winner, 1, MPI_LONG, 0, 16, 1, MPI_LONG, win);
    MPI_Win_flush(0, win);
    check(won ? winner == me : winner == found, "the winner of MPI_Compare_and_swap");

    double adds[2] = {1.5, 2.0}, had[2] = {-1, -1};
    MPI_Get_accumulate(adds, 2, MPI_DOUBLE, had, 2, MPI_DOUBLE, 0, 32, 2, MPI_DOUBLE, MPI_SUM, win);
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    check(had[0] >= 0 && had[0] * 2 == had[1] * 1.5, "MPI_Get_accumulate");
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    MPI_Get_accumulate(NULL, 0, MPI_DOUBLE, had, 2, MPI_DOUBLE, 0, 32, 2, MPI_DOUBLE, MPI_NO_OP,
                       win);
    MPI_Win_unlock(0, win);
    check(had[0] == 1.5 * ranks && had[1] == 2.0 * ranks, "sums of MPI_Get_accumulate");
    MPI_Win_free(&win);
}

/* Post, start, complete, wait: each rank is the origin of the next one. */
static void posts(void) {
    double memory[2] = {rank, rank}, value = 0.5 + rank, got = -1;
    int origin = before(), target = next();
    MPI_Group all, origins, targets;
    MPI_Win win;
    MPI_Win_create(memory, sizeof memory, sizeof memory[0], MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_get_group(win, &all);
    MPI_Group_incl(all, 1, &origin, &origins);
    MPI_Group_incl(all, 1, &target, &targets);
    for (int round = 0; round < 3; round++) {
        MPI_Win_post(origins, 0, win);
        MPI_Win_start(targets, 0, win);
        value += round;
        MPI_Put(&value, 1, MPI_DOUBLE, target, 0, 1, MPI_DOUBLE, win);
        MPI_Get(&got, 1, MPI_DOUBLE, target, 1, 1, MPI_DOUBLE, win);
        MPI_Win_complete(win);
        check(got == target, "a get in an epoch of MPI_Win_start");
        if (round == 1) {
            int flag = 0;
            while (!flag) {
                MPI_Win_test(win, &flag);
            }
        } else {
            MPI_Win_wait(win);
        }
        check(memory[0] == 0.5 + origin + round * (round + 1) / 2,
              "a put in an epoch of MPI_Win_post");
    }
    MPI_Group_free(&all);
    MPI_Group_free(&origins);
    MPI_Group_free(&targets);
    MPI_Win_free(&win);
}

/* Memory that is attached later, by its addresses. */
static void dynamic(void) {
    int *first = malloc(4 * sizeof(int)), second[2] = {-1, -1};
    MPI_Aint own[2];
    MPI_Aint *theirs = malloc(2 * (size_t)ranks * sizeof(MPI_Aint));
    MPI_Win win;
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    for (int place = 0; place < 4; place++) {
        first[place] = 10 * rank + place;
    }
    MPI_Win_attach(win, first, 4 * sizeof(int));
    MPI_Win_attach(win, second, sizeof second);
    MPI_Get_address(first, &own[0]);
    MPI_Get_address(second, &own[1]);
    MPI_Allgather(own, 2, MPI_AINT, theirs, 2, MPI_AINT, MPI_COMM_WORLD);
    int got[2] = {-1, -1};
    MPI_Aint at = MPI_Aint_add(theirs[2 * next()], 2 * sizeof(int));
    MPI_Win_lock(MPI_LOCK_SHARED, next(), 0, win);
    MPI_Get(got, 2, MPI_INT, next(), at, 2, MPI_INT, win);
    MPI_Put(&rank, 1, MPI_INT, next(), theirs[2 * next() + 1] + (int)sizeof(int), 1, MPI_INT, win);
    MPI_Win_unlock(next(), win);
    check(got[0] == 10 * next() + 2 && got[1] == 10 * next() + 3, "a get of attached memory");
    MPI_Barrier(MPI_COMM_WORLD);
    check(second[0] == -1 && second[1] == before(), "a put to attached memory");
    MPI_Win_detach(win, first);
    MPI_Win_detach(win, second);
    MPI_Win_free(&win);
    free(first);
    free(theirs);
}

/* Datatypes of the origin and of the target that differ. */
static void datatypes(void) {
    int memory[12], put[4] = {1, 2, 3, 4}, got[8];
    MPI_Datatype every_third, pairs;
    MPI_Win win;
    for (int place = 0; place < 12; place++) {
        memory[place] = 0;
    }
    memset(got, 0xff, sizeof got);
    MPI_Type_vector(4, 1, 3, MPI_INT, &every_third);
    MPI_Type_commit(&every_third);
    MPI_Type_vector(2, 2, 4, MPI_INT, &pairs);
    MPI_Type_commit(&pairs);
    MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_fence(0, win);
    MPI_Put(put, 4, MPI_INT, next(), 1, 1, every_third, win);
    MPI_Win_fence(0, win);
    MPI_Accumulate(put, 4, MPI_INT, next(), 1, 1, every_third, MPI_SUM, win);
    MPI_Win_fence(0, win);
    for (int place = 0; place < 12; place++) {
        int value = place % 3 == 1 ? 2 * (place / 3 + 1) : 0;
        check(memory[place] == value, "a target datatype with gaps");
    }
    MPI_Get(got, 1, pairs, next(), 1, 1, every_third, win);
    MPI_Win_fence(0, win);
    int right[8] = {2, 4, -1, -1, 6, 8, -1, -1};
    check(memcmp(got, right, sizeof got) == 0, "a get into a datatype with gaps");
    MPI_Win_free(&win);
    MPI_Type_free(&every_third);
    MPI_Type_free(&pairs);
}

/* Arrays longer than a packet. */
static void large(void) {
    enum { COUNT = 20000 };
    double *memory, *put = malloc(COUNT * sizeof(double)), *got = malloc(COUNT * sizeof(double));
    MPI_Win win;
    MPI_Win_allocate(COUNT * sizeof(double), sizeof(double), MPI_INFO_NULL, MPI_COMM_WORLD, &memory,
                     &win);
    for (int place = 0; place < COUNT; place++) {
        put[place] = rank + 0.25 * place;
        memory[place] = -1;
    }
    MPI_Win_fence(0, win);
    MPI_Put(put, COUNT, MPI_DOUBLE, next(), 0, COUNT, MPI_DOUBLE, win);
    MPI_Win_fence(0, win);
    MPI_Get(got, COUNT, MPI_DOUBLE, before(), 0, COUNT, MPI_DOUBLE, win);
    MPI_Win_fence(0, win);
    int right = 1;
    for (int place = 0; place < COUNT; place++) {
        right &= memory[place] == before() + 0.25 * place;
        right &= got[place] == (rank + 2 * ranks - 2) % ranks + 0.25 * place;
    }
    check(right, "long arrays");
    MPI_Win_free(&win);
    free(put);
    free(got);
}

static int deleted;

static int deletes(MPI_Win win, int key, void *value, void *extra) {
    (void)win;
    (void)key;
    deleted += *(int *)value + *(int *)extra;
    return MPI_SUCCESS;
}

/* What a window tells of itself. */
static void descriptions(void) {
    double memory[3];
    void *value;
    int flag, length, key, extra = 30, attached = 4;
    char name[MPI_MAX_OBJECT_NAME];
    MPI_Win win;
    MPI_Win_create(memory, sizeof memory, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_get_attr(win, MPI_WIN_BASE, &value, &flag);
    check(flag && value == (void *)memory, "MPI_WIN_BASE");
    MPI_Win_get_attr(win, MPI_WIN_SIZE, &value, &flag);
    check(flag && *(MPI_Aint *)value == sizeof memory, "MPI_WIN_SIZE");
    MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &value, &flag);
    check(flag && *(int *)value == 8, "MPI_WIN_DISP_UNIT");
    MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &value, &flag);
    check(flag && *(int *)value == MPI_WIN_FLAVOR_CREATE, "MPI_WIN_CREATE_FLAVOR");
    MPI_Win_get_attr(win, MPI_WIN_MODEL, &value, &flag);
    check(flag && *(int *)value == MPI_WIN_UNIFIED, "MPI_WIN_MODEL");
    MPI_Win_get_name(win, name, &length);
    check(length == 0 && name[0] == 0, "a window without a name");
    MPI_Win_set_name(win, "a window");
    MPI_Win_get_name(win, name, &length);
    check(length == 8 && strcmp(name, "a window") == 0, "the name of a window");
    MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, deletes, &key, &extra);
    MPI_Win_set_attr(win, key, &attached);
    MPI_Win_get_attr(win, key, &value, &flag);
    check(flag && value == (void *)&attached, "an attribute");

    MPI_Info given, told;
    char text[MPI_MAX_INFO_VAL + 1];
    MPI_Info_create(&given);
    MPI_Info_set(given, "no_locks", "true");
    MPI_Win_set_info(win, given);
    MPI_Win_get_info(win, &told);
    MPI_Info_get(told, "no_locks", MPI_MAX_INFO_VAL, text, &flag);
    check(flag && strcmp(text, "true") == 0, "info of a window");
    MPI_Info_free(&given);
    MPI_Info_free(&told);

    MPI_Win_free(&win);
    check(deleted == 34, "the function of an attribute");
    MPI_Win_free_keyval(&key);

    double *shared, *found;
    MPI_Aint size;
    int unit;
    MPI_Win_allocate_shared(16, 8, MPI_INFO_NULL, MPI_COMM_SELF, &shared, &win);
    MPI_Win_shared_query(win, 0, &size, &unit, &found);
    check(size == 16 && unit == 8 && found == shared, "MPI_Win_shared_query");
    MPI_Win_free(&win);
}

/* An access under a lock comes without the end of its epoch: ranks wait for it, one after the
   other, by looking at their memory. */
static void spins(void) {
    int *mine, one = 1;
    MPI_Win win;
    MPI_Win_allocate(sizeof *mine, sizeof *mine, MPI_INFO_NULL, MPI_COMM_WORLD, &mine, &win);
    *mine = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock_all(0, win);
    if (rank == 0)
        MPI_Accumulate(&one, 1, MPI_INT, next(), 0, 1, MPI_INT, MPI_REPLACE, win);
    do {
        MPI_Win_flush(rank, win);
        MPI_Win_sync(win);
    } while (*(volatile int *)mine == 0);
    if (rank > 0)
        MPI_Accumulate(&one, 1, MPI_INT, next(), 0, 1, MPI_INT, MPI_REPLACE, win);
    check(*mine == 1, "an access that goes round");
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_unlock_all(win);
    MPI_Win_free(&win);
}

static int told;

static void hears(MPI_Win *win, int *code, ...) {
    (void)win;
    int class = -1;
    MPI_Error_class(*code, &class);
    told = class;
}

/* Errors go to the handler of the window. */
static void errors(void) {
    int memory[2] = {0, 0}, one = 1, class = -1;
    MPI_Errhandler handler;
    MPI_Win win;
    MPI_Win_create(memory, sizeof memory, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_create_errhandler(hears, &handler);
    MPI_Win_set_errhandler(win, handler);
    /* No epoch is open. */
    int code = MPI_Put(&one, 1, MPI_INT, next(), 0, 1, MPI_INT, win);
    MPI_Error_class(code, &class);
    check(class == MPI_ERR_RMA_SYNC && told == class, "an access without an epoch");
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Errhandler_free(&handler);
    told = 0;
    MPI_Win_fence(0, win);
    code = MPI_Put(&one, 1, MPI_INT, ranks, 0, 1, MPI_INT, win);
    MPI_Error_class(code, &class);
    check(class == MPI_ERR_RANK && told == 0, "an access to a rank that is not there");
    MPI_Win_fence(0, win);
    code = MPI_Win_unlock(0, win);
    MPI_Error_class(code, &class);
    check(class == MPI_ERR_RMA_SYNC, "an unlock without a lock");
    code = MPI_Win_lock(12345, 0, 0, win);
    check(code != MPI_SUCCESS, "a lock of no kind");
    MPI_Win_free(&win);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    fences();
    locks();
    atomics();
    posts();
    dynamic();
    datatypes();
    large();
    descriptions();
    spins();
    errors();
    int all = 0;
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0 && all == 0) {
        printf("windows: right\n");
    }
    MPI_Finalize();
    return wrong != 0;
}
