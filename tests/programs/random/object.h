/* Calls that need no other rank: datatypes, packing, attributes, infos, errors, statuses. */

static void datatype(void)
{
    Type type = random_type(4, 3, 12000);
    MPI_Aint lb, extent, true_lb, true_extent;
    MPI_Count long_lb, long_extent, long_size;
    int bytes, length;
    char name[MPI_MAX_OBJECT_NAME];
    MPI_Datatype twin;
    MPI_Type_size(type.type, &bytes);
    MPI_Type_get_extent(type.type, &lb, &extent);
    MPI_Type_get_true_extent(type.type, &true_lb, &true_extent);
    SEE(bytes);
    SEE(lb);
    SEE(extent);
    SEE(true_lb);
    SEE(true_extent);
    MPI_Type_get_extent_x(type.type, &long_lb, &long_extent);
    MPI_Type_size_x(type.type, &long_size);
    SEE(long_lb == lb && long_extent == extent && long_size == bytes);
    MPI_Type_dup(type.type, &twin);
    MPI_Type_set_name(twin, "twin");
    MPI_Type_get_name(twin, name, &length);
    see_bytes(name, length);
    MPI_Type_free(&twin);
    SEE(twin == MPI_DATATYPE_NULL);
    MPI_Type_get_name(type.base, name, &length);
    see_bytes(name, length);
    free_type(&type.type);
}

static void pack(void)
{
    int count = between(1, 3), at = 0, room, length, value = world_rank, items;
    Type type = random_type(3, count, 12000);
    MPI_Datatype named;
    MPI_Status status;
    as_items(&type, count, &named, &items);
    fill(&sent, 0);
    blank(&came);
    blank(&more);
    MPI_Pack_size(count, type.type, comm, &room);
    MPI_Type_size(type.type, &length);
    SEE(room >= count * length);
    MPI_Pack(&value, 1, MPI_INT, more.bytes, ROOM, &at, comm);
    MPI_Pack(IN(sent), items, named, more.bytes, ROOM, &at, comm);
    SEE(at);
    SEE_ROOM(more);
    length = at;
    /* The neighbour unpacks it. */
    MPI_Sendrecv(more.bytes, length, MPI_PACKED, (rank + 1) % size, 0, sent.bytes, ROOM, MPI_PACKED,
                 (rank + size - 1) % size, 0, comm, &status);
    MPI_Get_count(&status, MPI_PACKED, &length);
    SEE(length);
    at = 0;
    MPI_Unpack(sent.bytes, ROOM, &at, &value, 1, MPI_INT, comm);
    MPI_Unpack(sent.bytes, ROOM, &at, IN(came), count, type.type, comm);
    SEE(value);
    SEE(at);
    SEE_ROOM(came);
    free_type(&type.type);
}

static void contents(void)
{
    Type type = random_type(4, 3, 12000);
    see_contents(type.type);
    free_type(&type.type);
}

static int copied, deleted;

static int copy_attribute(MPI_Comm from, int key, void *extra, void *value, void *to, int *flag)
{
    copied += *(int *)extra;
    *(void **)to = (char *)value + 1;
    *flag = (uintptr_t)value % 3 != 0;
    return MPI_SUCCESS;
}

static int delete_attribute(MPI_Comm from, int key, void *value, void *extra)
{
    deleted += (int)(uintptr_t)value;
    return MPI_SUCCESS;
}

static int copy_of_type(MPI_Datatype from, int key, void *extra, void *value, void *to, int *flag)
{
    return copy_attribute(MPI_COMM_NULL, key, extra, value, to, flag);
}

static int delete_of_type(MPI_Datatype from, int key, void *value, void *extra)
{
    return delete_attribute(MPI_COMM_NULL, key, value, extra);
}

static void attribute(void)
{
    int keys[3], extra = between(1, 5), flag, code, class;
    void *value;
    MPI_Comm made, twin;
    MPI_Datatype type, type_twin;
    copied = deleted = 0;
    MPI_Comm_dup(comm, &made);
    for (int i = 0; i < 3; i++) {
        MPI_Comm_create_keyval(draw(4) ? copy_attribute : draw(2) ? MPI_COMM_DUP_FN : MPI_COMM_NULL_COPY_FN,
                               delete_attribute, &keys[i], &extra);
        MPI_Comm_set_attr(made, keys[i], (void *)(uintptr_t)(i + draw(10)));
    }
    if (draw(2))
        MPI_Comm_set_attr(made, keys[0], (void *)77);
    MPI_Comm_dup(made, &twin);
    for (int i = 0; i < 3; i++) {
        MPI_Comm_get_attr(twin, keys[i], &value, &flag);
        SEE(flag ? (long)(uintptr_t)value : -1);
    }
    SEE(copied);
    SEE(deleted);
    MPI_Comm_delete_attr(made, keys[1]);
    MPI_Comm_get_attr(made, keys[1], &value, &flag);
    SEE(flag);
    SEE(deleted);
    MPI_Comm_free(&twin);
    SEE(deleted);
    MPI_Comm_free(&made);
    SEE(deleted);
    for (int i = 0; i < 3; i++)
        MPI_Comm_free_keyval(&keys[i]);
    SEE(keys[0] == MPI_KEYVAL_INVALID);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    code = MPI_Comm_set_attr(comm, MPI_KEYVAL_INVALID, NULL);
    MPI_Error_class(code, &class);
    SEE(class == MPI_ERR_KEYVAL);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL);

    copied = deleted = 0;
    MPI_Type_create_keyval(copy_of_type, delete_of_type, &keys[0], &extra);
    MPI_Type_contiguous(2, MPI_INT, &type);
    MPI_Type_set_attr(type, keys[0], (void *)(uintptr_t)draw(20));
    MPI_Type_dup(type, &type_twin);
    MPI_Type_get_attr(type_twin, keys[0], &value, &flag);
    SEE(flag ? (long)(uintptr_t)value : -1);
    MPI_Type_free(&type_twin);
    MPI_Type_free(&type);
    MPI_Type_free_keyval(&keys[0]);
    SEE(copied);
    SEE(deleted);
}

static void info(void)
{
    MPI_Info made, twin;
    int count = between(0, 6), found, flag, length;
    long sum = 0;
    char key[MPI_MAX_INFO_KEY + 1], value[64];
    MPI_Info_create(&made);
    for (int i = 0; i < count; i++) {
        snprintf(key, sizeof key, "key %d", draw(8));
        snprintf(value, sizeof value, "value %d", draw(1000000));
        MPI_Info_set(made, key, value);
    }
    MPI_Info_dup(made, &twin);
    MPI_Info_get_nkeys(made, &found);
    SEE(found);
    for (int i = 0; i < found; i++) {
        uint64_t before = digest;
        MPI_Info_get_nthkey(made, i, key);
        digest = 1;
        see_bytes(key, strlen(key));
        sum += digest;
        digest = before;
    }
    SEE(sum);
    for (int i = 0; i < 8; i++) {
        snprintf(key, sizeof key, "key %d", i);
        memset(value, 0, sizeof value);
        MPI_Info_get_valuelen(made, key, &length, &flag);
        SEE(flag ? length : -1);
        MPI_Info_get(twin, key, 20, value, &flag);
        SEE(flag);
        see_bytes(value, sizeof value);
        length = 4;
        memset(value, 0, sizeof value);
        MPI_Info_get_string(made, key, &length, value, &flag);
        SEE(flag ? length : -1);
        see_bytes(value, sizeof value);
        if (flag && draw(2))
            MPI_Info_delete(made, key);
    }
    MPI_Info_get_nkeys(made, &found);
    SEE(found);
    MPI_Info_get_nkeys(twin, &found);
    SEE(found);
    MPI_Info_free(&made);
    MPI_Info_free(&twin);
    SEE(made == MPI_INFO_NULL);
}

/* Whether a wrong call returns the class that the standard wants. */
#define WRONG(wanted, call)                                           \
    do {                                                              \
        int class_ = -1, code_ = (call);                              \
        MPI_Error_class(code_, &class_);                              \
        see_number(#call, class_ == (wanted) ? 1 : code_ == MPI_SUCCESS ? 0 : -class_); \
    } while (0)

static void errors(void)
{
    int value = 1, others[2] = {-1, 2}, n = 1;
    MPI_Request request;
    MPI_Status status;
    MPI_Datatype type;
    MPI_Group all, some;
    MPI_Errhandler old;
    MPI_Comm_get_errhandler(comm, &old);
    SEE(old == MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    WRONG(MPI_ERR_RANK, MPI_Send(&value, 1, MPI_INT, size, 0, comm));
    WRONG(MPI_ERR_RANK, MPI_Recv(&value, 1, MPI_INT, -7, 0, comm, &status));
    WRONG(MPI_ERR_TAG, MPI_Send(&value, 1, MPI_INT, rank, -5, comm));
    WRONG(MPI_ERR_TAG, MPI_Irecv(&value, 1, MPI_INT, rank, -7, comm, &request));
    WRONG(MPI_ERR_COUNT, MPI_Send(&value, -1, MPI_INT, rank, 0, comm));
    WRONG(MPI_ERR_TYPE, MPI_Send(&value, 1, MPI_DATATYPE_NULL, rank, 0, comm));
    WRONG(MPI_ERR_COMM, MPI_Send(&value, 1, MPI_INT, rank, 0, MPI_COMM_NULL));
    WRONG(MPI_ERR_COMM, MPI_Barrier(MPI_COMM_NULL));
    WRONG(MPI_ERR_ROOT, MPI_Bcast(&value, 1, MPI_INT, size, comm));
    WRONG(MPI_ERR_OP, MPI_Allreduce(&others[0], &value, 1, MPI_INT, MPI_OP_NULL, comm));
    WRONG(MPI_ERR_OP, MPI_Allreduce(&others[0], &value, 1, MPI_FLOAT, MPI_BXOR, comm));
    WRONG(MPI_ERR_COUNT, MPI_Bcast(&value, -1, MPI_INT, 0, comm));
    WRONG(MPI_ERR_GROUP, MPI_Group_size(MPI_GROUP_NULL, &n));
    MPI_Comm_group(comm, &all);
    WRONG(MPI_ERR_RANK, MPI_Group_incl(all, 1, &others[0], &some));
    MPI_Group_free(&all);
    WRONG(MPI_ERR_TOPOLOGY, MPI_Cartdim_get(comm, &n));
    WRONG(MPI_ERR_TOPOLOGY, MPI_Cart_coords(comm, 0, 2, others));
    WRONG(MPI_ERR_DIMS, MPI_Dims_create(7, 1, (int[]){2}));
    MPI_Type_contiguous(2, MPI_INT, &type);
    WRONG(MPI_ERR_TYPE, MPI_Send(others, 1, type, rank, 0, comm));
    MPI_Type_free(&type);
    WRONG(MPI_ERR_COUNT, MPI_Type_contiguous(-1, MPI_INT, &type));
    WRONG(MPI_ERR_INFO_KEY, MPI_Info_set(MPI_INFO_ENV, "", "value"));
    WRONG(MPI_ERR_REQUEST, (request = MPI_REQUEST_NULL, MPI_Request_free(&request)));
    WRONG(MPI_ERR_WIN, MPI_Win_fence(0, MPI_WIN_NULL));
    WRONG(MPI_ERR_OP, MPI_Op_free(&(MPI_Op){MPI_SUM}));
    WRONG(MPI_ERR_COMM, MPI_Comm_free(&(MPI_Comm){MPI_COMM_WORLD}));
    SEE(value);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
}

/* Counts and elements of messages that end within a datatype. */
static void status_of(void)
{
    MPI_Datatype both;
    MPI_Aint places[2] = {0, 8};
    MPI_Status status;
    MPI_Type_create_struct(2, (int[]){1, 1}, places, (MPI_Datatype[]){MPI_INT, MPI_DOUBLE}, &both);
    MPI_Type_commit(&both);
    fill(&sent, 0);
    blank(&came);
    int sends = between(0, 4), next = (rank + 1) % size, before = (rank + size - 1) % size, count, elements;
    MPI_Datatype odd;
    MPI_Type_create_struct(2, (int[]){sends, draw(2)}, (MPI_Aint[]){0, sends * extent_of(both)},
                           (MPI_Datatype[]){both, MPI_INT}, &odd);
    MPI_Type_commit(&odd);
    MPI_Sendrecv(IN(sent), 1, odd, next, 0, IN(came), 10, both, before, 0, comm, &status);
    MPI_Get_count(&status, both, &count);
    MPI_Get_elements(&status, both, &elements);
    SEE(count == MPI_UNDEFINED ? -1 : count);
    SEE(elements == MPI_UNDEFINED ? -1 : elements);
    SEE_ROOM(came);
    MPI_Status_set_elements(&status, MPI_INT, 5);
    MPI_Get_elements(&status, MPI_INT, &elements);
    SEE(elements);
    MPI_Status_set_cancelled(&status, 1);
    MPI_Test_cancelled(&status, &count);
    SEE(count);
    MPI_Type_free(&odd);
    MPI_Type_free(&both);
}
