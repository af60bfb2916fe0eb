! Writes a line to a buffer of Fortran's, and receives what no rank sends.
program waits
  use mpi
  implicit none
  integer :: rank, error

  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  print '(a, i0, a)', 'rank ', rank, ' waits'
  call MPI_Recv(rank, 1, MPI_INTEGER, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
  call MPI_Finalize(error)
end program waits
