/* Communicators and groups. */

/* Takes what a communicator is into the digest, and lets its ranks exchange a value. */
static void see_comm(MPI_Comm made)
{
    if (made == MPI_COMM_NULL) {
        SEE(-1);
        return;
    }
    int own, all, result, inter, flag, sum = 0;
    char name[MPI_MAX_OBJECT_NAME];
    MPI_Comm_rank(made, &own);
    MPI_Comm_size(made, &all);
    MPI_Comm_compare(made, comm, &result);
    MPI_Comm_test_inter(made, &inter);
    SEE(own);
    SEE(all);
    SEE(inter);
    if (!inter)
        SEE(result == MPI_IDENT ? 0 : result == MPI_CONGRUENT ? 1 : result == MPI_SIMILAR ? 2 : 3);
    MPI_Comm_get_name(made, name, &result);
    SEE(result);
    void *bound;
    MPI_Comm_get_attr(made, MPI_TAG_UB, &bound, &flag);
    SEE(flag);
    int value = mixed(operation * 100 + world_rank) % 1000;
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, made);
    SEE(sum);
}

static void split(void)
{
    MPI_Comm made, twin;
    MPI_Request request;
    int salt = draw(1000), colours = between(1, 3);
    int colour = mixed(salt + rank) % (colours + 1), key = mixed(salt * 7 + rank) % 3;
    MPI_Comm_split(comm, colour == colours ? MPI_UNDEFINED : colour, key, &made);
    see_comm(made);
    if (made != MPI_COMM_NULL) {
        switch (draw(3)) {
        case 0:
            MPI_Comm_dup(made, &twin);
            break;
        case 1:
            MPI_Comm_idup(made, &twin, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            break;
        default:
            MPI_Comm_dup_with_info(made, MPI_INFO_NULL, &twin);
        }
        see_comm(twin);
        MPI_Comm_free(&twin);
        SEE(twin == MPI_COMM_NULL);
        MPI_Comm_free(&made);
    }
}

/* A group of some ranks in some order, the same at all ranks. */
static MPI_Group choose_group(MPI_Group all)
{
    int count;
    MPI_Group_size(all, &count);
    int members[64], chosen_ones = 0, turn = draw(1000);
    for (int i = 0; i < count; i++)
        if (draw(3))
            members[chosen_ones++] = (i + turn) % count;
    MPI_Group made;
    MPI_Group_incl(all, chosen_ones, members, &made);
    return made;
}

static void create(void)
{
    MPI_Group all, some;
    MPI_Comm made = MPI_COMM_NULL;
    int member;
    MPI_Comm_group(comm, &all);
    some = choose_group(all);
    MPI_Group_rank(some, &member);
    if (draw(2))
        MPI_Comm_create(comm, some, &made);
    else if (member != MPI_UNDEFINED)
        MPI_Comm_create_group(comm, some, 17, &made);
    see_comm(made);
    if (made != MPI_COMM_NULL)
        MPI_Comm_free(&made);
    MPI_Group_free(&some);
    MPI_Group_free(&all);
}

static void see_group(MPI_Group group_, MPI_Group all)
{
    int count, own, ranks[64], translated[64];
    MPI_Group_size(group_, &count);
    MPI_Group_rank(group_, &own);
    SEE(count);
    SEE(own == MPI_UNDEFINED ? -1 : own);
    for (int i = 0; i < count; i++)
        ranks[i] = i;
    MPI_Group_translate_ranks(group_, count, ranks, all, translated);
    for (int i = 0; i < count; i++)
        SEE(translated[i]);
}

static void group(void)
{
    MPI_Group all, one, other, made;
    int result, count;
    MPI_Comm_group(comm, &all);
    one = choose_group(all);
    other = choose_group(all);
    int last = size - 1, range[2][3] = {{last, draw(size) % (last + 1), -1}, {0, 0, 1}};
    MPI_Group_union(one, other, &made);
    see_group(made, all);
    MPI_Group_compare(made, one, &result);
    SEE(result == MPI_IDENT ? 0 : result == MPI_SIMILAR ? 1 : 2);
    MPI_Group_free(&made);
    MPI_Group_intersection(one, other, &made);
    see_group(made, all);
    MPI_Group_free(&made);
    MPI_Group_difference(one, other, &made);
    see_group(made, all);
    MPI_Group_free(&made);
    MPI_Group_excl(all, 1, (int[]){draw(size)}, &made);
    see_group(made, all);
    MPI_Group_free(&made);
    MPI_Group_range_incl(all, 1, range, &made);
    see_group(made, all);
    MPI_Group_free(&made);
    MPI_Group_range_excl(all, 1, range, &made);
    see_group(made, all);
    MPI_Group_free(&made);
    /* MPICH 4.0 does not find it in an empty group. */
    MPI_Group_translate_ranks(one, 1, (int[]){MPI_PROC_NULL}, all, &count);
    SEE(count == MPI_PROC_NULL);
    MPI_Group_free(&one);
    MPI_Group_free(&other);
    MPI_Group_free(&all);
    SEE(all == MPI_GROUP_NULL);
}

/* Two groups of ranks, and calls from one to the other. */
static void intercomm(void)
{
    if (size < 2)
        return;
    int cut = between(1, size - 1), side = rank >= cut, there, own, is_high = draw(2), result;
    int way = choose_way(), sender = draw(2), all[64] = {0}, some[64] = {0};
    MPI_Comm half, both, merged, twin;
    MPI_Group group_;
    MPI_Comm_split(comm, side, rank, &half);
    MPI_Intercomm_create(half, 0, comm, side ? 0 : cut, 3, &both);
    MPI_Comm_rank(both, &own);
    MPI_Comm_remote_size(both, &there);
    SEE(there);
    MPI_Comm_remote_group(both, &group_);
    MPI_Group_size(group_, &result);
    SEE(result);
    MPI_Group_free(&group_);
    MPI_Comm_dup(both, &twin);
    MPI_Comm_compare(both, twin, &result);
    SEE(result == MPI_CONGRUENT);
    MPI_Comm_free(&twin);
    MPI_Comm old = comm;
    comm = both;
    int value = mixed(operation + world_rank) % 1000, root = side != sender ? 0 : own == 0 ? MPI_ROOT
                                                                                           : MPI_PROC_NULL;
    COLLECTIVE(way, Allreduce, allreduce, &value, &all[0], 1, MPI_INT, MPI_SUM);
    SEE(all[0]);
    COLLECTIVE(way, Allgather, allgather, &value, 1, MPI_INT, all, 1, MPI_INT);
    for (int i = 0; i < there; i++)
        SEE(all[i]);
    for (int i = 0; i < there; i++)
        some[i] = value + i;
    COLLECTIVE(way, Alltoall, alltoall, some, 1, MPI_INT, all, 1, MPI_INT);
    for (int i = 0; i < there; i++)
        SEE(all[i]);
    memset(all, 0, sizeof all);
    COLLECTIVE(way, Gather, gather, &value, 1, MPI_INT, all, 1, MPI_INT, root);
    see_memory("gathered", all, sizeof all);
    COLLECTIVE(way, Reduce, reduce, &value, some, 1, MPI_INT, MPI_SUM, root);
    if (root == MPI_ROOT)
        SEE(some[0]);
    COLLECTIVE(way, Scatter, scatter, all, 1, MPI_INT, &value, 1, MPI_INT, root);
    SEE(value);
    COLLECTIVE(way, Bcast, bcast, &value, 1, MPI_INT, root);
    SEE(value);
    MPI_Barrier(comm);
    comm = old;
    if (own == 0) {
        MPI_Sendrecv(&value, 1, MPI_INT, there - 1, 1, all, 0, MPI_INT, MPI_PROC_NULL, 1, both,
                     MPI_STATUS_IGNORE);
    }
    MPI_Comm_size(both, &result);
    if (own == result - 1) {
        MPI_Recv(&value, 1, MPI_INT, 0, 1, both, MPI_STATUS_IGNORE);
        SEE(value);
    }
    MPI_Intercomm_merge(both, is_high ? !side : side, &merged);
    see_comm(merged);
    MPI_Comm_free(&merged);
    MPI_Comm_free(&both);
    MPI_Comm_free(&half);
}
