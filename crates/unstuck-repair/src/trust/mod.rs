//! What a project's owner has trusted, kept outside the project.
//!
//! For each project there is one record in unstuck's state folder: the content of its `[recovery]` section as it was
//! trusted, and the guard files as they were accepted. A record that is damaged, or that others can have written, is as
//! good as none.

mod error;
mod record;
mod store;
#[cfg(test)]
mod tests;

pub use error::TrustError;
pub use record::{TrustRecord, TrustedContent};
pub use store::{TrustStatus, TrustStore};
