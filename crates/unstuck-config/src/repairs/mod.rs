//! Whose word counts about repairs.
//!
//! What the owner's own files say counts. What the project's files say, which agents can write, counts once the owner
//! has trusted it; until then only what makes it stricter does.

mod change;
mod lint;
mod narrow;
mod ownership;
mod said;
mod words;

pub use change::{Change, difference};
pub use lint::lint;
pub use narrow::narrowed;
pub(crate) use ownership::fault;
pub use said::RecoverySaid;
pub(crate) use words::{Class, RepairWords};
pub use words::{Distrusted, ProjectRecovery, ProjectTrust};
