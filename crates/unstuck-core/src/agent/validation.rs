//! Validates agent definitions of users.

use std::fmt;

use regex::Regex;

use super::agent_file::{AgentFile, CommandPart, OutputSource};
use super::command_template::CommandTemplate;

/// A problem in an agent's definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentFileProblem {
    /// The location, such as `call.command`.
    pub at: String,
    /// The problem and its fix.
    pub message: String,
}

impl fmt::Display for AgentFileProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.message)
    }
}

impl AgentFile {
    /// Returns the problems of the definition.
    ///
    /// ```
    /// use unstuck_core::agent::AgentFile;
    ///
    /// let file = AgentFile::default().with_id("Mine");
    /// let problems: Vec<String> = file.check().iter().map(ToString::to_string).collect();
    /// assert_eq!(problems, [
    ///     "id: `Mine` may only have small letters, digits, `-` and `_`",
    ///     "call.command: it is missing, so the agent cannot be run; such as [\"Mine\", [\"--model\", \"{model}\"]]",
    /// ]);
    /// ```
    pub fn check(&self) -> Vec<AgentFileProblem> {
        let mut problems = Vec::new();
        let mut add = |at: &str, message: String| {
            let at = at.to_owned();
            problems.push(AgentFileProblem { at, message });
        };
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
        if self.id.is_empty() || !self.id.chars().all(is_plain) {
            let id = &self.id;
            let message = format!("`{id}` may only have small letters, digits, `-` and `_`");
            add("id", message);
        }
        self.check_call(&mut add);
        let (base_url, gateway) = (&self.call.base_url, &self.call.gateway);
        let variables = [
            ("call.base_url.env", &base_url.env),
            ("call.gateway.env", &gateway.env),
            ("call.gateway.files", &gateway.files),
        ];
        for (at, list) in variables {
            for name in list.keys() {
                if name.is_empty() || name.contains(['=', '\0']) {
                    add(at, format!("`{name}` is no name of a variable"));
                }
            }
        }
        let paths = self.output.end.iter().flat_map(|when| when.keys());
        for path in paths.filter(|path| !path.starts_with('/')) {
            let message = format!("the path `{path}` must begin with `/`, such as /{path}");
            add("output.end", message);
        }
        for (list, source) in self.output.sources() {
            for problem in source.path_problems() {
                add(&format!("output.{list}"), problem);
            }
        }
        problems
    }

    fn check_call(&self, add: &mut impl FnMut(&str, String)) {
        let at = "call.command";
        let template = CommandTemplate::from_parts(&self.call.command);
        if template.is_empty() && self.names.is_empty() && self.base_agent.is_none() {
            let id = &self.id;
            add(
                at,
                format!(
                    "it is missing, so the agent cannot be run; such as [\"{id}\", [\"--model\", \"{{model}}\"]]"
                ),
            );
        }
        if self
            .call
            .program()
            .is_some_and(|word| word.is_empty() || word.starts_with('{'))
        {
            add(at, "its first word must be a program".to_owned());
        }
        if self.call.command.contains(&CommandPart::Group(Vec::new())) {
            add(at, "a group has no words".to_owned());
        }
        for (word, meant) in template.misspelled_placeholders() {
            add(
                at,
                format!("{word} is no placeholder, did you mean {{{meant}}}?"),
            );
        }
        if let Some(word) = template.shell_word_with_prompt() {
            add(
                at,
                format!(
                    "the shell would run the prompt in `{word}`: let it read its standard input or {{prompt_file}}"
                ),
            );
        }
    }
}

impl OutputSource {
    fn path_problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let paths = self.at.iter().chain(&self.subtract).chain(self.when.keys());
        let paths = paths.chain(&self.same_as_last);
        for path in paths.filter(|path| !path.starts_with('/')) {
            problems.push(format!(
                "the path `{path}` must begin with `/`, such as /usage/{path}"
            ));
        }
        match self.matches.as_deref().map(Regex::new) {
            Some(Err(error)) => problems.push(format!("`matches` is no expression: {error}")),
            Some(Ok(regex)) if regex.captures_len() < 2 => {
                problems.push(
                    "`matches` needs a group that is the value, such as id: (\\S+)".to_owned(),
                );
            }
            None if self.at.is_empty() => {
                problems.push("`at` or `matches` must say where the value is".to_owned());
            }
            _ => {}
        }
        problems
    }
}
