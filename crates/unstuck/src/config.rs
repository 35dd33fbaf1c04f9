//! The configuration that counts here, or what is wrong with it and what to do about that.

use std::path::Path;

use anyhow::Result;
pub(crate) use unstuck_config::Config;
use unstuck_config::{ConfigError, Layers, Problem, Setting};
use unstuck_run::prompt::{Names, ProjectFiles, PromptSource};

use crate::environment;
use crate::report::hinted;

/// Reads every configuration file that there is.
pub(crate) fn load(named: Option<&Path>) -> Result<Config> {
    Config::load(&layers(named)).map_err(explained)
}

/// Where configuration is looked for.
pub(crate) fn layers(named: Option<&Path>) -> Layers {
    Layers {
        user: environment::user_config(),
        here: std::env::current_dir().ok(),
        named: named.map(Path::to_owned),
        settings: Setting::from_environment(environment::variable),
    }
}

/// A configuration error with what to do next.
pub(crate) fn explained(error: ConfigError) -> anyhow::Error {
    let hint = match &error {
        ConfigError::Unreadable { .. } => return error.into(),
        ConfigError::Two { .. } => "keep one of them, and remove or rename the other",
        ConfigError::Invalid { .. } => {
            "`unstuck config check` tells more; `unstuck kinds` and `unstuck policy list` show what can be set"
        }
    };
    hinted(error.to_string(), hint)
}

/// Everything that is wrong with a configuration although it can be read; prompts include files below the root.
pub(crate) fn problems(config: &Config, root: &Path) -> Vec<Problem> {
    let mut problems = config.check();
    problems.extend(prompt_problems(config, root));
    problems
}

/// Makes sure that all is in order before anything runs.
pub(crate) fn in_order(config: &Config, root: &Path) -> Result<()> {
    let problems = problems(config, root);
    if problems.is_empty() {
        return Ok(());
    }
    let list: Vec<_> = problems.iter().map(ToString::to_string).collect();
    Err(hinted(
        list.join("\n\n"),
        "nothing was run; `unstuck config check` looks again",
    ))
}

/// Placeholders of prompts that nothing fills, and files that are not there.
fn prompt_problems(config: &Config, root: &Path) -> Vec<Problem> {
    let files = ProjectFiles::new(root);
    let mut problems = Vec::new();
    for role in config.roles() {
        // A prompt file that is missing has been told.
        let Ok(Some(text)) = config.prompt_of(role) else {
            continue;
        };
        let roles = config.roles().iter().map(|role| role.id.as_str());
        let names = Names::new(roles, config.outputs_for(role));
        if let Err(fault) = PromptSource::new(&role.id, text).check(&names, &files) {
            let key = if role.prompt.is_some() {
                "prompt"
            } else {
                "prompt_file"
            };
            let told = format!("{}: {fault}", fault.kind());
            problems.push(config.problem_at(&format!("role.{}.{key}", role.id), told));
        }
    }
    problems
}
