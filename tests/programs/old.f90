! Calls that mpif.h has from MPI-1 on, with addresses that are INTEGERs, and calls about memory,
! topologies and errors: says WRONG where something is not as it should be.
program old
  use, intrinsic :: iso_c_binding
  implicit none
  include 'mpif.h'
  integer, parameter :: room = 1000
  integer :: rank, ranks, error, i, provided, code, length, class, place, extent, lower, upper
  integer :: begin, addresses(2), new, grid, status(MPI_STATUS_SIZE), flags, size
  integer :: dims(2), coords(2), from, to, versions(2), group, others, places(2)
  integer :: values(12), copies(12), buffer(room)
  integer(kind=MPI_ADDRESS_KIND) :: bytes
  real :: fractions(3), received(3)
  real :: marked(2), most(2)
  double precision :: located(2), least(2)
  real(kind=selected_real_kind(33)) :: exact, total
  logical :: periods(2), flag, kept(2)
  character :: packed(room)
  character(len=MPI_MAX_ERROR_STRING) :: text
  type(c_ptr) :: memory
  integer, pointer :: cells(:)
  external :: counts
  common /handled/ flags

  call MPI_Init_thread(MPI_THREAD_FUNNELED, provided, error)
  if (provided < MPI_THREAD_SINGLE .or. provided > MPI_THREAD_MULTIPLE) call wrong('Init_thread')
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  call MPI_Pcontrol(1)
  call MPI_Get_version(versions(1), versions(2), error)
  if (versions(1) < 3) call wrong('Get_version')

  ! Datatypes whose displacements are INTEGERs.
  values = [(i, i = 1, 12)]
  copies = 0
  call MPI_Type_hvector(3, 1, 16, MPI_INTEGER, new, error)
  call moves(new, [1, 5, 9], 'Type_hvector')
  call MPI_Type_hindexed(2, [1, 2], [4, 24], MPI_INTEGER, new, error)
  call moves(new, [2, 7, 8], 'Type_hindexed')
  call MPI_Type_struct(2, [2, 1], [0, 40], [MPI_INTEGER, MPI_INTEGER], new, error)
  call moves(new, [1, 2, 11], 'Type_struct')
  call MPI_Type_hvector(2, 1, 12, MPI_INTEGER, new, error)
  call MPI_Type_extent(new, extent, error)
  call MPI_Type_lb(new, lower, error)
  call MPI_Type_ub(new, upper, error)
  if (extent /= 16 .or. lower /= 0 .or. upper /= 16) call wrong('Type_extent')
  call MPI_Type_size(new, size, error)
  if (size /= 8) call wrong('Type_size')
  call MPI_Type_free(new, error)
  ! Only the distance of these says something: an INTEGER may be too short for an address.
  call MPI_Address(values(1), addresses(1), error)
  call MPI_Address(values(4), addresses(2), error)
  if (addresses(2) - addresses(1) /= 12) call wrong('Address')

  ! Packed data.
  place = 0
  fractions = [0.5, -1.5, 2.5]
  call MPI_Pack(3 * rank, 1, MPI_INTEGER, packed, room, place, MPI_COMM_SELF, error)
  call MPI_Pack(fractions, 3, MPI_REAL, packed, room, place, MPI_COMM_SELF, error)
  if (place /= 16) call wrong('Pack')
  place = 0
  call MPI_Unpack(packed, room, place, begin, 1, MPI_INTEGER, MPI_COMM_SELF, error)
  call MPI_Unpack(packed, room, place, received, 3, MPI_REAL, MPI_COMM_SELF, error)
  if (begin /= 3 * rank .or. any(received /= fractions)) call wrong('Unpack')

  ! A buffer for messages, which Fortran is not told again.
  call MPI_Buffer_attach(buffer, 4 * room, error)
  call MPI_Bsend(rank, 1, MPI_INTEGER, rank, 4, MPI_COMM_WORLD, error)
  call MPI_Recv(begin, 1, MPI_INTEGER, rank, 4, MPI_COMM_WORLD, status, error)
  if (begin /= rank) call wrong('Bsend')
  call MPI_Buffer_detach(buffer, size, error)
  if (size /= 4 * room) call wrong('Buffer_detach')

  ! Memory of MPI's.
  bytes = 40
  call MPI_Alloc_mem(bytes, MPI_INFO_NULL, memory, error)
  call c_f_pointer(memory, cells, [10])
  cells = rank
  call MPI_Bcast(cells, 10, MPI_INTEGER, ranks - 1, MPI_COMM_WORLD, error)
  if (any(cells /= ranks - 1)) call wrong('Alloc_mem')
  call MPI_Free_mem(cells, error)
  if (error /= MPI_SUCCESS) call wrong('Free_mem')

  ! A grid, with logical values.
  dims = [0, 1]
  call MPI_Dims_create(ranks, 2, dims, error)
  if (dims(1) /= ranks) call wrong('Dims_create')
  call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, [.true., .false.], .false., grid, error)
  call MPI_Cart_get(grid, 2, dims, periods, coords, error)
  if (.not. periods(1) .or. periods(2) .or. coords(1) /= rank) call wrong('Cart_get')
  call MPI_Cart_shift(grid, 0, 1, from, to, error)
  if (to /= mod(rank + 1, ranks) .or. from /= mod(rank + ranks - 1, ranks)) call wrong('Cart_shift')
  call MPI_Cart_shift(grid, 1, 1, from, to, error)
  if (to /= MPI_PROC_NULL .or. from /= MPI_PROC_NULL) call wrong('Cart_shift at the end')
  kept = [.false., .true.]
  call MPI_Cart_sub(grid, kept, new, error)
  call MPI_Comm_size(new, size, error)
  if (size /= 1) call wrong('Cart_sub')
  call MPI_Comm_free(new, error)
  call MPI_Comm_free(grid, error)
  call MPI_Comm_test_inter(MPI_COMM_WORLD, flag, error)
  if (flag) call wrong('Comm_test_inter')

  ! Pairs of a value and an index, and the longest numbers.
  marked = [real(mod(rank + 1, ranks)), real(rank)]
  call MPI_Allreduce(marked, most, 1, MPI_2REAL, MPI_MAXLOC, MPI_COMM_WORLD, error)
  if (most(1) /= ranks - 1 .or. most(2) /= max(ranks - 2, 0)) call wrong('MPI_2REAL')
  located = [1.5d0, 10.0d0 - rank]
  call MPI_Allreduce(located, least, 1, MPI_2DOUBLE_PRECISION, MPI_MINLOC, MPI_COMM_WORLD, error)
  if (least(1) /= 1.5d0 .or. least(2) /= 11 - ranks) call wrong('MPI_2DOUBLE_PRECISION')
  exact = 1 + epsilon(exact)
  call MPI_Allreduce(exact, total, 1, MPI_REAL16, MPI_SUM, MPI_COMM_WORLD, error)
  if (iand(ranks, ranks - 1) == 0 .and. total /= ranks * exact) call wrong('MPI_REAL16')
  call MPI_Allreduce(exact, total, 1, MPI_REAL16, MPI_MAX, MPI_COMM_WORLD, error)
  if (total /= exact) call wrong('the maximum of MPI_REAL16')

  ! Groups.
  call MPI_Comm_group(MPI_COMM_WORLD, group, error)
  call MPI_Group_incl(group, 1, [ranks - 1], others, error)
  call MPI_Group_translate_ranks(group, 2, [0, ranks - 1], others, places, error)
  if (places(2) /= 0) call wrong('Group_translate_ranks')
  if (ranks > 1 .and. places(1) /= MPI_UNDEFINED) call wrong('Group_translate_ranks, undefined')
  call MPI_Group_free(others, error)
  call MPI_Group_free(group, error)

  ! Errors.
  flags = 0
  call MPI_Errhandler_create(counts, new, error)
  call MPI_Errhandler_set(MPI_COMM_WORLD, new, error)
  call MPI_Send(rank, 1, MPI_INTEGER, ranks, 1, MPI_COMM_WORLD, code)
  if (flags /= 1 .or. code == MPI_SUCCESS) call wrong('Errhandler_create')
  call MPI_Error_class(code, class, error)
  if (class /= MPI_ERR_RANK) call wrong('Error_class')
  call MPI_Error_string(code, text, length, error)
  if (length < 1 .or. length /= len_trim(text)) call wrong('Error_string')
  call MPI_Errhandler_set(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL, error)
  call MPI_Errhandler_free(new, error)

  if (rank == 0) write (*, '(a, i0)') 'old: ranks ', ranks
  call MPI_Finalize(error)

contains

  ! Sends "values" to this rank itself by a datatype, which is freed.
  subroutine moves(datatype, wanted, what)
    integer :: datatype, requests(1), statuses(MPI_STATUS_SIZE, 1)
    integer, intent(in) :: wanted(3)
    character(len=*), intent(in) :: what
    call MPI_Type_commit(datatype, error)
    call MPI_Irecv(copies, 3, MPI_INTEGER, rank, 9, MPI_COMM_WORLD, requests(1), error)
    call MPI_Send(values, 1, datatype, rank, 9, MPI_COMM_WORLD, error)
    call MPI_Waitall(1, requests, statuses, error)
    if (any(copies(1:3) /= wanted)) call wrong(what)
    call MPI_Type_free(datatype, error)
    if (datatype /= MPI_DATATYPE_NULL) call wrong(what // ', freed')
  end subroutine

  subroutine wrong(what)
    character(len=*), intent(in) :: what
    write (*, '(a, i0, 2a)') 'WRONG at rank ', rank, ': ', what
  end subroutine
end program

! Counts errors.
subroutine counts(comm, code)
  implicit none
  include 'mpif.h'
  integer :: comm, code, flags
  common /handled/ flags
  if (comm == MPI_COMM_WORLD .and. code /= MPI_SUCCESS) flags = flags + 1
end subroutine
