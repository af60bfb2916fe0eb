/* Random datatypes: nested, with gaps, and never with two elements at one place. */

static const struct {
    MPI_Datatype type;
    int bytes;
} bases[] = {
    {MPI_CHAR, 1},  {MPI_SHORT, 2},  {MPI_INT, 4},   {MPI_FLOAT, 4},     {MPI_DOUBLE, 8},
    {MPI_INT64_T, 8}, {MPI_BYTE, 1}, {MPI_UNSIGNED, 4}, {MPI_UINT16_T, 2}, {MPI_C_DOUBLE_COMPLEX, 16},
};
enum { BASES = sizeof bases / sizeof *bases };

/* A datatype, and how many of what it consists of. */
typedef struct {
    MPI_Datatype type, base;
    int items, is_mixed;
} Type;

static MPI_Aint extent_of(MPI_Datatype type)
{
    MPI_Aint lb, extent;
    MPI_Type_get_extent(type, &lb, &extent);
    return extent;
}

/* The bytes from one of these datatypes to the next, so that they do not overlap. */
static MPI_Aint span_of(MPI_Datatype type)
{
    MPI_Aint lb, extent = extent_of(type), all;
    MPI_Type_get_true_extent(type, &lb, &all);
    return extent > all ? extent : all;
}

/* Makes a struct, with an extent of its own: libraries differ in what the bounds of its members
 * mean for its own. */
static MPI_Datatype make_struct(int n, const int *blocks, const MPI_Aint *places, const MPI_Datatype *olds)
{
    MPI_Datatype raw, made;
    MPI_Aint lb, all;
    MPI_Type_create_struct(n, blocks, places, olds, &raw);
    MPI_Type_get_true_extent(raw, &lb, &all);
    MPI_Type_create_resized(raw, 0, (lb + all + 7) / 8 * 8, &made);
    MPI_Type_free(&raw);
    return made;
}

/* A datatype of the elements of `old`; the number of those in `items`. */
static MPI_Datatype around(MPI_Datatype old, int *items)
{
    MPI_Datatype made, olds[3] = {old, old, old};
    MPI_Aint span = span_of(old), places[3];
    int blocks[3], at[3], n = between(1, 3), block = between(1, 2), gap = draw(3);
    /* Displacements in bytes need not keep elements aligned. */
    int sizes[2], subsizes[2], starts[2], total = 0, odd = draw(4);
    /* Blocks of elements whose extent is smaller than what they reach over, overlap. */
    int is_dense = extent_of(old) >= span && extent_of(old) > 0;
    if (!is_dense)
        block = 1;
    for (int i = 0, next = 0; i < 3; i++) {
        blocks[i] = is_dense ? between(0, 2) : 1;
        at[i] = next;
        places[i] = next * span + i * odd;
        next += blocks[i] + draw(2);
        total += i < n ? blocks[i] : 0;
    }
    switch (draw(is_dense ? 11 : 4)) {
    case 0:
        MPI_Type_create_hvector(n, block, (block + gap) * span + odd, old, &made);
        *items = n * block;
        break;
    case 1:
        MPI_Type_create_hindexed(n, blocks, places, old, &made);
        *items = total;
        break;
    case 2:
        made = make_struct(n, blocks, places, olds);
        *items = total;
        break;
    case 3:
        MPI_Type_create_hindexed_block(n, 1, (MPI_Aint[]){2 * span + odd, 0, 5 * span}, old, &made);
        *items = n;
        break;
    case 4:
        MPI_Type_contiguous(n, old, &made);
        *items = n;
        break;
    case 5:
        MPI_Type_vector(n, block, block + gap, old, &made);
        *items = n * block;
        break;
    case 6:
        MPI_Type_indexed(n, blocks, at, old, &made);
        *items = total;
        break;
    case 7:
        MPI_Type_create_indexed_block(n, block, (int[]){4, 0, 2}, old, &made);
        *items = n * block;
        break;
    case 8:
        MPI_Type_create_resized(old, draw(2) * 8, span + 8 * draw(3), &made);
        *items = 1;
        break;
    case 9:
        for (int i = 0; i < 2; i++) {
            sizes[i] = between(1, 3);
            subsizes[i] = between(1, sizes[i]);
            starts[i] = draw(sizes[i] - subsizes[i] + 1);
        }
        MPI_Type_create_subarray(2, sizes, subsizes, starts, draw(2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN,
                                 old, &made);
        *items = subsizes[0] * subsizes[1];
        break;
    default:
        MPI_Type_dup(old, &made);
        *items = 1;
    }
    return made;
}

/* Frees a datatype that is not predefined. */
static void free_type(MPI_Datatype *type)
{
    int integers, addresses, types, combiner;
    MPI_Type_get_envelope(*type, &integers, &addresses, &types, &combiner);
    if (combiner != MPI_COMBINER_NAMED)
        MPI_Type_free(type);
}

static int number_of(int combiner)
{
    static const int all[] = {
        MPI_COMBINER_NAMED, MPI_COMBINER_DUP, MPI_COMBINER_CONTIGUOUS, MPI_COMBINER_VECTOR, MPI_COMBINER_HVECTOR,
        MPI_COMBINER_INDEXED, MPI_COMBINER_HINDEXED, MPI_COMBINER_INDEXED_BLOCK, MPI_COMBINER_HINDEXED_BLOCK,
        MPI_COMBINER_STRUCT, MPI_COMBINER_SUBARRAY, MPI_COMBINER_RESIZED};
    for (int i = 0; i < 12; i++)
        if (all[i] == combiner)
            return i;
    return -1;
}

/* Takes apart what a datatype was made of, to the last. */
static void see_contents(MPI_Datatype type)
{
    int n_integers, n_addresses, n_types, combiner, integers[64];
    MPI_Aint addresses[64];
    MPI_Datatype types[64];
    MPI_Type_get_envelope(type, &n_integers, &n_addresses, &n_types, &combiner);
    SEE(number_of(combiner));
    if (combiner == MPI_COMBINER_NAMED) {
        int bytes;
        MPI_Type_size(type, &bytes);
        SEE(bytes);
        return;
    }
    SEE(n_integers);
    SEE(n_addresses);
    SEE(n_types);
    MPI_Type_get_contents(type, n_integers, n_addresses, n_types, integers, addresses, types);
    for (int i = 0; i < n_integers; i++) {
        int is_order = combiner == MPI_COMBINER_SUBARRAY && i == n_integers - 1;
        SEE(is_order ? integers[i] == MPI_ORDER_C : integers[i]);
    }
    for (int i = 0; i < n_addresses; i++)
        SEE(addresses[i]);
    for (int i = 0; i < n_types; i++) {
        see_contents(types[i]);
        free_type(&types[i]);
    }
}

/* A datatype of up to so many levels, committed, of which `count` lie within `most` bytes. */
static Type random_type(int levels, int count, int most)
{
    int base = draw(BASES), depth = draw(levels + 1);
    Type type = {bases[base].type, bases[base].type, 1, 0};
    for (int i = 0; i < depth; i++) {
        int items;
        MPI_Datatype made = around(type.type, &items);
        MPI_Aint lb, all;
        MPI_Type_get_true_extent(made, &lb, &all);
        if (count * span_of(made) + labs(lb) > most || items == 0 || extent_of(made) < all) {
            MPI_Type_free(&made);
            continue;
        }
        free_type(&type.type);
        type.type = made;
        type.items *= items;
    }
    /* Of two kinds, so that a receiver must name both. */
    if (draw(4) == 0) {
        MPI_Datatype both[2] = {type.type, MPI_SHORT}, made;
        MPI_Aint lb, extent;
        MPI_Type_get_extent(type.type, &lb, &extent);
        MPI_Aint places[2] = {0, (lb + span_of(type.type) + 7) / 8 * 8};
        made = make_struct(2, (int[]){1, 1}, places, both);
        if (count * span_of(made) + labs(lb) <= most) {
            free_type(&type.type);
            type.type = made;
            type.is_mixed = 1;
        } else {
            MPI_Type_free(&made);
        }
    }
    MPI_Type_commit(&type.type);
    if (has_details) {
        uint64_t before = digest;
        see_contents(type.type);
        digest = before;
    }
    return type;
}

/* The same elements of `count` datatypes, as a receiver or a sender may name them. */
static void as_items(const Type *type, int count, MPI_Datatype *named, int *items)
{
    int is_plain = !type->is_mixed && draw(2);
    *named = is_plain ? type->base : type->type;
    *items = is_plain ? count * type->items : count;
}

static void see_status(MPI_Status *status, MPI_Datatype type)
{
    int count, elements, cancelled;
    MPI_Get_count(status, type, &count);
    /* MPICH 4.0 divides by 0 for some nested datatypes. */
    elements = 0;
    if (type == MPI_INT || type == MPI_DOUBLE)
        MPI_Get_elements(status, type, &elements);
    MPI_Test_cancelled(status, &cancelled);
    SEE(status->MPI_SOURCE);
    SEE(status->MPI_TAG);
    SEE(count);
    SEE(elements);
    SEE(cancelled);
}
