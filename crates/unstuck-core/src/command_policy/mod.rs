//! The policy that decides whether a proposed repair may run.
//!
//! A proposal is data. A command runs automatically only if its bytes equal an entry that the owner wrote, and what
//! runs is the owner's entry. No parser ever approves; parsing commands only makes a verdict stricter or explains it.
//! The rules are in `docs/guide/guard.md`.
//!
//! ```
//! use unstuck_core::command_policy::{DirectoryKind, PolicyContext, RepairPolicy, Verdict, evaluate};
//!
//! let rules = RepairPolicy { auto_approve: vec!["npm ci".to_owned()], ..RepairPolicy::default() };
//! let verdict = |command| evaluate(&rules, command, &DirectoryKind::Ordinary, &PolicyContext::default()).verdict;
//! assert!(matches!(verdict(" npm ci\n"), Verdict::Run(approved) if approved.command_text() == "npm ci"));
//! assert!(matches!(verdict("npm ci --force"), Verdict::RequireApproval(_)));
//! ```

mod approved_command;
mod charset;
mod evaluate;
mod execution_plan;
mod lint;
mod program_knowledge;
mod proposal;
mod proposal_fields;
mod repair_policy;
mod require_human;
mod sanitize;
mod simple_command;
mod split_commands;
mod strict_json;
mod verdict;

pub use approved_command::{ApprovalOrigin, ApprovedCommand};
pub use evaluate::evaluate;
pub use execution_plan::ExecutionPlan;
pub use lint::lint_entry;
pub use proposal::{
    Confidence, DEFAULT_TIMEOUT_SECONDS, MAX_BYTES, MAX_COMMAND, MAX_TIMEOUT_SECONDS,
    MAX_WORKING_DIR, Proposal, ProposalDiagnosis, ProposalError, ProposedCommand, ProposedFallback,
    RepairCategory, Severity,
};
pub use repair_policy::{OnUnknown, RepairPolicy, RepairPolicyError};
pub use sanitize::{sanitize, sanitize_command};
pub use verdict::{
    ApprovalReason, DirectoryKind, Evaluation, PolicyContext, PolicyStep, StepEffect, Verdict,
};
