/* Measures how fast MPI calls are simulated: in each round every rank makes three calls, and sends
 * one message round a ring. Its argument is the number of rounds. Prints wall time, not simulated
 * time. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + 1e-9 * time.tv_nsec;
}

int main(int argc, char **argv)
{
    int rank, ranks, got, rounds = argc > 1 ? atoi(argv[1]) : 1000;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = now();
    for (int round = 0; round < rounds; round++) {
        MPI_Request request;
        MPI_Isend(&rank, 1, MPI_INT, next, 0, MPI_COMM_WORLD, &request);
        MPI_Recv(&got, 1, MPI_INT, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    double seconds = now() - begin, messages = (double)rounds * ranks;
    if (rank == 0)
        printf("%.2f us per call, %.0f messages/s\n", 1e6 * seconds / (3 * messages), messages / seconds);
    MPI_Finalize();
    return 0;
}
