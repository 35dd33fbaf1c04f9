//! Trust decisions of a project's owner, stored outside the project.
//!
//! Each project has one record in unstuck's state directory: the trusted content of its `[recovery]` section, and the
//! accepted watched files. A record that is damaged, or that others could have written, is ignored.

mod error;
mod record;
mod store;
#[cfg(test)]
mod tests;

pub use error::TrustError;
pub use record::{ProjectTrustRecord, TrustedRepairPolicy};
pub use store::{TrustStatus, TrustStore};
