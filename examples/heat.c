/* Heat spreads along a rod that is cut into a piece for each rank: an MPI program that knows of no
 * simulator. Build it with MPICH's compiler: mpicc -o heat examples/heat.c */
#include <mpi.h>
#include <stdio.h>

#define CELLS 1000
#define STEPS 100

int main(int argc, char **argv)
{
    static double now[CELLS + 2], next[CELLS + 2];
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int left = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    int right = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
    if (rank == 0)
        now[1] = 1000;
    double begin = MPI_Wtime();
    for (int step = 0; step < STEPS; step++) {
        MPI_Sendrecv(&now[1], 1, MPI_DOUBLE, left, 0, &now[CELLS + 1], 1, MPI_DOUBLE, right, 0,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Sendrecv(&now[CELLS], 1, MPI_DOUBLE, right, 1, &now[0], 1, MPI_DOUBLE, left, 1,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (left == MPI_PROC_NULL)
            now[0] = now[1];
        if (right == MPI_PROC_NULL)
            now[CELLS + 1] = now[CELLS];
        for (int i = 1; i <= CELLS; i++)
            next[i] = now[i] + 0.25 * (now[i - 1] - 2 * now[i] + now[i + 1]);
        for (int i = 1; i <= CELLS; i++)
            now[i] = next[i];
    }
    double time = MPI_Wtime() - begin, mine = 0, all;
    for (int i = 1; i <= CELLS; i++)
        mine += now[i];
    MPI_Reduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("heat %.6f, %.3f us a step\n", all, 1e6 * time / STEPS);
    MPI_Finalize();
    return 0;
}
