! Files in Fortran: each rank writes its part of a matrix of columns through a view, and all are
! read back. Its argument is a directory. It prints what is WRONG, and a line at the end.

program files
  use mpi
  implicit none
  integer, parameter :: rows = 3
  integer :: rank, ranks, ierror, file, filetype, request, i, code, class, count
  integer :: status(MPI_STATUS_SIZE), column(rows)
  integer, allocatable :: matrix(:, :)
  integer(kind=MPI_OFFSET_KIND) :: size, nothing
  character(len=200) :: directory
  character(len=30) :: representation
  integer :: etype, filetype_again

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  call get_command_argument(1, directory)
  nothing = 0

  call MPI_File_open(MPI_COMM_WORLD, trim(directory)//'/none   ', MPI_MODE_RDONLY, MPI_INFO_NULL, file, code)
  call MPI_Error_class(code, class, ierror)
  if (class /= MPI_ERR_NO_SUCH_FILE) print *, 'WRONG class', class

  call MPI_File_open(MPI_COMM_WORLD, trim(directory)//'/matrix   ', &
    ior(MPI_MODE_RDWR, ior(MPI_MODE_CREATE, MPI_MODE_DELETE_ON_CLOSE)), MPI_INFO_NULL, file, ierror)
  if (ierror /= MPI_SUCCESS) print *, 'WRONG open', ierror
  call MPI_Type_create_subarray(2, (/rows, ranks/), (/rows, 1/), (/0, rank/), MPI_ORDER_FORTRAN, &
    MPI_INTEGER, filetype, ierror)
  call MPI_Type_commit(filetype, ierror)
  call MPI_File_set_view(file, nothing, MPI_INTEGER, filetype, 'native  ', MPI_INFO_NULL, ierror)
  if (ierror /= MPI_SUCCESS) print *, 'WRONG view', ierror
  call MPI_File_get_view(file, size, etype, filetype_again, representation, ierror)
  if (etype /= MPI_INTEGER .or. representation /= 'native') print *, 'WRONG view', representation
  do i = 1, rows
    column(i) = 10*rank + i
  end do
  call MPI_File_iwrite(file, column, rows, MPI_INTEGER, request, ierror)
  call MPI_Wait(request, status, ierror)
  call MPI_Get_count(status, MPI_INTEGER, count, ierror)
  if (count /= rows) print *, 'WRONG count', count
  call MPI_Barrier(MPI_COMM_WORLD, ierror)
  call MPI_File_get_size(file, size, ierror)
  if (size /= 4*rows*ranks) print *, 'WRONG size', size

  allocate (matrix(rows, ranks))
  call MPI_File_set_view(file, nothing, MPI_INTEGER, MPI_INTEGER, 'native', MPI_INFO_NULL, ierror)
  call MPI_File_read_all(file, matrix, rows*ranks, MPI_INTEGER, status, ierror)
  do i = 1, ranks
    if (matrix(2, i) /= 10*(i - 1) + 2) print *, 'WRONG matrix', matrix
  end do
  call MPI_File_close(file, ierror)
  if (file /= MPI_FILE_NULL) print *, 'WRONG handle', file
  if (rank == 0) print *, 'files read'
  call MPI_Finalize(ierror)
end program
