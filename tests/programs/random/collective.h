/* Calls of all ranks of a communicator that move data: blocking, nonblocking, and through
 * persistent requests. Their results are the same: where the variable RANDOM_BLOCKING is set,
 * all are blocking. */

static int choose_way(void)
{
    int way = draw(3);
    SEE(way);
    return getenv("RANDOM_BLOCKING") ? 0 : way;
}

#define COLLECTIVE(way, Name, name, ...)                                 \
    do {                                                                 \
        MPI_Request request_;                                            \
        if ((way) == 0)                                                  \
            MPI_##Name(__VA_ARGS__, comm);                               \
        if ((way) == 1) {                                                \
            MPI_I##name(__VA_ARGS__, comm, &request_);                   \
            MPI_Wait(&request_, MPI_STATUS_IGNORE);                      \
        }                                                                \
        if ((way) == 2) {                                                \
            MPI_##Name##_init(__VA_ARGS__, comm, MPI_INFO_NULL, &request_); \
            MPI_Start(&request_);                                        \
            MPI_Wait(&request_, MPI_STATUS_IGNORE);                      \
            MPI_Request_free(&request_);                                 \
        }                                                                \
    } while (0)

#define IN(room) ((room).bytes + 4096)

/* The counts and the places of ranks' parts, in elements: the places not in the order of the
 * ranks. */
static int counts[64], places[64];

static void choose_parts(void)
{
    int next = 0, turn = draw(size);
    for (int i = 0; i < size; i++)
        counts[i] = draw(4);
    for (int i = 0; i < size; i++) {
        places[(i + turn) % size] = next;
        next += counts[(i + turn) % size] + draw(2);
    }
}

/* So many parts of a datatype and their gaps lie within a room. */
enum { PART = 1200 };

static void bcast(void)
{
    int way = choose_way(), root = draw(1000) % size, count = between(1, 3), items, is_long = draw(4) == 0;
    Type type = random_type(3, count, 12000);
    MPI_Datatype named;
    /* The root and the others may name the elements in different ways. */
    if (rank == root)
        as_items(&type, count, &named, &items);
    else {
        stream += 99;
        as_items(&type, count, &named, &items);
    }
    fill(&came, 0);
    COLLECTIVE(way, Bcast, bcast, IN(came), items, named, root);
    SEE_ROOM(came);
    free_type(&type.type);
    if (is_long) {
        static int many[50000];
        for (int i = 0; i < 50000; i++)
            many[i] = rank == root ? i * operation : -1;
        COLLECTIVE(way, Bcast, bcast, many, 50000, MPI_INT, root);
        see_memory("many", many, sizeof many);
    }
}

/* A call in which each rank has a part of the data, of one size or of its own. */
typedef struct {
    int way, root, is_in_place, has_parts, count, items;
    Type type;
    /* As many items of this type are as many of the other as `count` says. */
    MPI_Datatype named;
} Parts;

static Parts choose_call(int is_rooted)
{
    Parts of = {.way = choose_way()};
    if (is_rooted)
        of.root = draw(1000) % size;
    of.is_in_place = draw(3) == 0;
    of.has_parts = draw(2);
    of.type = random_type(2, 3 * 6, PART * 18);
    of.count = between(1, 3);
    choose_parts();
    if (of.has_parts)
        of.count = counts[rank];
    as_items(&of.type, of.count, &of.named, &of.items);
    fill(&sent, 0);
    fill(&came, 1);
    return of;
}

static void gather(void)
{
    Parts of = choose_call(1);
    const void *from = of.is_in_place && rank == of.root ? MPI_IN_PLACE : IN(sent);
    if (of.has_parts)
        COLLECTIVE(of.way, Gatherv, gatherv, from, of.items, of.named, IN(came), counts, places, of.type.type, of.root);
    else
        COLLECTIVE(of.way, Gather, gather, from, of.items, of.named, IN(came), of.count, of.type.type, of.root);
    SEE_ROOM(came);
    free_type(&of.type.type);
}

static void scatter(void)
{
    Parts of = choose_call(1);
    void *to = of.is_in_place && rank == of.root ? MPI_IN_PLACE : IN(came);
    if (of.has_parts)
        COLLECTIVE(of.way, Scatterv, scatterv, IN(sent), counts, places, of.type.type, to, of.items, of.named, of.root);
    else
        COLLECTIVE(of.way, Scatter, scatter, IN(sent), of.count, of.type.type, to, of.items, of.named, of.root);
    SEE_ROOM(came);
    SEE_ROOM(sent);
    free_type(&of.type.type);
}

static void allgather(void)
{
    Parts of = choose_call(0);
    const void *from = of.is_in_place ? MPI_IN_PLACE : IN(sent);
    if (of.has_parts)
        COLLECTIVE(of.way, Allgatherv, allgatherv, from, of.items, of.named, IN(came), counts, places, of.type.type);
    else
        COLLECTIVE(of.way, Allgather, allgather, from, of.items, of.named, IN(came), of.count, of.type.type);
    SEE_ROOM(came);
    free_type(&of.type.type);
}

/* The count that one rank sends to another, symmetric so that it can be in place. */
static int between_ranks(int salt, int one, int other)
{
    return mixed(salt + (one < other ? one * 64 + other : other * 64 + one)) % 4;
}

static void alltoall(void)
{
    int way = choose_way(), is_in_place = draw(3) == 0, has_parts = draw(2), salt = draw(1000), turn = draw(size);
    Type type = random_type(2, 3 * 6, PART * 18);
    int count = between(1, 3), items;
    MPI_Datatype named;
    as_items(&type, count, &named, &items);
    fill(&sent, 0);
    fill(&came, 1);
    const void *from = is_in_place ? MPI_IN_PLACE : IN(sent);
    for (int i = 0; i < size; i++) {
        counts[i] = between_ranks(salt, rank, i);
        places[i] = (i + turn) % size * 3;
    }
    if (has_parts)
        COLLECTIVE(way, Alltoallv, alltoallv, from, counts, places, type.type, IN(came), counts, places,
                   type.type);
    else
        COLLECTIVE(way, Alltoall, alltoall, from, items, named, IN(came), count, type.type);
    SEE_ROOM(came);
    free_type(&type.type);
}

/* Each pair of ranks exchanges a datatype of its own. */
static void alltoallw(void)
{
    int way = choose_way(), is_in_place = draw(4) == 0, salt = draw(1000);
    enum { KINDS = 4 };
    Type kinds[KINDS];
    MPI_Datatype types[64];
    int bytes[64];
    for (int i = 0; i < KINDS; i++)
        kinds[i] = random_type(2, 3, 3000);
    for (int i = 0; i < size; i++) {
        counts[i] = between_ranks(salt, rank, i);
        types[i] = kinds[between_ranks(salt + 7, rank, i)].type;
        bytes[i] = i * 4000;
    }
    fill(&sent, 0);
    fill(&came, 1);
    const void *from = is_in_place ? MPI_IN_PLACE : IN(sent);
    COLLECTIVE(way, Alltoallw, alltoallw, from, counts, bytes, types, IN(came), counts, bytes, types);
    SEE_ROOM(came);
    for (int i = 0; i < KINDS; i++)
        free_type(&kinds[i].type);
}
