//! Scripts and targets that a project defines: in package.json, makefiles, justfiles and similar.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::project_listing::ProjectListing;

/// Maximum bytes read of a file.
const MAX_FILE_BYTES: u64 = 256 << 10;

/// Maximum depth and number of workspace packages.
const MAX_MEMBER_DEPTH: usize = 3;
const MAX_MEMBERS: usize = 100;

/// Script names with their commands.
type ScriptsByName = BTreeMap<String, String>;

/// Returns the scripts of the project by their runner.
pub(super) fn scripts_by_runner(tree: &ProjectListing) -> BTreeMap<String, ScriptsByName> {
    let documents = [
        ("package.json", "package.json", "scripts"),
        ("composer.json", "composer.json", "scripts"),
        ("deno.json", "deno.json", "tasks"),
    ];
    let mut all = BTreeMap::new();
    for (runner, file, key) in documents {
        if let Some(document) = read_json(tree, file) {
            all.insert(runner.to_owned(), scripts_in(&document, key));
        }
    }
    for file in tree.files() {
        let is_member =
            file.ends_with("/package.json") && file.matches('/').count() <= MAX_MEMBER_DEPTH;
        if let Some(document) = is_member.then(|| read_json(tree, file)).flatten() {
            all.insert(file.to_owned(), scripts_in(&document, "scripts"));
        }
        if all.len() > MAX_MEMBERS {
            break;
        }
    }
    let recipes = [
        ("make", &["GNUmakefile", "makefile", "Makefile"][..]),
        ("just", &["justfile", "Justfile", ".justfile"]),
    ];
    for (runner, files) in recipes {
        let text = files
            .iter()
            .find_map(|file| tree.read_text(file, MAX_FILE_BYTES));
        if let Some(text) = text {
            all.insert(runner.to_owned(), parse_targets(&text));
        }
    }
    all
}

/// Returns the package manager that the project declares.
pub(super) fn package_manager(tree: &ProjectListing) -> Option<String> {
    let document = read_json(tree, "package.json")?;
    let named = document.get("packageManager")?.as_str()?;
    named.split('@').next().map(str::to_owned)
}

/// Returns the paths of the submodules.
pub(super) fn submodules(tree: &ProjectListing) -> BTreeSet<String> {
    let text = tree
        .read_text(".gitmodules", MAX_FILE_BYTES)
        .unwrap_or_default();
    let values = text.lines().filter_map(|line| line.trim().split_once('='));
    let paths = values.filter(|(key, _)| key.trim() == "path");
    paths.map(|(_, path)| path.trim().to_owned()).collect()
}

fn read_json(tree: &ProjectListing, file: &str) -> Option<Value> {
    serde_json::from_slice(&tree.read(file, MAX_FILE_BYTES)?).ok()
}

fn scripts_in(document: &Value, key: &str) -> ScriptsByName {
    let object = document.get(key).and_then(Value::as_object);
    let body = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Array(lines) => {
            let lines: Vec<&str> = lines.iter().filter_map(Value::as_str).collect();
            lines.join("\n")
        }
        _ => String::new(),
    };
    let all = object.into_iter().flatten();
    all.map(|(name, value)| (name.clone(), body(value)))
        .collect()
}

/// Returns the targets of a makefile or justfile with their recipes.
fn parse_targets(text: &str) -> ScriptsByName {
    let mut all = ScriptsByName::new();
    let mut current: Vec<String> = Vec::new();
    for line in text.lines() {
        if line.starts_with([' ', '\t']) {
            for name in &current {
                let recipe = all.entry(name.clone()).or_default();
                recipe.push_str(line.trim());
                recipe.push('\n');
            }
        } else if let Some(names) = names_before_colon(line) {
            for name in &names {
                all.entry(name.clone()).or_default();
            }
            current = names;
        } else if !line.trim().is_empty() {
            current.clear();
        }
    }
    all
}

/// Returns the target names defined by a line, or `None` if it defines none.
fn names_before_colon(line: &str) -> Option<Vec<String>> {
    let (names, rest) = line.split_once(':')?;
    let is_name = |name: &str| {
        let letters = |c: char| c.is_ascii_alphanumeric() || "_./-%@".contains(c);
        !name.is_empty() && name.chars().all(letters)
    };
    let is_sign = |word: &str| word.chars().all(|c| "=?+:!".contains(c));
    let is_assignment = rest.starts_with('=') || names.split_whitespace().any(is_sign);
    let names: Vec<String> = names.split_whitespace().map(str::to_owned).collect();
    // A justfile recipe may have parameters after its name.
    let first = names.first()?.trim_start_matches('@').to_owned();
    if is_assignment || names.is_empty() || !is_name(&first) {
        return None;
    }
    if names.iter().all(|name| is_name(name)) {
        Some(names)
    } else {
        Some(vec![first])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn make_and_just_targets_are_found_with_their_recipes() {
        let text = "CC := gcc\n.PHONY: proto all\nall: proto\n\tgcc a.c\n\nproto gen: x.proto\n\tprotoc x.proto\n\techo done\nvar = a:b\nserve port='80':\n  run {{port}}\n";
        let found = parse_targets(text);
        assert_eq!(found["proto"], "protoc x.proto\necho done\n");
        assert_eq!(found["gen"], found["proto"]);
        assert_eq!(found["all"], "gcc a.c\n");
        assert!(
            found.contains_key("serve") && !found.contains_key("var") && !found.contains_key("CC")
        );
    }
}
