//! The reaper as a program of its own, for whoever uses the library without the `unstuck` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    let code = unstuck_run::reaper::main(std::env::args_os().skip(1));
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
