//! Benchmarks: `cargo bench -p sme-benches --bench NAME`. BENCHMARKS.md has what they measured.
//!
//! * `barrier`, `programs`: whole simulated runs.
//! * `kernel`, `engine`, `cache`, `staleness`: parts of the simulator.
//! * `devices`: blocks by cycle model, rust-hdl and Verilator.
//! * `native`: the barriers on this computer's threads.
