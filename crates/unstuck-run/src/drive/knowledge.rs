//! What is known while a run is driven; looked up only when something fails, so that what works starts at once.

use unstuck_core::Classifier;
use unstuck_core::action::Prompts;
use unstuck_core::agent::Agents;
use unstuck_core::decision::Catalog;
use unstuck_core::knowledge::Playbook;

/// Whoever knows, with the user's own additions.
pub trait Known {
    /// How failures are told apart.
    fn classifier(&self) -> &Classifier;

    /// What is done about them.
    fn playbook(&self) -> &Playbook;

    /// The models and their ladders.
    fn catalog(&self) -> &Catalog;

    /// What is added to prompts.
    fn prompts(&self) -> &Prompts;

    /// The agents.
    fn agents(&self) -> &Agents;
}

/// What is known while a run is driven.
#[derive(Clone, Copy)]
pub struct Knowledge<'a> {
    /// Whoever knows.
    pub known: &'a dyn Known,
    /// What a role does about failures, where it has its own ways.
    pub own_playbook: Option<&'a Playbook>,
    /// The version of all that.
    pub version: &'a str,
}

impl<'a> Knowledge<'a> {
    pub(super) fn classifier(&self) -> &'a Classifier {
        self.known.classifier()
    }

    pub(super) fn playbook(&self) -> &'a Playbook {
        self.own_playbook.unwrap_or_else(|| self.known.playbook())
    }

    pub(super) fn catalog(&self) -> &'a Catalog {
        self.known.catalog()
    }

    pub(super) fn prompts(&self) -> &'a Prompts {
        self.known.prompts()
    }

    pub(super) fn agents(&self) -> &'a Agents {
        self.known.agents()
    }
}
