//! `--always`: the exact command goes into the project's `auto_approve`, with when and why.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use toml_edit::{Array, DocumentMut, Item, Table, Value};
use unstuck_config::ProjectTrust;
use unstuck_core::event::RecoveryEscalated;
use unstuck_core::guard::show;
use unstuck_repair::guard_files::GuardFiles;
use unstuck_repair::place::Root;

use crate::config::Sources;
use crate::place::homely;
use crate::report::hinted;
use crate::{clock, config, environment, trusting};

/// The file that it is written to.
const FILE: &str = "unstuck.toml";

/// Writes a command into `auto_approve` of the project and tells so.
pub(crate) fn write(project: &Path, asked: &RecoveryEscalated, note: &str) -> Result<String> {
    let command = asked.shown.command.as_deref().unwrap_or_default();
    let command = command.trim_matches([' ', '\t', '\n', '\r']);
    if command.is_empty() {
        return Ok("there is no command that could be added to auto_approve".to_owned());
    }
    let path = file_of(project)?;
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
    };
    let why = match note {
        "" => asked.kind.to_string(),
        note => environment::redactor().redact(note).into_owned(),
    };
    let comment = format!("{}: {why}", clock::day(clock::now().at));
    let Some(changed) = added(&text, command, &comment)? else {
        return Ok(format!(
            "it stands in {} already",
            homely(&path.to_string_lossy())
        ));
    };
    let before = config::load_in(project, Sources::default())?;
    let was_trusted = trusting::standing(&before, project) == ProjectTrust::Trusted;
    let beside = path.with_extension("toml.new");
    fs::write(&beside, changed)
        .and_then(|()| fs::rename(&beside, &path))
        .with_context(|| format!("cannot write {}", path.display()))?;
    let told = format!(
        "added to auto_approve in {}",
        homely(&path.to_string_lossy())
    );
    match was_trusted {
        true => {
            trust(project, command)?;
            Ok(format!("from now on it runs by itself: {told}"))
        }
        // What else stands there, nobody has looked at.
        false => Ok(format!(
            "{told}; it runs by itself once `unstuck trust` has trusted that"
        )),
    }
}

/// Trusts what the owner has just added, with the files that decide what it does as they are now.
fn trust(project: &Path, command: &str) -> Result<()> {
    let config = config::load_in(project, Sources::default())?;
    let root = Root::open(project)?;
    let committed = trusting::committed(Some(project));
    let own = GuardFiles::new(&root, &*committed).baseline(&[command.to_owned()]);
    let mut files = trusting::accepted(project);
    files.extend(own);
    trusting::Project::new(&config, project).accept(files)
}

/// The configuration that it is written to; other formats are a person's own business.
fn file_of(project: &Path) -> Result<PathBuf> {
    let others = ["unstuck.json", "unstuck.yaml", "unstuck.yml"];
    let other = others
        .iter()
        .map(|name| project.join(name))
        .find(|path| path.exists());
    match other {
        None => Ok(project.join(FILE)),
        Some(path) => Err(hinted(
            format!("{} is not changed by unstuck", path.display()),
            "the repair is allowed this once; add the command to recovery.auto_approve yourself",
        )),
    }
}

/// The text with the command in its list; none if it is there already.
fn added(text: &str, command: &str, comment: &str) -> Result<Option<String>> {
    let mut document: DocumentMut = text.parse().context("unstuck.toml cannot be read")?;
    let section = document
        .entry("recovery")
        .or_insert_with(|| Item::Table(Table::new()));
    let section = section
        .as_table_like_mut()
        .context("`recovery` is no table")?;
    let list = section
        .entry("auto_approve")
        .or_insert_with(|| Item::Value(Value::Array(Array::new())));
    let list = list
        .as_array_mut()
        .context("`recovery.auto_approve` is no list")?;
    if list.iter().any(|entry| entry.as_str() == Some(command)) {
        return Ok(None);
    }
    let mut entry = Value::from(command);
    // A comment must not end early, or say what nobody sees.
    let comment = show(comment).replace(['\n', '\r'], " ");
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

    /// S3-17: the exact text, beside what is there, with when and why.
    #[test]
    fn a_command_is_added_with_when_and_why_and_nothing_else_changes() {
        let text = "# ours\n[run]\nparallel = 2 # two\n\n[recovery]\nauto_approve = [\"npm ci\"] # short\nsandbox = \"required\"\n";
        let changed = added(
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
    fn a_project_without_a_section_gets_one_and_a_second_time_changes_nothing() {
        let changed = added("", "kill \"$(cat a.pid)\"", "x\ny").unwrap().unwrap();
        let read: toml::Table = changed.parse().unwrap();
        let list = read["recovery"]["auto_approve"].as_array().unwrap();
        assert_eq!(list[0].as_str(), Some("kill \"$(cat a.pid)\""));
        assert!(
            added(&changed, "kill \"$(cat a.pid)\"", "x")
                .unwrap()
                .is_none()
        );
    }
}
