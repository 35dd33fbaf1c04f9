//! Runs a server in the foreground until the process is interrupted, and returns its statistics.

use std::path::Path;

use crate::error::FaultServerError;
use crate::script::FaultScript;
use crate::server::{FaultServer, FaultServerOptions, FaultServerStats};

/// Serves a script until the process is interrupted (Ctrl-C) or terminated, and returns the statistics.
///
/// Once the server listens, the port is written to `port_file` and `announce` is called.
pub fn serve(
    script: FaultScript,
    options: &FaultServerOptions,
    port_file: Option<&Path>,
    announce: impl FnOnce(&FaultServer),
) -> Result<FaultServerStats, FaultServerError> {
    let server = FaultServer::start_with(script, options)?;
    if let Some(path) = port_file {
        write_replacing(path, &server.port().to_string())?;
    }
    wait_for_signal(|| announce(&server)).map_err(FaultServerError::Start)?;
    Ok(server.stats())
}

/// Writes a file atomically: readers see all of it.
#[expect(
    clippy::disallowed_methods,
    reason = "a file that the user names, and one next to it"
)]
fn write_replacing(path: &Path, text: &str) -> Result<(), FaultServerError> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    std::fs::write(&beside, text).map_err(FaultServerError::file(path))?;
    std::fs::rename(&beside, path).map_err(FaultServerError::file(path))
}

/// Waits for a signal; `ready` is called after the handlers are installed.
fn wait_for_signal(ready: impl FnOnce()) -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        ready();
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        Ok(())
    })
}
