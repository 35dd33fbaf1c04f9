//! What of a file counts.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::glob::{fits, name_fits};
use super::pattern::Pattern;
use super::specs::Usual;
use super::{json, sources, tree, xml};

/// What of a file counts; the whole of it where nothing else is said.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FileRule {
    /// The files that are meant.
    pub names: Vec<String>,
    /// Names that are not meant after all.
    pub ignore: Vec<String>,
    #[serde(rename = "read")]
    read: Read,
    /// What comments begin with.
    comments: Vec<String>,
    /// The lines that count; all where empty.
    only: Vec<Pattern>,
    /// The lines, or elements, that do not count.
    except: Vec<Pattern>,
    /// The keys that count.
    keys: Vec<String>,
    /// Keys of dependencies: those that come from elsewhere than a registry count.
    specs: Vec<String>,
    /// What a dependency from a registry looks like.
    #[serde(rename = "plain")]
    plain: Option<Pattern>,
    /// The keys that the table of such a dependency may have.
    #[serde(rename = "plain_keys")]
    plain_keys: Vec<String>,
    /// The key of the table of scripts.
    scripts: Option<String>,
    /// Whether its lines call other files.
    #[serde(rename = "calls")]
    pub calls: bool,
    /// How lines name other files of the same kind, in the first group.
    #[serde(rename = "follows")]
    follows: Vec<Pattern>,
    /// How lines name the folders of members, in the first group.
    #[serde(rename = "lists")]
    lists: Vec<Pattern>,
    /// Whether it may hold secrets, so that a difference is not shown.
    pub secret: bool,
    /// The addresses from which packages usually come, of a lockfile.
    registries: Vec<String>,
}

/// How a file is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Read {
    /// As it is.
    #[default]
    Whole,
    /// Line by line.
    Lines,
    /// As JSON.
    Json,
    /// As TOML.
    Toml,
    /// As XML.
    Xml,
    /// As a lockfile: where its packages come from.
    Lock,
}

impl FileRule {
    /// Whether only what is new in it counts.
    pub fn counts_additions(&self) -> bool {
        self.read == Read::Lock
    }

    /// Whether a file is meant.
    pub(super) fn is_for(&self, path: &str) -> bool {
        self.names.iter().any(|name| fits(name, path))
    }

    /// Whether a file of that name does not count at all.
    pub fn ignores(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or_default();
        self.ignore.iter().any(|pattern| name_fits(pattern, name))
    }

    /// The part that counts, in a form that no order and no comment changes; empty if there is none.
    ///
    /// What cannot be read as what it should be counts as a whole.
    pub fn part(&self, bytes: &[u8]) -> String {
        let text = String::from_utf8_lossy(bytes).replace("\r\n", "\n");
        if std::str::from_utf8(bytes).is_err() {
            // Bytes that are no text must not become the same text.
            return bytes.escape_ascii().to_string();
        }
        let read = match self.read {
            Read::Whole => None,
            Read::Lines => Some(self.lines(&text)),
            Read::Json => json::parse(&text).map(|value| self.chosen(value)),
            Read::Toml => json::from_toml(&text).map(|value| self.chosen(value)),
            Read::Xml => xml::without(&text, |path| self.leaves_out(path)),
            Read::Lock => Some(sources::unusual(&text, &self.registries, &self.keys)),
        };
        read.unwrap_or(text)
    }

    fn lines(&self, text: &str) -> String {
        let counts = |line: &&str| {
            let start = line.trim_start();
            !start.is_empty()
                && !self.comments.iter().any(|mark| start.starts_with(mark))
                && (self.only.is_empty() || any(&self.only, line))
                && !any(&self.except, line)
        };
        let lines: Vec<_> = text.lines().filter(counts).collect();
        match lines.is_empty() {
            true => String::new(),
            false => lines.join("\n") + "\n",
        }
    }

    fn leaves_out(&self, path: &str) -> bool {
        any(&self.except, path)
    }

    fn chosen(&self, value: json::Value) -> String {
        let mut parts = BTreeMap::new();
        for key in &self.keys {
            parts.extend(tree::find(&value, key));
        }
        let usual = Usual {
            plain: self.plain.as_ref().map(|pattern| &pattern.0),
            keys: &self.plain_keys,
        };
        for key in &self.specs {
            let found = tree::find(&value, key).into_iter();
            parts.extend(found.filter_map(|(path, all)| Some((path, usual.others(&all)?))));
        }
        json::written(&parts)
    }

    /// The scripts in it, by name.
    pub fn scripts(&self, bytes: &[u8]) -> BTreeMap<String, String> {
        let text = std::str::from_utf8(bytes).unwrap_or_default();
        let (Some(key), Some(value)) = (&self.scripts, json::parse(text)) else {
            return BTreeMap::new();
        };
        let found = tree::find(&value, key).into_iter();
        found
            .flat_map(|(_, scripts)| json::texts(scripts))
            .collect()
    }

    /// The other files of the same kind that it names.
    pub fn followed(&self, bytes: &[u8]) -> Vec<String> {
        captured(&self.follows, bytes)
    }

    /// The folders of members that it lists under a key, such as `workspaces`, or in its lines.
    ///
    /// None if there is no such list; empty if it cannot be read.
    pub fn members(&self, bytes: &[u8], key: &str) -> Option<Vec<String>> {
        if key.is_empty() {
            return Some(captured(&self.lists, bytes));
        }
        let text = std::str::from_utf8(bytes).unwrap_or_default();
        let value = match self.read {
            Read::Toml => json::from_toml(text),
            _ => json::parse(text),
        };
        let Some(value) = value else {
            return Some(Vec::new());
        };
        let found = tree::find(&value, key).into_iter().next();
        found.map(|(_, value)| json::list(value))
    }

    /// Whether the whole of a file counts.
    pub fn is_whole(&self) -> bool {
        self.read == Read::Whole
    }
}

/// The first groups of all lines that match.
fn captured(patterns: &[Pattern], bytes: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.lines().flat_map(|line| {
        let found = patterns.iter().filter_map(|one| one.0.captures(line));
        found.filter_map(|found| Some(found.get(1)?.as_str().to_owned()))
    });
    lines.collect()
}

fn any(patterns: &[Pattern], text: &str) -> bool {
    patterns.iter().any(|pattern| pattern.0.is_match(text))
}
