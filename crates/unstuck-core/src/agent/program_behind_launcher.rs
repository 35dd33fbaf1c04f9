//! Finds the program behind launchers such as `npx` and `env` (`data/launchers.toml`).

use std::sync::LazyLock;

use serde::Deserialize;

use crate::knowledge;

/// Maximum number of nested launchers.
const MAX_NESTING: usize = 8;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Launchers {
    launcher: Vec<Launcher>,
    /// Launchers whose arguments are not parsed.
    others: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Launcher {
    /// The names by which it is recognized.
    words: Vec<String>,
    /// Its flags that take a value.
    #[serde(default)]
    value: Vec<String>,
    /// True if `NAME=value` arguments may come first.
    #[serde(default)]
    assignments: bool,
    /// Number of its own operands before the program.
    #[serde(default)]
    operands: usize,
}

impl Launchers {
    fn built_in() -> &'static Self {
        static BUILT_IN: LazyLock<Launchers> = LazyLock::new(|| {
            let text = include_str!("../../data/launchers.toml");
            match knowledge::parse_file("launchers.toml", text) {
                Ok(launchers) => launchers,
                // The embedded file is tested; only a build that skipped its tests can get here.
                Err(error) => unreachable!("{error}"),
            }
        });
        &BUILT_IN
    }
}

/// Returns the index of the first word that is a known program.
pub(super) fn find_program(command: &[String], is_known: impl Fn(&str) -> bool) -> Option<usize> {
    let mut at = 0;
    for _ in 0..MAX_NESTING {
        if is_known(command.get(at)?) {
            return Some(at);
        }
        let launchers = Launchers::built_in().launcher.iter();
        at += launchers
            .filter_map(|launcher| launcher.prefix_len(&command[at..]))
            .max()?;
    }
    None
}

/// Returns true if a program only starts another one, such as `npx` or `docker`.
pub(super) fn is_launcher(program: &str) -> bool {
    let launchers = Launchers::built_in();
    let first = |launcher: &Launcher| launcher.words.first().is_some_and(|word| word == program);
    launchers.launcher.iter().any(first) || launchers.others.iter().any(|word| word == program)
}

impl Launcher {
    /// Returns the number of words of a launcher prefix, if it is one.
    fn prefix_len(&self, command: &[String]) -> Option<usize> {
        let (first, others) = self.words.split_first()?;
        if base_name(command.first()?) != first || !command[1..].starts_with(others) {
            return None;
        }
        let mut at = self.words.len();
        let mut operands = self.operands;
        loop {
            let word = command.get(at)?;
            if word == "--" {
                return Some(at + 1);
            } else if self.value.contains(word) {
                at += 2;
            } else if word.starts_with('-') || self.assignments && word.contains('=') {
                at += 1;
            } else if operands > 0 {
                operands -= 1;
                at += 1;
            } else {
                return Some(at);
            }
        }
    }
}

/// Returns the name of a program without its directory and Windows extension.
pub(super) fn base_name(word: &str) -> &str {
    let name = word.rsplit(['/', '\\']).next().unwrap_or(word);
    let extensions = [".exe", ".cmd", ".bat", ".ps1"];
    let bare = |extension: &&str| {
        let cut = name.len().checked_sub(extension.len())?;
        name.get(cut..)?
            .eq_ignore_ascii_case(extension)
            .then(|| &name[..cut])
    };
    extensions.iter().find_map(bare).unwrap_or(name)
}

/// Returns a package name without `@version`.
pub(super) fn without_version(package: &str) -> &str {
    match package.rfind('@') {
        Some(at) if at > 0 => &package[..at],
        _ => package.split_once("==").map_or(package, |(name, _)| name),
    }
}
