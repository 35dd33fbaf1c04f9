//! Each role by itself: its call, its prompt, what its output must be.

use serde::de::IgnoredAny;

use super::Check;
use crate::section::{ExpectJson, Role};

impl Check<'_> {
    pub(super) fn roles(&mut self) {
        for role in self.config.roles() {
            self.call(role);
            self.prompt(role);
            self.expect(role);
            if let Err(crate::ConfigError::Invalid { problems }) = self.config.policy_for(role) {
                self.problems.extend(problems);
            }
        }
    }

    fn prompt(&mut self, role: &Role) {
        let path = |key: &str| format!("role.{}.{key}", role.id);
        let is_unread = |key: &str| self.config.is_unread(&path(key));
        let is_told = is_unread("prompt") || is_unread("prompt_file");
        match (&role.prompt, &role.prompt_file) {
            (Some(_), Some(_)) => {
                self.tell(
                    &path("prompt_file"),
                    "there is a `prompt` too; keep one of them",
                );
            }
            (None, None) if role.agent != "command" && !is_told => {
                let text = "needs a `prompt` or a `prompt_file`";
                self.tell(&format!("role.{}", role.id), text);
            }
            (Some(text), None) if text.trim().is_empty() && role.agent != "command" => {
                self.tell(&path("prompt"), "is empty; say what is to be done");
            }
            (None, Some(file)) => {
                self.needs_file(&path("prompt_file"), file);
            }
            _ => {}
        }
    }

    fn expect(&mut self, role: &Role) {
        let path = |key: &str| format!("role.{}.expect.{key}", role.id);
        for (at, pattern) in role.expect.matches.iter().enumerate() {
            if let Err(error) = regex::Regex::new(pattern) {
                let why = error.to_string();
                let why = why.lines().last().unwrap_or_default();
                let why = why.strip_prefix("error: ").unwrap_or(why);
                let text = format!("`{pattern}` is not a regular expression: {why}");
                self.tell(&path(&format!("match.{}", at + 1)), text);
            }
        }
        if let ExpectJson::Schema(file) = &role.expect.json
            && let Some(text) = self.needs_file(&path("json"), file)
            && let Err(error) = serde_json::from_str::<IgnoredAny>(&text)
        {
            let shown = self.config.shown(file);
            let text = format!("{} is not JSON: {error}", shown.display());
            self.tell(&path("json"), text);
        }
        if role
            .expect
            .check
            .as_deref()
            .is_some_and(|line| line.trim().is_empty())
        {
            self.tell(
                &path("check"),
                "is empty; leave it out if nothing is to be checked",
            );
        }
    }
}
