//! Of the commands on a chip whose cores have daemons.

/// `sme mpi invade --help`
pub const INVADE: &str = "\
Each core has a daemon, and a kernel module that turns the core's interrupts into signals to it. A
program on core 0 reserves other cores: for each it writes a command into the message passing
buffer there and interrupts the core; the daemon answers into the buffer of core 0, which polls. A
daemon holds its core for the program that asks first. time_us is the time of the call, release_us
the time in which the cores are given back. memory_hops is the mean distance of the cores, core 0
included, to the memory controllers that serve them.

Examples:
  sme mpi invade
  sme mpi invade --cores 48 --explain
  sme mpi invade --cores 8,24 --near-memory
  sme mpi invade --cores 2..48 --figures plots";

/// `sme mpi borrow --help`
pub const BORROW: &str = "\
The daemon of each core lends memory of the core, apart from the core itself, which another
program may hold: 12 of the 16 segments of 16 MiB that an SCC core has to itself; of a cluster's
node 12 sixteenths of its shared memory. A program on core 0 borrows segments of one core after
the other (time_us), maps them into its own table of addresses where there is one (map_us), and
loads 256 lines of the last lender's memory, borrowed_load_ns each, and of its own. At last it
writes back what its caches have, and returns the memory (return_us).

Examples:
  sme mpi borrow
  sme mpi borrow --segments 12 --from 1,13,25,47
  sme mpi borrow --machine sme-prototype --segments 12 --from 1,63 --explain";

/// `sme mpi infect --help`
pub const INFECT: &str = "\
A program of some processes reserves cores and has a process started on each, as sme mpi spawn
does; these join its world, which has the same communicator and more ranks then. time_us is the
time of the call at the ranks that were there before: start_us until the last process executes its
program, init_us from then on.

Examples:
  sme mpi infect
  sme mpi infect --parents 8 --processes 1,8,40
  sme mpi infect --processes 1..47 --figures plots";

/// `sme mpi retreat --help`
pub const RETREAT: &str = "\
The world of sme mpi infect shrinks to the ranks that it began with. time_us is the time of the
call at these, leave_us at the ranks that leave, from the same start on; infect_us is that of the
call by which they have come.

Examples:
  sme mpi retreat
  sme mpi retreat --processes 47 --explain
  sme mpi retreat --processes 1..47 --figures plots";

/// `sme mpi simpson --help`
pub const SIMPSON: &str = "\
The integral of a function that is 1 up to 0 and exp(x) from there on, over (-100, 15). An
interval is halved until the criterion holds; then the midpoint rule is used. The invasive version
walks the tree of intervals level by level, with a process for each interval, as far as there are
cores: its world grows before a level that is wider and shrinks before one that is narrower.
time_s is the time from MPI_Init to the result, total_s that from the start of mpiexec to the end
of all processes. The sum is calculated; the time of a point is a constant, fitted to the
published serial time.

Examples:
  sme mpi simpson
  sme mpi simpson --variant invasive --figures plots
  sme mpi simpson --tolerance 0.002 --set process.exec=1ms";

/// `sme mpi power --help`
pub const POWER: &str = "\
`sme mpi simpson --variant invasive`, in which a process that has nothing to integrate in a level
of the tree wants the clock of its tile divided by so much until the level is done, and its island
at the lowest voltage for that clock. A tile changes if both of its cores want it, an island if
all eight do. divider, frequency_mhz and voltage_v are what such a process wants; with the initial
divider all stays as it is. energy_j is that of the chip with its memory over run_s, from the
start of the machine to the end of the last program, cores_j, mesh_j, memory_j and clock_j its
parts; slowed_core_s and lowered_core_s are the times of all cores together below the first clock
and the first voltage, busy_core_s those for which they were not halted.

Examples:
  sme mpi power
  sme mpi power --machine scc-800 --dividers 2,3,16 --keep-voltage
  sme mpi power --set power.halted=100 --format json";

/// `sme mpi cg --help`
pub const CG: &str = "\
The Poisson equation on a square, by conjugate gradients. The vectors are in blocks of rows over
the ranks. In each phase the world has so many processes, as far as there are cores; between
phases it grows or shrinks, and the vectors are dealt out again, for deal_us. The solution is
calculated, and its residual is that of all equations together.

Examples:
  sme mpi cg
  sme mpi cg --processes 48
  sme mpi cg --side 48 --processes 4,16,4 --iterations 100
  sme mpi cg --kill 3@100ms";

/// `sme mpi bt --help`
pub const BT: &str = "\
BT of the NAS Parallel Benchmarks as a user sees it. start_s is the time from the start of mpiexec
until MPI_Init has ended in all processes, solve_s that of all steps, of which some are simulated,
total_s the sum. The manager ipm starts all processes at once, through message passing buffers;
mpd logs in on each core by SSH, one after the other, and serves requests over TCP/IP (constants
process.login and process.serve_socket, assumed). The time of one core is given; messages are
simulated.

Examples:
  sme mpi bt
  sme mpi bt --manager mpd --set process.login=100ms
  sme mpi bt --figures plots";

/// `sme mpi spawn --help`
pub const SPAWN: &str = "\
A program of one process on core 0 reserves cores, lets their daemons start a process on each, and
is connected to them. time_us is the time of the call: start_us until the last process executes
its program, init_us from then on, MPI_Init, in which processes make requests of the program's
manager, one after the other, and connect. The costs of a fork, of executing a program, of
MPI_Init and of a request are constants of the machine (section process).

Examples:
  sme mpi spawn
  sme mpi spawn --processes 1..47+2 --figures plots
  sme mpi spawn --processes 8 --set process.exec=10ms";

/// `sme mpi connect --help`
pub const CONNECT: &str = "\
Two worlds of processes on the cores of a chip: the ranks of one accept at a port of its first
rank, those of the other connect to it. time_us is the time from the start of the calls, at all
ranks at once, until they have ended at all of them. The worlds are there before: no processes are
started.

Examples:
  sme mpi connect
  sme mpi connect --parents 8 --children 8 --explain
  sme mpi connect --parents 1..47+2 --figures plots";
