//! Of the commands about messages through shared memory.

/// `sme coherence --help`
pub const COHERENCE: &str = "\
Examples:
  sme coherence measure -o host.json
  sme coherence bench --machine xeon-e5-2650 -o xeon.json
  sme coherence predict --table xeon.json --size 32768..4194304*2
  sme coherence transfer --machine opteron-6272 --direction alternating";

/// `sme coherence bench --help`
pub const BENCH: &str = "\
The first core of the first socket loads or stores a buffer in its socket's memory whose lines
it has prepared (a hit) or another core has (a miss), in one state; see sme coherence measure,
which does the same on this computer, for states and variants. Of each row there is a run of its
own, with empty caches. Across sockets the other core is the first of the second socket, within
one the first of another module. A pass ends when its last store is performed. A copy that
another core has flushed is gone everywhere: SHS flushed is a store that misses.

JSON lines (-o FILE.json) are the throughput table that sme coherence predict reads.

Examples:
  sme coherence bench -o xeon.json
  sme coherence bench --machine opteron-6272 --transitions SHS,SHO --sizes 65536..1048576*2
  sme coherence bench --set core.fill_buffers=16 --transitions LMM --sizes 1048576";

/// `sme coherence transfer --help`
pub const TRANSFER: &str = "\
Two cores send each other messages in turn: the sender copies a chunk into the ring and sets its
flag, the receiver copies it out of there and sets the flag back. Every message begins at the
first chunk of the ring. time_us is that of one message, the mean of six.

With --host two threads of this computer do the same, pinned to CPUs. time_us is half of the 10th
percentile of the round trips, by nearest rank; three go before them, whose bytes are compared,
and so are those of the last. Copies are the C library's memcpy, or non-temporal stores; buffers
that are not used again are flushed before each message. Rows whose threads or CPUs have moved are
measured again or dropped, as by sme coherence measure; stderr says which.

Examples:
  sme coherence transfer --placement remote --flush non-temporal
  sme coherence transfer --machine opteron-6272 --direction alternating --format csv
  sme coherence transfer --sizes 1048576 --chunk 65536 --ring 16 --reuse receiver
  sme coherence transfer --host --cores 0,1 --flush non-temporal --format csv -o host.csv";

/// `sme coherence predict --help`
pub const PREDICT: &str = "\
FILE has the throughputs of single accesses by buffer size: the JSON lines of sme coherence
measure. The sender loads a chunk from its buffer and stores it into the shared one; the receiver
loads it there and stores it into its own, while the sender is at the next chunk. A copy is as
fast as the slower of its load and its store, or takes as long as both (--shared-port).
Throughputs are those at the size of the message. Between two sizes of the table the logarithm of
the throughput is linear in the logarithm of the size; beyond them nothing is predicted.

  reused buffers       LHM at the sender, SHM at the receiver
  buffers in memory    LMI and SMI
  the shared buffer    SHS, SHO or SHM at the sender (--shared-buffer), LMM at the receiver
  --flush              sender: SHS flushed-after, LMM flushed; receiver: SHS flushed;
                       non-temporal: SHS non-temporal, LMM flushed

Letters: Load or Store, Hit or Miss, and the state: Modified, Owned, Exclusive, Shared, Invalid.
sequential_gb_per_s has one copy after the other, parallel_gb_per_s both at the same time, and
pipelined_gb_per_s chunks that overlap (Eq. 1). bound_by is the slower access of the slower copy.

Examples:
  sme coherence predict --table host.json --size 32768..4194304*2
  sme coherence predict --table host.json --size 1048576 --chunk 65536 --reuse sender
  sme coherence predict --table host.json --size 65536..8388608*2 --shared-port --format csv";

/// `sme coherence measure --help`
pub const MEASURE: &str = "\
The first CPU loads or stores a buffer whose lines it has prepared (a hit) or another CPU has (a
miss), in one state; the others prepare. Modified: stored. Exclusive: loaded by one, after a
flush. Shared: loaded by two. Invalid: flushed. Owned: stored by one, loaded by another, on
processors that are known to have that state. A shared or owned line that misses takes two other
CPUs at a place. Variants: flushed (the other CPU has flushed its copy, and with it all others),
flushed-after (the pass flushes the lines that it stores), non-temporal stores.

A row is the 10th percentile of the times of the repetitions, by nearest rank. Before and after it
a cache line goes to and fro between the CPUs by compare-and-swap. If that round trip has changed
by more than a factor of 1.5, or a thread ran on another CPU than its own, the row is measured
again, three times at most. It is dropped if that did not help, if its round trips differ from the
median of all rows by more than that factor (a virtual machine may put its CPUs on other cores),
or if a pass takes less than four times as long as reading the clock. stderr says which rows were
dropped, and which cannot be measured here and why.

JSON lines (-o FILE.json) are the throughput table that sme coherence predict reads.

Examples:
  sme coherence measure -o host.json
  sme coherence measure --cores 0,8 --sizes 16384..33554432*2 --repetitions 51 -o remote.json
  sme coherence measure --transitions LMM,SHS --sizes 65536,1048576";

/// `sme coherence compare --help`
pub const COMPARE_TRANSFER: &str = "\
For each size: the model of the paper from simulated accesses, both copies one after the other
(sequential), by Eq. 1 (pipelined) and all along (parallel); the transfer of sme coherence
transfer; and the ping-pong of sme mpi pingpong between the same two cores, through rings of the
same chunks. Application buffers are used again. bound_by is the access that bounds the
prediction. With --host the model takes the throughputs that sme coherence measure has written,
and the transfer is executed on this computer.

Examples:
  sme coherence compare
  sme coherence compare --host --table host.json
  sme coherence compare --machine opteron-6272 --placement remote --shared-port
  sme coherence compare --sizes 65536,1048576 --chunk 65536 --ring 2 --format csv";

/// `sme coherence curves --help`
pub const CURVES: &str = "\
Figures 2, 4, 5, 6, 8, 9, 10 and 12 are of the Xeon, 13 and 14 of the Opteron; --machine puts all
of them on another machine, and leaves out those that it cannot have. A row is a point of a line:
simulated, predicted by the model from simulated accesses, or published. The paper prints no
numbers with its curves: what is published is a factor of its text times a simulated line.

Examples:
  sme coherence curves --figures plots -o curves.csv
  sme coherence curves --paper 13,14 --sizes 16384..1048576*2
  sme coherence curves --paper 2 --machine opteron-6272 --figures plots";

/// `sme coherence tune --help`
pub const TUNE_TRANSFER: &str = "\
Every setting of chunks, rings, direction and flush is predicted by Eq. 1 from the throughputs
of the machine at the size of the message, and simulated as sme coherence transfer does, with
buffers that are used again. The best are shown, and Open MPI's as the last: 8 chunks of 32768
bytes, the same way every time, not flushed. Gains are over that one. Eq. 1 does not know of the
ring's length, nor of the time in which a receiver flushes.

Examples:
  sme coherence tune --machine opteron-6272 --size 65536
  sme coherence tune --placement remote --size 1048576 --chunks 16384,65536 --rings 8
  sme coherence tune --table host.json --size 131072";
