! Calls of the module "mpi" between the ranks of a ring: says WRONG where something is not as it
! should be.
program ring
  use mpi
  implicit none
  integer, parameter :: rows = 5, columns = 4
  integer :: rank, ranks, left, right, error, received, count, i, index, row, half, half_rank
  integer :: length, reached, own, provided, old_key, key, new, old_value
  integer :: status(MPI_STATUS_SIZE), requests(2), statuses(MPI_STATUS_SIZE, 2), indices(2)
  integer :: numbers(3), values(2), weights(1), neighbors(1), bytes
  integer(kind=MPI_ADDRESS_KIND) :: attribute, extra, begin, next, extent, lower
  double precision :: matrix(rows, columns), line(columns), time, sum
  logical :: flag
  character(len=MPI_MAX_PROCESSOR_NAME) :: name
  character(len=MPI_MAX_LIBRARY_VERSION_STRING) :: version
  character(len=40) :: text
  character(len=6) :: short
  external :: keeps, forgets, adds, tells, frees, cancels

  call MPI_Initialized(flag, error)
  if (flag) call wrong('Initialized before Init')
  call MPI_Init(error)
  if (error /= MPI_SUCCESS) call wrong('Init')
  call MPI_Initialized(flag, error)
  if (.not. flag) call wrong('Initialized')
  call MPI_Query_thread(provided, error)
  if (provided < MPI_THREAD_SINGLE) call wrong('Query_thread')
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  time = MPI_Wtime()
  if (MPI_Wtick() <= 0d0) call wrong('Wtick')
  left = mod(rank + ranks - 1, ranks)
  right = mod(rank + 1, ranks)

  ! A message around the ring, and what its status tells.
  call MPI_Sendrecv(rank, 1, MPI_INTEGER, right, 7, received, 1, MPI_INTEGER, MPI_ANY_SOURCE, &
                    7, MPI_COMM_WORLD, status, error)
  if (received /= left) call wrong('Sendrecv')
  if (status(MPI_SOURCE) /= left .or. status(MPI_TAG) /= 7) call wrong('status')
  call MPI_Get_count(status, MPI_INTEGER, count, error)
  if (count /= 1) call wrong('Get_count')
  call MPI_Sendrecv(rank, 1, MPI_INTEGER, left, 8, received, 1, MPI_INTEGER, right, &
                    MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
  if (received /= right) call wrong('Sendrecv without a status')

  ! Reductions in place, by an operation of MPI's and one of the program's.
  numbers = [rank, 1, -rank]
  call MPI_Allreduce(MPI_IN_PLACE, numbers, 3, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
  own = ranks * (ranks - 1) / 2
  if (any(numbers /= [own, ranks, -own])) call wrong('Allreduce')
  call MPI_Op_create(adds, .true., own, error)
  numbers = 1
  call MPI_Allreduce(MPI_IN_PLACE, numbers, 3, MPI_INTEGER, own, MPI_COMM_WORLD, error)
  if (any(numbers /= ranks)) call wrong('Op_create')
  call MPI_Op_free(own, error)
  if (own /= MPI_OP_NULL) call wrong('Op_free')

  ! Requests: their places are counted from 1.
  call MPI_Irecv(values(1), 1, MPI_INTEGER, left, 1, MPI_COMM_WORLD, requests(1), error)
  call MPI_Irecv(values(2), 1, MPI_INTEGER, left, 2, MPI_COMM_WORLD, requests(2), error)
  call MPI_Send(20 + rank, 1, MPI_INTEGER, right, 2, MPI_COMM_WORLD, error)
  call MPI_Waitany(2, requests, index, status, error)
  if (index /= 2 .or. values(2) /= 20 + left) call wrong('Waitany')
  ! The other message of a faster neighbour must not come first.
  call MPI_Barrier(MPI_COMM_WORLD, error)
  call MPI_Send(10 + rank, 1, MPI_INTEGER, right, 1, MPI_COMM_WORLD, error)
  call MPI_Waitsome(2, requests, reached, indices, statuses, error)
  if (reached /= 1 .or. indices(1) /= 1 .or. values(1) /= 10 + left) call wrong('Waitsome')
  call MPI_Waitany(2, requests, index, MPI_STATUS_IGNORE, error)
  if (index /= MPI_UNDEFINED) call wrong('Waitany without a request')
  call MPI_Waitsome(2, requests, reached, indices, MPI_STATUSES_IGNORE, error)
  if (reached /= MPI_UNDEFINED) call wrong('Waitsome without a request')
  call MPI_Testany(2, requests, index, flag, status, error)
  if (.not. flag .or. index /= MPI_UNDEFINED) call wrong('Testany')
  call MPI_Iprobe(left, 99, MPI_COMM_WORLD, flag, status, error)
  if (flag) call wrong('Iprobe')

  ! A row of a matrix, which lies in memory by columns.
  matrix = 0
  matrix(2, :) = [(rank + 0.25d0 * i, i = 1, columns)]
  call MPI_Type_vector(columns, 1, rows, MPI_DOUBLE_PRECISION, row, error)
  call MPI_Type_commit(row, error)
  call MPI_Sendrecv(matrix(2, 1), 1, row, right, 3, line, columns, MPI_DOUBLE_PRECISION, left, 3, &
                    MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
  if (any(line /= [(left + 0.25d0 * i, i = 1, columns)])) call wrong('Type_vector')
  call MPI_Type_get_extent(row, lower, extent, error)
  if (lower /= 0 .or. extent /= 8 * (rows * (columns - 1) + 1)) call wrong('Type_get_extent')
  call MPI_Get_address(matrix(1, 1), begin, error)
  call MPI_Get_address(matrix(1, 2), next, error)
  if (MPI_Aint_diff(next, begin) /= 8 * rows) call wrong('Aint_diff')
  if (MPI_Aint_add(begin, 8_MPI_ADDRESS_KIND * rows) /= next) call wrong('Aint_add')
  call MPI_Type_create_hindexed(1, [1], [begin], MPI_DOUBLE_PRECISION, new, error)
  call MPI_Type_commit(new, error)
  if (rank == 0) matrix(1, 1) = 3.5d0
  call MPI_Bcast(MPI_BOTTOM, 1, new, 0, MPI_COMM_WORLD, error)
  if (matrix(1, 1) /= 3.5d0) call wrong('BOTTOM')
  call MPI_Type_free(new, error)
  call MPI_Sizeof(sum, bytes, error)
  if (bytes /= 8) call wrong('Sizeof')

  ! Texts.
  call MPI_Type_set_name(row, 'a row   ', error)
  text = repeat('?', len(text))
  call MPI_Type_get_name(row, text, length, error)
  if (length /= 5 .or. text /= 'a row') call wrong('Type_get_name: ' // text)
  call MPI_Type_get_name(row, short, length, error)
  if (short /= 'a row ') call wrong('Type_get_name, short: ' // short)
  call MPI_Type_free(row, error)
  name = repeat('?', len(name))
  call MPI_Get_processor_name(name, length, error)
  if (length < 1 .or. length /= len_trim(name)) call wrong('Get_processor_name')
  call MPI_Get_library_version(version, length, error)
  if (length < 1 .or. length /= len_trim(version)) call wrong('Get_library_version')
  call MPI_Info_create(own, error)
  call MPI_Info_set(own, ' key ', ' a value ', error)
  call MPI_Info_get(own, 'key', len(text), text, flag, error)
  if (.not. flag .or. text /= 'a value') call wrong('Info_get: ' // text)
  text = 'as it was'
  call MPI_Info_get(own, 'other', len(text), text, flag, error)
  if (flag .or. text /= 'as it was') call wrong('Info_get without a value: ' // text)
  length = 0
  call MPI_Info_get_string(own, 'key', length, text, flag, error)
  if (.not. flag .or. length /= 7) call wrong('Info_get_string, length')
  call MPI_Info_get_string(own, 'key', length, text, flag, error)
  if (.not. flag .or. length /= 7 .or. text /= 'a value') call wrong('Info_get_string: ' // text)
  call MPI_Info_free(own, error)

  ! Half of the ranks each.
  call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), -rank, half, error)
  call MPI_Comm_rank(half, half_rank, error)
  call MPI_Comm_size(half, count, error)
  if (half_rank /= count - 1 - rank / 2) call wrong('Comm_split')

  ! Attributes: their values are numbers.
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, attribute, flag, error)
  if (.not. flag .or. attribute < 32767) call wrong('TAG_UB')
  call MPI_Attr_get(MPI_COMM_WORLD, MPI_TAG_UB, old_value, flag, error)
  if (.not. flag .or. old_value < 32767) call wrong('TAG_UB, MPI-1')
  extra = 5
  call MPI_Comm_create_keyval(keeps, forgets, key, extra, error)
  attribute = -40_MPI_ADDRESS_KIND * 2_MPI_ADDRESS_KIND**33
  call MPI_Comm_set_attr(half, key, attribute, error)
  call MPI_Keyval_create(MPI_DUP_FN, MPI_NULL_DELETE_FN, old_key, 0, error)
  call MPI_Attr_put(half, old_key, -3, error)
  call MPI_Comm_dup(half, new, error)
  call MPI_Comm_get_attr(new, key, attribute, flag, error)
  if (.not. flag .or. attribute /= -40_MPI_ADDRESS_KIND * 2_MPI_ADDRESS_KIND**33 + 5) &
    call wrong('Comm_get_attr')
  call MPI_Attr_get(new, old_key, old_value, flag, error)
  if (.not. flag .or. old_value /= -3) call wrong('Attr_get')
  call MPI_Comm_free(new, error)
  if (new /= MPI_COMM_NULL) call wrong('Comm_free')
  call MPI_Comm_free(half, error)

  ! A graph without weights.
  neighbors = left
  call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, neighbors, MPI_UNWEIGHTED, 1, [right], &
                                      MPI_UNWEIGHTED, MPI_INFO_NULL, .false., new, error)
  call MPI_Dist_graph_neighbors_count(new, i, count, flag, error)
  if (i /= 1 .or. count /= 1 .or. flag) call wrong('Dist_graph_neighbors_count')
  call MPI_Dist_graph_neighbors(new, 1, neighbors, MPI_UNWEIGHTED, 1, weights, MPI_UNWEIGHTED, &
                                error)
  if (neighbors(1) /= left .or. weights(1) /= right) call wrong('Dist_graph_neighbors')
  call MPI_Comm_free(new, error)

  ! A request of the program's own.
  extra = 77
  call MPI_Grequest_start(tells, frees, cancels, extra, requests(1), error)
  call MPI_Test(requests(1), flag, status, error)
  if (flag) call wrong('Grequest_start')
  call MPI_Grequest_complete(requests(1), error)
  call MPI_Wait(requests(1), status, error)
  call MPI_Get_count(status, MPI_INTEGER, count, error)
  if (status(MPI_TAG) /= 77 .or. count /= 3) call wrong('Grequest_complete')
  if (extra /= 78) call wrong('the extra value that a function changes')

  ! Looks for messages that come late, many of them in a row.
  if (rank == 0 .and. ranks > 1) then
    time = MPI_Wtime()
    do while (MPI_Wtime() < time + 2d-4)
    end do
    call MPI_Send(rank, 1, MPI_INTEGER, 1, 3, MPI_COMM_WORLD, error)
    do while (MPI_Wtime() < time + 4d-4)
    end do
    call MPI_Send(rank, 1, MPI_INTEGER, 1, 4, MPI_COMM_WORLD, error)
  else if (rank == 1) then
    call MPI_Irecv(received, 1, MPI_INTEGER, 0, 3, MPI_COMM_WORLD, requests(2), error)
    requests(1) = MPI_REQUEST_NULL
    count = 0
    flag = .false.
    do while (.not. flag)
      index = 7
      flag = .true.
      call MPI_Testany(2, requests, index, flag, MPI_STATUS_IGNORE, error)
      if (.not. flag .and. index /= MPI_UNDEFINED) call wrong('the index of a look')
      count = count + 1
    end do
    if (index /= 2 .or. received /= 0 .or. count < 20) call wrong('looks at requests')
    count = 0
    flag = .false.
    do while (.not. flag)
      flag = .true.
      call MPI_Iprobe(0, 4, MPI_COMM_WORLD, flag, status, error)
      count = count + 1
    end do
    if (status(MPI_TAG) /= 4 .or. count < 20) call wrong('looks for a message')
    call MPI_Recv(received, 1, MPI_INTEGER, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
  end if

  sum = 0
  call MPI_Reduce(1d0 * rank, sum, 1, MPI_DOUBLE_PRECISION, MPI_SUM, 0, MPI_COMM_WORLD, error)
  call MPI_Barrier(MPI_COMM_WORLD, error)
  if (MPI_Wtime() <= time) call wrong('Wtime')
  if (rank == 0) write (*, '(a, f6.1)') 'ring: sum of ranks', sum
  call MPI_Finalize(error)
  call MPI_Finalized(flag, error)
  if (.not. flag) call wrong('Finalized')

contains

  subroutine wrong(what)
    character(len=*), intent(in) :: what
    write (*, '(a, i0, 2a)') 'WRONG at rank ', rank, ': ', trim(what)
  end subroutine
end program

! An operation of reductions.
subroutine adds(first, second, length, datatype)
  integer :: length, datatype
  integer :: first(length), second(length)
  second = first + second
end subroutine

! The copy of an attribute: its value and the extra one.
subroutine keeps(comm, key, extra, value, copy, flag, error)
  use mpi
  integer :: comm, key, error
  integer(kind=MPI_ADDRESS_KIND) :: extra, value, copy
  logical :: flag
  copy = value + extra
  flag = .true.
  error = MPI_SUCCESS
end subroutine

! The end of an attribute.
subroutine forgets(comm, key, value, extra, error)
  use mpi
  integer :: comm, key, error
  integer(kind=MPI_ADDRESS_KIND) :: value, extra
  if (extra /= 5) write (*, '(a)') 'WRONG: the extra value of an attribute'
  error = MPI_SUCCESS
end subroutine

! The status of a request of the program's own.
subroutine tells(extra, status, error)
  use mpi
  integer :: status(MPI_STATUS_SIZE), error
  integer(kind=MPI_ADDRESS_KIND) :: extra
  call MPI_Status_set_elements(status, MPI_INTEGER, 3, error)
  call MPI_Status_set_cancelled(status, .false., error)
  status(MPI_SOURCE) = MPI_UNDEFINED
  status(MPI_TAG) = int(extra)
  error = MPI_SUCCESS
end subroutine

! Its end.
subroutine frees(extra, error)
  use mpi
  integer :: error
  integer(kind=MPI_ADDRESS_KIND) :: extra
  if (extra /= 77) write (*, '(a)') 'WRONG: the extra value of a request'
  extra = 78
  error = MPI_SUCCESS
end subroutine

! Its cancellation, which is never asked for.
subroutine cancels(extra, complete, error)
  use mpi
  integer :: error
  integer(kind=MPI_ADDRESS_KIND) :: extra
  logical :: complete
  write (*, '(a)') 'WRONG: a request is cancelled'
  error = MPI_SUCCESS
end subroutine
