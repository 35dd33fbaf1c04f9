//! `--always`: adds the exact command to the project's `auto_approve`, with date and reason.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, Result};
use toml_edit::{Array, DocumentMut, Item, Table, Value};
use unstuck_config::ProjectTrust;
use unstuck_core::command_policy::sanitize;
use unstuck_core::event::EscalationOpened;
use unstuck_files::DirHandle;
use unstuck_repair::project_dir::ProjectRoot;
use unstuck_repair::watched_files::WatchedFilesChecker;

use crate::config::{Config, ConfigSources};
use crate::error_report::error_with_hint;
use crate::project_lookup::abbreviate_home;
use crate::{clock, config, environment_variables, project_trust};

/// Name of the configuration file that is edited.
const FILE: &str = "unstuck.toml";

/// Size limit when reading the file, in bytes.
const MAX_CONFIG_BYTES: u64 = 8 << 20;

/// Hint for adding the entry manually.
const ADD_YOURSELF: &str =
    "the repair is approved once; add the command to recovery.auto_approve manually";

/// Adds a command to `auto_approve` of the project and reports it.
pub(crate) fn add_to_auto_approve(
    project: &Path,
    asked: &EscalationOpened,
    note: &str,
) -> Result<String> {
    let command = asked.details.command.as_deref().unwrap_or_default();
    let command = command.trim_matches([' ', '\t', '\n', '\r']);
    if command.is_empty() {
        return Ok("no command to add to auto_approve".to_owned());
    }
    let folder = DirHandle::open(project).context("cannot open the project")?;
    refuse_other_formats(&folder, project)?;
    let path = project.join(FILE);
    let (text, permissions) = read_once(&folder, &path)?;
    let why = match note {
        "" => asked.kind.to_string(),
        note => environment_variables::redactor().redact(note).into_owned(),
    };
    let comment = format!("{}: {why}", clock::format_day(clock::now().at));
    let Some(changed) = with_command_added(&text, command, &comment)? else {
        return Ok(format!(
            "already listed in auto_approve in {}",
            abbreviate_home(&path.to_string_lossy())
        ));
    };
    // Compare only these two texts from here on: later changes to the file have not been reviewed.
    let before = config::load_with_text(project, &path, &text, ConfigSources::default())?;
    let after = config::load_with_text(project, &path, &changed, ConfigSources::default())?;
    let was_trusted = project_trust::project_trust(&before, project) == ProjectTrust::Trusted;
    folder
        .replace_durably(Path::new(FILE), changed.as_bytes(), &|usual| {
            permissions.unwrap_or(usual)
        })
        .with_context(|| format!("cannot write {}", path.display()))?;
    let told = format!(
        "added to auto_approve in {}",
        abbreviate_home(&path.to_string_lossy())
    );
    if was_trusted {
        trust(&after, project, command)?;
        Ok(format!("will run automatically from now on ({told})"))
    } else {
        // The other entries of the file have not been reviewed.
        Ok(format!(
            "{told}; run `unstuck trust` to make it run automatically"
        ))
    }
}

/// Trusts the written text together with the watched files in their current state.
fn trust(config: &Config, project: &Path, command: &str) -> Result<()> {
    let root = ProjectRoot::open(project)?;
    let committed = project_trust::committed_files(Some(project));
    let own = WatchedFilesChecker::new(&root, &*committed).baseline(&[command.to_owned()]);
    let mut files = project_trust::accepted_files(project);
    files.extend(own);
    project_trust::ProjectWithTrustRecord::new(config, project).accept(files)
}

/// Refuses projects whose configuration has another format; those must be edited manually.
fn refuse_other_formats(folder: &DirHandle, project: &Path) -> Result<()> {
    let mut others = ["unstuck.json", "unstuck.yaml", "unstuck.yml"].into_iter();
    match others.find(|name| folder.kind(Path::new(name)).is_some()) {
        None => Ok(()),
        Some(name) => Err(error_with_hint(
            format!(
                "cannot edit {}: only {FILE} is supported",
                project.join(name).display()
            ),
            ADD_YOURSELF,
        )),
    }
}

/// Reads the configuration once: its text, and its permission bits if the file exists.
fn read_once(folder: &DirHandle, path: &Path) -> Result<(String, Option<u32>)> {
    let file = match folder.open_file(Path::new(FILE)) {
        Ok(file) => file,
        Err(error) if error.is_missing() => return Ok((String::new(), None)),
        Err(error) => {
            let why = error.problem;
            return Err(error_with_hint(
                format!("cannot edit {}: {why}", path.display()),
                ADD_YOURSELF,
            ));
        }
    };
    let unreadable = || format!("cannot read {}", path.display());
    let data = file.metadata().with_context(unreadable)?;
    let mut text = String::new();
    let read = file.take(MAX_CONFIG_BYTES + 1).read_to_string(&mut text);
    let read = read.with_context(unreadable)?;
    if read as u64 > MAX_CONFIG_BYTES {
        return Err(error_with_hint(
            format!("{} is too large to edit", path.display()),
            ADD_YOURSELF,
        ));
    }
    Ok((text, Some(data.permissions().mode() & 0o777)))
}

/// Returns the text with the command added to the list; none if it is already listed.
fn with_command_added(text: &str, command: &str, comment: &str) -> Result<Option<String>> {
    let mut document: DocumentMut = text.parse().context("cannot parse unstuck.toml")?;
    let section = document
        .entry("recovery")
        .or_insert_with(|| Item::Table(Table::new()));
    let section = section
        .as_table_like_mut()
        .context("`recovery` is not a table")?;
    let list = section
        .entry("auto_approve")
        .or_insert_with(|| Item::Value(Value::Array(Array::new())));
    let list = list
        .as_array_mut()
        .context("`recovery.auto_approve` is not an array")?;
    if list.iter().any(|entry| entry.as_str() == Some(command)) {
        return Ok(None);
    }
    let mut entry = Value::from(command);
    // Control characters could end the comment early or hide text.
    let comment = sanitize(comment).replace(['\n', '\r'], " ");
    entry
        .decor_mut()
        .set_prefix(format!("\n    # {comment}\n    "));
    list.push_formatted(entry);
    list.set_trailing("\n");
    list.set_trailing_comma(true);
    Ok(Some(document.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S3-17: only the exact entry is added, with date and reason.
    #[test]
    fn command_is_added_with_date_and_reason_and_nothing_else_changes() {
        let text = "# ours\n[run]\nparallel = 2 # two\n\n[recovery]\nauto_approve = [\"npm ci\"] # short\nsandbox = \"required\"\n";
        let changed = with_command_added(
            text,
            "rm -rf dist && npm run build",
            "2026-11-16: stale_build",
        );
        let changed = changed.unwrap().unwrap();
        assert!(
            changed.contains("# ours\n[run]\nparallel = 2 # two"),
            "{changed}"
        );
        assert!(
            changed.contains(
                "    # 2026-11-16: stale_build\n    \"rm -rf dist && npm run build\",\n]"
            ),
            "{changed}"
        );
        let read: toml::Table = changed.parse().unwrap();
        let list = read["recovery"]["auto_approve"].as_array().unwrap();
        assert_eq!(list.len(), 2);
        assert_eq!(list[1].as_str(), Some("rm -rf dist && npm run build"));
    }

    #[test]
    fn missing_section_is_created_and_adding_twice_changes_nothing() {
        let changed = with_command_added("", "kill \"$(cat a.pid)\"", "x\ny")
            .unwrap()
            .unwrap();
        let read: toml::Table = changed.parse().unwrap();
        let list = read["recovery"]["auto_approve"].as_array().unwrap();
        assert_eq!(list[0].as_str(), Some("kill \"$(cat a.pid)\""));
        assert!(
            with_command_added(&changed, "kill \"$(cat a.pid)\"", "x")
                .unwrap()
                .is_none()
        );
    }
}
