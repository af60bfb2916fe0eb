/* Declares the time of a computation, a quarter of a second or its argument, and prints how long
 * it was. */
#include "../../include/sme.h"
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    double begin = MPI_Wtime();
    SME_COMPUTE((argc > 1 ? atof(argv[1]) : 0.25) * (rank + 1));
    printf("%.4f\n", MPI_Wtime() - begin);
    MPI_Finalize();
    return 0;
}
