/* Processes that start others: a program that starts itself. Started with no argument it is the
   first group; with "part" and a number it is a group that has been started. */
#include <mpi.h>
#include <string.h>
#include <stdlib.h>

#include "check.h"

/* The sum of 1 over all processes on both sides of an intercommunicator. */
static int all_of(MPI_Comm both, int is_high)
{
    MPI_Comm all;
    int one = 1, sum = 0;
    MPI_Intercomm_merge(both, is_high, &all);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, all);
    MPI_Comm_free(&all);
    return sum;
}

/* A process that has been started: it knows its part, hears from its parents, and answers. */
static int child(int part, MPI_Comm parent)
{
    int *number, flag, length, told, answer, parents;
    char name[MPI_MAX_OBJECT_NAME];
    MPI_Comm again;

    MPI_Comm_get_name(parent, name, &length);
    CHECK(strcmp(name, "MPI_COMM_PARENT") == 0);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &number, &flag);
    CHECK(flag && *number == part);
    MPI_Comm_remote_size(parent, &parents);
    CHECK(all_of(parent, 1) == parents + size);
    MPI_Bcast(&told, 1, MPI_INT, 0, parent);
    answer = told + rank;
    MPI_Gather(&answer, 1, MPI_INT, NULL, 0, MPI_INT, 0, parent);
    MPI_Comm_disconnect(&parent);
    CHECK(parent == MPI_COMM_NULL);
    MPI_Comm_get_parent(&again);
    CHECK(again == MPI_COMM_NULL);
    MPI_Finalize();
    return 0;
}

/* The side of those that have had `children` started, `count` of them. */
static void meets(MPI_Comm children, int count, int root)
{
    int answers[64], told = 100, here = rank == root ? MPI_ROOT : MPI_PROC_NULL, remote;
    MPI_Comm_remote_size(children, &remote);
    CHECK(remote == count);
    CHECK(all_of(children, 0) == size + count);
    /* The children know the root of these calls as rank 0 of their parents. */
    MPI_Bcast(&told, 1, MPI_INT, here, children);
    MPI_Gather(NULL, 0, MPI_INT, answers, 1, MPI_INT, here, children);
    for (int i = 0; rank == root && i < count; i++)
        CHECK(answers[i] == 100 + i);
    MPI_Comm_disconnect(&children);
    CHECK(children == MPI_COMM_NULL);
}

int main(int argc, char **argv)
{
    MPI_Comm parent, children;
    int *universe, flag, codes[8];
    char *program = argv[0];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_parent(&parent);
    if (argc > 1) {
        CHECK(parent != MPI_COMM_NULL);
        return child(atoi(argv[2]), parent);
    }
    CHECK(parent == MPI_COMM_NULL);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &universe, &flag);
    CHECK(flag && *universe == size + 3);

    /* One part, several times: the ranks are used again, when the processes there have ended. */
    char *zero[] = {"part", "0", NULL}, *one[] = {"part", "1", NULL};
    for (int round = 0; round < 3; round++) {
        codes[0] = codes[1] = -1;
        MPI_Comm_spawn(rank == 0 ? program : NULL, rank == 0 ? zero : NULL,
                       rank == 0 ? 2 : -1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children, codes);
        CHECK(codes[0] == MPI_SUCCESS && codes[1] == MPI_SUCCESS);
        meets(children, 2, 0);
    }

    /* Two parts, one found by its directory. */
    char *commands[] = {program, strrchr(program, '/') + 1};
    char **arguments[] = {zero, one};
    int counts[] = {1, 2};
    char directory[1024];
    MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
    strcpy(directory, program);
    *strrchr(directory, '/') = 0;
    MPI_Info_create(&infos[1]);
    MPI_Info_set(infos[1], "path", directory);
    MPI_Comm_spawn_multiple(2, commands, arguments, counts, infos, 0, MPI_COMM_WORLD, &children,
                            MPI_ERRCODES_IGNORE);
    meets(children, 3, 0);
    MPI_Info_free(&infos[1]);

    /* What cannot be started is an error of all. */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int code, class;
    code = MPI_Comm_spawn(program, zero, 50, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children,
                          MPI_ERRCODES_IGNORE);
    MPI_Error_class(code, &class);
    CHECK(class == MPI_ERR_SPAWN);
    code = MPI_Comm_spawn(program, zero, 0, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &children,
                          MPI_ERRCODES_IGNORE);
    MPI_Error_class(code, &class);
    CHECK(class == MPI_ERR_SPAWN);
    code = MPI_Comm_spawn("./there-is-none", MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD,
                          &children, codes);
    MPI_Error_class(code, &class);
    CHECK(class == MPI_ERR_SPAWN);
    if (rank == 0) {
        MPI_Error_class(codes[0], &class);
        CHECK(class == MPI_ERR_SPAWN);
        printf("spawn: right\n");
    }
    MPI_Finalize();
    return 0;
}
