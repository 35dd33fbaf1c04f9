//! How a run ended, for whoever started it.

use unstuck_core::RunId;
use unstuck_core::event::RunFinished;

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished {
    /// The run.
    pub run: RunId,
    /// How it ended.
    pub end: RunFinished,
}
