//! The policy that decides whether a proposed repair may run.
//!
//! A proposal is data. A command runs automatically only if its bytes equal an entry that the owner wrote, and what
//! runs is the owner's entry. No parser ever approves; parsing commands only makes a verdict stricter or explains it.
//! The rules are in `docs/guide/guard.md`.
//!
//! ```
//! use unstuck_core::command_policy::{WorkingDirProtection, CommandVerdictRestrictions, RepairPolicy, CommandVerdict, evaluate};
//!
//! let rules = RepairPolicy { auto_approve: vec!["npm ci".to_owned()], ..RepairPolicy::default() };
//! let verdict = |command| evaluate(&rules, command, &WorkingDirProtection::Ordinary, &CommandVerdictRestrictions::default()).verdict;
//! assert!(matches!(verdict(" npm ci\n"), CommandVerdict::Run(approved) if approved.command_text() == "npm ci"));
//! assert!(matches!(verdict("npm ci --force"), CommandVerdict::RequireApproval(_)));
//! ```

mod approved_command;
mod auto_approve_lint;
mod direct_or_shell;
mod evaluate;
mod hidden_characters;
mod program_knowledge;
mod proposal;
mod proposal_parser;
mod repair_policy;
mod require_human;
mod safe_display;
mod simple_command_check;
mod split_commands;
mod strict_json;
mod verdict;

pub use approved_command::{ApprovalOrigin, ApprovedCommand};
pub use auto_approve_lint::lint_entry;
pub use direct_or_shell::DirectOrShell;
pub use evaluate::evaluate;
pub use proposal::{
    DEFAULT_TIMEOUT_SECONDS, MAX_BYTES, MAX_COMMAND, MAX_TIMEOUT_SECONDS, MAX_WORKING_DIR,
    Proposal, ProposalConfidence, ProposalDiagnosis, ProposalError, ProposedCommand,
    ProposedFallbackCommand, RepairCategory, RepairProblemSeverity,
};
pub use repair_policy::{OnUnlistedCommand, RepairPolicy, RepairPolicyError};
pub use safe_display::{sanitize, sanitize_command};
pub use verdict::{
    ApprovalReason, CommandEvaluation, CommandVerdict, CommandVerdictRestrictions, EvaluationStep,
    EvaluationStepEffect, WorkingDirProtection,
};
