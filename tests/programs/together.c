/* Ranks meet outside MPI: each leaves a file in the directory of the first argument, and computes
 * until it sees those of all others. They must do so at the same time. The second argument has the
 * numbers of the meetings. Then each rank prints the times between some of its calls. */
#include "../../include/sme.h"
#include "check.h"
#include <mpi.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *directory, *meetings;

/* The most seconds for which a rank waits for the others. */
static const int PATIENCE = 60;

static int is_there(int meeting, int of)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%d.%d", directory, meeting, of);
    return access(path, F_OK) == 0;
}

static void meet(int meeting)
{
    if (!strchr(meetings, '0' + meeting))
        return;
    char path[4096];
    snprintf(path, sizeof path, "%s/%d.%d", directory, meeting, rank);
    FILE *file = fopen(path, "w");
    CHECK(file && fclose(file) == 0);
    const time_t begin = time(NULL);
    int seen = 0;
    while (seen < size && time(NULL) - begin < PATIENCE)
        seen += is_there(meeting, seen);
    CHECK(seen == size);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    directory = argv[1];
    meetings = argv[2];
    double times[4];
    /* After a call of all. */
    MPI_Barrier(MPI_COMM_WORLD);
    meet(0);
    /* After a call that concerns the rank alone. */
    MPI_Barrier(MPI_COMM_WORLD);
    int length;
    char name[MPI_MAX_PROCESSOR_NAME];
    MPI_Get_processor_name(name, &length);
    meet(1);
    /* After a look at the clock. */
    MPI_Barrier(MPI_COMM_WORLD);
    times[0] = MPI_Wtime();
    meet(2);
    times[1] = MPI_Wtime();
    /* After a word about the time of the computation. */
    MPI_Barrier(MPI_COMM_WORLD);
    times[2] = MPI_Wtime();
    SME_COMPUTE(1e-3);
    meet(3);
    MPI_Barrier(MPI_COMM_WORLD);
    times[3] = MPI_Wtime();
    printf("%d: %.9f %.9f %.9f\n", rank, times[1] - times[0], times[2] - times[1],
           times[3] - times[2]);
    MPI_Finalize();
    return 0;
}
