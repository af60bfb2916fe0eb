/* Ends as its argument says, with a line of each rank in a buffer; with "spawn" and a program
   starts two processes of that. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* An operation that gives up. */
static void gives_up(void *in, void *inout, int *count, MPI_Datatype *type)
{
    MPI_Abort(MPI_COMM_WORLD, 9);
}

/* An error handler that makes the mistake again. */
static void repeats(MPI_Comm *comm, int *code, ...)
{
    MPI_Send(code, 1, MPI_INT, 99, 0, *comm);
}

/* Memory that cannot be written to. */
static const int constant = 1;

/* A function for a signal that makes a call. */
static void asks(int number)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
}

/* An operation that performs itself. */
static MPI_Op itself;

static void performs_itself(void *in, void *inout, int *count, MPI_Datatype *type)
{
    MPI_Reduce_local(in, inout, *count, *type, itself);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    int rank;
    MPI_Datatype type;
    MPI_Comm children;
    MPI_Op op;
    MPI_Errhandler handler;
    int other = 0;
    void *memory;
    if (!strcmp(how, "early"))
        return 0;
    if (!strcmp(how, "before"))
        MPI_Barrier(MPI_COMM_WORLD);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    printf("rank %d has begun\n", rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (!strcmp(how, "spawn"))
        MPI_Comm_spawn(argv[2], argv + 3, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children,
                       MPI_ERRCODES_IGNORE);
    if (rank == 1) {
        if (!strcmp(how, "abort"))
            MPI_Abort(MPI_COMM_WORLD, 7);
        if (!strcmp(how, "operation")) {
            MPI_Op_create(gives_up, 1, &op);
            MPI_Reduce_local(&rank, &other, 1, MPI_INT, op);
        }
        if (!strcmp(how, "handler")) {
            MPI_Comm_create_errhandler(repeats, &handler);
            MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
            MPI_Send(&rank, 1, MPI_INT, 99, 0, MPI_COMM_WORLD);
        }
        if (!strcmp(how, "itself")) {
            MPI_Op_create(performs_itself, 1, &itself);
            MPI_Reduce_local(&rank, &other, 1, MPI_INT, itself);
        }
        if (!strcmp(how, "crash"))
            abort();
        if (!strcmp(how, "exit"))
            exit(3);
        if (!strcmp(how, "silent"))
            exit(0);
        if (!strcmp(how, "error"))
            MPI_Send(&rank, 1, MPI_INT, 99, 0, MPI_COMM_WORLD);
        if (!strcmp(how, "memory"))
            MPI_Alloc_mem((MPI_Aint)1 << 60, MPI_INFO_NULL, &memory);
        if (!strcmp(how, "constant"))
            MPI_Comm_rank(MPI_COMM_WORLD, (int *)&constant);
        if (!strcmp(how, "signal")) {
            signal(SIGALRM, asks);
            alarm(1);
            MPI_Recv(&rank, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        if (!strcmp(how, "huge"))
            MPI_Send(&rank, 2147483647, MPI_LONG_LONG, 0, 0, MPI_COMM_WORLD);
        if (!strcmp(how, "wild"))
            MPI_Send((void *)8, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
        if (!strcmp(how, "null"))
            MPI_Comm_size(MPI_COMM_WORLD, NULL);
        if (!strcmp(how, "handle"))
            MPI_Barrier((MPI_Comm)12345);
        if (!strcmp(how, "type"))
            MPI_Type_vector(1 << 30, 1 << 30, 1 << 30, MPI_LONG_LONG, &type);
        if (!strcmp(how, "fork") && fork() == 0)
            MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        if (!strcmp(how, "exec"))
            execl("/bin/true", "true", (char *)0);
    }
    if (!strcmp(how, "signal") && rank == 0)
        sleep(20);
    if (!strcmp(how, "much")) {
        for (int line = 0; line < 50000; line++)
            printf("rank %d line %d\n", rank, line);
        MPI_Recv(&rank, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    if (!strcmp(how, "computing")) {
        if (rank > 0)
            sleep(20);
        MPI_Send(&rank, 1, MPI_INT, 99, 0, MPI_COMM_WORLD);
    }
    if (!strcmp(how, "deadlock"))
        MPI_Recv(&rank, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    if (!strcmp(how, "after"))
        MPI_Barrier(MPI_COMM_WORLD);
    return 0;
}
