// Writes a line to a buffer that is not C's, and receives what no rank sends.
#include <mpi.h>

#include <iostream>

int main(int argc, char **argv) {
    std::ios::sync_with_stdio(false);
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    std::cout << "rank " << rank << " waits\n";
    MPI_Recv(&rank, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
}
