//! Coordinates the repairs of a project under its owner's settings.

use std::path::Path;

use super::context::SharedRepairContext;
use super::settings::RepairSettings;

/// Coordinates the repairs of a project under its owner's settings.
#[derive(Clone, Copy)]
pub struct RepairCoordinator<'a> {
    /// The owner's repair settings.
    pub settings: &'a RepairSettings,
    /// The root directory of the project.
    pub project: &'a Path,
    /// The context shared by all repairs.
    pub context: SharedRepairContext<'a>,
}
