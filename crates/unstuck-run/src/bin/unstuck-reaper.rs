//! The reaper and the sandbox as a separate program, for users of the library without the `unstuck` binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args_os().collect();
    if let Some(code) = unstuck_repair::sandbox::run_if_called(&arguments) {
        return ExitCode::from(code);
    }
    let code = unstuck_run::reaper::main(arguments.into_iter().skip(1));
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
