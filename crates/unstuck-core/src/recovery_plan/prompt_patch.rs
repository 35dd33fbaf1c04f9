//! Prompts for the next attempt: the old prompt with one marked addition.
//!
//! The addition is a block between two tags. A later retry replaces it, so that prompts do not grow. Text from agents
//! and tools cannot close the block, and is truncated so that the block never exceeds its limit.

use std::collections::BTreeMap;

use super::prompt_note::{insert_note, render_message, render_note, without_note};
use super::prompt_note_template::{PromptNoteError, PromptNoteTemplate};
use super::prompt_note_vars::PromptNoteVars;
use super::text_truncation::estimate_tokens;
use crate::did_you_mean::nearest;

/// The length limits and positions of prompt notes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptNoteLimits {
    /// The maximum number of tokens of the addition; 2000 by default.
    pub addition: usize,
    /// The maximum number of tokens of the whole prompt; if absent, only the addition is limited.
    pub prompt: Option<usize>,
    /// Texts that mark the start of a prompt's context; `CONTEXT:` and `KONTEXT:` by default.
    pub markers: Vec<String>,
}

impl Default for PromptNoteLimits {
    fn default() -> Self {
        Self {
            addition: 2000,
            prompt: None,
            markers: vec!["CONTEXT:".to_owned(), "KONTEXT:".to_owned()],
        }
    }
}

/// The prompt note templates by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptNoteTemplates(BTreeMap<String, PromptNoteTemplate>);

impl PromptNoteTemplates {
    /// Loads the embedded templates.
    pub fn load_embedded() -> Result<Self, PromptNoteError> {
        let read = toml::from_str(include_str!("../../data/prompts.toml"));
        read.map(Self).map_err(|error| PromptNoteError::Broken {
            template: "prompts.toml".to_owned(),
            reason: error.message().to_owned(),
        })
    }

    /// Returns the embedded templates; a test ensures that they can be parsed.
    pub fn embedded() -> Self {
        match Self::load_embedded() {
            Ok(prompts) => prompts,
            // The embedded file is tested; only a build that skipped its tests can get here.
            Err(error) => unreachable!("embedded prompts: {error}"),
        }
    }

    /// Adds a template, or replaces the one with the same name.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, template: PromptNoteTemplate) -> Self {
        self.0.insert(name.into(), template);
        self
    }

    /// Returns the names of all templates.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Returns the description of a template, as text for humans, if it has one.
    pub fn description(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.description.as_deref()
    }

    /// Applies a template to a prompt; an earlier addition is replaced.
    ///
    /// ```
    /// use unstuck_core::recovery_plan::{PromptNoteVars, PromptNoteLimits, PromptNoteTemplates};
    ///
    /// let prompts = PromptNoteTemplates::load_embedded()?;
    /// let changed = prompts.apply("Task: X", "focus", &PromptNoteVars::default(), &PromptNoteLimits::default())?;
    /// assert!(changed.contains("timed out") && changed.ends_with("Task: X"));
    /// # Ok::<(), unstuck_core::recovery_plan::PromptNoteError>(())
    /// ```
    pub fn apply(
        &self,
        prompt: &str,
        name: &str,
        context: &PromptNoteVars,
        limits: &PromptNoteLimits,
    ) -> Result<String, PromptNoteError> {
        let template = self.template(name)?;
        let original = without_note(prompt, &limits.markers);
        let left = limits
            .prompt
            .map(|most| most.saturating_sub(estimate_tokens(&original)));
        let most = left.map_or(limits.addition, |left| left.min(limits.addition));
        let note = render_note(name, template, context, most)?;
        Ok(insert_note(
            &original,
            &note,
            template.position,
            &limits.markers,
        ))
    }

    /// Renders a standalone message for a resumed conversation.
    pub fn message(
        &self,
        name: &str,
        context: &PromptNoteVars,
        limits: &PromptNoteLimits,
    ) -> Result<String, PromptNoteError> {
        render_message(name, self.template(name)?, context, limits.addition)
    }

    fn template(&self, name: &str) -> Result<&PromptNoteTemplate, PromptNoteError> {
        self.0.get(name).ok_or_else(|| PromptNoteError::Unknown {
            name: name.to_owned(),
            suggestion: nearest(
                name,
                self.0.keys().map(|known| (known.as_str(), known.clone())),
            ),
        })
    }
}
