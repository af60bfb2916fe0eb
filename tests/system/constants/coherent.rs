//! The workloads of cache-coherent multiprocessors: passes by state, transfers, and small runs of
//! the program.

use sme_memory::Cacheable;
use sme_sim::machine::Setup;
use sme_sim::parts::contract::{Span, ThreadMemory};

use super::{Workload, large_arrays, machine, of_command, shared_cores};

/// Small runs of the program, the quick ones first.
const ON_SOCKETS: [&str; 13] = [
    "coherence bench --transitions LMM,SHM,SHS --sizes 4096,65536",
    "coherence bench --transitions LMI,SME,LMS --sizes 4096,524288",
    "coherence transfer --sizes 262144 --placement remote",
    "coherence transfer --sizes 262144 --placement socket",
    "barrier --nodes 9 --cores 2 --episodes 3",
    "barrier --nodes 1 --cores 16 --episodes 3",
    "lock --lock test-and-set --nodes 2 --cores 2",
    "mpi pingpong --ranks 2 --sizes 64,32768",
    "mpi collective allreduce --ranks 4 --sizes 64 --rounds 1",
    "mpi pscw --targets 2 --rounds 3 --sync deferred",
    "fft --log2n 8 --nodes 2 --memory cached",
    "coherence bench --transitions LHM --sizes 2097152,4194304,8388608,12582912",
    "coherence bench --transitions LHE --sizes 16777216,33554432",
];

pub(super) fn workloads() -> Vec<Box<Workload>> {
    let library: [Box<Workload>; 3] = [
        Box::new(shared_cores),
        Box::new(large_arrays),
        Box::new(written_back),
    ];
    let commands = ON_SOCKETS.map(|command| -> Box<Workload> {
        Box::new(move |name, set| of_command(command, name, set))
    });
    library.into_iter().chain(commands).collect()
}

/// The time of writing all caches of a socket back.
fn written_back(name: &str, set: Option<&str>) -> String {
    let machine = machine(name, set);
    let program = |memory: ThreadMemory, _, _| async move {
        memory.begin(Span::new("all", 0)).await;
        memory.write_back_invalidate().await;
        memory.end(Span::new("all", 0)).await;
    };
    let setup = Setup::new(machine.shape(), 1, 1);
    let mut machine = machine.build(setup, program).unwrap();
    machine.run(1, |_| {}).unwrap();
    format!("{:?}", machine.spans().called("all"))
}
