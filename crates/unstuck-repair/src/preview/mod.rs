//! Previews: shows the changes a command would make before it is approved; they are then applied or discarded.
//!
//! A command runs on an overlay of the project: it sees all files, and its writes go elsewhere. [`PendingPreview`] is
//! such an overlay before the run, [`Preview`] the result, [`PreviewReport`] its display form. Files are compared by
//! content, so a reinstall that changes nothing shows no changes.
//!
//! Applying is all or nothing: copies are staged next to their targets, then exchanged with the existing entries, which
//! are checked once more before they are removed. A crash in between is recovered at the next call.

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
