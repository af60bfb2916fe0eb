/* Grids and graphs, with calls between neighbours. */

/* Lets neighbours exchange values: so many from `in` and to `out` of them. Where these numbers
 * differ at any rank (`is_even` is 0), MPI_Neighbor_alltoallw of MPICH 4.0 loses values or waits
 * for ever. */
static void exchange(MPI_Comm on, int in, int out, int is_even)
{
    MPI_Comm old = comm;
    int way = choose_way(), call = draw(is_even ? 5 : 4), here[64], there[64], outs[64], ins[64], from[64], to[64];
    MPI_Aint from_at[64], to_at[64];
    MPI_Datatype types[64];
    comm = on;
    /* As many to each neighbour as anybody sends, since neighbours do not know each other's
     * neighbours. */
    int each = between(1, 2);
    for (int i = 0; i < 64; i++) {
        here[i] = mixed(operation * 100 + world_rank) % 10000 + i;
        there[i] = -1;
        outs[i] = ins[i] = each;
        from[i] = i * each;
        to[i] = i * each;
        from_at[i] = from[i] * sizeof(int);
        to_at[i] = to[i] * sizeof(int);
        types[i] = MPI_INT;
    }
    SEE(call);
    switch (call) {
    case 0:
        COLLECTIVE(way, Neighbor_allgather, neighbor_allgather, here, each, MPI_INT, there, each, MPI_INT);
        break;
    case 1:
        COLLECTIVE(way, Neighbor_allgatherv, neighbor_allgatherv, here, each, MPI_INT, there, ins, to, MPI_INT);
        break;
    case 2:
        COLLECTIVE(way, Neighbor_alltoall, neighbor_alltoall, here, each, MPI_INT, there, each, MPI_INT);
        break;
    case 3:
        COLLECTIVE(way, Neighbor_alltoallv, neighbor_alltoallv, here, outs, from, MPI_INT, there, ins, to,
                   MPI_INT);
        break;
    default:
        COLLECTIVE(way, Neighbor_alltoallw, neighbor_alltoallw, here, outs, from_at, types, there, ins, to_at,
                   types);
    }
    SEE(in);
    SEE(out);
    for (int i = 0; i < in * each; i++)
        SEE(there[i]);
    see_memory("there", there, sizeof there);
    comm = old;
}

static void dims_create(void)
{
    int dims[3] = {0, 0, 0}, n = between(1, 3), nodes = between(1, 24);
    MPI_Dims_create(nodes, n, dims);
    for (int i = 0; i < n; i++)
        SEE(dims[i]);
    dims[0] = 2;
    dims[1] = dims[2] = 0;
    MPI_Dims_create(2 * between(1, 12), n < 2 ? 2 : n, dims);
    for (int i = 0; i < 3; i++)
        SEE(dims[i]);
}

static void cart(void)
{
    int n = between(1, 3), dims[3] = {0, 0, 0}, periods[3], coords[3], kind, low, high, found, remain[3];
    MPI_Comm grid, part;
    MPI_Dims_create(draw(2) || size == 1 ? size : size - 1, n, dims);
    for (int i = 0; i < n; i++) {
        /* With one neighbour on both sides, older libraries exchange what comes from them. */
        periods[i] = draw(2) && dims[i] > 2;
        remain[i] = draw(2);
    }
    MPI_Cart_create(comm, n, dims, periods, 0, &grid);
    SEE(grid == MPI_COMM_NULL);
    if (grid == MPI_COMM_NULL)
        return;
    int own;
    MPI_Comm_rank(grid, &own);
    MPI_Topo_test(grid, &kind);
    SEE(kind == MPI_CART);
    MPI_Cartdim_get(grid, &kind);
    SEE(kind);
    MPI_Cart_get(grid, n, dims, periods, coords);
    for (int i = 0; i < n; i++) {
        SEE(dims[i]);
        SEE(periods[i]);
        SEE(coords[i]);
        MPI_Cart_shift(grid, i, between(-2, 2), &low, &high);
        SEE(low == MPI_PROC_NULL ? -1 : low);
        SEE(high == MPI_PROC_NULL ? -1 : high);
        if (periods[i])
            coords[i] += dims[i] * between(-2, 2);
    }
    MPI_Cart_rank(grid, coords, &found);
    SEE(found);
    exchange(grid, 2 * n, 2 * n, 1);
    exchange(grid, 2 * n, 2 * n, 1);
    /* Without a dimension that remains, libraries differ. */
    remain[draw(n)] = 1;
    MPI_Cart_sub(grid, remain, &part);
    MPI_Cartdim_get(part, &kind);
    SEE(kind);
    see_comm(part);
    MPI_Comm_free(&part);
    MPI_Comm_free(&grid);
}

static void graph(void)
{
    int index[64], edges[64 * 3], next = 0, all, lines, degree, near[64];
    int salt = draw(1000), used = draw(2) ? size : size - size / 3;
    /* Each rank's neighbours are those whose neighbour it is. */
    for (int i = 0; i < used; i++) {
        for (int j = 0; j < used; j++)
            if (i != j && between_ranks(salt, i, j) < 2 && next < 190)
                edges[next++] = j;
        index[i] = next;
    }
    MPI_Comm made;
    MPI_Graph_create(comm, used, index, edges, 0, &made);
    SEE(made == MPI_COMM_NULL);
    if (made == MPI_COMM_NULL)
        return;
    MPI_Graphdims_get(made, &all, &lines);
    SEE(all);
    SEE(lines);
    memset(index, 0, sizeof index);
    MPI_Graph_get(made, all, lines, index, edges);
    see_memory("edges", edges, lines * sizeof(int));
    see_memory("index", index, all * sizeof(int));
    MPI_Graph_neighbors_count(made, rank, &degree);
    SEE(degree);
    MPI_Graph_neighbors(made, rank, 64, near);
    for (int i = 0; i < degree; i++)
        SEE(near[i]);
    exchange(made, degree, degree, 1);
    MPI_Comm_free(&made);
}

static void dist_graph(void)
{
    int sources[64], targets[64], weights[64], others[64], in = 0, out = 0, is_weighted = draw(2), salt = draw(1000);
    int ins, outs, flag, kind;
    MPI_Comm made, twin;
    for (int i = 0; i < size; i++) {
        if (mixed(salt + i * 64 + rank) % 2)
            sources[in++] = i;
        if (mixed(salt + rank * 64 + i) % 2)
            targets[out++] = i;
    }
    for (int i = 0; i < 64; i++)
        weights[i] = others[i] = i + 1;
    if (is_weighted)
        MPI_Dist_graph_create_adjacent(comm, in, sources, weights, out, targets, others, MPI_INFO_NULL, 0, &made);
    else
        MPI_Dist_graph_create_adjacent(comm, in, sources, MPI_UNWEIGHTED, out, targets, MPI_UNWEIGHTED,
                                       MPI_INFO_NULL, 0, &made);
    MPI_Topo_test(made, &kind);
    SEE(kind == MPI_DIST_GRAPH);
    exchange(made, in, out, 0);
    MPI_Comm_dup(made, &twin);
    MPI_Dist_graph_neighbors_count(twin, &ins, &outs, &flag);
    SEE(ins);
    SEE(outs);
    SEE(flag);
    MPI_Dist_graph_neighbors(twin, ins, sources, weights, outs, targets, others);
    for (int i = 0; i < ins; i++) {
        SEE(sources[i]);
        SEE(is_weighted ? weights[i] : 0);
    }
    for (int i = 0; i < outs; i++) {
        SEE(targets[i]);
        SEE(is_weighted ? others[i] : 0);
    }
    exchange(twin, in, out, 0);
    MPI_Comm_free(&twin);
    MPI_Comm_free(&made);
    /* Each rank names the edges of the next one; their order is not fixed. */
    int next = (rank + 1) % size, degree = out;
    long sum = 0;
    out = 0;
    for (int i = 0; i < size; i++)
        if (mixed(salt + next * 64 + i) % 2)
            targets[out++] = i;
    MPI_Dist_graph_create(comm, 1, &next, &out, targets, MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &made);
    MPI_Dist_graph_neighbors_count(made, &ins, &outs, &flag);
    SEE(ins);
    SEE(outs == degree);
    MPI_Dist_graph_neighbors(made, ins, sources, weights, outs, targets, others);
    for (int i = 0; i < ins; i++)
        sum += mixed(sources[i]);
    for (int i = 0; i < outs; i++)
        sum += mixed(targets[i] + 100);
    SEE(sum);
    MPI_Comm_free(&made);
}
