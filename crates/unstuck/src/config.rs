//! The configuration: the user's, then the project's, then the one that was named; later ones win.

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
use unstuck_core::decision::{template, templates};
use unstuck_core::knowledge::{KindOverlay, Knowledge, Overlay, Strategy};

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
        for (id, changes) in file.policies {
            let policy = self.policy_from(path, &format!("policies.{id}"), Some(&id), &changes)?;
            self.policies.retain(|known| known.id != id);
            self.policies.push(policy);
        }
        if let Some(changes) = file.policy {
            self.policy = Some(self.policy_from(path, "policy", None, &changes)?);
        }
        self.overlays.push(Overlay {
            kinds: file.kinds,
            strategies: file.strategies,
        });
        self.files.push(path.to_owned());
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
        let base = changes
            .get("template")
            .and_then(Value::as_str)
            .unwrap_or("standard");
        let known = self.policies.iter().find(|policy| policy.id == base);
        let mut changes = changes.clone();
        if let (Some(fields), true) = (changes.as_object_mut(), known.is_some()) {
            fields.remove("template");
        }
        if let (Some(fields), Some(id)) = (changes.as_object_mut(), id) {
            fields.entry("id").or_insert_with(|| id.into());
        }
        let policy = match known
            .or_else(|| template(base))
            .or_else(|| template("standard"))
        {
            Some(base) => base.with(&changes),
            None => RetryPolicy::from_json(&changes.to_string()),
        };
        policy.map_err(|error| {
            hinted(
                format!("{}: [{section}]: {error}", path.display()),
                "`unstuck policy show standard --json` shows every field",
            )
        })
    }

    /// The classifier with the user's own rules; the built-in one where there are none.
    pub(crate) fn classifier(&self) -> Result<Classifier> {
        let knowledge = self
            .overlays
            .iter()
            .fold(Knowledge::built_in().clone(), |knowledge, overlay| {
                knowledge.overlaid(overlay.clone())
            });
        let classifier = Classifier::new(knowledge)?;
        if !self.overlays.is_empty() {
            classifier.check()?;
        }
        Ok(classifier)
    }

    /// The policy that counts where nothing else is said.
    pub(crate) fn policy(&self) -> Option<&RetryPolicy> {
        self.policy.as_ref()
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
