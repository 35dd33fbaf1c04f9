//! Checks of the strategies and prompt templates that `[error_recovery]` and roles name, and of `[prompts]`.

use std::collections::BTreeMap;

use unstuck_core::FailureKind;
use unstuck_core::knowledge::RecoveryKnowledge;
use unstuck_core::recovery_plan::{
    PromptNoteError, PromptNoteLimits, PromptNoteTemplates, PromptNoteVars,
};

use super::{ConfigChecker, unknown_name};
use crate::section::FailureKindRecoverySection;

impl ConfigChecker<'_> {
    pub(super) fn check_recovery(&mut self) {
        // A broken playbook is reported elsewhere; names are then looked up in the built-in one.
        let _ = self.config.prepare();
        let general = &self.config.root.error_recovery.strategies;
        self.check_kinds("error_recovery.strategies", general);
        for role in self.config.roles() {
            let place = format!("role.{}.error_recovery", role.id);
            self.check_kinds(&place, &role.error_recovery);
        }
    }

    fn check_kinds(
        &mut self,
        place: &str,
        kinds: &BTreeMap<FailureKind, FailureKindRecoverySection>,
    ) {
        let playbook: &RecoveryKnowledge = self.config.playbook();
        let own = &self.config.root.strategies;
        for (kind, recovery) in kinds {
            for (at, id) in recovery.strategies.iter().flatten().enumerate() {
                if playbook.strategy(id).is_none() && !own.contains_key(id) {
                    let known = playbook.strategies().map(|(id, _)| id);
                    let text = unknown_name("strategy", id, known);
                    self.report(&format!("{place}.{kind}.strategies.{}", at + 1), text);
                }
            }
            if let Some(name) = &recovery.custom_prompt_modifier {
                self.check_template(&format!("{place}.{kind}.custom_prompt_modifier"), name);
            }
        }
    }

    fn check_template(&mut self, path: &str, name: &str) {
        let own = self.config.root.prompts.keys().map(String::as_str);
        let built_in = PromptNoteTemplates::load_embedded().ok();
        let built_in = built_in.iter().flat_map(PromptNoteTemplates::names);
        let known: Vec<_> = own.chain(built_in).collect();
        if !known.contains(&name) {
            let text = unknown_name("prompt template", name, known.into_iter());
            self.report(path, format!("{text} (define templates in [prompts])"));
        }
    }

    /// Checks that each prompt template has a text and only known variables.
    pub(super) fn check_prompts(&mut self) {
        for (name, section) in &self.config.root.prompts {
            let path = format!("prompts.{name}");
            let is_unread = |key: &str| self.config.is_unreadable(&format!("{path}.{key}"));
            match (&section.text, &section.file) {
                (Some(_), Some(_)) => {
                    self.report(&path, "has both `text` and `file`; keep only one");
                }
                (None, None) if is_unread("text") || is_unread("file") => {}
                (None, None) => self.report(&path, "needs a `text` or a `file`"),
                (None, Some(file)) => {
                    self.require_file(&format!("{path}.file"), file);
                }
                (Some(_), None) => {}
            }
        }
        // Missing templates were reported above.
        let Ok(prompts) = self.config.prompts() else {
            return;
        };
        let (context, limits) = (PromptNoteVars::default(), PromptNoteLimits::default());
        for (name, section) in &self.config.root.prompts {
            let path = format!("prompts.{name}");
            let key = if section.text.is_some() {
                "text"
            } else {
                "file"
            };
            let told = match prompts.message(name, &context, &limits) {
                Ok(_) => continue,
                Err(PromptNoteError::MissingPlaceholder { placeholder, .. }) => {
                    unknown_name("variable", &placeholder, PLACEHOLDERS.into_iter())
                }
                Err(other) => other.to_string(),
            };
            self.report(&format!("{path}.{key}"), told);
        }
    }
}

/// The variables of retry templates.
const PLACEHOLDERS: [&str; 10] = [
    "error",
    "kind",
    "output",
    "trace",
    "suggestion",
    "sections",
    "summary",
    "user_message",
    "expected",
    "attempt",
];
