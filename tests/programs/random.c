/* A random MPI program: random SEED OPERATIONS FILE [BREAK]. All ranks derive the same
 * operations from the seed, and each writes a line for each to FILE.RANK: the number of the
 * operation, its name, and a digest of every result that the standard fixes. So two libraries
 * must write the same files. All sums are of integers, or exact, so that no order of a reduction
 * matters.
 *
 * With BREAK, that operation has another result at rank 0: a comparison must find it. Details of
 * operations are written too if the variable RANDOM_DETAILS is set. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int world_rank, world_size, operation;
static uint64_t seed, stream, digest;
static FILE *out;
static int has_details;

/* A well-mixed number of another one. */
static uint64_t mixed(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* The next random number below `below`, the same at all ranks. */
static int draw(int below)
{
    stream += 0x9e3779b97f4a7c15u;
    return mixed(stream) % below;
}

/* The next random number from `low` to `high`. */
static int between(int low, int high)
{
    return low + draw(high - low + 1);
}

/* Takes bytes into the digest of the operation. */
static void see_bytes(const void *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        digest = (digest ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
}

/* Takes a number into the digest. */
static void see_number(const char *name, long number)
{
    if (has_details)
        fprintf(out, "     %s %ld\n", name, number);
    see_bytes(&number, sizeof number);
}

#define SEE(number) see_number(#number, (long)(number))

/* Takes memory into the digest. */
static void see_memory(const char *name, const void *bytes, size_t count)
{
    uint64_t before = digest;
    digest = 0;
    see_bytes(bytes, count);
    uint64_t own = digest;
    digest = before;
    see_number(name, (long)own);
}

/* A part of memory for buffers, in whose middle they begin. */
enum { ROOM = 1 << 16, MIDDLE = ROOM / 2 };
typedef struct {
    _Alignas(16) unsigned char bytes[ROOM];
} Room;
static Room sent, came, more;

/* Fills a room with what is this rank's own. */
static void fill(Room *room, int salt)
{
    uint64_t own = mixed(seed + 1000 * operation + 100 * world_rank + salt);
    for (int i = 0; i < ROOM; i += 8) {
        own = mixed(own + i);
        memcpy(room->bytes + i, &own, 8);
    }
}

static void blank(Room *room)
{
    memset(room->bytes, 0x5a, ROOM);
}

#define SEE_ROOM(room) see_memory(#room, (room).bytes, ROOM)

/* The communicators that operations choose from. */
enum { COMMS = 5 };
static MPI_Comm comms[COMMS];
static MPI_Comm comm;
static int rank, size;

static void choose_comm(void)
{
    comm = comms[draw(COMMS)];
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
}

static void make_comms(void)
{
    comms[0] = MPI_COMM_WORLD;
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, &comms[2]);
    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, world_rank, &comms[3]);
    comms[4] = MPI_COMM_SELF;
}

#include "random/types.h"

#include "random/point.h"

#include "random/collective.h"

#include "random/reduction.h"

#include "random/communicator.h"

#include "random/topology.h"

#include "random/window.h"

#include "random/object.h"

static const struct {
    const char *name;
    void (*perform)(void);
} operations[] = {
    {"shift", shift},
    {"shift", shift},
    {"funnel", funnel},
    {"persistent", persistent},
    {"truncate", truncate_message},
    {"nothing", send_nothing},
    {"bcast", bcast},
    {"gather", gather},
    {"scatter", scatter},
    {"allgather", allgather},
    {"alltoall", alltoall},
    {"alltoallw", alltoallw},
    {"reduce", reduce},
    {"reduce", reduce},
    {"reduce_local", reduce_local},
    {"reduce_user", reduce_user},
    {"split", split},
    {"create", create},
    {"group", group},
    {"intercomm", intercomm},
    {"cart", cart},
    {"dims", dims_create},
    {"graph", graph},
    {"dist_graph", dist_graph},
    {"fence", fence},
    {"pscw", pscw},
    {"lock", lock},
    {"dynamic", dynamic},
    {"datatype", datatype},
    {"pack", pack},
    {"contents", contents},
    {"attribute", attribute},
    {"info", info},
    {"errors", errors},
    {"status", status_of},
};

enum { OPERATIONS = sizeof operations / sizeof *operations };

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    if (argc < 4) {
        fprintf(stderr, "random SEED OPERATIONS FILE [BREAK]\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    seed = strtoull(argv[1], NULL, 10) * 1000003;
    int count = atoi(argv[2]), breaks = argc > 4 ? atoi(argv[4]) : -1;
    char name[4096];
    snprintf(name, sizeof name, "%s.%d", argv[3], world_rank);
    out = fopen(name, "w");
    if (!out)
        MPI_Abort(MPI_COMM_WORLD, 2);
    setvbuf(out, NULL, _IOLBF, 4096);
    has_details = getenv("RANDOM_DETAILS") != NULL;
    make_comms();
    for (operation = 0; operation < count; operation++) {
        stream = mixed(seed + operation);
        digest = 0xcbf29ce484222325u;
        int which = draw(OPERATIONS);
        choose_comm();
        if (has_details)
            fprintf(out, "%04d %s in %d\n", operation, operations[which].name, size);
        operations[which].perform();
        /* A message of the next operation must not match a wildcard of this one. */
        MPI_Barrier(MPI_COMM_WORLD);
        if (operation == breaks && world_rank == 0)
            SEE(breaks);
        fprintf(out, "%04d %s rank %d: %016llx\n", operation, operations[which].name, world_rank,
                (unsigned long long)digest);
    }
    for (int i = 1; i < 4; i++)
        MPI_Comm_free(&comms[i]);
    fclose(out);
    MPI_Finalize();
    return 0;
}
