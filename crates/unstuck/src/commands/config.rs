//! `unstuck config`: shows and checks the effective configuration.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use serde::Serialize;
use unstuck_config::{ConfigLayers, ConfigLoadResult, ConfigProblem, ConfigReportValue};
use unstuck_core::decision::DEFAULT_TEMPLATE;

use crate::config::{self, ConfigSources};
use crate::error_report::error_with_hint;
use crate::output::{DIM, GREEN, Output, YELLOW};
use crate::project_lookup;

/// Show and check the configuration: effective values and their source
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  unstuck config show --origin
  unstuck config check
  unstuck config schema > unstuck.schema.json")]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
enum ConfigCommand {
    /// Show the effective configuration as TOML, without secrets
    #[command(after_help = LAYERS_HELP)]
    Show {
        /// Show the source of each value
        #[arg(long)]
        origin: bool,
        /// Print as JSON
        #[arg(long)]
        json: bool,
    },
    /// Report all errors in the configuration
    #[command(after_help = "Example:\n  unstuck config check unstuck.toml")]
    Check {
        /// Check only this file [default: the effective configuration]
        file: Option<PathBuf>,
    },
    /// Print the JSON Schema of configuration files, for editors
    #[command(after_help = SCHEMA_HELP)]
    Schema,
}

const LAYERS_HELP: &str = "Example:
  unstuck config show --origin

Layers (later layers override earlier ones):
  1. built-in defaults
  2. your configuration: ~/.config/unstuck/config.toml (or .json, .yaml)
  3. the policy of all projects, set over REST or in the dashboard
  4. the project configuration: unstuck.toml (or .json, .yaml, .yml), here or in a parent directory
  5. the file named by --config or UNSTUCK_CONFIG
  6. the policy of this project, set over REST or in the dashboard
  7. environment variables:
       UNSTUCK_TASK            run.task
       UNSTUCK_PARALLEL        run.parallel
       UNSTUCK_MAX_ITERATIONS  loop.max_iterations, if [loop] exists
       UNSTUCK_POLICY          the policy of every role
       UNSTUCK_WEBHOOKS_ALLOW_PRIVATE  webhooks.allow_private
  8. flags
Tables are merged by key; roles, models and rules by id. Webhook targets are added; all other
values are replaced.";

const SCHEMA_HELP: &str = "Example:
  unstuck config schema > unstuck.schema.json

To use it in an editor, add a line to the file:
  unstuck.toml   #:schema ./unstuck.schema.json
  unstuck.yaml   # yaml-language-server: $schema=./unstuck.schema.json
  unstuck.json   \"$schema\": \"./unstuck.schema.json\"";

pub(crate) fn run(args: &ConfigArgs, sources: ConfigSources<'_>, out: &mut Output) -> Result<()> {
    match &args.command {
        ConfigCommand::Show { origin, json } => {
            let effective = config::load(sources)?.resolved();
            match (*origin, *json) {
                (true, true) => {
                    out.write_json(&effective.values().iter().map(row).collect::<Vec<_>>())?
                }
                (false, true) => out.write_json(&effective.to_json())?,
                (true, false) => write!(out, "{}", effective.to_toml_with_origins())?,
                (false, false) => write!(out, "{}", effective.to_toml())?,
            }
            Ok(())
        }
        ConfigCommand::Check { file: Some(file) } => {
            let alone = ConfigLayers {
                explicit_file: Some(file.clone()),
                ..ConfigLayers::default()
            };
            check(&alone, out)
        }
        ConfigCommand::Check { file: None } => check(&config::layers(sources), out),
        ConfigCommand::Schema => out.write_json(&unstuck_config::schema()),
    }
}

/// A configuration value in JSON form.
#[derive(Serialize)]
struct ValueJson<'a> {
    id: &'a str,
    value: &'a serde_json::Value,
    origin: String,
}

fn row(leaf: &ConfigReportValue) -> ValueJson<'_> {
    ValueJson {
        id: &leaf.path,
        value: &leaf.value,
        origin: leaf.origin.to_string(),
    }
}

fn check(layers: &ConfigLayers, out: &mut Output) -> Result<()> {
    let ConfigLoadResult {
        config,
        mut problems,
    } = ConfigLoadResult::read(layers).map_err(config::with_hint)?;
    problems.extend(config::problems(&config, &project_root(layers)?));
    let place = |problem: &ConfigProblem| {
        let place = problem.location.clone();
        place.map(|place| (place.file, place.line, place.column))
    };
    problems.sort_by_key(place);
    let files: Vec<_> = config
        .files()
        .iter()
        .map(|path| config.display_path(path).display().to_string())
        .collect();
    let Some((last, others)) = files.split_last() else {
        writeln!(out, "no configuration file found; using defaults")?;
        return Ok(());
    };
    let (names, are) = match others {
        [] => (last.clone(), "is"),
        others => (format!("{} and {last}", others.join(", ")), "are"),
    };
    if !problems.is_empty() {
        return Err(problems_error(&names, &problems));
    }
    for note in config::warnings(&config) {
        writeln!(out, "{YELLOW}note{YELLOW:#}: {}", first_line(&note))?;
    }
    writeln!(
        out,
        "{GREEN}ok{GREEN:#}: {names} {are} valid: {}",
        config_summary(&config)
    )?;
    if config.roles().len() > 1 {
        writeln!(out, "    {DIM}{}{DIM:#}", role_order(&config))?;
    }
    Ok(())
}

/// Returns the project root, which prompt file paths are relative to.
fn project_root(layers: &ConfigLayers) -> Result<PathBuf> {
    let folder = match (&layers.work_dir, &layers.explicit_file) {
        (Some(here), _) => here.clone(),
        (None, Some(file)) => {
            let real = file
                .canonicalize()
                .with_context(|| format!("cannot read {}", file.display()))?;
            real.parent().unwrap_or(Path::new("/")).to_owned()
        }
        (None, None) => PathBuf::from("."),
    };
    Ok(project_lookup::project_of(&folder))
}

fn problems_error(names: &str, problems: &[ConfigProblem]) -> anyhow::Error {
    let count = match problems.len() {
        1 => "1 error".to_owned(),
        many => format!("{many} errors"),
    };
    let list: Vec<_> = problems.iter().map(ToString::to_string).collect();
    error_with_hint(
        format!("{count} in {names}\n\n{}\n", list.join("\n\n")),
        "`unstuck config schema` describes all settings, `unstuck config show --origin` shows the effective values",
    )
}

/// Returns the first line of a note, without the source excerpt.
fn first_line(note: &ConfigProblem) -> String {
    let text = note.to_string();
    text.lines().next().unwrap_or_default().to_owned()
}

fn config_summary(config: &config::Config) -> String {
    let mut parts = vec![pluralize(config.roles().len(), "role")];
    if let Some(looping) = config.loop_section() {
        parts.push(format!(
            "a loop of up to {}",
            pluralize(looping.max_iterations as usize, "iteration")
        ));
    }
    let policy = config
        .policy()
        .map_or(DEFAULT_TEMPLATE, |policy| &policy.id);
    if !config.roles().is_empty() {
        parts.push(format!("policy `{policy}`"));
    }
    parts.join(", ")
}

fn pluralize(number: usize, what: &str) -> String {
    match number {
        0 => format!("no {what}s"),
        1 => format!("1 {what}"),
        many => format!("{many} {what}s"),
    }
}

/// Renders the roles in execution order, parallel roles grouped.
fn role_order(config: &config::Config) -> String {
    let mut waiting: Vec<_> = config.roles().iter().collect();
    let mut waves: Vec<String> = Vec::new();
    let mut done: Vec<&str> = Vec::new();
    while !waiting.is_empty() {
        let (ready, later): (Vec<_>, Vec<_>) = waiting
            .into_iter()
            .partition(|role| role.needs.iter().all(|need| done.contains(&need.as_str())));
        if ready.is_empty() {
            break;
        }
        let ids: Vec<_> = ready.iter().map(|role| role.id.as_str()).collect();
        waves.push(ids.join(", "));
        done.extend(ids);
        waiting = later;
    }
    waves.join(" → ")
}
