//! Whether a proposed repair may run.
//!
//! A proposal is data. A command runs by itself only if its bytes equal an entry that the owner wrote, and what runs is
//! the owner's entry. No parser ever approves; what reads commands here only makes a verdict stricter or explains it.
//! The rules are in `docs/guide/guard.md`.
//!
//! ```
//! use unstuck_core::guard::{Place, Rules, Standing, Verdict, judge};
//!
//! let rules = Rules { auto_approve: vec!["npm ci".to_owned()], ..Rules::default() };
//! let verdict = |command| judge(&rules, command, &Place::Ordinary, &Standing::default()).verdict;
//! assert!(matches!(verdict(" npm ci\n"), Verdict::Run(approved) if approved.text() == "npm ci"));
//! assert!(matches!(verdict("npm ci --force"), Verdict::Ask(_)));
//! ```

mod approved;
mod characters;
mod commands;
mod document;
mod doubt;
mod fields;
mod judge;
mod plain;
mod programs;
mod proposal;
mod require_human;
mod rules;
mod script;
mod show;
mod verdict;

pub use approved::{Approved, ApprovedBy};
pub use doubt::doubt;
pub use judge::judge;
pub use proposal::{
    Confidence, DEFAULT_TIMEOUT, MAX_BYTES, MAX_COMMAND, MAX_TIMEOUT, MAX_WORKING_DIR, Proposal,
    ProposalDiagnosis, ProposalError, ProposedCommand, ProposedFallback, RepairCategory, Severity,
};
pub use rules::{OnUnknown, Rules, RulesError};
pub use script::Script;
pub use show::{show, show_command};
pub use verdict::{AskWhy, Effect, Judgement, Place, Standing, Step, Verdict};
