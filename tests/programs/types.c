/* Datatypes that are made of descriptions: distributed arrays, Fortran's types, large counts,
 * and the format external32. Prints "WRONG ..." where a result is not the one that it must be. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

/* The process of a dimension that has an element. */
static int owner(int element, int length, int kind, int block, int processes)
{
    if (kind == MPI_DISTRIBUTE_NONE)
        return 0;
    if (block == MPI_DISTRIBUTE_DFLT_DARG)
        block = kind == MPI_DISTRIBUTE_BLOCK ? (length + processes - 1) / processes : 1;
    return element / block % processes;
}

/* The parts of all processes of a 2 x 3 grid, packed, against the elements that they must have. */
static void distributed(int order, const int kinds[2], const int blocks[2])
{
    int lengths[2] = {5, 7}, processes[2] = {2, 3}, array[35], part[35];
    if (kinds[0] == MPI_DISTRIBUTE_NONE)
        processes[0] = 1;
    for (int i = 0; i < 35; i++)
        array[i] = i;
    int all = processes[0] * processes[1], seen = 0;
    for (int process = 0; process < all; process++) {
        MPI_Datatype type;
        MPI_Type_create_darray(all, process, 2, lengths, kinds, blocks, processes, order, MPI_INT, &type);
        MPI_Type_commit(&type);
        int bytes, position = 0, next = 0;
        MPI_Type_size(type, &bytes);
        MPI_Pack(array, 1, type, part, sizeof part, &position, MPI_COMM_SELF);
        CHECK(position == bytes);
        int row = process / processes[1], column = process % processes[1];
        int fast = order == MPI_ORDER_C ? 1 : 0, slow = 1 - fast;
        for (int i = 0; i < lengths[slow]; i++)
            for (int j = 0; j < lengths[fast]; j++) {
                int at[2];
                at[slow] = i;
                at[fast] = j;
                if (owner(at[0], 5, kinds[0], blocks[0], processes[0]) == row &&
                    owner(at[1], 7, kinds[1], blocks[1], processes[1]) == column)
                    CHECK(part[next++] == i * lengths[fast] + j);
            }
        CHECK(next * (int)sizeof(int) == bytes);
        seen += next;

        int integers, addresses, types, combiner;
        MPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
        CHECK(integers == 12 && addresses == 0 && types == 1 && combiner == MPI_COMBINER_DARRAY);
        int values[12];
        MPI_Aint none[1];
        MPI_Datatype old;
        MPI_Type_get_contents(type, 12, 0, 1, values, none, &old);
        int wanted[12] = {all, process, 2, 5, 7, kinds[0], kinds[1], blocks[0], blocks[1],
                          processes[0], processes[1], order};
        CHECK(!memcmp(values, wanted, sizeof values) && old == MPI_INT);
        MPI_Type_free(&type);
    }
    CHECK(seen == 35);
}

static void arrays(void)
{
    int kinds[][2] = {{MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC},
                      {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK},
                      {MPI_DISTRIBUTE_NONE, MPI_DISTRIBUTE_CYCLIC}};
    int blocks[][2] = {{MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG}, {3, 4}};
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 2; j++) {
            distributed(MPI_ORDER_C, kinds[i], blocks[j]);
            distributed(MPI_ORDER_FORTRAN, kinds[i], blocks[j]);
        }
    int five = 5, two = 2, cyclic = MPI_DISTRIBUTE_CYCLIC, other = 99, class;
    MPI_Datatype type;
    class = MPI_Type_create_darray(3, 0, 1, &five, &cyclic, &two, &two, MPI_ORDER_C, MPI_INT, &type);
    CHECK(class == MPI_ERR_ARG);
    class = MPI_Type_create_darray(2, 0, 1, &five, &other, &two, &two, MPI_ORDER_C, MPI_INT, &type);
    CHECK(class == MPI_ERR_ARG);
}

/* A type of Fortran's: its size, its constructor and arguments, and the same handle for the same
 * ones. */
static void fortran(int combiner, int p, int r, int bytes)
{
    MPI_Datatype type, twin, none[1];
    MPI_Datatype *types[2] = {&type, &twin};
    for (int i = 0; i < 2; i++)
        if (combiner == MPI_COMBINER_F90_INTEGER)
            MPI_Type_create_f90_integer(r, types[i]);
        else if (combiner == MPI_COMBINER_F90_REAL)
            MPI_Type_create_f90_real(p, r, types[i]);
        else
            MPI_Type_create_f90_complex(p, r, types[i]);
    CHECK(type == twin);
    int size, integers, addresses, datatypes, made_by, values[2] = {0, 0};
    MPI_Aint places[1];
    MPI_Type_size(type, &size);
    CHECK(size == bytes);
    MPI_Type_get_envelope(type, &integers, &addresses, &datatypes, &made_by);
    CHECK(made_by == combiner && addresses == 0 && datatypes == 0);
    CHECK(integers == (combiner == MPI_COMBINER_F90_INTEGER ? 1 : 2));
    MPI_Type_get_contents(type, integers, 0, 0, values, places, none);
    if (integers == 1)
        CHECK(values[0] == r);
    else
        CHECK(values[0] == p && values[1] == r);
    CHECK(MPI_Type_free(&twin) == MPI_ERR_TYPE);
}

static void parametrized(void)
{
    fortran(MPI_COMBINER_F90_INTEGER, 0, 4, 2);
    fortran(MPI_COMBINER_F90_INTEGER, 0, 18, 8);
    fortran(MPI_COMBINER_F90_REAL, 6, 30, 4);
    fortran(MPI_COMBINER_F90_REAL, MPI_UNDEFINED, 300, 8);
    fortran(MPI_COMBINER_F90_REAL, 17, MPI_UNDEFINED, 16);
    fortran(MPI_COMBINER_F90_COMPLEX, 6, MPI_UNDEFINED, 8);
    fortran(MPI_COMBINER_F90_COMPLEX, 15, 300, 16);
    fortran(MPI_COMBINER_F90_REAL, 33, 4000, 16);
    MPI_Datatype type;
    CHECK(MPI_Type_create_f90_integer(40, &type) == MPI_ERR_ARG);
    CHECK(MPI_Type_create_f90_real(MPI_UNDEFINED, MPI_UNDEFINED, &type) == MPI_ERR_ARG);
    CHECK(MPI_Type_create_f90_complex(100, 5, &type) == MPI_ERR_ARG);
    int kind, bytes = 8;
    MPI_Type_match_size(MPI_TYPECLASS_REAL, 8, &type);
    MPI_Type_size(type, &kind);
    CHECK(kind == bytes);
    CHECK(MPI_Type_match_size(MPI_TYPECLASS_INTEGER, 3, &type) == MPI_ERR_ARG);

    /* They are used as others are, without MPI_Type_commit. */
    double value = rank + 0.5, sum;
    MPI_Type_create_f90_real(15, 300, &type);
    MPI_Allreduce(&value, &sum, 1, type, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == size * (size - 1) / 2 + 0.5 * size);
}

/* Numbers that C has none for by its own standard: of 2 and of 16 bytes, and complex ones. Sums of
 * powers of two are exact in any order. */
static void rare(void)
{
    int bytes;
    MPI_Type_size(MPI_REAL16, &bytes);
    CHECK(bytes == 16);
    MPI_Type_size(MPI_COMPLEX32, &bytes);
    CHECK(bytes == 32);
#ifdef __SIZEOF_FLOAT128__
    __float128 tiny = 1;
    for (int i = 0; i < 100; i++)
        tiny /= 2;
    __float128 value = rank ? tiny : 1, sum, most, complex[2] = {1 + tiny, tiny}, product[2];
    MPI_Allreduce(&value, &sum, 1, MPI_REAL16, MPI_SUM, MPI_COMM_WORLD);
    CHECK(sum == 1 + (size - 1) * tiny);
    MPI_Allreduce(&value, &most, 1, MPI_REAL16, MPI_MIN, MPI_COMM_WORLD);
    CHECK(most == (size > 1 ? tiny : 1));
    if (rank > 0) {
        complex[0] = 0;
        complex[1] = rank > 1 ? 1 : -1;
    }
    MPI_Allreduce(complex, product, 1, MPI_COMPLEX32, MPI_PROD, MPI_COMM_WORLD);
    if (size == 2)
        CHECK(product[0] == tiny && product[1] == -1 - tiny);
#endif
#if defined MPIX_C_FLOAT16 && defined __FLT16_MAX__
    MPI_Type_size(MPIX_C_FLOAT16, &bytes);
    CHECK(bytes == 2);
    _Float16 half = rank + 0.5f, halves, largest;
    MPI_Allreduce(&half, &halves, 1, MPIX_C_FLOAT16, MPI_SUM, MPI_COMM_WORLD);
    CHECK(halves == size * size / 2.0f);
    MPI_Allreduce(&half, &largest, 1, MPIX_C_FLOAT16, MPI_MAX, MPI_COMM_WORLD);
    CHECK(largest == size - 0.5f);
#endif
}

/* Types that calls with large counts have made: their contents are large counts. */
static void large(void)
{
    MPI_Datatype type, old;
    MPI_Count integers, addresses, counts, types, values[8];
    int combiner, numbers[16], small;
    MPI_Aint places[1];
    MPI_Type_vector_c(3, (MPI_Count)1 << 33, (MPI_Count)1 << 34, MPI_CHAR, &type);
    MPI_Type_get_envelope_c(type, &integers, &addresses, &counts, &types, &combiner);
    CHECK(integers == 0 && addresses == 0 && counts == 3 && types == 1 && combiner == MPI_COMBINER_VECTOR);
    MPI_Type_get_contents_c(type, 0, 0, 3, 1, numbers, places, values, &old);
    CHECK(values[0] == 3 && values[1] == (MPI_Count)1 << 33 && values[2] == (MPI_Count)1 << 34);
    CHECK(old == MPI_CHAR);
    CHECK(MPI_Type_get_envelope(type, &small, &small, &small, &combiner) == MPI_ERR_TYPE);
    CHECK(MPI_Type_get_contents_c(type, 0, 0, 2, 1, numbers, places, values, &old) == MPI_ERR_ARG);
    MPI_Type_free(&type);

    MPI_Count lengths[2] = {4, 6};
    int kinds[2] = {MPI_DISTRIBUTE_CYCLIC, MPI_DISTRIBUTE_BLOCK}, processes[2] = {1, 2};
    int blocks[2] = {1, MPI_DISTRIBUTE_DFLT_DARG};
    MPI_Type_create_darray_c(2, 1, 2, lengths, kinds, blocks, processes, MPI_ORDER_C, MPI_INT, &type);
    MPI_Type_get_envelope_c(type, &integers, &addresses, &counts, &types, &combiner);
    CHECK(integers == 10 && addresses == 0 && counts == 2 && types == 1 && combiner == MPI_COMBINER_DARRAY);
    MPI_Type_get_contents_c(type, 10, 0, 2, 1, numbers, places, values, &old);
    int wanted[10] = {2, 1, 2, kinds[0], kinds[1], blocks[0], blocks[1], 1, 2, MPI_ORDER_C};
    CHECK(!memcmp(numbers, wanted, sizeof wanted) && values[0] == 4 && values[1] == 6);
    MPI_Type_free(&type);

    /* What a call without large counts has made has none. */
    MPI_Type_contiguous(5, MPI_INT, &type);
    MPI_Type_get_envelope_c(type, &integers, &addresses, &counts, &types, &combiner);
    CHECK(integers == 1 && addresses == 0 && counts == 0 && types == 1);
    MPI_Type_free(&type);
}

/* A structure in the format external32: its bytes, and back. */
static void external(void)
{
    struct { long number; char letter; double value; short pair[2]; } one, back;
    memset(&one, 0, sizeof one);
    memset(&back, 0, sizeof back);
    one.number = -2;
    one.letter = 'x';
    one.value = 1.5;
    one.pair[0] = 258;
    one.pair[1] = -1;
    int lengths[4] = {1, 1, 1, 2};
    MPI_Aint places[4] = {(char *)&one.number - (char *)&one, (char *)&one.letter - (char *)&one,
                          (char *)&one.value - (char *)&one, (char *)one.pair - (char *)&one};
    MPI_Datatype parts[4] = {MPI_LONG, MPI_CHAR, MPI_DOUBLE, MPI_SHORT}, type;
    MPI_Type_create_struct(4, lengths, places, parts, &type);
    MPI_Type_commit(&type);
    MPI_Aint bytes, position = 1;
    MPI_Pack_external_size("external32", 1, type, &bytes);
    CHECK(bytes == 17);
    unsigned char packed[20] = {0}, wanted[18] = {0, 0xff, 0xff, 0xff, 0xfe, 'x', 0x3f, 0xf8, 0, 0, 0, 0, 0, 0,
                                                  1, 2, 0xff, 0xff};
    MPI_Pack_external("external32", &one, 1, type, packed, sizeof packed, &position);
    CHECK(position == 18 && !memcmp(packed, wanted, sizeof wanted));
    position = 1;
    MPI_Unpack_external("external32", packed, sizeof packed, &position, &back, 1, type);
    CHECK(position == 18 && !memcmp(&one, &back, sizeof one));
    long double exact = 1.0L / 3, again = 0;
    position = 0;
    MPI_Pack_external("external32", &exact, 1, MPI_LONG_DOUBLE, packed, sizeof packed, &position);
    CHECK(position == 16 && packed[0] == 0x3f && packed[1] == 0xfd && packed[2] == 0x55);
    MPI_Count start = 0;
    MPI_Unpack_external_c("external32", packed, sizeof packed, &start, &again, 1, MPI_LONG_DOUBLE);
    CHECK(start == 16 && again == exact);
    CHECK(MPI_Pack_external("external32", &one, 1, type, packed, 16, &position) == MPI_ERR_TRUNCATE);
    CHECK(MPI_Pack_external("internal", &one, 1, type, packed, 20, &position) == MPI_ERR_ARG);
    MPI_Type_free(&type);
}

/* Structures whose bounds are marked as programs did before MPI-2. The bounds are those that MPICH
   4.0.2 gives. */
static void marked(void)
{
    int lengths[3] = {1, 2, 1}, bytes, integers, addresses, types, combiner;
    MPI_Aint places[3] = {-4, 0, 24}, lower, extent;
    MPI_Datatype parts[3] = {MPI_LB, MPI_INT, MPI_UB}, type, inner, found[3];
    CHECK(MPI_Type_struct(3, lengths, places, parts, &type) == MPI_SUCCESS);
    MPI_Type_get_extent(type, &lower, &extent);
    MPI_Type_size(type, &bytes);
    CHECK(lower == -4 && extent == 28 && bytes == 8);
    MPI_Type_get_true_extent(type, &lower, &extent);
    CHECK(lower == 0 && extent == 8);
    MPI_Type_get_contents(type, 4, 3, 3, (int[4]){0}, (MPI_Aint[3]){0}, found);
    CHECK(found[0] == MPI_LB && found[1] == MPI_INT && found[2] == MPI_UB);
    MPI_Type_free(&type);

    /* A marker marks what is made of its structure as well. */
    MPI_Type_struct(2, lengths + 1, places + 1, parts + 1, &inner);
    MPI_Type_get_extent(inner, &lower, &extent);
    CHECK(lower == 0 && extent == 24);
    MPI_Type_struct(2, (int[]){2, 1}, (MPI_Aint[]){100, 40}, (MPI_Datatype[]){inner, MPI_INT}, &type);
    MPI_Type_get_extent(type, &lower, &extent);
    CHECK(lower == 40 && extent == 108);
    MPI_Type_free(&type);

    /* Pairs of numbers, 24 bytes apart. */
    MPI_Type_commit(&inner);
    int from[12], into[4] = {0};
    for (int i = 0; i < 12; i++)
        from[i] = i;
    MPI_Sendrecv(from, 2, inner, 0, 0, into, 4, MPI_INT, 0, 0, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    CHECK(into[0] == 0 && into[1] == 1 && into[2] == 6 && into[3] == 7);
    MPI_Type_free(&inner);

    /* Markers alone, and one without anything. */
    MPI_Type_struct(2, (int[]){1, 1}, (MPI_Aint[]){8, 16}, (MPI_Datatype[]){MPI_LB, MPI_UB}, &type);
    MPI_Type_get_extent(type, &lower, &extent);
    CHECK(lower == 8 && extent == 8);
    MPI_Type_free(&type);
    MPI_Type_get_extent(MPI_UB, &lower, &extent);
    MPI_Type_get_envelope(MPI_UB, &integers, &addresses, &types, &combiner);
    CHECK(lower == 0 && extent == 0 && combiner == MPI_COMBINER_NAMED);
    type = MPI_LB;
    CHECK(MPI_Type_free(&type) != MPI_SUCCESS);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    arrays();
    parametrized();
    rare();
    large();
    external();
    marked();
    MPI_Finalize();
    if (rank == 0)
        printf("types: right\n");
    return 0;
}
