//! The configuration: the user's, then the project's, then the one that was named; later ones win.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;
use unstuck_core::Classifier;
use unstuck_core::Kind;
use unstuck_core::RetryPolicy;
use unstuck_core::action::Prompts;
use unstuck_core::agent::Agents;
use unstuck_core::decision::{Catalog, templates};
use unstuck_core::knowledge::{KindOverlay, Knowledge, Overlay, Playbook, Strategy};

use crate::environment;
use crate::report::hinted;

/// The name of a project's configuration file.
const PROJECT_FILE: &str = "unstuck.toml";

/// What all configuration files together say.
#[derive(Debug, Default)]
pub(crate) struct Config {
    overlays: Vec<Overlay>,
    policies: Vec<RetryPolicy>,
    policy: Option<RetryPolicy>,
    files: Vec<PathBuf>,
    own: OnceCell<Classifier>,
    playbook: OnceCell<Playbook>,
    catalog: OnceCell<Catalog>,
    prompts: OnceCell<Prompts>,
    /// The file that the policy comes from.
    policy_file: Option<PathBuf>,
}

/// One configuration file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    kinds: BTreeMap<Kind, KindOverlay>,
    strategies: BTreeMap<String, Strategy>,
    /// The policy that counts, as changes to a template.
    policy: Option<Value>,
    /// Further policies by their id.
    policies: BTreeMap<String, Value>,
}

impl Config {
    /// Reads every configuration file that there is.
    pub(crate) fn load(named: Option<&Path>) -> Result<Self> {
        let mut config = Self::default();
        let found = environment::user_config().into_iter().chain(project_file());
        for path in found {
            config.read(&path, Presence::Optional)?;
        }
        if let Some(path) = named {
            config.read(path, Presence::Required)?;
        }
        Ok(config)
    }

    fn read(&mut self, path: &Path, presence: Presence) -> Result<()> {
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == ErrorKind::NotFound && presence == Presence::Optional => {
                return Ok(());
            }
            text => text.with_context(|| format!("cannot read {}", path.display()))?,
        };
        let file: File = toml::from_str(&text).map_err(|error| {
            hinted(
                format!("{}: {}", path.display(), error.to_string().trim_end()),
                "`unstuck kinds` and `unstuck policy list` show what can be set",
            )
        })?;
        self.read_policies(path, file.policies)?;
        if let Some(changes) = file.policy {
            self.policy = Some(self.policy_from(path, "policy", None, &changes)?);
            self.policy_file = Some(path.to_owned());
        }
        self.overlays.push(Overlay {
            kinds: file.kinds,
            strategies: file.strategies,
        });
        self.files.push(path.to_owned());
        Ok(())
    }

    /// Reads policies that may build on each other, whatever their order.
    fn read_policies(&mut self, path: &Path, mut waiting: BTreeMap<String, Value>) -> Result<()> {
        while !waiting.is_empty() {
            let builds_on_none = |changes: &Value| {
                changes
                    .get("template")
                    .and_then(Value::as_str)
                    .is_none_or(|base| !waiting.contains_key(base))
            };
            // One that builds on itself or in a circle is read first, and refused if there is no such template.
            let next = waiting
                .iter()
                .find(|(_, changes)| builds_on_none(changes))
                .or(waiting.iter().next())
                .map(|(id, _)| id.clone());
            let Some((id, changes)) = next.and_then(|id| waiting.remove_entry(&id)) else {
                break;
            };
            let policy = self.policy_from(path, &format!("policies.{id}"), Some(&id), &changes)?;
            self.policies.retain(|known| known.id != id);
            self.policies.push(policy);
        }
        Ok(())
    }

    /// A policy as changes to the template, or to the configured policy, that it names.
    fn policy_from(
        &self,
        path: &Path,
        section: &str,
        id: Option<&str>,
        changes: &Value,
    ) -> Result<RetryPolicy> {
        let named = changes.get("template").and_then(Value::as_str);
        let base = self
            .policies()
            .find(|policy| policy.id == named.unwrap_or("standard"));
        let base = base.ok_or_else(|| {
            let known: Vec<_> = self.policies().map(|policy| policy.id.as_str()).collect();
            hinted(
                format!(
                    "{}: [{section}]: there is no template `{}`",
                    path.display(),
                    named.unwrap_or_default()
                ),
                format!("there are {}", known.join(", ")),
            )
        })?;
        let mut changes = changes.clone();
        if let Some(fields) = changes.as_object_mut() {
            fields.remove("template");
            if let Some(id) = id {
                fields.entry("id").or_insert_with(|| id.into());
            }
        }
        base.with(&changes).map_err(|error| {
            hinted(
                format!("{}: [{section}]: {error}", path.display()),
                "`unstuck policy show standard --json` shows every field",
            )
        })
    }

    fn is_plain(&self) -> bool {
        let mut overlays = self.overlays.iter();
        overlays.all(|overlay| *overlay == Overlay::default())
    }

    /// The classifier with the user's own rules; the built-in one where there are none.
    pub(crate) fn classifier(&self) -> Result<&Classifier> {
        if self.is_plain() {
            return Ok(Classifier::built_in());
        }
        if self.own.get().is_none() {
            let knowledge = self.overlaid(Knowledge::built_in());
            let classifier = Classifier::new(knowledge)?;
            classifier.check()?;
            // Nobody else can have set it meanwhile: a configuration is not shared between threads.
            let _ = self.own.set(classifier);
        }
        Ok(self.own.get().unwrap_or_else(|| Classifier::built_in()))
    }

    /// The classifier, once it is known to be in order.
    pub(crate) fn classifier_or_built_in(&self) -> &Classifier {
        self.classifier().unwrap_or_else(|_| Classifier::built_in())
    }

    /// What is done about failures, with the user's own chains and strategies.
    pub(crate) fn playbook(&self) -> &Playbook {
        self.playbook.get().unwrap_or_else(|| Playbook::built_in())
    }

    /// Makes sure that the user's own rules, chains and strategies are in order before anything is run.
    pub(crate) fn prepare(&self) -> Result<()> {
        if !self.is_plain() {
            let playbook = Playbook::new(self.classifier()?.knowledge())?;
            // Nobody else can have set it meanwhile: a configuration is not shared between threads.
            let _ = self.playbook.set(playbook);
        }
        Ok(())
    }

    /// The models and their ladders.
    pub(crate) fn catalog(&self) -> &Catalog {
        self.catalog.get_or_init(Catalog::embedded)
    }

    /// What is added to prompts.
    pub(crate) fn prompts(&self) -> &Prompts {
        self.prompts.get_or_init(Prompts::embedded)
    }

    /// The agents.
    pub(crate) fn agents(&self) -> &Agents {
        Agents::built_in()
    }

    /// Some knowledge with the user's additions.
    pub(crate) fn overlaid(&self, knowledge: &Knowledge) -> Knowledge {
        let overlays = self.overlays.iter();
        overlays.fold(knowledge.clone(), |knowledge, overlay| {
            knowledge.overlaid(overlay.clone())
        })
    }

    /// The policy that counts where nothing else is said.
    pub(crate) fn policy(&self) -> Option<&RetryPolicy> {
        self.policy.as_ref()
    }

    /// Where that policy comes from.
    pub(crate) fn policy_origin(&self) -> String {
        let file = self.policy_file.as_ref();
        file.map_or_else(
            || "the template `standard`".to_owned(),
            |path| format!("[policy] in {}", path.display()),
        )
    }

    /// The configured policies and the templates, each id once.
    pub(crate) fn policies(&self) -> impl Iterator<Item = &RetryPolicy> {
        let built_in = templates()
            .iter()
            .filter(|policy| self.policies.iter().all(|own| own.id != policy.id));
        self.policies.iter().chain(built_in)
    }

    /// The files that were read.
    pub(crate) fn files(&self) -> &[PathBuf] {
        &self.files
    }
}

/// Whether a file has to be there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Presence {
    Required,
    Optional,
}

/// The configuration of the project that the current directory belongs to.
fn project_file() -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    here.ancestors()
        .map(|folder| folder.join(PROJECT_FILE))
        .find(|path| path.is_file())
}
