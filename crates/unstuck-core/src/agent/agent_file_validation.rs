//! Validates agent definitions of users.

use std::fmt;

use regex::Regex;

use super::agent_file::{AgentCommandTemplatePart, AgentDefinition, OutputValueSource};
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

impl AgentDefinition {
    /// Returns the problems of the definition.
    ///
    /// ```
    /// use unstuck_core::agent::AgentDefinition;
    ///
    /// let file = AgentDefinition::default().with_id("Mine");
    /// let problems: Vec<String> = file.check().iter().map(ToString::to_string).collect();
    /// assert_eq!(problems, [
    ///     "id: `Mine` can only contain lowercase letters, digits, `-` and `_`",
    ///     "call.command: missing; set it, such as [\"Mine\", [\"--model\", \"{model}\"]]",
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
            let message = format!("`{id}` can only contain lowercase letters, digits, `-` and `_`");
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
                    add(at, format!("invalid variable name `{name}`"));
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
                format!("missing; set it, such as [\"{id}\", [\"--model\", \"{{model}}\"]]"),
            );
        }
        if self
            .call
            .program()
            .is_some_and(|word| word.is_empty() || word.starts_with('{'))
        {
            add(at, "must start with a program".to_owned());
        }
        if self
            .call
            .command
            .contains(&AgentCommandTemplatePart::Group(Vec::new()))
        {
            add(at, "empty group".to_owned());
        }
        for (word, meant) in template.misspelled_placeholders() {
            add(
                at,
                format!("unknown placeholder {word}, did you mean {{{meant}}}?"),
            );
        }
        if let Some(word) = template.shell_word_with_prompt() {
            add(
                at,
                format!(
                    "the shell would execute the prompt in `{word}`; pass the prompt on stdin or with {{prompt_file}}"
                ),
            );
        }
    }
}

impl OutputValueSource {
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
            Some(Err(error)) => problems.push(format!(
                "`matches` is not a valid regular expression: {error}"
            )),
            Some(Ok(regex)) if regex.captures_len() < 2 => {
                problems.push(
                    "`matches` needs a capture group for the value, such as id: (\\S+)".to_owned(),
                );
            }
            None if self.at.is_empty() => {
                problems.push("needs `at` or `matches` to locate the value".to_owned());
            }
            _ => {}
        }
        problems
    }
}
