/* Communication in partitions round a ring. Prints "WRONG ..." where a result is not the one
 * that it must be. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "check.h"

enum { SENT = 6, RECEIVED = 4, WORDS = 24000 };

static int sent[WORDS], received[WORDS];

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int next = (rank + 1) % size, before = (rank + size - 1) % size, flag, count;
    MPI_Request requests[2];
    MPI_Psend_init(sent, SENT, WORDS / SENT, MPI_INT, next, 3, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
    MPI_Precv_init(received, RECEIVED, WORDS / RECEIVED, MPI_INT, before, 3, MPI_COMM_WORLD,
                   MPI_INFO_NULL, &requests[1]);
    CHECK(MPI_Pready(0, requests[0]) == MPI_ERR_REQUEST);
    CHECK(MPI_Parrived(requests[1], 0, &flag) == MPI_SUCCESS && flag);
    for (int round = 0; round < 3; round++) {
        MPI_Status statuses[2];
        memset(received, 0, sizeof received);
        MPI_Startall(2, requests);
        CHECK(MPI_Start(&requests[0]) == MPI_ERR_REQUEST);
        CHECK(MPI_Pready(SENT, requests[0]) == MPI_ERR_ARG);
        for (int i = 0; i < WORDS; i++)
            sent[i] = rank * WORDS + i + round;
        /* No message between others, and none that another call finds. */
        int other = -1, list[2] = {4, 0};
        MPI_Sendrecv(&rank, 1, MPI_INT, next, 3, &other, 1, MPI_INT, before, 3, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        CHECK(other == before);
        MPI_Pready(5, requests[0]);
        CHECK(MPI_Pready(5, requests[0]) == MPI_ERR_ARG);
        MPI_Pready_list(2, list, requests[0]);
        MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
        CHECK(!flag && MPI_Request_free(&requests[0]) == MPI_ERR_REQUEST);
        /* The receiver's last partition has the sender's last one and half of the one before. */
        do
            MPI_Parrived(requests[1], 3, &flag);
        while (!flag);
        for (int i = WORDS / 4 * 3; i < WORDS; i++)
            CHECK(received[i] == before * WORDS + i + round);
        if (size == 1) {
            MPI_Parrived(requests[1], 1, &flag);
            CHECK(!flag);
        }
        MPI_Pready_range(1, 3, requests[0]);
        MPI_Waitall(2, requests, statuses);
        CHECK(requests[0] != MPI_REQUEST_NULL && requests[1] != MPI_REQUEST_NULL);
        MPI_Get_count(&statuses[1], MPI_INT, &count);
        CHECK(count == WORDS && statuses[1].MPI_SOURCE == before && statuses[1].MPI_TAG == 3);
        for (int i = 0; i < WORDS; i++)
            CHECK(received[i] == before * WORDS + i + round);
    }
    CHECK(MPI_Parrived(requests[1], RECEIVED, &flag) == MPI_ERR_ARG);
    CHECK(MPI_Parrived(requests[0], 0, &flag) == MPI_ERR_REQUEST);
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    CHECK(requests[0] == MPI_REQUEST_NULL && requests[1] == MPI_REQUEST_NULL);
    CHECK(MPI_Precv_init(received, 1, 1, MPI_INT, MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, MPI_INFO_NULL,
                         &requests[1]) == MPI_ERR_RANK);
    MPI_Finalize();
    if (rank == 0)
        printf("partitions: right\n");
    return 0;
}
