//! Prompts for the next attempt: the old prompt with one marked addition.
//!
//! The addition is a block between two tags. A later retry replaces it, so that prompts do not grow. Texts that
//! come from agents and tools cannot close the block, and are cut so that it never exceeds its limit.

use std::collections::BTreeMap;

use super::excerpt::estimate_tokens;
use super::prompt_context::PromptContext;
use super::prompt_note::{insert_note, render_message, render_note, without_note};
use super::prompt_template::{PromptError, PromptTemplate};
use crate::suggest::nearest;

/// How long additions may be and where they go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptLimits {
    /// The most tokens of the addition; 2000 by default.
    pub addition: usize,
    /// The most tokens of the whole prompt; none means that only the addition is limited.
    pub prompt: Option<usize>,
    /// Texts that mark where the context of a prompt begins; `CONTEXT:` and `KONTEXT:` by default.
    pub markers: Vec<String>,
}

impl Default for PromptLimits {
    fn default() -> Self {
        Self {
            addition: 2000,
            prompt: None,
            markers: vec!["CONTEXT:".to_owned(), "KONTEXT:".to_owned()],
        }
    }
}

/// The prompt templates by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptTemplates(BTreeMap<String, PromptTemplate>);

impl PromptTemplates {
    /// Reads the embedded templates.
    pub fn load_embedded() -> Result<Self, PromptError> {
        let read = toml::from_str(include_str!("../../data/prompts.toml"));
        read.map(Self).map_err(|error| PromptError::Broken {
            template: "prompts.toml".to_owned(),
            reason: error.message().to_owned(),
        })
    }

    /// The embedded templates; a test makes sure that they can be read.
    pub fn embedded() -> Self {
        match Self::load_embedded() {
            Ok(prompts) => prompts,
            // The embedded file is tested; this can only be reached by a build that skipped its tests.
            Err(error) => unreachable!("embedded prompts: {error}"),
        }
    }

    /// Adds a template, or replaces the one of this name.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, template: PromptTemplate) -> Self {
        self.0.insert(name.into(), template);
        self
    }

    /// The names of all templates.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// What using a template does, in words for a person, where it says so.
    pub fn description(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.description.as_deref()
    }

    /// Changes a prompt by a template; an addition that was made before is replaced.
    ///
    /// ```
    /// use unstuck_core::action::{PromptContext, PromptLimits, PromptTemplates};
    ///
    /// let prompts = PromptTemplates::load_embedded()?;
    /// let changed = prompts.apply("Task: X", "focus", &PromptContext::default(), &PromptLimits::default())?;
    /// assert!(changed.contains("timed out") && changed.ends_with("Task: X"));
    /// # Ok::<(), unstuck_core::planner::PromptError>(())
    /// ```
    pub fn apply(
        &self,
        prompt: &str,
        name: &str,
        context: &PromptContext,
        limits: &PromptLimits,
    ) -> Result<String, PromptError> {
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

    /// A message of its own, for a conversation that goes on.
    pub fn message(
        &self,
        name: &str,
        context: &PromptContext,
        limits: &PromptLimits,
    ) -> Result<String, PromptError> {
        render_message(name, self.template(name)?, context, limits.addition)
    }

    fn template(&self, name: &str) -> Result<&PromptTemplate, PromptError> {
        self.0.get(name).ok_or_else(|| PromptError::Unknown {
            name: name.to_owned(),
            suggestion: nearest(
                name,
                self.0.keys().map(|known| (known.as_str(), known.clone())),
            ),
        })
    }
}
