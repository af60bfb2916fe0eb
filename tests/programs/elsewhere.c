/* Ranks that wait for each other by something other than MPI: a connection of sockets. */
#include <arpa/inet.h>
#include <mpi.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

/* Makes calls, which take simulated time. */
static void calls(void)
{
    for (int i = 0; i < 100; i++)
        MPI_Sendrecv(&i, 1, MPI_INT, 1, 0, &(int){0}, 1, MPI_INT, 1, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
}

int main(int argc, char **argv)
{
    int rank, is_right = 0;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int own = socket(AF_INET, SOCK_STREAM, 0);
    if (rank == 0) {
        bind(own, (struct sockaddr *)&address, sizeof address);
        listen(own, 1);
        getsockname(own, (struct sockaddr *)&address, &length);
    }
    MPI_Bcast(&address, sizeof address, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        char byte = 0;
        int other = accept(own, NULL, NULL);
        is_right = recv(other, &byte, 1, 0) == 1 && byte == 'x';
        close(other);
    } else if (rank == 1) {
        calls();
        is_right = connect(own, (struct sockaddr *)&address, sizeof address) == 0;
        calls();
        is_right = is_right && send(own, "x", 1, 0) == 1;
    } else {
        is_right = 1;
    }
    close(own);
    int all = 0;
    MPI_Reduce(&is_right, &all, 1, MPI_INT, MPI_LAND, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("elsewhere: %s\n", all ? "right" : "WRONG");
    MPI_Finalize();
    return 0;
}
