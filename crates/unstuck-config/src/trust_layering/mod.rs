//! Trust layering for repair permissions.
//!
//! The owner's own files apply. The project's files, which agents can write, apply once the owner has trusted them;
//! until then only settings that tighten the policy apply.

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
