/* Windows: one rank reads and changes the memory of another one. */

enum { WORDS = 2048 };
static int64_t memory[WORDS];

/* A window of memory of this rank's, which is freed with `free_window`. */
static MPI_Win make_window(int64_t **base)
{
    MPI_Win win;
    if (draw(2)) {
        *base = memory;
        MPI_Win_create(memory, sizeof memory, 8, MPI_INFO_NULL, comm, &win);
    } else
        MPI_Win_allocate(sizeof memory, 8, MPI_INFO_NULL, comm, base, &win);
    for (int i = 0; i < WORDS; i++)
        (*base)[i] = mixed(operation * 10000 + world_rank * 777 + i) % 1000;
    int *unit, flag;
    MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &unit, &flag);
    SEE(flag && *unit == 8);
    return win;
}

static const MPI_Op accumulated[] = {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX, MPI_BXOR, MPI_REPLACE, MPI_BOR};

/* Makes an access to a part of a rank's window that no other rank accesses in this epoch. */
static void access_window(MPI_Win win, int to, int part, int call, int64_t *here, int64_t *result)
{
    MPI_Op op = accumulated[draw(7)];
    MPI_Datatype holed;
    MPI_Type_vector(3, 1, 2, MPI_INT64_T, &holed);
    MPI_Type_commit(&holed);
    MPI_Aint at = part * 32;
    switch (call) {
    case 0:
        MPI_Put(here, 10, MPI_INT64_T, to, at, 10, MPI_INT64_T, win);
        break;
    case 1:
        MPI_Get(result, 10, MPI_INT64_T, to, at, 10, MPI_INT64_T, win);
        break;
    case 2:
        MPI_Accumulate(here, 10, MPI_INT64_T, to, at, 10, MPI_INT64_T, op, win);
        break;
    case 3:
        MPI_Get_accumulate(here, 10, MPI_INT64_T, result, 10, MPI_INT64_T, to, at, 10, MPI_INT64_T, op, win);
        break;
    case 4:
        MPI_Fetch_and_op(here, result, MPI_INT64_T, to, at, op, win);
        break;
    case 5:
        MPI_Put(here, 2, holed, to, at, 6, MPI_INT64_T, win);
        break;
    case 6:
        MPI_Get(result, 6, MPI_INT64_T, to, at, 2, holed, win);
        break;
    case 7:
        MPI_Accumulate(here, 6, MPI_INT64_T, to, at, 2, holed, op, win);
        break;
    default:
        MPI_Get_accumulate(NULL, 0, MPI_INT64_T, result, 6, MPI_INT64_T, to, at, 2, holed, MPI_NO_OP, win);
    }
    MPI_Type_free(&holed);
}

static void fence(void)
{
    int64_t *base, here[32], results[8][32];
    MPI_Win win = make_window(&base);
    int rounds = between(1, 4), by = draw(size);
    memset(results, 0, sizeof results);
    for (int i = 0; i < 32; i++)
        here[i] = mixed(operation + world_rank * 99 + i) % 100;
    MPI_Win_fence(draw(2) ? MPI_MODE_NOPRECEDE : 0, win);
    for (int i = 0; i < rounds; i++) {
        int count = between(1, 4);
        for (int j = 0; j < count; j++)
            access_window(win, (rank + by) % size, j, draw(9), here, results[j]);
        /* All ranks add to one place. */
        if (draw(2))
            MPI_Accumulate(here, 5, MPI_INT64_T, draw(1000) % size, 1000, 5, MPI_INT64_T, MPI_SUM, win);
        MPI_Win_fence(0, win);
        see_memory("window", base, sizeof memory);
        /* The next epoch has begun: no rank may access the window while this one reads it. */
        MPI_Barrier(comm);
    }
    see_memory("results", results, sizeof results);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    MPI_Win_free(&win);
    SEE(win == MPI_WIN_NULL);
}

static void pscw(void)
{
    int64_t *base, here[32], results[8][32];
    MPI_Win win = make_window(&base);
    MPI_Group all, to_group, from_group;
    int by = draw(size), to = (rank + by) % size, from = (rank + size - by) % size, count = between(1, 5), flag = 0;
    int how = draw(2);
    memset(results, 0, sizeof results);
    for (int i = 0; i < 32; i++)
        here[i] = mixed(operation + world_rank * 99 + i) % 100;
    MPI_Comm_group(comm, &all);
    MPI_Group_incl(all, 1, &to, &to_group);
    MPI_Group_incl(all, 1, &from, &from_group);
    MPI_Win_post(from_group, 0, win);
    MPI_Win_start(to_group, 0, win);
    for (int j = 0; j < count; j++)
        access_window(win, to, j, draw(9), here, results[j]);
    MPI_Win_complete(win);
    if (how)
        MPI_Win_wait(win);
    else
        while (!flag)
            MPI_Win_test(win, &flag);
    see_memory("results", results, sizeof results);
    see_memory("window", base, sizeof memory);
    MPI_Group_free(&all);
    MPI_Group_free(&to_group);
    MPI_Group_free(&from_group);
    MPI_Win_free(&win);
}

/* Passive targets: what all ranks do to one adds up, in any order. */
static void lock(void)
{
    int64_t *base, here[32], results[8][32], one = 1, before, sum = 0, total;
    MPI_Win win = make_window(&base);
    int target = draw(1000) % size, how = draw(3), rounds = between(1, 4), own = 300 + 64 * rank;
    MPI_Request request;
    memset(results, 0, sizeof results);
    for (int i = 0; i < 32; i++)
        here[i] = mixed(operation + world_rank * 99 + i) % 100;
    base[1000] = 0;
    MPI_Barrier(comm);
    for (int i = 0; i < rounds; i++) {
        if (how == 0)
            MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
        if (how == 1)
            MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
        if (how == 2)
            MPI_Win_lock_all(0, win);
        MPI_Fetch_and_op(&one, &before, MPI_INT64_T, target, 1000, MPI_SUM, win);
        MPI_Win_flush(target, win);
        sum += before;
        /* Places of this rank alone. */
        MPI_Rput(here, 8, MPI_INT64_T, target, own, 8, MPI_INT64_T, win, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Win_flush(target, win);
        MPI_Raccumulate(here, 8, MPI_INT64_T, target, own + 4, 8, MPI_INT64_T, MPI_SUM, win, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Win_flush_local(target, win);
        MPI_Win_flush(target, win);
        MPI_Rget(results[i], 16, MPI_INT64_T, target, own, 16, MPI_INT64_T, win, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Compare_and_swap(&one, &here[20], &results[i][20], MPI_INT64_T, target, own + 30, win);
        MPI_Rget_accumulate(here, 2, MPI_INT64_T, results[i] + 22, 2, MPI_INT64_T, target, own + 32, 2, MPI_INT64_T,
                            MPI_MAX, win, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (how == 2)
            MPI_Win_unlock_all(win);
        else
            MPI_Win_unlock(target, win);
    }
    MPI_Allreduce(&sum, &total, 1, MPI_INT64_T, MPI_SUM, comm);
    SEE(total);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
    see_memory("results", results, sizeof results);
    see_memory("window", base, sizeof memory);
    MPI_Win_unlock(rank, win);
    MPI_Win_free(&win);
}

/* A window to which memory is attached; its address goes to the others by a message. */
static void dynamic(void)
{
    MPI_Win win;
    MPI_Aint own, addresses[64];
    int by = draw(size), to = (rank + by) % size;
    int64_t here[4] = {world_rank, 2, 3, 4}, there[4] = {0};
    MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &win);
    for (int i = 0; i < WORDS; i++)
        memory[i] = i + world_rank;
    MPI_Win_attach(win, memory, sizeof memory);
    MPI_Get_address(memory, &own);
    MPI_Allgather(&own, 1, MPI_AINT, addresses, 1, MPI_AINT, comm);
    MPI_Win_fence(0, win);
    MPI_Put(here, 4, MPI_INT64_T, to, MPI_Aint_add(addresses[to], 80), 4, MPI_INT64_T, win);
    MPI_Get(there, 4, MPI_INT64_T, to, MPI_Aint_add(addresses[to], 800), 4, MPI_INT64_T, win);
    MPI_Win_fence(0, win);
    see_memory("window", memory, sizeof memory);
    see_memory("there", there, sizeof there);
    MPI_Win_detach(win, memory);
    MPI_Win_free(&win);
}
