//! What a command would change, seen before it is allowed; then applied or dropped.
//!
//! A command runs on an overlay of the project: it sees all files, and what it writes goes elsewhere. [`PendingPreview`] is such
//! an overlay before the command ran, [`Preview`] what is known afterwards, [`Report`] what a person is shown. Files
//! are compared by what they hold, so a reinstall that changes nothing shows nothing.
//!
//! Applying is all or nothing: copies are made beside the places they belong to, then exchanged with what is there, and
//! what was there is looked at once more before it is removed. A crash in between is settled at the next call.

mod apply;
mod apply_journal;
mod change;
mod compare;
mod content;
pub(crate) mod dir_handle;
mod disk_usage;
mod error;
mod limits;
mod mounts;
pub(crate) mod overlay_layers;
mod preview_store;
mod recover;
pub(crate) mod remove_tree;
mod report;
mod report_builder;
mod report_rows;
mod staging;
mod stored_preview;
mod swap;
mod swap_units;
mod text_diffs;
mod tree_path;

pub use apply::ApplyReport;
pub use change::TreeEntryKind;
pub use error::{ApplyError, PreviewError};
pub use limits::PreviewLimits;
pub use preview_store::{MAX_AGE, MAX_PREVIEWS, PendingPreview, PreviewStore};
pub use recover::{RecoveredPreview, RecoveryOutcome};
pub use report::{
    ExecutedCommand, FileChangeCounts, FileTextDiff, PreviewReport, ReportRow, RowChange,
};
pub use report_rows::{display_size, grouped_number};
pub use stored_preview::Preview;
