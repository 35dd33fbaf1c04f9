//! Previews: shows the changes a command would make before it is approved; they are then applied or discarded.
//!
//! A command runs on an overlay of the project: it sees all files, and its writes go elsewhere. [`UnfinishedPreview`] is
//! such an overlay before the run, [`Preview`] the result, [`PreviewReport`] its display form. Files are compared by
//! content, so a reinstall that changes nothing shows no changes.
//!
//! Applying is all or nothing: copies are staged next to their targets, then exchanged with the existing entries, which
//! are checked once more before they are removed. A crash in between is recovered at the next call.

mod apply;
mod apply_journal;
mod change_set;
mod compare;
mod crash_recovery;
mod disk_usage;
mod error;
mod file_compare;
mod folded_report_rows;
mod limits;
mod mounts_in_project;
pub(crate) mod nofollow_access;
pub(crate) mod overlay_reader;
mod preview_store;
pub(crate) mod remove_tree;
mod report;
mod report_builder;
mod staging;
mod stored_preview;
mod swap;
mod text_diffs;
mod tree_path;
mod unit_splitting;

pub use apply::PreviewApplyReport;
pub use change_set::TreeEntryKind;
pub use crash_recovery::{CrashRecoveredPreview, PreviewCrashRecoveryOutcome};
pub use error::{PreviewApplyError, PreviewError};
pub use folded_report_rows::{display_size, grouped_number};
pub use limits::PreviewLimits;
pub use preview_store::{MAX_AGE, MAX_PREVIEWS, PreviewStore, UnfinishedPreview};
pub use report::{
    FileChangeCounts, FileTextDiff, PreviewCommandExecution, PreviewFileChangeKind, PreviewReport,
    PreviewReportRow,
};
pub use stored_preview::Preview;
