//! Trust layering for repair permissions.
//!
//! The owner's own files apply. The project's files, which agents can write, apply once the owner has trusted them;
//! until then only settings that tighten the policy apply.

mod auto_approve_warnings;
mod declared_policy;
mod intersect;
mod layered_repair_policy;
mod ownership;
mod repair_policy_diff;

pub use auto_approve_warnings::lint_approval;
pub use declared_policy::DeclaredRepairPolicy;
pub use intersect::intersect;
pub(crate) use layered_repair_policy::{FileTrust, LayeredRepairPolicy};
pub use layered_repair_policy::{ProjectRepairPolicy, ProjectTrust, UntrustedOwnerFile};
pub(crate) use ownership::ownership_problem;
pub use repair_policy_diff::{RepairPolicyChange, diff_policies};
