/* Reductions: predefined operations on all datatypes that they take, and operations of the
 * program's. */

/* Kinds of values, of which each has its operations. */
enum { INTEGER, ADDRESS, REAL, COMPLEX, LOGICAL, RAW, PAIR };

static const struct {
    MPI_Datatype type;
    int kind, bytes;
} reduced[] = {
    {MPI_SIGNED_CHAR, INTEGER, 1},   {MPI_UNSIGNED_CHAR, INTEGER, 1}, {MPI_SHORT, INTEGER, 2},
    {MPI_UNSIGNED_SHORT, INTEGER, 2}, {MPI_INT, INTEGER, 4},          {MPI_UNSIGNED, INTEGER, 4},
    {MPI_LONG, INTEGER, 8},          {MPI_UNSIGNED_LONG, INTEGER, 8}, {MPI_LONG_LONG, INTEGER, 8},
    {MPI_INT8_T, INTEGER, 1},        {MPI_INT16_T, INTEGER, 2},       {MPI_INT32_T, INTEGER, 4},
    {MPI_INT64_T, INTEGER, 8},       {MPI_UINT8_T, INTEGER, 1},       {MPI_UINT16_T, INTEGER, 2},
    {MPI_UINT32_T, INTEGER, 4},      {MPI_UINT64_T, INTEGER, 8},      {MPI_AINT, ADDRESS, 8},
    {MPI_COUNT, ADDRESS, 8},         {MPI_OFFSET, ADDRESS, 8},        {MPI_FLOAT, REAL, 4},
    {MPI_DOUBLE, REAL, 8},           {MPI_LONG_DOUBLE, REAL, 16},     {MPI_C_FLOAT_COMPLEX, COMPLEX, 8},
    {MPI_C_DOUBLE_COMPLEX, COMPLEX, 16}, {MPI_C_BOOL, LOGICAL, 1},    {MPI_BYTE, RAW, 1},
    {MPI_2INT, PAIR, 8},             {MPI_FLOAT_INT, PAIR, 8},        {MPI_DOUBLE_INT, PAIR, 16},
    {MPI_LONG_INT, PAIR, 16},        {MPI_SHORT_INT, PAIR, 8},        {MPI_LONG_DOUBLE_INT, PAIR, 32},
};
enum { REDUCED = sizeof reduced / sizeof *reduced };

static MPI_Op choose_predefined(int kind)
{
    static const MPI_Op integer[] = {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX, MPI_BAND, MPI_BOR, MPI_BXOR,
                                     MPI_LAND, MPI_LOR, MPI_LXOR};
    static const MPI_Op logical[] = {MPI_LAND, MPI_LOR, MPI_LXOR};
    static const MPI_Op raw[] = {MPI_BAND, MPI_BOR, MPI_BXOR};
    static const MPI_Op pair[] = {MPI_MINLOC, MPI_MAXLOC};
    switch (kind) {
    case INTEGER:
        return integer[draw(10)];
    case ADDRESS:
        return integer[draw(7)];
    case REAL:
        return integer[draw(4)];
    case COMPLEX:
        return integer[draw(2)];
    case LOGICAL:
        return logical[draw(3)];
    case RAW:
        return raw[draw(3)];
    default:
        return pair[draw(2)];
    }
}

static MPI_Op choose_operation(int kind)
{
    MPI_Op op = choose_predefined(kind);
    int number = op == MPI_SUM ? 0 : op == MPI_PROD ? 1 : op == MPI_MIN ? 2 : op == MPI_MAX ? 3 : 4;
    SEE(number);
    return op;
}

static int is_unsigned(MPI_Datatype type)
{
    return type == MPI_UNSIGNED_CHAR || type == MPI_UNSIGNED_SHORT || type == MPI_UNSIGNED ||
           type == MPI_UNSIGNED_LONG || type == MPI_UINT8_T || type == MPI_UINT16_T || type == MPI_UINT32_T ||
           type == MPI_UINT64_T;
}

/* Writes values, exact in every order of sums and products, and nothing between them. */
static void fill_values(void *at, int which, int count, int salt)
{
    unsigned char *next = at;
    for (int i = 0; i < count; i++, next += reduced[which].bytes) {
        uint64_t any = mixed(seed + operation * 1000 + world_rank * 50 + salt + i);
        int small = any % 5 - (reduced[which].kind != PAIR);
        memset(next, 0, reduced[which].bytes);
        MPI_Datatype type = reduced[which].type;
        if (type == MPI_FLOAT || type == MPI_C_FLOAT_COMPLEX || type == MPI_FLOAT_INT)
            ((float *)next)[0] = small * 0.5f;
        else if (type == MPI_DOUBLE || type == MPI_C_DOUBLE_COMPLEX || type == MPI_DOUBLE_INT)
            ((double *)next)[0] = small * 0.25;
        else if (type == MPI_LONG_DOUBLE || type == MPI_LONG_DOUBLE_INT)
            ((long double *)next)[0] = small * 0.25L;
        else if (type == MPI_LONG_INT)
            ((long *)next)[0] = small;
        else if (type == MPI_2INT)
            ((int *)next)[0] = small;
        else if (type == MPI_SHORT_INT)
            ((short *)next)[0] = small;
        else if (reduced[which].kind == LOGICAL)
            next[0] = any % 2;
        else {
            /* MPICH 4.0 takes large values of unsigned types for negative ones. */
            any &= is_unsigned(type) ? 0x7f7f7f7f7f7f7f7f : UINT64_MAX;
            memcpy(next, &any, reduced[which].bytes);
        }
        if (type == MPI_C_FLOAT_COMPLEX)
            ((float *)next)[1] = (any >> 20) % 3;
        if (type == MPI_C_DOUBLE_COMPLEX)
            ((double *)next)[1] = (any >> 20) % 3;
        int index = (any >> 30) % 7, place = type == MPI_LONG_DOUBLE_INT ? 16 : reduced[which].bytes / 2;
        if (reduced[which].kind == PAIR)
            memcpy(next + (type == MPI_SHORT_INT ? 4 : place), &index, sizeof index);
    }
}

/* Takes values into the digest, without the bytes in and behind a long double or a pair that hold
 * nothing. */
static void see_values(void *at, int which, int count)
{
    unsigned char *next = at;
    /* The sign of a zero depends on the order. */
    for (int i = 0; reduced[which].type == MPI_C_FLOAT_COMPLEX && i < 2 * count; i++)
        ((float *)at)[i] += 0.0f;
    for (int i = 0; reduced[which].type == MPI_C_DOUBLE_COMPLEX && i < 2 * count; i++)
        ((double *)at)[i] += 0.0;
    uint64_t before = digest;
    digest = 0;
    for (int i = 0; i < count; i++, next += reduced[which].bytes) {
        MPI_Datatype type = reduced[which].type;
        int is_pair = reduced[which].kind == PAIR, half = reduced[which].bytes / 2;
        int first = type == MPI_LONG_DOUBLE || type == MPI_LONG_DOUBLE_INT ? 10
                    : type == MPI_SHORT_INT                                ? 2
                    : is_pair                                              ? half
                                                                           : reduced[which].bytes;
        see_bytes(next, first);
        if (is_pair)
            see_bytes(next + half, sizeof(int));
    }
    uint64_t own = digest;
    digest = before;
    see_number("values", (long)own);
}

/* One of the reductions with an operation on values. `see` takes so many values of a result. */
static void reduce_by(MPI_Op op, MPI_Datatype type, int bytes, int most,
                      void (*prepare)(void *at, int count, int salt), void (*see)(void *at, int count))
{
    int call = draw(6), way = choose_way(), root = draw(1000) % size, is_in_place = draw(3) == 0;
    int count = between(1, most), all = 0;
    for (int i = 0; i < size; i++)
        all += counts[i] = draw(3);
    SEE(call);
    blank(&came);
    prepare(IN(sent), count * size, 0);
    prepare(IN(came), count * size, 500);
    prepare(IN(more), count * size, 0);
    const void *from = is_in_place ? MPI_IN_PLACE : IN(sent);
    void *to = is_in_place ? IN(more) : IN(came);
    switch (call) {
    case 0:
        if (rank != root)
            from = IN(sent);
        COLLECTIVE(way, Reduce, reduce, from, to, count, type, op, root);
        if (rank == root)
            see(to, count);
        break;
    case 1:
        COLLECTIVE(way, Allreduce, allreduce, from, to, count, type, op);
        see(to, count);
        break;
    case 2:
        COLLECTIVE(way, Scan, scan, from, to, count, type, op);
        see(to, count);
        break;
    case 3:
        COLLECTIVE(way, Exscan, exscan, from, to, count, type, op);
        if (rank > 0)
            see(to, count);
        break;
    case 4:
        COLLECTIVE(way, Reduce_scatter_block, reduce_scatter_block, from, to, count, type, op);
        see(to, count);
        break;
    default:
        prepare(IN(sent), all, 0);
        prepare(IN(more), all, 0);
        COLLECTIVE(way, Reduce_scatter, reduce_scatter, from, to, counts, type, op);
        see(to, counts[rank]);
    }
    if (!is_in_place)
        see_memory("behind", IN(came) + count * size * bytes, 64);
}

static int chosen;

static void prepare_chosen(void *at, int count, int salt)
{
    fill_values(at, chosen, count, salt);
}

static void see_chosen(void *at, int count)
{
    see_values(at, chosen, count);
}

static void reduce(void)
{
    chosen = draw(REDUCED);
    MPI_Op op = choose_operation(reduced[chosen].kind);
    int commutes, most = draw(3) ? 20 : 200;
    MPI_Op_commutative(op, &commutes);
    SEE(commutes);
    SEE(chosen);
    reduce_by(op, reduced[chosen].type, reduced[chosen].bytes, most, prepare_chosen, see_chosen);
}

static void reduce_local(void)
{
    chosen = draw(REDUCED);
    int count = draw(10);
    SEE(chosen);
    fill_values(IN(sent), chosen, count, 0);
    fill_values(IN(came), chosen, count, 100);
    MPI_Reduce_local(IN(sent), IN(came), count, reduced[chosen].type,
                     choose_operation(reduced[chosen].kind));
    see_values(IN(came), chosen, count);
}

/* A function of one number: it multiplies and adds. Functions after functions do not commute. */
typedef struct {
    uint32_t factor, gap, sum;
} Line;

static MPI_Datatype line_type;

static void compose(void *in, void *inout, int *count, MPI_Datatype *type)
{
    Line *first = in, *second = inout;
    if (*type != line_type)
        see_number("another datatype", 1);
    for (int i = 0; i < *count; i++) {
        second[i].sum += second[i].factor * first[i].sum;
        second[i].factor *= first[i].factor;
    }
}

static void prepare_lines(void *at, int count, int salt)
{
    for (Line *line = at; line < (Line *)at + count; line++) {
        uint64_t any = mixed(seed + operation * 1000 + world_rank * 50 + salt + (line - (Line *)at));
        *line = (Line){any, 0, any >> 32};
    }
}

static void see_lines(void *at, int count)
{
    for (const Line *line = at; line < (const Line *)at + count; line++) {
        SEE(line->factor);
        SEE(line->sum);
    }
}

static void reduce_user(void)
{
    MPI_Op op;
    int commutes;
    MPI_Type_vector(2, 1, 2, MPI_UINT32_T, &line_type);
    MPI_Type_commit(&line_type);
    MPI_Op_create(compose, 0, &op);
    MPI_Op_commutative(op, &commutes);
    SEE(commutes);
    reduce_by(op, line_type, sizeof(Line), 10, prepare_lines, see_lines);
    MPI_Op_free(&op);
    SEE(op == MPI_OP_NULL);
    MPI_Type_free(&line_type);
}
