//! The one place that starts the asynchronous runtime, for the commands that need one.

use anyhow::{Context, Result};

/// Waits for the end of what a command does.
pub(crate) fn wait<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?
        .block_on(work)
}
