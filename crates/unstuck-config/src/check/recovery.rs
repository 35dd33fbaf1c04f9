//! What `[error_recovery]`, the roles and `[prompts]` name.

use std::collections::BTreeMap;

use unstuck_core::Kind;
use unstuck_core::action::{PromptContext, PromptError, PromptLimits, Prompts};
use unstuck_core::knowledge::Playbook;

use super::{Check, unknown};
use crate::section::KindRecovery;

impl Check<'_> {
    pub(super) fn recovery(&mut self) {
        // A broken playbook is told elsewhere; names are looked up in the known one then.
        let _ = self.config.prepare();
        let general = &self.config.file.error_recovery.strategies;
        self.kinds("error_recovery.strategies", general);
        for role in self.config.roles() {
            let place = format!("role.{}.error_recovery", role.id);
            self.kinds(&place, &role.error_recovery);
        }
    }

    fn kinds(&mut self, place: &str, kinds: &BTreeMap<Kind, KindRecovery>) {
        let playbook: &Playbook = self.config.playbook();
        let own = &self.config.file.strategies;
        for (kind, recovery) in kinds {
            for (at, id) in recovery.strategies.iter().flatten().enumerate() {
                if playbook.strategy(id).is_none() && !own.contains_key(id) {
                    let known = playbook.strategies().map(|(id, _)| id);
                    let text = unknown("strategy", id, known);
                    self.tell(&format!("{place}.{kind}.strategies.{}", at + 1), text);
                }
            }
            if let Some(name) = &recovery.custom_prompt_modifier {
                self.template(&format!("{place}.{kind}.custom_prompt_modifier"), name);
            }
        }
    }

    fn template(&mut self, path: &str, name: &str) {
        let own = self.config.file.prompts.keys().map(String::as_str);
        let built_in = Prompts::builtin().ok();
        let built_in = built_in.iter().flat_map(Prompts::names);
        let known: Vec<_> = own.chain(built_in).collect();
        if !known.contains(&name) {
            let text = unknown("prompt template", name, known.into_iter());
            self.tell(path, format!("{text}; [prompts] adds one"));
        }
    }

    /// The prompt templates of the project: that each has a text, and no placeholder that is never filled.
    pub(super) fn prompts(&mut self) {
        for (name, section) in &self.config.file.prompts {
            let path = format!("prompts.{name}");
            let is_unread = |key: &str| self.config.is_unread(&format!("{path}.{key}"));
            match (&section.text, &section.file) {
                (Some(_), Some(_)) => {
                    self.tell(&path, "has a `text` and a `file`; keep one of them");
                }
                (None, None) if is_unread("text") || is_unread("file") => {}
                (None, None) => self.tell(&path, "needs a `text` or a `file`"),
                (None, Some(file)) => {
                    self.needs_file(&format!("{path}.file"), file);
                }
                (Some(_), None) => {}
            }
        }
        // What is missing was told above.
        let Ok(prompts) = self.config.prompts() else {
            return;
        };
        let (context, limits) = (PromptContext::default(), PromptLimits::default());
        for (name, section) in &self.config.file.prompts {
            let path = format!("prompts.{name}");
            let key = if section.text.is_some() {
                "text"
            } else {
                "file"
            };
            let told = match prompts.message(name, &context, &limits) {
                Ok(_) => continue,
                Err(PromptError::MissingPlaceholder { placeholder, .. }) => {
                    unknown("placeholder", &placeholder, PLACEHOLDERS.into_iter())
                }
                Err(other) => other.to_string(),
            };
            self.tell(&format!("{path}.{key}"), told);
        }
    }
}

/// What the templates of retries are filled with.
const PLACEHOLDERS: [&str; 10] = [
    "error",
    "kind",
    "output",
    "trace",
    "suggestion",
    "sections",
    "summary",
    "words",
    "expected",
    "attempt",
];
