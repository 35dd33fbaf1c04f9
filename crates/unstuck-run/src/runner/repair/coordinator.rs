//! One who repairs a project on its owner's terms.

use std::path::Path;

use super::context::RepairContext;
use super::settings::RepairSettings;

/// One who repairs a project on its owner's terms.
#[derive(Clone, Copy)]
pub struct RepairCoordinator<'a> {
    /// What the owner allows.
    pub settings: &'a RepairSettings,
    /// The root folder of the project.
    pub project: &'a Path,
    /// What all repairs share.
    pub context: RepairContext<'a>,
}
