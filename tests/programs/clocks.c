/* Reads the system's clocks around messages, sleeps, and MPI_Init and MPI_Finalize. Prints
 * "WRONG ..." where they do not tell simulated time, or do where they should not. */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

/* A time that simulated clocks do not come to, and the clocks of any computer are past: 2001. */
#define TODAY 1e9

static double of_clock(clockid_t clock)
{
    struct timespec now;
    CHECK(clock_gettime(clock, &now) == 0);
    return now.tv_sec + 1e-9 * now.tv_nsec;
}

static double of_day(void)
{
    struct timeval now;
    CHECK(gettimeofday(&now, NULL) == 0);
    return now.tv_sec + 1e-6 * now.tv_usec;
}

static void add(void *in, void *inout, int *count, MPI_Datatype *type)
{
    double before = of_clock(CLOCK_MONOTONIC);
    usleep(1);
    CHECK(of_clock(CLOCK_MONOTONIC) > before && before >= 1 && before < TODAY);
    for (int i = 0; i < *count; i++)
        ((int *)inout)[i] += ((int *)in)[i];
}

static void *in_thread(void *nothing)
{
    CHECK(of_clock(CLOCK_REALTIME) > TODAY);
    CHECK(usleep(10) == 0);
    return NULL;
}

static void ring(void)
{
    int next = (rank + 1) % size, before = (rank + size - 1) % size, token = rank;
    double wtime = MPI_Wtime(), day = of_day(), clock = of_clock(CLOCK_MONOTONIC);
    for (int i = 0; i < 100; i++)
        MPI_Sendrecv_replace(&token, 1, MPI_INT, next, 0, before, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    clock = of_clock(CLOCK_MONOTONIC) - clock;
    day = of_day() - day;
    wtime = MPI_Wtime() - wtime;
    CHECK(clock > 0 && clock < day + 1e-6 && day < wtime + 1e-6 && wtime < clock + 5e-6);
    printf("rank %d: %.9f %.6f %.9f s\n", rank, wtime, day, clock);
}

static void clocks(void)
{
    const clockid_t all[] = {CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, CLOCK_REALTIME_COARSE,
                             CLOCK_MONOTONIC_COARSE, CLOCK_BOOTTIME, CLOCK_TAI};
    double last = MPI_Wtime(), told;
    for (unsigned i = 0; i < sizeof all / sizeof *all; i++) {
        told = of_clock(all[i]);
        CHECK(told >= last && told < last + 1e-4);
        last = told;
    }
    struct timespec now;
    CHECK(timespec_get(&now, TIME_UTC) == TIME_UTC && now.tv_sec == (long)last);
    CHECK(time(NULL) == (long)last);
    CHECK(of_clock(CLOCK_PROCESS_CPUTIME_ID) < TODAY);
    /* A loop that waits for a clock ends. */
    for (double begin = of_day(); of_day() < begin + 2e-5;)
        ;
}

static void sleeps(void)
{
    double begin = MPI_Wtime();
    struct timespec wanted = {2, 500000000}, wrong = {0, 1000000000}, until;
    CHECK(sleep(3) == 0);
    CHECK(usleep(250000) == 0);
    CHECK(nanosleep(&wanted, NULL) == 0);
    CHECK(nanosleep(&wrong, NULL) == -1);
    CHECK(clock_nanosleep(CLOCK_MONOTONIC, 0, &wanted, NULL) == 0);
    CHECK(clock_gettime(CLOCK_REALTIME, &until) == 0);
    until.tv_sec += 4;
    CHECK(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, NULL) == 0);
    CHECK(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, NULL) == 0);
    double slept = MPI_Wtime() - begin;
    CHECK(slept >= 12.25 && slept < 12.2501);
}

int main(int argc, char **argv)
{
    CHECK(of_day() > TODAY && of_clock(CLOCK_MONOTONIC) > 0 && time(NULL) > TODAY);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    ring();
    clocks();
    sleeps();

    MPI_Op op;
    int sum = -1;
    MPI_Op_create(add, 1, &op);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, op, MPI_COMM_WORLD);
    CHECK(sum == size * (size - 1) / 2);
    MPI_Op_free(&op);

    pthread_t thread;
    pthread_create(&thread, NULL, in_thread, NULL);
    pthread_join(thread, NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(of_day() > TODAY && usleep(10) == 0 ? 0 : 1);
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);

    double last = of_day();
    MPI_Finalize();
    CHECK(of_day() >= last && of_day() < TODAY && sleep(1) == 0 && of_day() >= last + 1);
    printf("rank %d: %.6f s in the end\n", rank, of_day());
    return 0;
}
