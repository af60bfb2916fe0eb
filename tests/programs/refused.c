/* The calls that docs/limits.md says are not supported: prints the class that each returns. Reads
   and writes a file of the name that it is given. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rank;

/* Prints the name of a call and of the class of the error that it has returned. */
static void says(const char *name, int code)
{
    int class, length;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Error_class(code, &class);
    MPI_Error_string(class, text, &length);
    if (rank == 0)
        printf("%s %s\n", name, class == MPI_SUCCESS ? "MPI_SUCCESS" :
               class == MPI_ERR_UNSUPPORTED_OPERATION ? "MPI_ERR_UNSUPPORTED_OPERATION" :
               class == MPI_ERR_UNSUPPORTED_DATAREP ? "MPI_ERR_UNSUPPORTED_DATAREP" :
               class == MPI_ERR_RMA_SHARED ? "MPI_ERR_RMA_SHARED" :
               class == MPI_ERR_ARG ? "MPI_ERR_ARG" : text);
}

static int extent(MPI_Datatype type, MPI_Aint *bytes, void *extra)
{
    *bytes = 8;
    return MPI_SUCCESS;
}

static int within = MPI_SUCCESS;

/* An operation that makes a call which needs another rank. */
static void meets(void *in, void *inout, int *count, MPI_Datatype *type)
{
    within = MPI_Barrier(MPI_COMM_SELF);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);

    int code = MPI_Register_datarep("own", MPI_CONVERSION_FN_NULL, MPI_CONVERSION_FN_NULL, extent, NULL);
    says("MPI_Register_datarep", code);

    MPI_Op op;
    int in = rank, out;
    MPI_Op_create(meets, 1, &op);
    MPI_Allreduce(&in, &out, 1, MPI_INT, op, MPI_COMM_WORLD);
    MPI_Op_free(&op);
    says("MPI_Barrier", within);

    MPI_File file;
    MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    for (int which = 0; which < 3; which++) {
        char *name[] = {"native", "internal", "external32"};
        code = MPI_File_set_view(file, 0, MPI_INT, MPI_INT, name[which], MPI_INFO_NULL);
        says(name[which], code);
    }
    MPI_File_close(&file);

    void *memory;
    MPI_Win window;
    code = MPI_Win_allocate_shared(8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    says("MPI_Win_allocate_shared", code);
    code = MPI_Win_allocate_shared(8, 1, MPI_INFO_NULL, MPI_COMM_SELF, &memory, &window);
    says("MPI_Win_allocate_shared", code);
    MPI_Win_free(&window);

    for (int partitions = 65536; partitions <= 65537; partitions++) {
        MPI_Request request;
        char *bytes = calloc(partitions, 1);
        code = MPI_Psend_init(bytes, partitions, 1, MPI_CHAR, rank, 0, MPI_COMM_WORLD, MPI_INFO_NULL,
                              &request);
        says("MPI_Psend_init", code);
        if (code == MPI_SUCCESS)
            MPI_Request_free(&request);
        free(bytes);
    }
    MPI_Finalize();
    return 0;
}
