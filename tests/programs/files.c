/* Files: views of ranks, all pointers, what is asked for, and errors. Its argument is a directory,
 * in which it leaves nothing. */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, ranks, wrong;

#define CHECK(what)                                                         \
    do {                                                                    \
        if (!(what)) {                                                      \
            printf("rank %d, line %d: %s\n", rank, __LINE__, #what);        \
            wrong = 1;                                                      \
        }                                                                   \
    } while (0)

static int class_of(int code) {
    int class = code;
    if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
    return class;
}

#define FAILS(call, class) CHECK(class_of(call) == (class))

static MPI_File opened(const char *name, int mode) {
    MPI_File file = MPI_FILE_NULL;
    int code = MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &file);
    CHECK(code == MPI_SUCCESS);
    if (code != MPI_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 1);
    return file;
}

static int count_of(MPI_Status *status, MPI_Datatype type) {
    int count;
    MPI_Get_count(status, type, &count);
    return count;
}

/* The file's ints, as this computer has them. */
static void contains(const char *name, const int *numbers, int count) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        int *found = malloc((count + 1) * sizeof(int));
        FILE *file = fopen(name, "rb");
        CHECK(file != NULL);
        CHECK((int)fread(found, sizeof(int), count + 1, file) == count);
        CHECK(memcmp(found, numbers, count * sizeof(int)) == 0);
        fclose(file);
        free(found);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

/* Each rank has every fourth pair of ints; it writes from memory with gaps and reads without. */
static void vectors(void) {
    MPI_File file = opened("vectors", MPI_MODE_RDWR | MPI_MODE_CREATE);
    MPI_Datatype pairs, filetype, spread, etype, again;
    MPI_Status status;
    MPI_Offset place, displacement;
    MPI_Aint lower, extent;
    int data[16], whole[33], i, n = 4;
    char name[MPI_MAX_DATAREP_STRING];
    MPI_Type_vector(2, 2, 2 * ranks, MPI_INT, &pairs);
    MPI_Type_create_resized(pairs, 0, 4 * ranks * sizeof(int), &filetype);
    MPI_Type_commit(&filetype);
    MPI_Type_vector(8, 1, 2, MPI_INT, &spread);
    MPI_Type_commit(&spread);
    CHECK(MPI_File_set_view(file, (1 + 2 * rank) * sizeof(int), MPI_INT, filetype, "native",
                            MPI_INFO_NULL) == MPI_SUCCESS);
    CHECK(MPI_File_get_view(file, &displacement, &etype, &again, name) == MPI_SUCCESS);
    CHECK(displacement == (MPI_Offset)((1 + 2 * rank) * sizeof(int)) && etype == MPI_INT);
    CHECK(strcmp(name, "native") == 0);
    MPI_Type_get_extent(again, &lower, &extent);
    CHECK(lower == 0 && extent == (MPI_Aint)(4 * ranks * sizeof(int)));
    /* It is committed: data of it can be moved. */
    CHECK(MPI_Sendrecv(whole, 1, again, MPI_PROC_NULL, 0, whole, 1, again, MPI_PROC_NULL, 0,
                       MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS);
    MPI_Type_free(&again);
    for (i = 0; i < 16; i++) data[i] = 100 * rank + i / 2;
    CHECK(MPI_File_write_at_all(file, 0, data, 1, spread, &status) == MPI_SUCCESS);
    CHECK(count_of(&status, MPI_INT) == 8);
    memset(whole, 0, sizeof whole);
    for (i = 0; i < 8 * ranks; i++) whole[1 + i] = 100 * (i / 2 % ranks) + i / 2 / ranks * 2 + i % 2;
    contains("vectors", whole, 1 + 8 * ranks);
    CHECK(MPI_File_get_byte_offset(file, 5, &place) == MPI_SUCCESS);
    CHECK(place == (MPI_Offset)((1 + 2 * rank + 4 * ranks + 1) * sizeof(int)));
    memset(data, 0, sizeof data);
    CHECK(MPI_File_read_at(file, 2, data, n, MPI_INT, &status) == MPI_SUCCESS);
    CHECK(count_of(&status, MPI_INT) == n);
    for (i = 0; i < n; i++) CHECK(data[i] == 100 * rank + 2 + i);
    CHECK(data[n] == 0);
    CHECK(MPI_File_seek(file, -1, MPI_SEEK_END) == MPI_SUCCESS);
    CHECK(MPI_File_read(file, data, n, MPI_INT, &status) == MPI_SUCCESS);
    CHECK(count_of(&status, MPI_INT) == 1 && data[0] == 100 * rank + 7);
    MPI_Type_free(&pairs);
    MPI_Type_free(&filetype);
    MPI_Type_free(&spread);
    CHECK(MPI_File_close(&file) == MPI_SUCCESS && file == MPI_FILE_NULL);
}

/* Each rank has a block of rows and columns; the file goes when it is closed. */
static void subarrays(void) {
    int mode = MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_DELETE_ON_CLOSE;
    MPI_File file = opened("subarrays", mode);
    int sizes[2] = {6, 4 * ranks}, subsizes[2] = {6, 4}, starts[2] = {0, 4 * rank};
    int block[24], whole[24 * 16], i;
    MPI_Datatype filetype;
    MPI_Request request;
    MPI_Status status;
    MPI_Offset size;
    MPI_Type_create_subarray(2, sizes, subsizes, starts, MPI_ORDER_C, MPI_INT, &filetype);
    MPI_Type_commit(&filetype);
    MPI_File_set_view(file, 0, MPI_INT, filetype, "internal", MPI_INFO_NULL);
    for (i = 0; i < 24; i++) block[i] = 1000 * rank + i;
    CHECK(MPI_File_write_all_begin(file, block, 24, MPI_INT) == MPI_SUCCESS);
    FAILS(MPI_File_write_all_begin(file, block, 24, MPI_INT), MPI_ERR_IO);
    CHECK(MPI_File_write_all_end(file, block, &status) == MPI_SUCCESS);
    CHECK(count_of(&status, MPI_INT) == 24);
    FAILS(MPI_File_write_all_end(file, block, &status), MPI_ERR_IO);
    for (i = 0; i < 24 * ranks; i++) {
        int column = i % (4 * ranks);
        whole[i] = 1000 * (column / 4) + i / (4 * ranks) * 4 + column % 4;
    }
    contains("subarrays", whole, 24 * ranks);
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    memset(block, 0, sizeof block);
    MPI_File_get_size(file, &size);
    CHECK(size == (MPI_Offset)(24 * ranks * sizeof(int)));
    CHECK(MPI_File_iread_all(file, block, 24, MPI_INT, &request) == MPI_SUCCESS);
    CHECK(MPI_Wait(&request, &status) == MPI_SUCCESS && count_of(&status, MPI_INT) == 24);
    CHECK(memcmp(block, whole, sizeof block) == 0);
    MPI_Type_free(&filetype);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_close(&file);
    CHECK(access("subarrays", F_OK) != 0);
}

/* Lets all ranks but the first take their time. */
static void late(void) {
    MPI_Comm others;
    MPI_Comm_split(MPI_COMM_WORLD, rank > 0, 0, &others);
    for (int i = 0; rank > 0 && i < 20; i++) MPI_Barrier(others);
    MPI_Comm_free(&others);
}

/* The pointer that ranks share, and accesses in their order. */
static void shared(void) {
    MPI_File file = opened("shared", MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE);
    MPI_Offset at;
    MPI_Status status;
    MPI_Request request;
    int i, flag, all[4] = {0}, data[5], seen = 0;
    for (i = 0; i < 5; i++) data[i] = 10 * rank + i;
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    CHECK(MPI_File_write_ordered(file, data, rank + 1, MPI_INT, &status) == MPI_SUCCESS);
    CHECK(count_of(&status, MPI_INT) == rank + 1);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_get_position_shared(file, &at);
    CHECK(at == ranks * (ranks + 1) / 2);
    MPI_Barrier(MPI_COMM_WORLD);
    for (i = 0; i < ranks; i++) {
        MPI_File_read_at(file, i * (i + 1) / 2 + i, data, 1, MPI_INT, &status);
        CHECK(data[0] == 11 * i);
    }
    CHECK(MPI_File_seek_shared(file, 0, MPI_SEEK_SET) == MPI_SUCCESS);
    CHECK(MPI_File_read_ordered_begin(file, data, rank + 1, MPI_INT) == MPI_SUCCESS);
    CHECK(MPI_File_read_ordered_end(file, data, &status) == MPI_SUCCESS);
    for (i = 0; i <= rank; i++) CHECK(data[i] == 10 * rank + i);
    CHECK(MPI_File_seek_shared(file, 0, MPI_SEEK_END) == MPI_SUCCESS);
    CHECK(MPI_File_iwrite_shared(file, &rank, 1, MPI_INT, &request) == MPI_SUCCESS);
    CHECK(MPI_Wait(&request, &status) == MPI_SUCCESS && count_of(&status, MPI_INT) == 1);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(MPI_File_read_at_all(file, ranks * (ranks + 1) / 2, all, ranks, MPI_INT, &status) ==
          MPI_SUCCESS);
    for (i = 0; i < ranks; i++) seen |= 1 << all[i];
    CHECK(seen == (1 << ranks) - 1);
    late();
    CHECK(MPI_File_read_shared(file, data, 1, MPI_INT, &status) == MPI_SUCCESS);
    CHECK(MPI_File_seek_shared(file, 1 - ranks, MPI_SEEK_CUR) == MPI_SUCCESS);
    CHECK(MPI_File_get_position_shared(file, &at) == MPI_SUCCESS);
    CHECK(at == ranks * (ranks + 1) / 2 + ranks + 1);
    CHECK(MPI_File_set_atomicity(file, 1) == MPI_SUCCESS);
    CHECK(MPI_File_get_atomicity(file, &flag) == MPI_SUCCESS && flag);
    FAILS(MPI_File_set_size(file, 4 * rank), ranks > 1 ? MPI_ERR_NOT_SAME : MPI_SUCCESS);
    CHECK(MPI_File_set_size(file, 12) == MPI_SUCCESS && MPI_File_sync(file) == MPI_SUCCESS);
    CHECK(MPI_File_preallocate(file, 5) == MPI_SUCCESS);
    CHECK(MPI_File_get_size(file, &at) == MPI_SUCCESS && at == 12);
    CHECK(MPI_File_preallocate(file, 50) == MPI_SUCCESS);
    CHECK(MPI_File_get_size(file, &at) == MPI_SUCCESS && at == 50);
    CHECK(MPI_File_seek(file, 0, MPI_SEEK_END) == MPI_SUCCESS);
    CHECK(MPI_File_get_position(file, &at) == MPI_SUCCESS && at == 13);
    MPI_File_close(&file);
}

static MPI_File told;
static int told_class;

static void tells(MPI_File *file, int *code, ...) {
    told = *file;
    MPI_Error_class(*code, &told_class);
}

static void errors(void) {
    MPI_File file, second;
    MPI_Errhandler handler, now;
    MPI_Datatype back;
    MPI_Group group, all;
    MPI_Info info, used;
    MPI_Request request;
    MPI_Status status;
    MPI_Aint extent;
    MPI_Offset size;
    MPI_Count large = 3;
    int lengths[2] = {1, 1}, places[2] = {2, 0}, data[4] = {1, 2, 3, 4}, result, flag, mode;
    char value[16];
    FAILS(MPI_File_open(MPI_COMM_WORLD, "none", MPI_MODE_RDONLY, MPI_INFO_NULL, &file),
          MPI_ERR_NO_SUCH_FILE);
    FAILS(MPI_File_open(MPI_COMM_WORLD, "vectors/none", MPI_MODE_RDONLY, MPI_INFO_NULL, &file),
          MPI_ERR_BAD_FILE);
    FAILS(MPI_File_open(MPI_COMM_WORLD, ".", MPI_MODE_RDWR, MPI_INFO_NULL, &file),
          MPI_ERR_BAD_FILE);
    FAILS(MPI_File_open(MPI_COMM_WORLD, "none", 0, MPI_INFO_NULL, &file), MPI_ERR_AMODE);
    FAILS(MPI_File_open(MPI_COMM_WORLD, "none", MPI_MODE_RDONLY | MPI_MODE_CREATE, MPI_INFO_NULL,
                        &file),
          MPI_ERR_AMODE);
    FAILS(MPI_File_open(MPI_COMM_WORLD, "vectors",
                        MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL, MPI_INFO_NULL, &file),
          MPI_ERR_FILE_EXISTS);
    if (ranks > 1) {
        mode = rank == 0 ? MPI_MODE_RDONLY : MPI_MODE_RDWR;
        FAILS(MPI_File_open(MPI_COMM_WORLD, "vectors", mode, MPI_INFO_NULL, &file),
              MPI_ERR_NOT_SAME);
    }
    FAILS(MPI_File_close(&(MPI_File){MPI_FILE_NULL}), MPI_ERR_FILE);
    FAILS(MPI_File_delete("none", MPI_INFO_NULL), MPI_ERR_NO_SUCH_FILE);

    MPI_Info_create(&info);
    MPI_Info_set(info, "hint", "value");
    MPI_File_open(MPI_COMM_WORLD, "ufs:vectors", MPI_MODE_RDONLY, info, &file);
    MPI_Info_free(&info);
    MPI_File_get_info(file, &used);
    MPI_Info_get(used, "hint", 15, value, &flag);
    CHECK(flag && strcmp(value, "value") == 0);
    MPI_Info_free(&used);
    MPI_File_get_amode(file, &mode);
    CHECK(mode == MPI_MODE_RDONLY);
    FAILS(MPI_File_write(file, data, 1, MPI_INT, &status), MPI_ERR_READ_ONLY);
    FAILS(MPI_File_set_size(file, 4), MPI_ERR_READ_ONLY);
    FAILS(MPI_File_seek(file, -1, MPI_SEEK_SET), MPI_ERR_ARG);
    FAILS(MPI_File_seek(file, 0, 12345), MPI_ERR_ARG);
    FAILS(MPI_File_read_at(file, -1, data, 1, MPI_INT, &status), MPI_ERR_ARG);
    FAILS(MPI_File_read_at(file, 0, data, -1, MPI_INT, &status), MPI_ERR_COUNT);
    FAILS(MPI_File_read_at(file, 0, data, 1, MPI_DATATYPE_NULL, &status), MPI_ERR_TYPE);
    FAILS(MPI_File_set_view(file, 0, MPI_INT, MPI_SHORT, "native", MPI_INFO_NULL), MPI_ERR_ARG);
    FAILS(MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "strange", MPI_INFO_NULL),
          MPI_ERR_UNSUPPORTED_DATAREP);
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    FAILS(MPI_File_read(file, data, 3, MPI_SHORT, &status), MPI_ERR_IO);
    CHECK(MPI_File_get_type_extent(file, MPI_DOUBLE, &extent) == MPI_SUCCESS && extent == 8);
    MPI_File_get_group(file, &group);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_compare(group, all, &result);
    CHECK(result == MPI_IDENT);
    MPI_Group_free(&group);
    MPI_Group_free(&all);
    CHECK(MPI_File_f2c(MPI_File_c2f(file)) == file);

    CHECK(MPI_File_get_errhandler(MPI_FILE_NULL, &now) == MPI_SUCCESS && now == MPI_ERRORS_RETURN);
    MPI_File_create_errhandler(tells, &handler);
    MPI_File_set_errhandler(file, handler);
    FAILS(MPI_File_write(file, data, 1, MPI_INT, &status), MPI_ERR_READ_ONLY);
    CHECK(told == file && told_class == MPI_ERR_READ_ONLY);
    MPI_File_call_errhandler(file, MPI_ERR_OTHER);
    CHECK(told_class == MPI_ERR_OTHER);
    MPI_Errhandler_free(&handler);
    MPI_File_close(&file);

    MPI_File_open(MPI_COMM_SELF, rank == 0 ? "vectors" : "/dev/null", MPI_MODE_WRONLY | MPI_MODE_APPEND,
                  MPI_INFO_NULL, &file);
    MPI_Type_indexed(2, lengths, places, MPI_INT, &back);
    MPI_Type_commit(&back);
    FAILS(MPI_File_set_view(file, 0, MPI_INT, back, "native", MPI_INFO_NULL), MPI_ERR_IO);
    MPI_Type_free(&back);
    FAILS(MPI_File_read(file, data, 1, MPI_INT, &status), MPI_ERR_ACCESS);
    if (rank == 0) {
        MPI_Offset end;
        MPI_File_get_position(file, &end);
        CHECK(end == (MPI_Offset)((1 + 8 * ranks) * sizeof(int)));
        CHECK(MPI_File_iwrite_c(file, data, large, MPI_INT, &request) == MPI_SUCCESS);
        CHECK(MPI_Wait(&request, &status) == MPI_SUCCESS && count_of(&status, MPI_INT) == 3);
        MPI_File_get_position(file, &end);
        CHECK(end == (MPI_Offset)((4 + 8 * ranks) * sizeof(int)));
    }
    MPI_File_close(&file);

    second = opened("sequence", MPI_MODE_WRONLY | MPI_MODE_CREATE | MPI_MODE_SEQUENTIAL |
                                    MPI_MODE_DELETE_ON_CLOSE);
    FAILS(MPI_File_write(second, data, 1, MPI_INT, &status), MPI_ERR_UNSUPPORTED_OPERATION);
    FAILS(MPI_File_seek(second, 0, MPI_SEEK_SET), MPI_ERR_UNSUPPORTED_OPERATION);
    late();
    CHECK(MPI_File_write_shared(second, data, 1, MPI_INT, &status) == MPI_SUCCESS);
    CHECK(MPI_File_set_view(second, MPI_DISPLACEMENT_CURRENT, MPI_INT, MPI_INT, "native",
                            MPI_INFO_NULL) == MPI_SUCCESS);
    CHECK(MPI_File_get_byte_offset(second, 0, &size) == MPI_SUCCESS);
    CHECK(size == (MPI_Offset)(ranks * sizeof(int)));
    CHECK(MPI_File_write_ordered(second, data, 1, MPI_INT, &status) == MPI_SUCCESS);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_get_size(second, &size);
    CHECK(size == (MPI_Offset)(2 * ranks * sizeof(int)));
    MPI_File_close(&second);

    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) CHECK(MPI_File_delete("vectors", MPI_INFO_NULL) == MPI_SUCCESS);
}

/* Collective accesses with arguments that are wrong at the last rank, which stays in step. */
static void uneven(void) {
    MPI_File file = opened("uneven", MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE);
    MPI_Status status;
    MPI_Offset at;
    int round, code, class, data = rank, last = rank == ranks - 1;
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    for (round = 0; round < 3; round++) {
        code = MPI_File_write_at_all(file, rank, &data, last ? -1 : 1, MPI_INT, &status);
        MPI_Error_class(code, &class);
        CHECK(class == (last ? MPI_ERR_COUNT : MPI_SUCCESS));
        code = MPI_File_write_ordered(file, &data, 1, last ? MPI_DATATYPE_NULL : MPI_INT, &status);
        MPI_Error_class(code, &class);
        CHECK(class == MPI_ERR_TYPE);
        MPI_File_get_position_shared(file, &at);
        CHECK(at == 0);
        CHECK(MPI_File_write_at_all(file, rank, &data, 1, MPI_INT, &status) == MPI_SUCCESS);
        data = -1;
        CHECK(MPI_File_read_at_all(file, rank, &data, 1, MPI_INT, &status) == MPI_SUCCESS);
        CHECK(data == rank);
    }
    MPI_File_close(&file);
}

int main(int argc, char **argv) {
    int any;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    CHECK(argc == 2 && chdir(argv[1]) == 0);
    vectors();
    subarrays();
    shared();
    errors();
    uneven();
    MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0 && !any) printf("files: right\n");
    MPI_Finalize();
    return any;
}
