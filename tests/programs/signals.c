/* Functions for signals: one reads MPI_Wtime in the midst of other calls, one lets a call write to
   memory that was protected, as collectors of garbage do. Says WRONG where something is not as it
   should be. */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/time.h>

static volatile double before, now;
static volatile int readings, steps_back;

static void reads(int number)
{
    now = MPI_Wtime();
    steps_back += now < before;
    before = now;
    readings++;
}

#define BYTES 4096
static int *page;
static volatile int faults;

static void unprotects(int number)
{
    faults++;
    mprotect(page, BYTES, PROT_READ | PROT_WRITE);
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_handler = reads, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, 500}, {0, 500}};
    int rank, ranks, sent, received, wrong = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    page = mmap(NULL, BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    signal(SIGSEGV, unprotects);
    MPI_Comm_size(MPI_COMM_WORLD, page);
    if (faults != 1 || *page != ranks)
        printf("WRONG: %d faults, %d ranks\n", faults, *page);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int step = 0; step < 2000; step++) {
        sent = rank + step;
        MPI_Sendrecv(&sent, 1, MPI_INT, (rank + 1) % ranks, 0, &received, 1, MPI_INT,
                     (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        wrong += received != (rank + ranks - 1) % ranks + step;
        MPI_Wtime();
    }
    often.it_value.tv_usec = 0;
    setitimer(ITIMER_REAL, &often, NULL);
    if (wrong || steps_back)
        printf("WRONG: %d messages, %d readings\n", wrong, steps_back);
    printf("%s\n", readings ? "has read" : "has not read");
    MPI_Finalize();
    return 0;
}
