/* The tool interface, before MPI_Init, between it and MPI_Finalize, and after that. Prints
 * "WRONG ..." where a result is not the one that it must be. */
#include <mpi.h>
#include <stdio.h>

#define CHECK(condition)                                        \
    do {                                                        \
        if (!(condition))                                       \
            printf("WRONG line %d: %s\n", __LINE__, #condition); \
    } while (0)

static void look(void)
{
    int number = -1, index, length = 0, update, count, verbosity, class, bind, readonly, continuous, atomic;
    MPI_Datatype type;
    MPI_T_enum values;
    CHECK(MPI_T_cvar_get_num(&number) == MPI_SUCCESS && number == 0);
    number = -1;
    CHECK(MPI_T_pvar_get_num(&number) == MPI_SUCCESS && number == 0);
    number = -1;
    CHECK(MPI_T_category_get_num(&number) == MPI_SUCCESS && number == 0);
    number = -1;
    CHECK(MPI_T_event_get_num(&number) == MPI_SUCCESS && number == 0);
    number = -1;
    CHECK(MPI_T_source_get_num(&number) == MPI_SUCCESS && number == 0);
    CHECK(MPI_T_category_changed(&update) == MPI_SUCCESS && update == 0);
    CHECK(MPI_T_pvar_get_info(0, NULL, &length, &verbosity, &class, &type, &values, NULL, &length, &bind,
                              &readonly, &continuous, &atomic) == MPI_T_ERR_INVALID_INDEX);
    CHECK(MPI_T_category_get_info(-3, NULL, &length, NULL, &length, &count, &count, &count) ==
          MPI_T_ERR_INVALID_INDEX);
    CHECK(MPI_T_cvar_get_index("eager", &index) == MPI_T_ERR_INVALID_NAME);
    CHECK(MPI_T_enum_get_info(MPI_T_ENUM_NULL, &number, NULL, &length) == MPI_T_ERR_INVALID_HANDLE);
    CHECK(MPI_T_cvar_read(MPI_T_CVAR_HANDLE_NULL, &number) == MPI_T_ERR_INVALID_HANDLE);
    CHECK(MPI_T_cvar_get_num(NULL) == MPI_T_ERR_INVALID);

    MPI_T_pvar_session session, other = MPI_T_PVAR_SESSION_NULL;
    MPI_T_pvar_handle handle = MPI_T_PVAR_HANDLE_NULL;
    CHECK(MPI_T_pvar_session_create(&session) == MPI_SUCCESS && session != MPI_T_PVAR_SESSION_NULL);
    CHECK(MPI_T_pvar_handle_alloc(session, 0, NULL, &handle, &count) == MPI_T_ERR_INVALID_INDEX);
    CHECK(MPI_T_pvar_handle_alloc(other, 0, NULL, &handle, &count) == MPI_T_ERR_INVALID_SESSION);
    CHECK(MPI_T_pvar_start(session, MPI_T_PVAR_ALL_HANDLES) == MPI_SUCCESS);
    CHECK(MPI_T_pvar_start(session, handle) == MPI_T_ERR_INVALID_HANDLE);
    CHECK(MPI_T_pvar_read(session, handle, &number) == MPI_T_ERR_INVALID_HANDLE);
    CHECK(MPI_T_pvar_session_free(&session) == MPI_SUCCESS && session == MPI_T_PVAR_SESSION_NULL);
    CHECK(MPI_T_pvar_session_free(&session) == MPI_T_ERR_INVALID_SESSION);
}

int main(int argc, char **argv)
{
    int provided = -1, number;
    CHECK(MPI_T_cvar_get_num(&number) == MPI_T_ERR_NOT_INITIALIZED);
    CHECK(MPI_T_finalize() == MPI_T_ERR_NOT_INITIALIZED);
    CHECK(MPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS && provided == MPI_THREAD_SINGLE);
    look();
    /* Its errors end no job, though those of others do. */
    MPI_Init(&argc, &argv);
    look();
    CHECK(MPI_T_init_thread(MPI_THREAD_MULTIPLE, &provided) == MPI_SUCCESS);
    CHECK(MPI_T_finalize() == MPI_SUCCESS);
    look();
    MPI_Finalize();
    look();
    CHECK(MPI_T_finalize() == MPI_SUCCESS);
    CHECK(MPI_T_finalize() == MPI_T_ERR_NOT_INITIALIZED);
    printf("tools: right\n");
    return 0;
}
