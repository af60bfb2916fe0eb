! The module mpi_f08: parts of arrays, statuses, requests, types, operations, attributes, errors.
! Prints what is wrong, and a line at the end.
module functions
  use mpi_f08
  use, intrinsic :: iso_c_binding
  implicit none
  integer :: copies = 0, deletes = 0
contains
  subroutine larger(invec, inoutvec, length, datatype)
    type(c_ptr), value :: invec, inoutvec
    integer :: length
    type(MPI_Datatype) :: datatype
    integer, pointer :: in(:), into(:)
    if (datatype /= MPI_INTEGER) print *, 'WRONG: the type of an operation'
    call c_f_pointer(invec, in, [length])
    call c_f_pointer(inoutvec, into, [length])
    into = max(in, into)
  end subroutine larger

  subroutine copied(old, key, extra, value, new, flag, error)
    type(MPI_Comm) :: old
    integer :: key, error
    integer(kind=MPI_ADDRESS_KIND) :: extra, value, new
    logical :: flag
    copies = copies + 1
    if (extra /= 17) print *, 'WRONG: what a copy is given'
    new = value + 1
    flag = .true.
    error = MPI_SUCCESS
  end subroutine copied

  subroutine deleted(comm, key, value, extra, error)
    type(MPI_Comm) :: comm
    integer :: key, error
    integer(kind=MPI_ADDRESS_KIND) :: value, extra
    deletes = deletes + 1
    error = MPI_SUCCESS
  end subroutine deleted

  subroutine asked(extra, status, error)
    integer(kind=MPI_ADDRESS_KIND) :: extra
    type(MPI_Status) :: status
    integer :: error
    call MPI_Status_set_elements(status, MPI_INTEGER, int(extra))
    status%MPI_TAG = 23
    error = MPI_SUCCESS
  end subroutine asked

  subroutine freed(extra, error)
    integer(kind=MPI_ADDRESS_KIND) :: extra
    integer :: error
    error = MPI_SUCCESS
  end subroutine freed

  subroutine cancelled(extra, complete, error)
    integer(kind=MPI_ADDRESS_KIND) :: extra
    logical :: complete
    integer :: error
    error = MPI_SUCCESS
  end subroutine cancelled
end module functions

program modern
  use functions
  implicit none
  integer :: me, ranks, next, before, error, i, key, length
  integer :: got(3, 4), all(8), mine
  ! The compiler must not move uses of these past calls: they are sent and received meanwhile.
  integer, asynchronous :: matrix(7, 4), six(6)
  double precision :: value
  character(len=MPI_MAX_OBJECT_NAME) :: name
  character(len=MPI_MAX_ERROR_STRING) :: text
  integer(kind=MPI_ADDRESS_KIND) :: attribute
  logical :: flag
  type(MPI_Comm) :: comm, other
  type(MPI_Status) :: status, statuses(2)
  type(MPI_Request) :: requests(2), request
  type(MPI_Datatype) :: column
  type(MPI_Op) :: op

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, me)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  call must(error == MPI_SUCCESS, 'a code of success')
  next = mod(me + 1, ranks)
  before = mod(me + ranks - 1, ranks)
  call MPI_Comm_dup(MPI_COMM_WORLD, comm)
  call must(comm /= MPI_COMM_WORLD .and. comm /= MPI_COMM_NULL, 'a duplicated communicator')

  ! Every other row of a matrix, which lies apart in memory. The chosen rows times the stride are
  ! not all rows of the matrix: MPICH 4.0 takes wrong elements where they are.
  matrix = reshape([(100 * me + i, i = 1, 28)], [7, 4])
  call MPI_Sendrecv(matrix(1:5:2, :), 12, MPI_INTEGER, next, 5, got, 12, MPI_INTEGER, before, 5, comm, &
                    status)
  call must(all_are(got, before), 'parts of an array, sent')
  call must(status%MPI_SOURCE == before .and. status%MPI_TAG == 5, 'a status')
  call MPI_Get_count(status, MPI_INTEGER, length)
  call must(length == 12, 'a count')

  ! Received into such a part, and one number.
  matrix = 0
  mine = 7 * me
  call MPI_Irecv(matrix(2:6:2, 1:2), 6, MPI_INTEGER, before, 6, comm, requests(1))
  six = [10, 20, 30, 40, 50, 60]
  call MPI_Isend(six, 6, MPI_INTEGER, next, 6, comm, requests(2))
  call MPI_Waitall(2, requests, statuses)
  call must(sum(matrix) == 210 .and. matrix(2, 1) == 10 .and. matrix(6, 2) == 60, 'a part, received')
  call must(statuses(1)%MPI_SOURCE == before .and. requests(1) == MPI_REQUEST_NULL, 'several statuses')
  call MPI_Sendrecv_replace(mine, 1, MPI_INTEGER, next, 7, before, 7, comm, MPI_STATUS_IGNORE)
  call must(mine == 7 * before, 'a number in place')

  ! A type and its bounds, and a persistent request.
  call MPI_Type_vector(4, 1, 7, MPI_INTEGER, column)
  call MPI_Type_commit(column)
  matrix = me
  call MPI_Send_init(matrix(3, 1), 1, column, next, 8, comm, request)
  call MPI_Start(request)
  call MPI_Recv(got, 4, MPI_INTEGER, before, 8, comm, MPI_STATUS_IGNORE)
  call MPI_Wait(request, MPI_STATUS_IGNORE)
  call MPI_Request_free(request)
  call must(all_equal(got(:, 1), before), 'a row by a type')
  call MPI_Type_free(column)

  ! Collective calls, in place and with an operation of the program's.
  all = me
  call MPI_Allreduce(MPI_IN_PLACE, all, 8, MPI_INTEGER, MPI_SUM, comm)
  call must(all_equal(all, ranks * (ranks - 1) / 2), 'a sum in place')
  call MPI_Op_create(larger, .true., op)
  mine = mod(me * 5, 7)
  call MPI_Allreduce(mine, length, 1, MPI_INTEGER, op, comm)
  call must(length == maxval([(mod(i * 5, 7), i = 0, ranks - 1)]), 'an operation')
  call MPI_Op_free(op)
  value = 2.5d0 * me
  call MPI_Bcast(value, 1, MPI_DOUBLE_PRECISION, ranks - 1, comm)
  call must(value == 2.5d0 * (ranks - 1), 'a broadcast')

  ! Names, attributes, and their functions.
  call MPI_Comm_set_name(comm, 'a ring')
  call MPI_Comm_get_name(comm, name, length)
  call must(name == 'a ring' .and. length == 6, 'a name')
  call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, attribute, flag)
  call must(flag .and. attribute >= 32767, 'the largest tag')
  call MPI_Comm_create_keyval(copied, deleted, key, 17_MPI_ADDRESS_KIND)
  call MPI_Comm_set_attr(comm, key, 41_MPI_ADDRESS_KIND, error)
  call must(error == MPI_SUCCESS, 'an attribute')
  call MPI_Comm_dup(comm, other)
  call MPI_Comm_get_attr(other, key, attribute, flag, error)
  call must(flag .and. attribute == 42 .and. copies == 1, 'a copied attribute')
  call MPI_Comm_free(other)
  call MPI_Comm_delete_attr(comm, key)
  call must(deletes == 2 .and. other == MPI_COMM_NULL, 'deleted attributes')
  call MPI_Comm_free_keyval(key)
  call PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, attribute, flag)
  call must(flag .and. attribute >= 32767, 'the largest tag, by the twin for profiling')

  ! A graph without weights.
  call MPI_Dist_graph_create_adjacent(comm, 1, [before], MPI_UNWEIGHTED, 1, [next], MPI_UNWEIGHTED, &
                                      MPI_INFO_NULL, .false., other, error)
  call must(error == MPI_SUCCESS, 'a graph')
  call MPI_Dist_graph_neighbors_count(other, i, length, flag)
  call must(i == 1 .and. length == 1 .and. .not. flag, 'the neighbors in a graph')
  call MPI_Neighbor_allgather(me, 1, MPI_INTEGER, mine, 1, MPI_INTEGER, other)
  call must(mine == before, 'a message of a neighbor')
  call MPI_Comm_free(other)

  ! A request of the program's, and an error.
  call MPI_Grequest_start(asked, freed, cancelled, 3_MPI_ADDRESS_KIND, request)
  call MPI_Grequest_complete(request)
  call MPI_Wait(request, status)
  call MPI_Get_count(status, MPI_INTEGER, length)
  call must(status%MPI_TAG == 23 .and. length == 3, 'a request of the program')
  call MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN)
  call MPI_Send(mine, 1, MPI_INTEGER, ranks, 0, comm, error)
  call must(error /= MPI_SUCCESS, 'a wrong rank')
  call MPI_Error_string(error, text, length)
  call must(length > 0 .and. len_trim(text) == length, 'the text of an error')

  call MPI_Comm_free(comm)
  if (me == 0) print *, 'modern: right'
  call MPI_Finalize()

contains

  subroutine must(is_right, what)
    logical, intent(in) :: is_right
    character(len=*), intent(in) :: what
    if (.not. is_right) print *, 'WRONG: ', what
  end subroutine must

  logical function all_are(part, from)
    integer, intent(in) :: part(3, 4), from
    integer :: row, column
    all_are = .true.
    do column = 1, 4
      do row = 1, 3
        if (part(row, column) /= 100 * from + 7 * (column - 1) + 2 * row - 1) all_are = .false.
      end do
    end do
  end function all_are

  logical function all_equal(part, wanted)
    integer, intent(in) :: part(:), wanted
    all_equal = .not. any(part /= wanted)
  end function all_equal
end program modern
