/* Functions that calls call, and that make calls themselves, in which others are called: each has
   the arguments that it was given until it returns. */
#include <mpi.h>
#include <string.h>

#include "check.h"

static MPI_Comm one, two;
static int told_one, told_two;

/* The class of an error's code. */
static int class_of(int code) {
    int class;
    MPI_Error_class(code, &class);
    return class;
}

static void handles_two(MPI_Comm *comm, int *code, ...) {
    CHECK(*comm == two && class_of(*code) == MPI_ERR_TAG);
    told_two++;
}

/* Makes calls of many kinds, one of which fails on another communicator. */
static void handles_one(MPI_Comm *comm, int *code, ...) {
    int number = 1, other = 0, flag, length;
    char name[MPI_MAX_PROCESSOR_NAME];
    MPI_Group group;
    MPI_Win window;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    told_one++;
    MPI_Send(&number, 1, MPI_INT, 0, -5, two);
    CHECK(*comm == one && class_of(*code) == MPI_ERR_RANK);
    MPI_Irecv(&other, 1, MPI_INT, 0, 3, MPI_COMM_SELF, &requests[0]);
    MPI_Isend(&number, 1, MPI_INT, 0, 3, MPI_COMM_SELF, &requests[1]);
    MPI_Waitall(2, requests, statuses);
    CHECK(other == 1);
    MPI_Win_create(&other, sizeof other, 1, MPI_INFO_NULL, MPI_COMM_SELF, &window);
    CHECK(MPI_Win_get_group(window, &group) == MPI_SUCCESS);
    MPI_Group_free(&group);
    MPI_Win_free(&window);
    CHECK(MPI_Barrier(MPI_COMM_SELF) == MPI_SUCCESS);
    CHECK(MPI_Get_processor_name(name, &length) == MPI_SUCCESS && (int)strlen(name) == length);
    CHECK(MPI_Iprobe(0, 3, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && !flag);
    CHECK(MPI_Wtime() > 1);
}

static void handlers(void) {
    MPI_Errhandler first, second;
    int number = 0;
    MPI_Comm_create_errhandler(handles_one, &first);
    MPI_Comm_create_errhandler(handles_two, &second);
    MPI_Comm_dup(MPI_COMM_WORLD, &one);
    MPI_Comm_dup(MPI_COMM_WORLD, &two);
    MPI_Comm_set_errhandler(one, first);
    MPI_Comm_set_errhandler(two, second);
    CHECK(class_of(MPI_Send(&number, 1, MPI_INT, size, 0, one)) == MPI_ERR_RANK);
    CHECK(told_one == 1 && told_two == 1);
    CHECK(MPI_Comm_call_errhandler(one, MPI_ERR_RANK) == MPI_SUCCESS);
    CHECK(told_one == 2 && told_two == 2);
    MPI_Errhandler_free(&first);
    MPI_Errhandler_free(&second);
    MPI_Comm_free(&one);
    MPI_Comm_free(&two);
}

static MPI_Op adds, mirrors;
static int told_local;

/* Told of errors of calls within an operation. */
static void handles_local(MPI_Comm *comm, int *code, ...) {
    const int class = class_of(*code);
    CHECK(*comm == two && (class == MPI_ERR_TOPOLOGY || class == MPI_ERR_RANK));
    told_local++;
}

static void add(void *in, void *inout, int *count, MPI_Datatype *type) {
    for (int i = 0; i < *count; i++)
        ((int *)inout)[i] += ((int *)in)[i];
}

/* Adds by the other operation, element by element, as another type. */
static void add_by_another(void *in, void *inout, int *count, MPI_Datatype *type) {
    int length, version, subversion, provided;
    char name[MPI_MAX_PROCESSOR_NAME], library[MPI_MAX_LIBRARY_VERSION_STRING];
    const int before = *count;
    int place;
    /* The error of a call goes to the handler of its own communicator; that of one about a group to
       the handler of MPI_COMM_SELF, which returns. */
    CHECK(class_of(MPI_Cart_coords(two, 0, 1, &place)) == MPI_ERR_TOPOLOGY);
    CHECK(MPI_Comm_call_errhandler(two, MPI_ERR_RANK) == MPI_SUCCESS);
    CHECK(class_of(MPI_Group_size(MPI_GROUP_NULL, &place)) == MPI_ERR_GROUP);
    for (int i = 0; i < *count; i++)
        MPI_Reduce_local((int *)in + 2 * i, (int *)inout + 2 * i, 2, MPI_INT, adds);
    CHECK(*count == before && *type == MPI_2INT);
    CHECK(MPI_Get_processor_name(name, &length) == MPI_SUCCESS && (int)strlen(name) == length);
    CHECK(MPI_Get_library_version(library, &length) == MPI_SUCCESS);
    CHECK(MPI_Get_version(&version, &subversion) == MPI_SUCCESS && version >= 3);
    CHECK(MPI_Query_thread(&provided) == MPI_SUCCESS && provided == MPI_THREAD_SERIALIZED);
    CHECK(MPI_Is_thread_main(&length) == MPI_SUCCESS && length);
}

static void operations(void) {
    int given[6], sum[6];
    MPI_Errhandler handler;
    MPI_Comm_create_errhandler(handles_local, &handler);
    MPI_Comm_dup(MPI_COMM_WORLD, &two);
    MPI_Comm_set_errhandler(two, handler);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (int i = 0; i < 6; i++)
        given[i] = rank + i;
    MPI_Op_create(add, 1, &adds);
    MPI_Op_create(add_by_another, 1, &mirrors);
    MPI_Allreduce(given, sum, 3, MPI_2INT, mirrors, MPI_COMM_WORLD);
    for (int i = 0; i < 6; i++)
        CHECK(sum[i] == size * (size - 1) / 2 + size * i);
    MPI_Reduce_local(given, sum, 3, MPI_2INT, mirrors);
    CHECK(told_local >= 2 && told_local % 2 == 0);
    MPI_Op_free(&adds);
    MPI_Op_free(&mirrors);
    MPI_Errhandler_free(&handler);
    MPI_Comm_free(&two);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

static int keys[2];
static MPI_Comm other;
static char values[2][4];

static int copies_plainly(MPI_Comm comm, int key, void *extra, void *value, void *copy, int *flag) {
    *(void **)copy = values[1];
    *flag = 1;
    return MPI_SUCCESS;
}

/* Duplicates another communicator, whose attribute is copied meanwhile; has no copy itself. */
static int copies_late(MPI_Comm comm, int key, void *extra, void *value, void *copy, int *flag) {
    MPI_Comm duplicate;
    void *found = NULL;
    int is_there;
    MPI_Comm_dup(other, &duplicate);
    MPI_Comm_get_attr(duplicate, keys[1], &found, &is_there);
    CHECK(is_there && found == values[1]);
    MPI_Comm_free(&duplicate);
    CHECK(value == values[0]);
    *flag = *flag != 0;
    return MPI_SUCCESS;
}

static void attributes(void) {
    MPI_Comm first, second;
    void *found;
    int is_there;
    MPI_Comm_create_keyval(copies_late, MPI_COMM_NULL_DELETE_FN, &keys[0], NULL);
    MPI_Comm_create_keyval(copies_plainly, MPI_COMM_NULL_DELETE_FN, &keys[1], NULL);
    MPI_Comm_dup(MPI_COMM_SELF, &other);
    MPI_Comm_set_attr(other, keys[1], values[0]);
    MPI_Comm_dup(MPI_COMM_SELF, &first);
    MPI_Comm_set_attr(first, keys[0], values[0]);
    MPI_Comm_dup(first, &second);
    MPI_Comm_get_attr(second, keys[0], &found, &is_there);
    CHECK(!is_there);
    MPI_Comm_free(&first);
    MPI_Comm_free(&second);
    MPI_Comm_free(&other);
    for (int i = 0; i < 2; i++)
        MPI_Comm_free_keyval(&keys[i]);
}

/* Frees the key of the attribute that ends. */
static int frees_key(MPI_Comm comm, int key, void *value, void *extra) {
    ++*(int *)extra;
    CHECK(MPI_Comm_free_keyval(&key) == MPI_SUCCESS && key == MPI_KEYVAL_INVALID);
    return MPI_SUCCESS;
}

/* A key may be freed again as long as an attribute has it, and is told of each one's end. */
static void keys_that_are_freed(void) {
    MPI_Comm first, second;
    int key, copy, ends = 0;
    MPI_Comm_dup(MPI_COMM_SELF, &first);
    MPI_Comm_dup(MPI_COMM_SELF, &second);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, frees_key, &key, &ends);
    MPI_Comm_set_attr(first, key, values[0]);
    MPI_Comm_set_attr(second, key, values[1]);
    MPI_Comm_free(&first);
    copy = key;
    CHECK(MPI_Comm_free_keyval(&copy) == MPI_SUCCESS);
    copy = key;
    CHECK(MPI_Comm_free_keyval(&copy) == MPI_SUCCESS);
    MPI_Comm_free(&second);
    CHECK(ends == 2);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    CHECK(class_of(MPI_Comm_free_keyval(&key)) == MPI_ERR_KEYVAL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

static int type_keys[2];
static MPI_Datatype another;

/* Duplicates another datatype, whose attribute is copied meanwhile; has no copy itself. */
static int copies_type(MPI_Datatype type, int key, void *extra, void *value, void *copy,
                       int *flag) {
    MPI_Datatype duplicate;
    void *found = NULL;
    int is_there;
    MPI_Type_dup(another, &duplicate);
    MPI_Type_get_attr(duplicate, type_keys[1], &found, &is_there);
    CHECK(is_there && found == values[1]);
    MPI_Type_free(&duplicate);
    CHECK(value == values[0]);
    *flag = *flag != 0;
    return MPI_SUCCESS;
}

static int copies_type_plainly(MPI_Datatype type, int key, void *extra, void *value, void *copy,
                               int *flag) {
    *(void **)copy = values[1];
    *flag = 1;
    return MPI_SUCCESS;
}

static void datatypes(void) {
    MPI_Datatype first, second;
    void *found;
    int is_there;
    MPI_Type_create_keyval(copies_type, MPI_TYPE_NULL_DELETE_FN, &type_keys[0], NULL);
    MPI_Type_create_keyval(copies_type_plainly, MPI_TYPE_NULL_DELETE_FN, &type_keys[1], NULL);
    MPI_Type_contiguous(2, MPI_INT, &another);
    MPI_Type_set_attr(another, type_keys[1], values[0]);
    MPI_Type_contiguous(3, MPI_INT, &first);
    MPI_Type_set_attr(first, type_keys[0], values[0]);
    MPI_Type_dup(first, &second);
    MPI_Type_get_attr(second, type_keys[0], &found, &is_there);
    CHECK(!is_there);
    MPI_Type_free(&first);
    MPI_Type_free(&second);
    MPI_Type_free(&another);
    for (int i = 0; i < 2; i++)
        MPI_Type_free_keyval(&type_keys[i]);
}

int main(int argc, char **argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    handlers();
    operations();
    attributes();
    keys_that_are_freed();
    datatypes();
    if (rank == 0)
        printf("callbacks: right\n");
    MPI_Finalize();
    return 0;
}
