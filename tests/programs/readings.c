/* Readings of the clock on one rank that makes calls in between, and on one that waits by the clock
 * for what another one does outside MPI. The argument is a directory. */
#include "check.h"
#include <math.h>
#include <mpi.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm world = MPI_COMM_WORLD;
    int got, is_there;
    MPI_Request request;

    /* A call that takes no time. */
    MPI_Barrier(world);
    double begin = MPI_Wtime();
    MPI_Recv_init(&got, 1, MPI_INT, 0, 9, world, &request);
    double end = MPI_Wtime();
    CHECK(end > begin && end - begin < 0.2e-6);
    begin = MPI_Wtime();
    CHECK(begin > end && begin - end < 0.2e-6);
    MPI_Request_free(&request);

    /* One look, and two. */
    double looks[2];
    for (int more = 0; more < 2; more++) {
        MPI_Barrier(world);
        begin = MPI_Wtime();
        for (int look = 0; look <= more; look++)
            MPI_Iprobe(MPI_ANY_SOURCE, 9, world, &is_there, MPI_STATUS_IGNORE);
        looks[more] = MPI_Wtime() - begin;
    }
    CHECK(fabs(looks[1] - 2 * looks[0]) < 0.2e-6);

    /* The last rank leaves a file when it has heard from the one before it. */
    char path[4096];
    snprintf(path, sizeof path, "%s/file", argv[1]);
    MPI_Barrier(world);
    if (rank == 0) {
        begin = MPI_Wtime();
        while (access(path, F_OK) != 0 && MPI_Wtime() < begin + 0.1)
            ;
        CHECK(MPI_Wtime() < begin + 0.1);
    } else if (rank == size - 2) {
        MPI_Send(&rank, 1, MPI_INT, size - 1, 1, world);
    } else if (rank == size - 1) {
        MPI_Recv(&got, 1, MPI_INT, size - 2, 1, world, MPI_STATUS_IGNORE);
        FILE *file = fopen(path, "w");
        CHECK(file && fclose(file) == 0);
    }
    MPI_Finalize();
    return 0;
}
