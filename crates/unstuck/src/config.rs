//! Loads the effective configuration and reports its errors with hints.

use std::path::{Path, PathBuf};

use anyhow::Result;
use serde_json::Value;
pub(crate) use unstuck_config::Config;
use unstuck_config::section::{
    JsonRequirement, LoopCompletionSection, PipelineLoopSection, RoleSection,
};
use unstuck_config::{
    ConfigError, ConfigLayers, ConfigProblem, POLICY, PolicyScope, SettingOverride, StoredPolicy,
};
use unstuck_core::project_settings_snapshot::ProjectSettingsSnapshot;
use unstuck_notify::check_template;
use unstuck_run::answer_expectations::ExpectedSchema;
use unstuck_run::prompt::{ProjectPromptFileProvider, PromptVariableScope, RolePromptTemplate};
use unstuck_store::{StoreLocation, read_settings_at};

use crate::environment_variables;
use crate::error_report::error_with_hint;
use crate::project_lookup::project_of;

/// Configuration sources in addition to the files of the user and of the project.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ConfigSources<'a> {
    /// Configuration file given by `--config`.
    pub(crate) named: Option<&'a Path>,
    /// Store with policies set over REST or in the dashboard.
    pub(crate) store: Option<&'a StoreLocation>,
    /// Project settings as of the start of an active run; none if nothing is compared.
    pub(crate) accepted: Option<&'a ProjectSettingsSnapshot>,
}

impl<'a> ConfigSources<'a> {
    /// Returns the sources with another configuration file.
    pub(crate) fn with_file(self, named: Option<&'a Path>) -> Self {
        Self { named, ..self }
    }

    /// Returns the sources with the project settings accepted by a run.
    pub(crate) fn with_accepted(self, accepted: Option<&'a ProjectSettingsSnapshot>) -> Self {
        Self { accepted, ..self }
    }
}

/// Loads all configuration files.
pub(crate) fn load(sources: ConfigSources<'_>) -> Result<Config> {
    Config::load(&layers(sources)).map_err(with_hint)
}

/// Loads all configuration files that apply in a directory.
pub(crate) fn load_in(folder: &Path, sources: ConfigSources<'_>) -> Result<Config> {
    Config::load(&layers_in(Some(folder.to_owned()), sources)).map_err(with_hint)
}

/// Loads all configuration files that apply in a project, with a text in place of the project's own file.
pub(crate) fn load_with_text(
    project: &Path,
    path: &Path,
    text: &str,
    sources: ConfigSources<'_>,
) -> Result<Config> {
    let layers = layers_in(Some(project.to_owned()), sources);
    Config::load_with_project_text(&layers, path, text).map_err(with_hint)
}

/// Loads the configuration of a directory without the files that agents can write, which are not opened.
pub(crate) fn load_owners(folder: &Path, sources: ConfigSources<'_>) -> Result<Config> {
    let layers = ConfigLayers {
        without_project: true,
        ..layers_in(Some(folder.to_owned()), sources)
    };
    Config::load(&layers).map_err(with_hint)
}

/// Loads the configuration of a project with the settings that a run has accepted; the project's files are not opened.
pub(crate) fn load_accepted(
    project: &Path,
    settings: &ProjectSettingsSnapshot,
    sources: ConfigSources<'_>,
) -> Result<Config> {
    let layers = layers_in(Some(project.to_owned()), sources);
    Config::load_with_accepted_settings(&layers, settings).map_err(with_hint)
}

/// Loads the configuration without any project.
pub(crate) fn load_without_project(sources: ConfigSources<'_>) -> Result<Config> {
    Config::load(&layers_in(None, sources)).map_err(with_hint)
}

/// Returns the layers of configuration.
pub(crate) fn layers(sources: ConfigSources<'_>) -> ConfigLayers {
    layers_in(std::env::current_dir().ok(), sources)
}

fn layers_in(here: Option<PathBuf>, sources: ConfigSources<'_>) -> ConfigLayers {
    ConfigLayers {
        user: environment_variables::user_config(),
        stored_policies: stored_policies(here.as_deref(), sources.store),
        work_dir: here,
        home: environment_variables::home(),
        sudo_user: environment_variables::sudo_user(),
        explicit_file: sources.named.map(Path::to_owned),
        overrides: SettingOverride::from_environment(environment_variables::variable),
        accepted: sources.accepted.cloned(),
        without_project: false,
    }
}

/// Returns the store key of the policy of a project, or of the policy for all projects.
pub(crate) fn policy_key(project: Option<&str>) -> String {
    match project {
        Some(root) => format!("{POLICY}:{root}"),
        None => POLICY.to_owned(),
    }
}

/// Returns the policies set over REST or in the dashboard that apply in a directory.
fn stored_policies(here: Option<&Path>, store: Option<&StoreLocation>) -> Vec<StoredPolicy> {
    // Store errors are reported by the commands that need the store.
    let kept = store.and_then(|store| read_settings_at(store, POLICY).ok());
    let Some(kept) = kept.filter(|kept| !kept.is_empty()) else {
        return Vec::new();
    };
    let root = here.map(|here| project_of(here).display().to_string());
    let own = root.map(|root| policy_key(Some(&root)));
    let of = |key: &str| {
        if own.as_deref() == Some(key) {
            Some(PolicyScope::Project)
        } else {
            (key == POLICY).then_some(PolicyScope::Everybody)
        }
    };
    let set = kept.into_iter().filter_map(|one| {
        Some(StoredPolicy {
            scope: of(&one.key)?,
            origin: format!("set over REST by {} at {}", one.by, one.at),
            policy: one.value,
        })
    });
    set.collect()
}

/// Adds a hint to a configuration error.
pub(crate) fn with_hint(error: ConfigError) -> anyhow::Error {
    let hint = match &error {
        ConfigError::Unreadable { .. } => return error.into(),
        ConfigError::TwoFiles { .. } => "keep one of them, and remove or rename the other",
        ConfigError::FileGone { .. } => "specify another file with --config FILE",
        ConfigError::UnsafeFile { .. } => {
            "replace it with a regular file, because agents could make unstuck read any other file through it; your own \
             configuration (~/.config/unstuck/config.toml, or a file outside the project with --config) can be a link"
        }
        ConfigError::UnsafeDirectory { path, .. } => {
            let folder = path.parent().unwrap_or(path);
            return error_with_hint(
                error.to_string(),
                format!(
                    "to use it anyway, set safe_directories = [\"{}\"] in ~/.config/unstuck/config.toml",
                    folder.canonicalize().unwrap_or(folder.to_owned()).display()
                ),
            );
        }
        ConfigError::Invalid { .. } => {
            "`unstuck config check` shows details; `unstuck kinds` and `unstuck policy list` show valid values"
        }
    };
    error_with_hint(error.to_string(), hint)
}

/// Returns all errors of a configuration that can be parsed; prompts include files below `root`.
pub(crate) fn problems(config: &Config, root: &Path) -> Vec<ConfigProblem> {
    let mut problems = config.check();
    problems.extend(prompt_problems(config, root));
    problems.extend(schema_problems(config));
    problems.extend(template_problems(config));
    problems
}

/// Checks that the configuration is valid before anything runs.
pub(crate) fn ensure_valid(config: &Config, root: &Path) -> Result<()> {
    let problems = problems(config, root);
    if problems.is_empty() {
        return Ok(());
    }
    let list: Vec<_> = problems.iter().map(ToString::to_string).collect();
    Err(error_with_hint(
        list.join("\n\n"),
        "nothing was run; fix this, then run `unstuck config check`",
    ))
}

/// Returns undefined variables in prompts, and missing files.
fn prompt_problems(config: &Config, root: &Path) -> Vec<ConfigProblem> {
    let files = ProjectPromptFileProvider::new(root);
    let mut problems = Vec::new();
    for role in config.roles() {
        // A missing prompt file has already been reported.
        let Ok(Some(text)) = config.prompt_template(role) else {
            continue;
        };
        let names = PromptVariableScope::new(config.role_ids(), config.outputs_for(role));
        for fault in RolePromptTemplate::new(&role.id, text).faults(&names, &files) {
            let told = format!("{}: {fault}", fault.kind());
            problems.push(config.problem_at(&prompt_path(role), told));
        }
    }
    problems
}

fn prompt_path(role: &RoleSection) -> String {
    let key = if role.prompt.is_some() {
        "prompt"
    } else {
        "prompt_file"
    };
    format!("role.{}.{key}", role.id)
}

/// Returns files that are JSON but not a JSON Schema.
fn schema_problems(config: &Config) -> Vec<ConfigProblem> {
    let mut problems = Vec::new();
    for role in config.roles() {
        let JsonRequirement::Schema(file) = &role.expect.json else {
            continue;
        };
        // A file that is missing or not JSON has already been reported.
        let key = format!("role.{}.expect.json", role.id);
        let text = config.read_named_file(&key, file).ok();
        let Some(value) = text.and_then(|text| serde_json::from_str::<Value>(&text).ok()) else {
            continue;
        };
        if let Err(invalid) = ExpectedSchema::try_from(value) {
            let told = format!("{} is {invalid}", config.display_path(file).display());
            problems.push(config.problem_at(&format!("role.{}.expect.json", role.id), told));
        }
    }
    problems
}

/// Returns message templates that cannot be rendered.
fn template_problems(config: &Config) -> Vec<ConfigProblem> {
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

/// Returns warnings about a valid configuration.
pub(crate) fn warnings(config: &Config) -> Vec<ConfigProblem> {
    let mut notes = config.warnings();
    let mut needing = config.roles().iter().filter(|role| {
        let text = config.prompt_template(role).ok().flatten();
        text.is_some_and(|text| RolePromptTemplate::new(&role.id, text).uses_variable("task"))
    });
    if config.run().task.is_none()
        && let Some(role) = needing.next()
    {
        let told = "uses {{ task }}, so `unstuck run` requires --task \"TASK\"";
        notes.push(config.problem_at(&prompt_path(role), told));
    }
    if has_endless_loop(config) {
        let told = "has no end condition, so `unstuck run` requires --max-iterations";
        notes.push(config.problem_at("loop", told));
    }
    notes
}

/// True if there is a loop without an end condition.
pub(crate) fn has_endless_loop(config: &Config) -> bool {
    let is_open = |looping: &PipelineLoopSection| looping.until == LoopCompletionSection::default();
    config.loop_section().is_some_and(is_open) && config.origin("loop.max_iterations").is_none()
}
