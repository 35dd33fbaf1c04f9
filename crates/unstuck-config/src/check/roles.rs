//! Checks of single roles: command, prompt, output expectations.

use serde::de::IgnoredAny;

use super::ConfigChecker;
use crate::section::{JsonRequirement, RoleSection};

impl ConfigChecker<'_> {
    pub(super) fn check_roles(&mut self) {
        for role in self.config.roles() {
            self.check_call(role);
            self.check_prompt(role);
            self.check_expect(role);
            if let Err(crate::ConfigError::Invalid { problems }) = self.config.policy_for(role) {
                self.problems.extend(problems);
            }
        }
    }

    fn check_prompt(&mut self, role: &RoleSection) {
        let path = |key: &str| format!("role.{}.{key}", role.id);
        let is_unread = |key: &str| self.config.is_unreadable(&path(key));
        let is_told = is_unread("prompt") || is_unread("prompt_file");
        match (&role.prompt, &role.prompt_file) {
            (Some(_), Some(_)) => {
                self.report(
                    &path("prompt_file"),
                    "conflicts with `prompt`; keep only one",
                );
            }
            (None, None) if role.agent != "command" && !is_told => {
                let text = "needs a `prompt` or a `prompt_file`";
                self.report(&format!("role.{}", role.id), text);
            }
            (Some(text), None) if text.trim().is_empty() && role.agent != "command" => {
                self.report(&path("prompt"), "is empty; describe the task");
            }
            (None, Some(file)) => {
                self.require_file(&path("prompt_file"), file);
            }
            _ => {}
        }
    }

    fn check_expect(&mut self, role: &RoleSection) {
        let path = |key: &str| format!("role.{}.expect.{key}", role.id);
        for (at, pattern) in role.expect.matches.iter().enumerate() {
            if let Err(error) = regex::Regex::new(pattern) {
                let why = error.to_string();
                let why = why.lines().last().unwrap_or_default();
                let why = why.strip_prefix("error: ").unwrap_or(why);
                let text = format!("invalid regular expression `{pattern}`: {why}");
                self.report(&path(&format!("match.{}", at + 1)), text);
            }
        }
        if let JsonRequirement::Schema(file) = &role.expect.json
            && let Some(text) = self.require_file(&path("json"), file)
            && let Err(error) = serde_json::from_str::<IgnoredAny>(&text)
        {
            let shown = self.config.display_path(file);
            let text = format!("{} is not valid JSON: {error}", shown.display());
            self.report(&path("json"), text);
        }
        if role
            .expect
            .check
            .as_deref()
            .is_some_and(|line| line.trim().is_empty())
        {
            self.report(
                &path("check"),
                "is empty; remove it if there is nothing to check",
            );
        }
    }
}
