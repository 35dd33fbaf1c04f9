//! Whose word counts about repairs.
//!
//! What the owner's own files say counts. What the project's files say, which agents can write, counts once the owner
//! has trusted it; until then only what makes it stricter does.

mod change;
mod declared;
mod intersect;
mod lint;
mod ownership;
mod repair_trust;

pub use change::{RepairPolicyChange, diff_policies};
pub use declared::DeclaredRepairPolicy;
pub use intersect::intersect;
pub use lint::lint_approval;
pub(crate) use ownership::ownership_problem;
pub(crate) use repair_trust::{FileTrust, RepairDeclarations};
pub use repair_trust::{ProjectRecovery, ProjectTrust, UntrustedFile};
