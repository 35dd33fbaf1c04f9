//! Compares the project's own settings with those accepted at the start of a run.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value as Json};
use unstuck_core::project_settings_snapshot::{ProjectSettingChange, ProjectSettingsSnapshot};

use crate::config::Config;
use crate::key_aliases;
use crate::problem::ConfigError;
use crate::unapproved_changes::revert_unapproved;
use crate::value_tree::source::FileFormat;
use crate::value_tree::{Span, Table, parse};

/// The section that is governed by trust, not by comparison.
const TRUST_SECTION: &str = "recovery";

/// The project's own settings: as written, in effect, and the changes that need approval.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ProjectSettingsComparison {
    /// The settings in effect.
    pub(crate) in_effect: ProjectSettingsSnapshot,
    /// The settings as written.
    pub(crate) written: ProjectSettingsSnapshot,
    /// The changes that need approval before they apply.
    pub(crate) held_changes: Vec<ProjectSettingChange>,
    /// The roles of all files, as written.
    pub(crate) roles: Vec<String>,
}

impl ProjectSettingsComparison {
    /// Adds a project file; settings that need approval are reset to the accepted ones.
    pub(crate) fn add_file(
        &mut self,
        path: &Path,
        tree: &mut Table,
        at: Span,
        accepted: Option<&ProjectSettingsSnapshot>,
    ) {
        let name = file_key(path);
        self.written.files.insert(name.clone(), tree_json(tree));
        if let Some(accepted) = accepted {
            let none = Map::new();
            let known = accepted.files.get(&name).map(|known| renamed(known, at));
            let known = known.as_ref().and_then(Json::as_object);
            let recovery = tree.remove(TRUST_SECTION);
            let held = revert_unapproved(tree, known.unwrap_or(&none), &accepted.ignored, at);
            tree.0.extend(recovery);
            self.held_changes.extend(held);
        }
        self.in_effect.files.insert(name, tree_json(tree));
    }

    /// Returns an accepted file that no longer exists.
    pub(crate) fn missing_file(&self, accepted: &ProjectSettingsSnapshot) -> Option<ConfigError> {
        let is_there = |name: &&String| self.written.files.contains_key(*name);
        let gone = accepted.files.keys().find(|name| !is_there(name))?;
        let path = PathBuf::from(gone);
        Some(ConfigError::FileGone { path })
    }
}

/// Returns accepted settings with current key names.
fn renamed(known: &Json, at: Span) -> Json {
    match parse(FileFormat::Json, &known.to_string(), at.source) {
        Ok(mut table) => {
            key_aliases::with_new_names(&mut table);
            table.to_json()
        }
        Err(_) => known.clone(),
    }
}

fn tree_json(tree: &Table) -> Json {
    let mut json = tree.to_json();
    if let Some(sections) = json.as_object_mut() {
        sections.remove(TRUST_SECTION);
    }
    json
}

/// Returns a file name that does not depend on the working directory.
pub(crate) fn file_key(path: &Path) -> String {
    let folder = path.parent().and_then(|folder| {
        let folder = if folder == Path::new("") {
            Path::new(".")
        } else {
            folder
        };
        folder.canonicalize().ok()
    });
    let named = folder.zip(path.file_name());
    let path = named.map_or(path.to_owned(), |(folder, name)| folder.join(name));
    path.display().to_string()
}

impl Config {
    /// Returns the project settings in effect.
    pub fn project_settings(&self) -> &ProjectSettingsSnapshot {
        &self.comparison.in_effect
    }

    /// Returns the project settings as written, including held-back ones.
    pub fn written_settings(&self) -> &ProjectSettingsSnapshot {
        &self.comparison.written
    }

    /// Returns the project changes that need approval before they apply.
    pub fn unapproved_changes(&self) -> &[ProjectSettingChange] {
        &self.comparison.held_changes
    }

    /// Returns the roles as written, including held-back changes.
    pub fn written_roles(&self) -> &[String] {
        &self.comparison.roles
    }
}
