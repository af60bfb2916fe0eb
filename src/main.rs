//! The program `sme`: everything is in the library's `cli`.

use std::process::ExitCode;

/// It takes large pages where the system gives them on request only: the state of a large machine
/// is spread over so many small ones that finding them takes a fifth of the time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    sme::cli::main(std::env::args_os())
}
