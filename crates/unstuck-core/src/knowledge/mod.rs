//! What unstuck knows, as data: one file per kind, and one each for strategies and the like.
//!
//! The files are embedded; a user's configuration adds to them or overrides them. This module only reads
//! and checks the data. What it means is the business of the stages that use it.

mod hosts;
mod kind_file;
mod playbook;
mod steps;
mod strategy;

pub use hosts::{Forge, Hosts, Mirror};
pub use kind_file::{KindFile, LayerDefaults, Link};
pub use playbook::{Playbook, PlaybookError};
pub use steps::{KnownTool, Role, StepTemplate, Variant};
pub use strategy::{Change, ModelChoice, SessionChoice, Strategy};
