//! What is known while a run is driven; looked up only when something fails, so that what works starts at once.

use unstuck_core::Classifier;
use unstuck_core::agent::Agents;
use unstuck_core::decision::ModelCatalog;
use unstuck_core::knowledge::Playbook;
use unstuck_core::planner::PromptTemplates;

/// Whoever knows, with the user's own additions.
pub trait RunKnowledgeSource {
    /// How failures are told apart.
    fn classifier(&self) -> &Classifier;

    /// What is done about them.
    fn playbook(&self) -> &Playbook;

    /// The models and their ladders.
    fn catalog(&self) -> &ModelCatalog;

    /// What is added to prompts.
    fn prompts(&self) -> &PromptTemplates;

    /// The agents.
    fn agents(&self) -> &Agents;
}

/// What is known while a run is driven.
#[derive(Clone, Copy)]
pub struct RunKnowledge<'a> {
    /// Whoever knows.
    pub source: &'a dyn RunKnowledgeSource,
    /// What a role does about failures, where it has its own ways.
    pub own_playbook: Option<&'a Playbook>,
    /// The version of all that.
    pub version: &'a str,
}

impl<'a> RunKnowledge<'a> {
    pub(super) fn classifier(&self) -> &'a Classifier {
        self.source.classifier()
    }

    pub(super) fn playbook(&self) -> &'a Playbook {
        self.own_playbook.unwrap_or_else(|| self.source.playbook())
    }

    pub(super) fn catalog(&self) -> &'a ModelCatalog {
        self.source.catalog()
    }

    pub(super) fn prompts(&self) -> &'a PromptTemplates {
        self.source.prompts()
    }

    pub(super) fn agents(&self) -> &'a Agents {
        self.source.agents()
    }
}
