//! Whether a proposed repair may run.
//!
//! A proposal is data. A command runs by itself only if its bytes equal an entry that the owner wrote, and what runs is
//! the owner's entry. No parser ever approves; what reads commands here only makes a verdict stricter or explains it.

mod proposal;

pub use proposal::{
    Confidence, Proposal, ProposalDiagnosis, ProposedCommand, ProposedFallback, RepairCategory,
    Severity,
};
