//! Paths as written in messages and commands.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

/// Maximum number of paths examined in a text, counted from the end.
const MAX_PATHS: usize = 150;

/// Returns the path relative to the root; none if it is outside. Relative paths start at the directory `at`.
pub(super) fn relative(roots: &[String], at: &str, path: &str) -> Option<String> {
    let path = path.strip_prefix("file://").unwrap_or(path);
    let path = path.replace('\\', "/");
    if !path.starts_with('/') {
        let is_home = path.starts_with('~') || path.contains("://");
        return if is_home { None } else { normalize(at, &path) };
    }
    let inside = |root: &String| {
        let rest = path.strip_prefix(root.trim_end_matches('/'))?;
        (rest.is_empty() || rest.starts_with('/')).then(|| rest.to_owned())
    };
    let rest = roots.iter().find_map(inside)?;
    normalize("", &rest)
}

/// Resolves a path from a directory, without `.` and `..`; none if it leads above the root.
pub(super) fn normalize(folder: &str, path: &str) -> Option<String> {
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Joins a directory and a name; the empty directory is the root.
pub(super) fn join(folder: &str, name: &str) -> String {
    match folder {
        "" => name.to_owned(),
        folder => format!("{folder}/{name}"),
    }
}

/// Returns the parent directory of a relative path; empty for the root.
pub(super) fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Returns the last component of a path.
pub(super) fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Returns the path and its parent directories, nearest first.
pub(super) fn ancestors(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |path| {
        let (folder, _) = path.rsplit_once('/')?;
        Some(folder)
    })
}

/// Returns true if a path equals another, lies in it or matches its pattern.
pub(super) fn covers(outer: &str, inner: &str) -> bool {
    if outer.is_empty() {
        return false;
    }
    if !outer.contains(['*', '?']) {
        let rest = inner.strip_prefix(outer);
        return rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    }
    let contents = outer.strip_suffix("/*");
    let anywhere = outer.strip_prefix("**/");
    contents.is_some_and(|folder| covers(folder, inner))
        || anywhere.is_some_and(|name| covers(name, inner))
        || ancestors(inner).any(|one| matches_glob(outer, one))
}

/// Returns true if a text matches a pattern of `*` and `?`.
pub(super) fn matches_glob(pattern: &str, text: &str) -> bool {
    fn like(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern.split_first(), text.split_first()) {
            (None, None) => true,
            (Some((b'*', rest)), _) => {
                like(rest, text) || (!text.is_empty() && like(pattern, &text[1..]))
            }
            (Some((b'?', rest)), Some((_, others))) => like(rest, others),
            (Some((one, rest)), Some((other, others))) => one == other && like(rest, others),
            _ => false,
        }
    }
    pattern.len() <= 200 && text.len() <= 500 && like(pattern.as_bytes(), text.as_bytes())
}

/// Returns the substrings of a text that look like paths.
pub(super) fn find_paths(text: &str) -> BTreeSet<String> {
    static WORD: LazyLock<Option<Regex>> = LazyLock::new(|| {
        Regex::new(r#"'([^'\n]{2,200})'|"([^"\n]{2,200})"|`([^`\n]{2,200})`|([^\s'"`()<>\[\]{},;=|]{2,300})"#).ok()
    });
    let Some(word) = WORD.as_ref() else {
        return BTreeSet::new();
    };
    let mut found = Vec::new();
    for captures in word.captures_iter(text) {
        let quoted = captures.iter().skip(1).take(3).flatten().next();
        for part in quoted.into_iter().flat_map(|part| part.as_str().split(' ')) {
            found.extend(path_in(part));
        }
        let whole = quoted.or(captures.get(4)).map(|part| part.as_str());
        let name = |word: &str| quoted.is_some() && is_plain_name(word);
        let named = whole.filter(|word| name(word)).map(str::to_owned);
        found.extend(named.or_else(|| whole.and_then(path_in)));
    }
    let skip = found.len().saturating_sub(MAX_PATHS);
    found.into_iter().skip(skip).collect()
}

/// Returns the path in a word, without surrounding punctuation.
pub(super) fn path_in(word: &str) -> Option<String> {
    let around = |c: char| "'\"`()<>[]{},;:!".contains(c);
    let word = word.trim_matches(around).trim_end_matches('.');
    let word = without_position(word);
    let is_path = word.len() > 1 && (word.contains('/') || is_file_name(word));
    let plain = |c: char| !c.is_control() && c != ' ';
    (is_path && word.chars().all(plain) && !word.contains("://")).then(|| word.to_owned())
}

/// Returns the word without a trailing line and column.
fn without_position(word: &str) -> &str {
    let mut word = word;
    while let Some((before, last)) = word.rsplit_once(':') {
        if last.is_empty() || !last.bytes().all(|byte| byte.is_ascii_digit()) {
            break;
        }
        word = before;
    }
    word
}

/// Returns true if a word may be the name of a file or directory without extension.
fn is_plain_name(word: &str) -> bool {
    let letters = |c: char| c.is_ascii_alphanumeric() || "_-.@+".contains(c);
    word.len() < 60 && word.chars().all(letters)
}

fn is_file_name(word: &str) -> bool {
    let named = |part: &str| {
        !part.is_empty()
            && part.len() <= 12
            && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            && part.chars().any(|c| c.is_ascii_alphabetic())
    };
    let letters = |c: char| c.is_ascii_alphanumeric() || "_-.@+".contains(c);
    word.chars().all(letters)
        && word
            .rsplit_once('.')
            .is_some_and(|(_, extension)| named(extension))
}

/// Returns the path without a part of its name that precedes a dot or the end.
pub(super) fn without_mark(path: &str, mark: &str) -> Option<String> {
    let (before, after) = base_name(path).split_once(mark)?;
    let is_whole = after.is_empty() || after.starts_with('.');
    let is_name = !before.is_empty() && before != ".";
    (is_whole && is_name).then(|| join(parent(path), &format!("{before}{after}")))
}

/// Returns the Python interpreter of the environment whose `bin` directory contains a program.
pub(super) fn sibling_interpreter(program: &str) -> Option<String> {
    let folder = parent(program);
    folder.ends_with("/bin").then(|| join(folder, "python"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_in_any_notation() {
        let text = "Error: /w/app/node_modules/x/package.json: bad\n  File \"/w/app/a.py\", line 2\nsrc/b.ts(1,17): gone\nsee https://x.org/y and 'out/reports/summary.txt' or .env";
        let found = find_paths(text);
        for path in [
            "/w/app/node_modules/x/package.json",
            "/w/app/a.py",
            "src/b.ts",
            "out/reports/summary.txt",
            ".env",
        ] {
            assert!(found.contains(path), "{path}: {found:?}");
        }
        assert!(!found.iter().any(|path| path.contains("x.org")));
    }

    #[test]
    fn paths_outside_the_root_are_not_relative() {
        let roots = ["/w/app".to_owned()];
        let relative = |path| relative(&roots, "web", path);
        assert_eq!(relative("/w/app/src/a.rs").as_deref(), Some("src/a.rs"));
        assert_eq!(relative("../src/./a.rs").as_deref(), Some("src/a.rs"));
        assert_eq!(relative("a.rs").as_deref(), Some("web/a.rs"));
        assert_eq!(relative("/w/application/a"), None);
        assert_eq!(relative("../../etc/passwd"), None);
        assert_eq!(relative("~/x"), None);
    }

    #[test]
    fn directory_covers_its_contents_and_pattern_its_matches() {
        assert!(
            covers("dist", "dist/a.js") && covers("dist", "dist") && covers("dist/*", "dist/a")
        );
        assert!(covers("**/__pycache__", "a/__pycache__/x") && covers("**/*.pyc", "x.pyc"));
        assert!(covers("*.pyc", "a.pyc") && covers("tmp/*.lock", "tmp/x.lock"));
        assert!(!covers("dist", "distant") && !covers("", "a") && !covers("tmp/*.lock", "x.lock"));
    }
}
