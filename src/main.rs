//! The program `sme`: everything is in the library's `cli`.

use std::process::ExitCode;

fn main() -> ExitCode {
    sme::cli::main(std::env::args_os())
}
