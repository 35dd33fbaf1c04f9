//! What a command would change, seen before it is allowed; then applied or dropped.
//!
//! A command runs on an overlay of the project: it sees all files, and what it writes goes elsewhere. [`Draft`] is such
//! an overlay before the command ran, [`Preview`] what is known afterwards, [`Report`] what a person is shown. Files
//! are compared by what they hold, so a reinstall that changes nothing shows nothing.
//!
//! Applying is all or nothing: copies are made beside the places they belong to, then exchanged with what is there, and
//! what was there is looked at once more before it is removed. A crash in between is settled at the next call.

mod apply;
mod bounds;
mod change;
mod compare;
mod content;
mod error;
pub(crate) mod handle;
mod journal;
pub(crate) mod layers;
mod mounts;
mod moving;
mod path;
#[expect(
    clippy::module_inception,
    reason = "the preview itself is one of its parts"
)]
mod preview;
mod previews;
pub(crate) mod remove;
mod report;
mod rows;
mod settle;
mod stage;
mod tell;
mod texts;
mod units;
mod usage;

pub use apply::Applied;
pub use bounds::Bounds;
pub use change::Kind;
pub use error::{ApplyError, PreviewError};
pub use preview::Preview;
pub use previews::{Draft, KEPT_AT_MOST, KEPT_FOR, Previews};
pub use report::{Counts, Ran, Report, Row, Text, What};
pub use rows::{size_of, spaced};
pub use settle::{End, Settled};
