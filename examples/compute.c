/* Ranks that compute between barriers, 300 million additions each time: prints how long STEPS of
 * that take on this computer.
 *
 *     mpicc -O1 -o compute compute.c
 *     sme mpi run --machine scc -n 8 ./compute 4
 */
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

static double compute(void)
{
    double sum = 0;
    for (long i = 0; i < 300000000; i++)
        sum += 0.5 * i;
    return sum;
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    const int steps = argc > 1 ? atoi(argv[1]) : 4;
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = now();
    volatile double result;
    for (int step = 0; step < steps; step++) {
        result = compute();
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (rank == 0)
        printf("%.2f s\n", now() - begin);
    MPI_Finalize();
    return 0;
}
