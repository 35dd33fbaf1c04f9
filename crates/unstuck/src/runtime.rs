//! The one place that starts an asynchronous runtime: one thread, for the time of a command.

use std::future::Future;

use anyhow::{Context, Result};

/// Runs a future to its end.
pub(crate) fn block_on<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(future)
}
