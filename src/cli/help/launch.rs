//! The help of `sme mpi run`.

/// `sme mpi run --help`
pub const RUN_PROGRAM: &str = "\
The program is one that somebody has written and compiled for MPICH or for the interface of
MPI-5.0, in C, C++, Fortran or Python. It is not changed: it finds this program's library in the
place of MPICH's, runs as one process for each rank, and each of its MPI calls is performed on the
simulated machine, its messages through the simulated buffers. MPI_Wtime is the simulated time.
What a process writes to its output appears here; the last line on stderr says what was simulated.

The status is 0 if all processes end with 0, else 1. If a process calls MPI_Abort, ends early or
is killed, the others are ended, and one line says which rank it was.

--explain and --explain-to keep every operation of the run in this computer's memory, some hundred
bytes each: they are for short runs. --explain=RANK:CALL:N counts as --timeline does, from 1 on.

Examples:
  sme mpi run -n 4 ./a.out
  sme mpi run --machine scc -n 48 --prefix ./a.out --size 1000
  sme mpi run --machine sme-prototype -n 8 --compute measured:20 python3 program.py
  sme mpi run --machine scc -n 4 --universe 12 ./a.out
  sme mpi run -n 16 --timeline calls.csv --profile sums.csv ./a.out
  sme mpi run -n 16 --profile - --explain=MPI_Allreduce ./a.out
  sme mpi run --machine scc -n 16 --stale ./a.out";
