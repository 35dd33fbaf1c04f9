//! The knowledge used while a session runs; loaded only when something fails, so that a success starts at once.

use unstuck_core::Classifier;
use unstuck_core::agent::Agents;
use unstuck_core::decision::ModelCatalog;
use unstuck_core::knowledge::RecoveryKnowledge;
use unstuck_core::recovery_plan::PromptNoteTemplates;

/// A source of knowledge, including the user's own additions.
pub trait RunKnowledgeProvider {
    /// Returns the classifier of failures.
    fn classifier(&self) -> &Classifier;

    /// Returns the strategies for failures.
    fn playbook(&self) -> &RecoveryKnowledge;

    /// Returns the models and their fallbacks.
    fn catalog(&self) -> &ModelCatalog;

    /// Returns the prompt templates.
    fn prompts(&self) -> &PromptNoteTemplates;

    /// Returns the known agents.
    fn agents(&self) -> &Agents;
}

/// The knowledge used while a session runs.
#[derive(Clone, Copy)]
pub struct RunKnowledgeBase<'a> {
    /// The source of the knowledge.
    pub source: &'a dyn RunKnowledgeProvider,
    /// The strategies of a role, if it has its own.
    pub own_playbook: Option<&'a RecoveryKnowledge>,
    /// The version of the knowledge.
    pub version: &'a str,
}

impl<'a> RunKnowledgeBase<'a> {
    pub(super) fn classifier(&self) -> &'a Classifier {
        self.source.classifier()
    }

    pub(super) fn playbook(&self) -> &'a RecoveryKnowledge {
        self.own_playbook.unwrap_or_else(|| self.source.playbook())
    }

    pub(super) fn catalog(&self) -> &'a ModelCatalog {
        self.source.catalog()
    }

    pub(super) fn prompts(&self) -> &'a PromptNoteTemplates {
        self.source.prompts()
    }

    pub(super) fn agents(&self) -> &'a Agents {
        self.source.agents()
    }
}
