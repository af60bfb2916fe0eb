"""A random MPI program with mpi4py: random_objects.py SEED OPERATIONS FILE. All ranks derive the same operations
from the seed, and each writes a line for each to FILE.RANK, with what the standard fixes of its result."""
import random
import sys

import numpy as np
from mpi4py import MPI

seed, operations, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
world = MPI.COMM_WORLD
comms = [world, world.Dup(), world.Split(0, -world.rank), world.Split(world.rank % 2, world.rank)]
types = [np.int8, np.uint16, np.int32, np.int64, np.float32, np.float64, np.complex128]


def value(comm, salt=0):
    """An object that is this rank's own."""
    own = random.Random(f"{seed} {number} {world.rank} {salt}")
    numbers = [own.randrange(1000) for _ in range(own.randrange(40))]
    return {"rank": comm.rank, "list": numbers, "text": "é" * own.randrange(5)}


def array(shared, count, salt=0):
    """Small numbers, exact in any order of sums."""
    own = np.random.RandomState((seed * 1009 + number * 31 + world.rank * 7 + salt) % 2**32)
    return own.randint(0, 4, count).astype(shared.choice(types))


def objects(comm, shared):
    root, way = shared.randrange(comm.size), shared.randrange(8)
    mine = value(comm)
    if way == 0:
        return comm.bcast(mine if comm.rank == root else None, root)
    if way == 1:
        return comm.gather(mine, root)
    if way == 2:
        return comm.scatter([value(comm, i) for i in range(comm.size)] if comm.rank == root else None, root)
    if way == 3:
        return comm.allgather(mine)
    if way == 4:
        return comm.alltoall([value(comm, i) for i in range(comm.size)])
    if way == 5:
        return comm.allreduce(mine["list"], op=MPI.SUM)
    if way == 6:
        return comm.scan(comm.rank + 1, op=lambda a, b: a * 10 + b)
    return comm.reduce(len(mine["list"]), op=MPI.MAX, root=root)


def messages(comm, shared):
    by, tag, way = shared.randrange(comm.size), shared.randrange(50), shared.randrange(4)
    to, source, status = (comm.rank + by) % comm.size, (comm.rank - by) % comm.size, MPI.Status()
    mine = value(comm)
    if way == 0:
        return comm.sendrecv(mine, to, tag, None, source, tag)
    request = (comm.isend if way == 1 else comm.issend)(mine, to, tag)
    if way == 3:
        message = comm.mprobe(MPI.ANY_SOURCE, tag, status)
        came = message.recv()
    else:
        came = comm.recv(None, MPI.ANY_SOURCE, MPI.ANY_TAG, status)
    request.wait()
    return came, status.Get_source(), status.Get_tag(), status.Get_count(MPI.BYTE)


def buffers(comm, shared):
    root, way, count = shared.randrange(comm.size), shared.randrange(9), shared.randint(1, 300)
    sent = array(shared, count)
    came = np.full(count * comm.size, 7, sent.dtype)
    if way == 0:
        comm.Bcast(sent, root)
        return sent
    if way == 1:
        comm.Ibcast(sent, root).Wait()
        return sent
    if way == 2:
        comm.Allgather(sent, came)
    if way == 3:
        counts = [(i * 7 + count) % (count + 1) for i in range(comm.size)]
        comm.Allgatherv(sent[: counts[comm.rank]], [came, counts])
    if way == 4:
        comm.Allreduce(sent, came[:count], MPI.SUM)
    if way == 5:
        came[:count] = sent
        comm.Iallreduce(MPI.IN_PLACE, came[:count], MPI.PROD).Wait()
    if way == 6:
        comm.Gather(sent, came, root)
    if way == 7:
        comm.Alltoall(np.tile(sent, comm.size), came)
    if way == 8:
        comm.Scan(sent, came[:count], MPI.SUM)
    return came


def datatypes(comm, shared):
    rows, columns = shared.randint(1, 6), shared.randint(1, 6)
    grid = np.arange(rows * columns * 4, dtype=np.int32).reshape(2 * rows, 2 * columns) + 1000 * world.rank
    came = np.zeros_like(grid)
    starts = [shared.randint(0, rows), shared.randint(0, columns)]
    part = MPI.INT.Create_subarray(grid.shape, [rows, columns], starts).Commit()
    comm.Sendrecv([grid, 1, part], (comm.rank + 1) % comm.size, 0, [came, 1, part], (comm.rank - 1) % comm.size, 0)
    packed = bytearray(part.Pack_size(1, comm))
    length = part.Pack(grid, packed, 0, comm)
    result = came.tolist(), length, bytes(packed[:length]), part.Get_extent(), part.Get_size()
    part.Free()
    return result


def windows(comm, shared):
    memory = np.arange(64, dtype=np.int64) + 100 * world.rank
    here, by = np.arange(8, dtype=np.int64) + world.rank, shared.randrange(comm.size)
    came, to = np.zeros(8, np.int64), (comm.rank + by) % comm.size
    win = MPI.Win.Create(memory, 8, comm=comm)
    win.Fence()
    win.Put(here, to, [0, 8, MPI.INT64_T])
    win.Get(came, to, [8, 8, MPI.INT64_T])
    win.Accumulate(here, to, [16, 8, MPI.INT64_T], MPI.SUM)
    win.Fence()
    comm.Barrier()
    win.Lock(0)
    win.Accumulate(here, 0, [32, 8, MPI.INT64_T], MPI.SUM)
    win.Unlock(0)
    comm.Barrier()
    win.Free()
    return memory, came


def communicators(comm, shared):
    part = comm.Split(shared.randrange(2) * (comm.rank % 2), comm.rank)
    grid = part.Create_cart(MPI.Compute_dims(part.size, 2), [False, False])
    result = part.rank, part.size, grid.dims, grid.coords, grid.Shift(0, 1)
    result += (grid.neighbor_allgather(world.rank),)
    group = comm.group.Excl([shared.randrange(comm.size)])
    result += (group.size, group.rank, part.allreduce(world.rank))
    group.Free()
    grid.Free()
    part.Free()
    return result


def wrong(comm, shared):
    classes = []
    for call in (
        lambda: comm.send(1, comm.size),
        lambda: comm.Recv(np.zeros(1), -7),
        lambda: comm.Bcast(np.zeros(1), comm.size),
        lambda: comm.Send([np.zeros(1), 1, MPI.DATATYPE_NULL], 0),
        lambda: MPI.COMM_NULL.Barrier(),
        lambda: MPI.INT.Create_contiguous(-1),
    ):
        try:
            call()
            classes.append(0)
        except MPI.Exception as error:
            classes.append(error.Get_error_class())
    return classes


perform = [objects, objects, messages, messages, buffers, buffers, datatypes, windows, communicators, wrong]
np.set_printoptions(threshold=100000, linewidth=100000)
with open(f"{path}.{world.rank}", "w", encoding="utf-8") as out:
    for number in range(operations):
        shared = random.Random(f"{seed} {number}")
        operation = shared.choice(perform)
        result = operation(shared.choice(comms), shared)
        world.Barrier()
        print(f"{number:04d} {operation.__name__} rank {world.rank}: {result}".replace("\n", " "), file=out)
for comm in comms[1:]:
    comm.Free()
