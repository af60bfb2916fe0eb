"""Writes a line to a buffer of Python's, and receives what no rank sends."""

from mpi4py import MPI

print("rank", MPI.COMM_WORLD.rank, "waits")
MPI.COMM_WORLD.recv(source=0)
