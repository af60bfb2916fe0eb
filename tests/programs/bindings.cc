// MPI's bindings for C++: objects, and functions of the program's that are given them. Says WRONG
// where something is not as it should be.
#include <mpi.h>

#include <cstdio>
#include <vector>

static int rank, ranks;

static void check(bool is_right, const char *what) {
    if (!is_right) std::printf("%d: WRONG: %s\n", rank, what);
}

// An affine map of the numbers below a prime: pairs of a factor and a summand, whose composition
// does not commute.
static const long PRIME = 10007;

static void compose(const void *first, void *second, int count, const MPI::Datatype &datatype) {
    check(datatype.Get_size() == 2 * MPI::LONG.Get_size(), "the datatype of an operation");
    const long *earlier = static_cast<const long *>(first);
    long *later = static_cast<long *>(second);
    for (int i = 0; i < 2 * count; i += 2) {
        later[i + 1] = (later[i] * earlier[i + 1] + later[i + 1]) % PRIME;
        later[i] = later[i] * earlier[i] % PRIME;
    }
}

static void operations() {
    MPI::Datatype pair = MPI::LONG.Create_contiguous(2);
    pair.Commit();
    MPI::Op op;
    op.Init(compose, false);
    check(!op.Is_commutative(), "an operation commutes");
    long maps[6], composed[6], expected[6];
    for (int i = 0; i < 6; ++i) maps[i] = 3 * rank + 5 * i + 2;
    for (int i = 0; i < 6; ++i) expected[i] = 5 * i + 2;
    for (int other = 1; other < ranks; ++other) {
        long next[6];
        for (int i = 0; i < 6; ++i) next[i] = 3 * other + 5 * i + 2;
        compose(expected, next, 3, pair);
        for (int i = 0; i < 6; ++i) expected[i] = next[i];
    }
    MPI::COMM_WORLD.Allreduce(maps, composed, 3, pair, op);
    for (int i = 0; i < 6; ++i) check(composed[i] == expected[i], "a composition");
    op.Free();
    pair.Free();
}

// Attributes are addresses of numbers: a copy counts, and has the next one.
static int numbers[8] = {0, 1, 2, 3, 4, 5, 6, 7};
static int copied, deleted;

template <class Object>
static int copies(const Object &, int, void *extra, void *value, void *copy, bool &is_copied) {
    check(*static_cast<char *>(extra) == 'x', "the extra state of a copy");
    copied += 1;
    *static_cast<void **>(copy) = static_cast<int *>(value) + 1;
    is_copied = *static_cast<int *>(value) != 4;
    return MPI::SUCCESS;
}

template <class Object>
static int deletes(Object &, int, void *value, void *extra) {
    check(*static_cast<char *>(extra) == 'x', "the extra state of an end");
    deleted += 1 + 100 * *static_cast<int *>(value);
    return MPI::SUCCESS;
}

static int copies_grid(const MPI::Comm &comm, int, void *, void *value, void *copy,
                       bool &is_copied) {
    const MPI::Cartcomm *grid = dynamic_cast<const MPI::Cartcomm *>(&comm);
    check(grid != 0 && grid->Get_dim() == 1, "the communicator of a copy is no grid");
    *static_cast<void **>(copy) = value;
    is_copied = true;
    return MPI::SUCCESS;
}

static void attributes() {
    char extra = 'x';
    void *found;
    int key = MPI::Comm::Create_keyval(copies<MPI::Comm>, deletes<MPI::Comm>, &extra);
    MPI::Intracomm first = MPI::COMM_WORLD.Dup();
    first.Set_attr(key, &numbers[3]);
    MPI::Intracomm second = first.Dup(), third = second.Dup();
    check(copied == 2, "the number of copies");
    check(second.Get_attr(key, &found) && found == &numbers[4], "a copied attribute");
    check(!third.Get_attr(key, &found), "an attribute that was not to be copied");
    second.Delete_attr(key);
    check(deleted == 401, "an attribute's end");
    first.Free(), second.Free(), third.Free();
    check(deleted == 702, "the end of an attribute's communicator");
    MPI::Comm::Free_keyval(key);

    key = MPI::Comm::Create_keyval(copies_grid, MPI::Comm::NULL_DELETE_FN, 0);
    int dims[] = {ranks};
    bool periods[] = {true};
    MPI::Cartcomm grid = MPI::COMM_WORLD.Create_cart(1, dims, periods, false);
    grid.Set_attr(key, &numbers[5]);
    MPI::Cartcomm other = grid.Dup();
    check(other.Get_attr(key, &found) && found == &numbers[5], "a grid's attribute");
    int from, to, got = -1;
    other.Shift(0, 1, from, to);
    MPI::Status status;
    other.Sendrecv(&rank, 1, MPI::INT, to, 7, &got, 1, MPI::INT, from, 7, status);
    check(got == (rank + ranks - 1) % ranks && status.Get_source() == from, "a shift");
    check(status.Get_count(MPI::INT) == 1 && status.Get_tag() == 7, "a status");
    other.Free(), grid.Free();
    MPI::Comm::Free_keyval(key);

    copied = deleted = 0;
    key = MPI::Datatype::Create_keyval(copies<MPI::Datatype>, deletes<MPI::Datatype>, &extra);
    MPI::Datatype vector = MPI::INT.Create_vector(2, 1, 3);
    vector.Set_attr(key, &numbers[1]);
    MPI::Datatype same = vector.Dup();
    check(same.Get_attr(key, &found) && found == &numbers[2], "a datatype's attribute");
    same.Free(), vector.Free();
    check(copied == 1 && deleted == 302, "the end of datatypes with attributes");
    MPI::Datatype::Free_keyval(key);

    deleted = 0;
    key = MPI::Win::Create_keyval(MPI::Win::NULL_COPY_FN, deletes<MPI::Win>, &extra);
    MPI::Win window =
        MPI::Win::Create(&got, sizeof got, sizeof got, MPI::INFO_NULL, MPI::COMM_WORLD);
    window.Set_attr(key, &numbers[6]);
    window.Free();
    check(deleted == 601, "the end of a window with an attribute");
    MPI::Win::Free_keyval(key);
}

static int told;

static void of_comm(MPI::Comm &comm, int *code, ...) {
    check(comm.Get_size() == 1 && comm.Get_rank() == 0, "the communicator of an error");
    check(MPI::Get_error_class(*code) == MPI::ERR_RANK, "the error of a communicator");
    told += 1;
}

static void of_window(MPI::Win &window, int *code, ...) {
    check(window.Get_group().Get_size() == ranks, "the window of an error");
    check(MPI::Get_error_class(*code) == MPI::ERR_RANK, "the error of a window");
    told += 1;
}

static void of_file(MPI::File &file, int *code, ...) {
    check(file == MPI::FILE_NULL, "the file of an error");
    check(MPI::Get_error_class(*code) == MPI::ERR_NO_SUCH_FILE, "the error of a file");
    told += 1;
}

static void errors() {
    MPI::Errhandler handler = MPI::Comm::Create_errhandler(of_comm);
    MPI::Intracomm own = MPI::COMM_SELF.Dup();
    own.Set_errhandler(handler);
    own.Send(&rank, 1, MPI::INT, 1, 0);
    check(told > 0, "the error handler of a communicator is not called");
    told = 0;
    own.Call_errhandler(MPI::ERR_RANK);
    check(told == 1, "the error handler of a communicator is called otherwise than once");
    own.Set_errhandler(MPI::ERRORS_THROW_EXCEPTIONS);
    bool is_caught = false;
    try {
        own.Send(&rank, 1, MPI::INT, 1, 0);
    } catch (MPI::Exception &exception) {
        is_caught = exception.Get_error_class() == MPI::ERR_RANK;
    }
    check(is_caught, "no exception");
    own.Free();
    handler.Free();

    told = 0;
    handler = MPI::Win::Create_errhandler(of_window);
    int place = 0;
    MPI::Win window =
        MPI::Win::Create(&place, sizeof place, sizeof place, MPI::INFO_NULL, MPI::COMM_WORLD);
    window.Set_errhandler(handler);
    window.Fence(0);
    window.Put(&rank, 1, MPI::INT, ranks, 0, 1, MPI::INT);
    check(told > 0, "the error handler of a window is not called");
    window.Put(&rank, 1, MPI::INT, (rank + 1) % ranks, 0, 1, MPI::INT);
    window.Fence(0);
    check(place == (rank + ranks - 1) % ranks, "a put");
    window.Free();
    handler.Free();

    told = 0;
    handler = MPI::File::Create_errhandler(of_file);
    MPI::FILE_NULL.Set_errhandler(handler);
    MPI::File::Open(MPI::COMM_SELF, "/no such file", MPI::MODE_RDONLY, MPI::INFO_NULL);
    check(told > 0, "the error handler of files is not called");
    MPI::FILE_NULL.Set_errhandler(MPI::ERRORS_RETURN);
    handler.Free();
}

static void messages() {
    std::vector<double> sent(100, rank + 0.5), got(100);
    int from = (rank + ranks - 1) % ranks, to = (rank + 1) % ranks;
    MPI::Request requests[] = {MPI::COMM_WORLD.Irecv(&got[0], 100, MPI::DOUBLE, from, 1),
                               MPI::COMM_WORLD.Isend(&sent[0], 100, MPI::DOUBLE, to, 1)};
    MPI::Request::Waitall(2, requests);
    check(got[99] == from + 0.5, "a message");
    bool all = rank != 0, any = false;
    MPI::COMM_WORLD.Allreduce(&all, &any, 1, MPI::BOOL, MPI::LOR);
    check(any == (ranks > 1), "a logical value");
    MPI::Intracomm half = MPI::COMM_WORLD.Split(rank % 2, rank);
    int sum = 0;
    half.Allreduce(&rank, &sum, 1, MPI::INT, MPI::SUM);
    int expected = 0;
    for (int other = rank % 2; other < ranks; other += 2) expected += other;
    check(sum == expected, "a sum of half of the ranks");
    half.Free();
}

int main(int argc, char **argv) {
    MPI::Init(argc, argv);
    rank = MPI::COMM_WORLD.Get_rank();
    ranks = MPI::COMM_WORLD.Get_size();
    operations();
    attributes();
    errors();
    messages();
    if (rank == 0) std::printf("bindings: right\n");
    MPI::Finalize();
    return 0;
}
