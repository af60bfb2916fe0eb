/* A thread of rank 0 watches memory of a window that rank 1 writes to while rank 0 is in a call.
   Says WRONG where something is not as it should be. The argument is a file by which the thread
   tells. */
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static volatile int *memory;
static const char *file;

static void *watch(void *nothing)
{
    while (!memory[1])
        usleep(1000);
    fclose(fopen(file, "w"));
    return nothing;
}

int main(int argc, char **argv)
{
    int provided, rank, one = 1, looks = 0;
    int *own;
    pthread_t thread;
    MPI_Win window;
    file = argv[1];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Win_allocate(2 * sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &own, &window);
    own[0] = own[1] = 0;
    memory = own;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        pthread_create(&thread, NULL, watch, NULL);
        MPI_Recv(&one, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        pthread_join(thread, NULL);
    } else {
        MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
        for (int place = 0; place < 2; place++) {
            MPI_Put(&one, 1, MPI_INT, 0, place, 1, MPI_INT, window);
            MPI_Win_flush(0, window);
        }
        MPI_Win_unlock(0, window);
        while (access(file, F_OK) && looks++ < 10000)
            usleep(1000);
        if (access(file, F_OK))
            printf("WRONG: the thread sees nothing\n");
        MPI_Send(&one, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
        printf("ends\n");
    }
    MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
