//! What the project's own files say, so that a run can go by what they said when it began.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value as Json};
use unstuck_core::project_settings::{ProjectSettings, SettingChange};

use crate::aliases;
use crate::config::Config;
use crate::held_changes::hold_back;
use crate::problem::ConfigError;
use crate::spanned::source::FileFormat;
use crate::spanned::{Span, Table, parse};

/// What is compared by trust, and not with what a run began with.
const TRUST_SECTION: &str = "recovery";

/// What the project's files say, what counts of it, and what is held back.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ProjectComparison {
    /// What counts.
    pub(crate) in_effect: ProjectSettings,
    /// What the files say.
    pub(crate) written: ProjectSettings,
    /// What is different, and does not count until a person agrees.
    pub(crate) held_changes: Vec<SettingChange>,
    /// The roles of all files, as they are written.
    pub(crate) roles: Vec<String>,
}

impl ProjectComparison {
    /// Takes in a file of the project; what needs a person is put back to what was accepted.
    pub(crate) fn add_file(
        &mut self,
        path: &Path,
        tree: &mut Table,
        at: Span,
        accepted: Option<&ProjectSettings>,
    ) {
        let name = file_key(path);
        self.written.files.insert(name.clone(), tree_json(tree));
        if let Some(accepted) = accepted {
            let none = Map::new();
            let known = accepted.files.get(&name).map(|known| renamed(known, at));
            let known = known.as_ref().and_then(Json::as_object);
            let recovery = tree.remove(TRUST_SECTION);
            let held = hold_back(tree, known.unwrap_or(&none), &accepted.ignored, at);
            tree.0.extend(recovery);
            self.held_changes.extend(held);
        }
        self.in_effect.files.insert(name, tree_json(tree));
    }

    /// A file of those that were accepted which is not there any more.
    pub(crate) fn missing_file(&self, accepted: &ProjectSettings) -> Option<ConfigError> {
        let is_there = |name: &&String| self.written.files.contains_key(*name);
        let gone = accepted.files.keys().find(|name| !is_there(name))?;
        let path = PathBuf::from(gone);
        Some(ConfigError::FileGone { path })
    }
}

/// Returns what was accepted with the names that keys have now.
fn renamed(known: &Json, at: Span) -> Json {
    match parse(FileFormat::Json, &known.to_string(), at.source) {
        Ok(mut table) => {
            aliases::with_new_names(&mut table);
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

/// The same file has the same name from wherever it is looked at.
fn file_key(path: &Path) -> String {
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
    /// What counts of the project's own files.
    pub fn project_settings(&self) -> &ProjectSettings {
        &self.comparison.in_effect
    }

    /// What the project's own files say, also where it is held back.
    pub fn written_settings(&self) -> &ProjectSettings {
        &self.comparison.written
    }

    /// What the project's own files say differently than what was accepted, and what does not count until a person agrees.
    pub fn held_changes(&self) -> &[SettingChange] {
        &self.comparison.held_changes
    }

    /// The roles as the files name them now, also where that is held back.
    pub fn written_roles(&self) -> &[String] {
        &self.comparison.roles
    }
}
