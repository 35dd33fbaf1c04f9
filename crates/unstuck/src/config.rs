//! The configuration that counts here, or what is wrong with it and what to do about that.

use std::fs;
use std::path::Path;

use anyhow::Result;
use serde_json::Value;
pub(crate) use unstuck_config::Config;
use unstuck_config::section::{ExpectJson, Loop, Role, Until};
use unstuck_config::{ConfigError, Layers, Problem, Setting};
use unstuck_notify::check_template;
use unstuck_run::expect::Schema;
use unstuck_run::prompt::{Names, ProjectFiles, PromptSource};

use crate::environment;
use crate::report::hinted;

/// Reads every configuration file that there is.
pub(crate) fn load(named: Option<&Path>) -> Result<Config> {
    Config::load(&layers(named)).map_err(explained)
}

/// Reads every configuration file that counts in a folder.
pub(crate) fn load_in(folder: &Path, named: Option<&Path>) -> Result<Config> {
    let layers = Layers {
        here: Some(folder.to_owned()),
        ..layers(named)
    };
    Config::load(&layers).map_err(explained)
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
    problems.extend(schema_problems(config));
    problems.extend(template_problems(config));
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
        let names = Names::new(config.role_ids(), config.outputs_for(role));
        for fault in PromptSource::new(&role.id, text).faults(&names, &files) {
            let told = format!("{}: {fault}", fault.kind());
            problems.push(config.problem_at(&prompt_path(role), told));
        }
    }
    problems
}

fn prompt_path(role: &Role) -> String {
    let key = if role.prompt.is_some() {
        "prompt"
    } else {
        "prompt_file"
    };
    format!("role.{}.{key}", role.id)
}

/// Files that are JSON, but no JSON Schema.
fn schema_problems(config: &Config) -> Vec<Problem> {
    let mut problems = Vec::new();
    for role in config.roles() {
        let ExpectJson::Schema(file) = &role.expect.json else {
            continue;
        };
        // A file that is missing, or no JSON, has been told.
        let text = fs::read_to_string(file).ok();
        let Some(value) = text.and_then(|text| serde_json::from_str::<Value>(&text).ok()) else {
            continue;
        };
        if let Err(invalid) = Schema::try_from(value) {
            let told = format!("{} is {invalid}", config.shown(file).display());
            problems.push(config.problem_at(&format!("role.{}.expect.json", role.id), told));
        }
    }
    problems
}

/// Templates of messages that cannot be filled.
fn template_problems(config: &Config) -> Vec<Problem> {
    let mut problems = Vec::new();
    for (name, list) in config.webhooks().lists() {
        for (at, hook) in list.iter().enumerate() {
            let Some(Err(fault)) = hook.template.as_deref().map(check_template) else {
                continue;
            };
            let path = format!("webhooks.{name}.{}.template", at + 1);
            problems.push(config.problem_at(&path, fault.to_string()));
        }
    }
    problems
}

/// What is worth knowing although nothing is wrong.
pub(crate) fn notes(config: &Config) -> Vec<Problem> {
    let mut notes = config.notes();
    let mut needing = config.roles().iter().filter(|role| {
        let text = config.prompt_of(role).ok().flatten();
        text.is_some_and(|text| PromptSource::new(&role.id, text).uses("task"))
    });
    if config.run().task.is_none()
        && let Some(role) = needing.next()
    {
        let told = "has {{ task }}, so `unstuck run` needs --task \"what is to be done\"";
        notes.push(config.problem_at(&prompt_path(role), told));
    }
    if is_open_ended(config) {
        let told = "does not say when it is done, so `unstuck run` needs --max-iterations";
        notes.push(config.problem_at("loop", told));
    }
    notes
}

/// Whether there is a loop of which nobody says when it ends.
pub(crate) fn is_open_ended(config: &Config) -> bool {
    let is_open = |looping: &Loop| looping.until == Until::default();
    config.looping().is_some_and(is_open) && config.origin("loop.max_iterations").is_none()
}
