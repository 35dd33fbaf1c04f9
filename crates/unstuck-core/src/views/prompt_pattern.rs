//! Prompt patterns: prompts with variable parts masked, so that the same prompt for other work is recognized.

use serde::{Deserialize, Serialize};

use crate::agent::{Agents, ParsedAgentCommandLine, PromptSource};
use crate::diagnosis::mask_text;
use crate::event::SessionStarted;

/// A masked prompt and the role that it was for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NormalizedPrompt {
    /// The role in a pipeline.
    pub role: Option<String>,
    /// The prompt with numbers, paths, ids and quoted words masked; the command line if the prompt is unknown.
    pub template: String,
}

impl NormalizedPrompt {
    /// The maximum length of a template, in characters.
    pub const MAX_LEN: usize = 200;

    /// Masks and truncates a prompt.
    pub fn mask(prompt: &str) -> String {
        mask_text(prompt, Self::MAX_LEN)
    }

    /// Creates the pattern of a command line; the prompt is only known for recognized agents.
    pub fn from_command(command: &[String], agent: Option<&str>) -> Self {
        let agent = agent.and_then(|id| Agents::built_in().get(id));
        let prompt = agent.map(|agent| ParsedAgentCommandLine::parse(agent, command).prompt());
        let template = match prompt {
            Some(PromptSource::Text(text)) => Self::mask(&text),
            _ => Self::mask(&command.join(" ")),
        };
        Self {
            role: None,
            template,
        }
    }

    /// Creates the pattern of a role.
    pub fn from_role(started: &SessionStarted) -> Self {
        let spec = &started.spec;
        let template = match &started.prompt {
            Some(prompt) if !prompt.is_empty() => prompt.clone(),
            _ => Self::from_command(&spec.command, spec.agent.as_deref()).template,
        };
        Self {
            role: Some(started.part.role.clone()),
            template,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(command: &[&str], agent: Option<&str>) -> String {
        let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
        NormalizedPrompt::from_command(&command, agent).template
    }

    #[test]
    fn the_same_prompt_for_other_work_has_the_same_pattern() {
        let one = template(
            &["claude", "-p", "Fix issue 17 in src/a.rs"],
            Some("claude"),
        );
        let other = template(
            &["claude", "--model", "opus", "-p", "Fix issue 4 in src/b.rs"],
            Some("claude"),
        );
        assert_eq!(one, "Fix issue <n> in <path>");
        assert_eq!(one, other);
    }

    #[test]
    fn an_unknown_command_has_its_command_line_as_pattern() {
        let told = template(&["make", "-j", "8", "'all'"], None);
        assert_eq!(told, "make -j <n> <name>");
    }

    #[test]
    fn a_long_prompt_is_truncated() {
        let told = template(&["claude", "-p", &"ä ".repeat(9000)], Some("claude"));
        assert_eq!(told.chars().count(), NormalizedPrompt::MAX_LEN);
    }
}
