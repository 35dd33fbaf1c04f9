//! The sandbox processes as a separate program, for users of the library without the `unstuck` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    ExitCode::from(unstuck_repair::sandbox::run_if_called(&arguments).unwrap_or(2))
}
