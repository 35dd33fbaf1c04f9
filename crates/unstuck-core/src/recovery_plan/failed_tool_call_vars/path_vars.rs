//! Template variables of the path that the failure is about: similar names, the sandbox, the allowed root.

use super::{FailedToolCallVarSources, FailedToolCallVars};
use crate::did_you_mean::edit_distance;
use crate::failure::FailureKind;
use crate::recovery_plan::failure_message_values;
use crate::recovery_plan::tool_argument_fixes;

/// Names of arguments that contain a path.
const PATH_ARGS: [&str; 9] = [
    "path",
    "file_path",
    "filePath",
    "file",
    "filename",
    "dir",
    "directory",
    "notebook_path",
    "target_file",
];

pub(super) fn gather(facts: &mut FailedToolCallVars, source: &FailedToolCallVarSources<'_>) {
    let Some(path) = failed_path(source) else {
        return;
    };
    // A path such as `-delete` must not become an option of the program that receives it.
    let path = if path.starts_with('-') {
        format!("./{path}")
    } else {
        path
    };
    let (dir, base) = split_parent(&path);
    facts.set("path", path.as_str());
    facts.set("dir", dir);
    facts.set("base", base);
    facts.set("in_root", is_inside(&path, source.request.root.as_deref()));
    add_sandbox_call(facts, source, &path);
    if source.is_kind(FailureKind::FileNotFound) {
        add_similar_names(facts, source, &path);
    }
}

/// Returns the directory of the path that the failure is about.
pub(super) fn failed_directory(source: &FailedToolCallVarSources<'_>) -> Option<String> {
    failed_path(source).map(|path| split_parent(&path).0.to_owned())
}

fn failed_path(source: &FailedToolCallVarSources<'_>) -> Option<String> {
    let args = &source.call.args;
    let given = PATH_ARGS.iter().find_map(|name| args.get(*name)?.as_str());
    let given = given.map(str::to_owned);
    let about_paths =
        source.is_kind(FailureKind::FileNotFound) || source.is_kind(FailureKind::PermissionDenied);
    let in_message = || failure_message_values::path(&source.message).filter(|_| about_paths);
    let in_command = || {
        let words = source
            .call
            .commands
            .iter()
            .flat_map(|command| &command.arguments);
        let mut paths = words.filter(|word| word.literal && looks_like_path(&word.value));
        paths.next().map(|word| word.value.clone())
    };
    given
        .or_else(in_message)
        .or_else(|| in_command().filter(|_| about_paths))
}

fn looks_like_path(word: &str) -> bool {
    !word.starts_with('-') && !word.contains("://") && word.contains(['/', '.'])
}

fn split_parent(path: &str) -> (&str, &str) {
    match path.trim_end_matches('/').rsplit_once('/') {
        Some(("", base)) => ("/", base),
        Some((dir, base)) => (dir, base),
        None => (".", path),
    }
}

/// Resolves `.` and `..` by name alone; `None` if the path leads above its start.
fn normalized_parts(path: &str) -> Option<Vec<&str>> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            _ => parts.push(part),
        }
    }
    Some(parts)
}

/// True if the path is inside the root; an absolute path without a known root is not.
fn is_inside(path: &str, root: Option<&str>) -> bool {
    let Some(resolved) = normalized_parts(path) else {
        return false;
    };
    match root.and_then(normalized_parts) {
        _ if !path.starts_with(['/', '~']) => true,
        Some(root) => path.starts_with('/') && resolved.starts_with(&root),
        None => false,
    }
}

fn add_sandbox_call(
    facts: &mut FailedToolCallVars,
    source: &FailedToolCallVarSources<'_>,
    path: &str,
) {
    let sandbox = source.request.sandbox.trim_end_matches('/');
    let root = source
        .request
        .root
        .as_deref()
        .and_then(normalized_parts)
        .unwrap_or_default();
    let named = |part: &&str| !["", ".", "..", "~"].contains(part);
    let all: Vec<&str> = path.split('/').filter(named).collect();
    let inside = all.strip_prefix(root.as_slice()).unwrap_or(&all);
    if inside.is_empty() || path.starts_with(sandbox) {
        return;
    }
    let new = format!("{sandbox}/{}", inside.join("/"));
    facts.set("sandbox_path", new.as_str());
    facts.set("sandbox_dir", split_parent(&new).0);
    facts.set_raw("sandbox_command", source.with_replacement(path, &new));
    let key = tool_argument_fixes::argument_containing(&source.call.args, path);
    facts.set_call(
        "sandbox_args",
        key.map(|key| with_argument(source, key, &new)),
    );
}

fn with_argument(
    source: &FailedToolCallVarSources<'_>,
    key: &str,
    value: &str,
) -> tool_argument_fixes::ToolArgs {
    let mut args = source.call.args.clone();
    args.insert(key.to_owned(), value.into());
    args
}

fn add_similar_names(
    facts: &mut FailedToolCallVars,
    source: &FailedToolCallVarSources<'_>,
    path: &str,
) {
    let (dir, base) = split_parent(path);
    let near = similar_names(base, &source.request.listing);
    let Some(best) = near.first() else { return };
    let new = match dir {
        "." if !path.starts_with("./") => (*best).to_owned(),
        _ => format!("{}/{best}", dir.trim_end_matches('/')),
    };
    let key = tool_argument_fixes::argument_containing(&source.call.args, path);
    let by_args = key.map(|key| with_argument(source, key, &new));
    let by_command = || Some(source.with_command(&source.with_replacement(path, &new)?));
    facts.set("near_path", new.as_str());
    let names = near.iter().copied().map(minijinja::Value::from);
    facts.set("near_names", names.collect::<minijinja::Value>());
    facts.set_call("near_call", by_args.or_else(by_command));
}

/// Returns up to three names that may have been meant, most similar first.
fn similar_names<'a>(wanted: &str, names: &'a [String]) -> Vec<&'a str> {
    let stem = |name: &str| name.split('.').next().unwrap_or_default().to_lowercase();
    let limit = (wanted.chars().count() / 3).max(1);
    let mut near: Vec<(usize, &str)> = names
        .iter()
        .map(|name| (edit_distance(wanted, name), name.as_str()))
        .filter(|(far, name)| {
            *far <= limit || (stem(name) == stem(wanted) && !stem(name).is_empty())
        })
        .filter(|(_, name)| *name != wanted)
        .collect();
    near.sort();
    near.into_iter().take(3).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_leave_the_root_are_outside() {
        let root = Some("/home/u/app");
        assert!(is_inside("src/a.rs", root) && is_inside("/home/u/app/src", root));
        assert!(!is_inside("../x", root) && !is_inside("/home/u/app/../x", root));
        assert!(!is_inside("/home/u/application", root) && !is_inside("~/x", root));
        assert!(is_inside("a", None) && !is_inside("/etc/x", None));
    }

    #[test]
    fn the_most_similar_names_come_first() {
        let names = ["config.yml", "config.yaml", "main.rs"].map(str::to_owned);
        assert_eq!(
            similar_names("confg.yaml", &names),
            ["config.yaml", "config.yml"]
        );
        assert_eq!(similar_names("Config.json", &names).len(), 2);
        assert!(similar_names("README", &names).is_empty());
    }
}
