//! Single place that starts an async runtime: current-thread, for the duration of one command.

use std::future::Future;

use anyhow::{Context, Result};

/// Runs a future to completion.
pub(crate) fn block_on<T>(future: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(future)
}
