//! One who repairs a project on its owner's terms.

use std::path::Path;

use super::terms::RepairTerms;
use super::workshop::Workshop;

/// One who repairs a project on its owner's terms.
#[derive(Clone, Copy)]
pub struct Repairer<'a> {
    /// What the owner allows.
    pub terms: &'a RepairTerms,
    /// The root folder of the project.
    pub project: &'a Path,
    /// What all repairs share.
    pub workshop: Workshop<'a>,
}
