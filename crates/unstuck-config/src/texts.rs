//! Texts of a configuration that may stand in files of their own.

use std::fs;

use unstuck_core::action::{Place, PromptError, PromptTemplate, Prompts};

use crate::config::Config;
use crate::problem::ConfigError;
use crate::section::{PromptPlace, PromptSection, Role};

impl Config {
    /// The prompt templates: the known ones and the user's own.
    pub fn prompts(&self) -> Result<Prompts, ConfigError> {
        let mut prompts = Prompts::builtin().map_err(|error| self.broken("prompts", &error))?;
        for (name, section) in &self.file.prompts {
            let place = match section.place {
                PromptPlace::Front => Place::Front,
                PromptPlace::Context => Place::Context,
            };
            let text = self.template_text(name, section)?;
            prompts = prompts.with(
                name,
                PromptTemplate {
                    doing: None,
                    place,
                    text,
                },
            );
        }
        Ok(prompts)
    }

    fn template_text(&self, name: &str, section: &PromptSection) -> Result<String, ConfigError> {
        match (&section.text, &section.file) {
            (Some(text), _) => Ok(text.clone()),
            (None, Some(file)) => {
                fs::read_to_string(file).map_err(|error| ConfigError::unreadable(file, error))
            }
            (None, None) => {
                let why = "needs a `text` or a `file`";
                let problems = vec![self.problem_at(&format!("prompts.{name}"), why)];
                Err(ConfigError::Invalid { problems })
            }
        }
    }

    /// A role's prompt as it is written, with its placeholders; none if it has none.
    pub fn prompt_of(&self, role: &Role) -> Result<Option<String>, ConfigError> {
        match (&role.prompt, &role.prompt_file) {
            (Some(text), _) => Ok(Some(text.clone())),
            (None, Some(file)) => fs::read_to_string(file)
                .map(Some)
                .map_err(|error| ConfigError::unreadable(file, error)),
            (None, None) => Ok(None),
        }
    }

    fn broken(&self, path: &str, error: &PromptError) -> ConfigError {
        ConfigError::Invalid {
            problems: vec![self.problem_at(path, error.to_string())],
        }
    }
}
