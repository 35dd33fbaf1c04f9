//! Parsers of lockfile formats that are neither JSON, TOML nor YAML.
//!
//! They are stricter than those of the tools: what they do not know makes the whole lockfile count.

use super::lockfile_sources::visible;

/// Options of a source in a `Gemfile.lock` are indented by this.
const GEM_OPTION_INDENT: usize = 2;
/// Packages in a `Gemfile.lock` are indented by this.
const GEM_PACKAGE_INDENT: usize = 4;
/// Sections of a `Gemfile.lock` that name sources.
const GEM_SOURCES: [&str; 4] = ["GEM", "GIT", "PATH", "PLUGIN SOURCE"];
/// The other known sections of a `Gemfile.lock`.
const GEM_SECTIONS: [&str; 4] = ["PLATFORMS", "DEPENDENCIES", "RUBY VERSION", "BUNDLED WITH"];

/// A package or source in a lockfile.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LockEntry {
    /// The name and version, as one word; empty for a source.
    pub(super) id: String,
    /// Names that may contain a source.
    pub(super) names: Vec<String>,
    /// Values by key.
    pub(super) values: Vec<(String, String)>,
    /// Additional facts.
    pub(super) facts: Vec<String>,
}

/// Returns the entries of a `yarn.lock` of yarn 1.
pub(super) fn yarn_entries(text: &str) -> Option<Vec<LockEntry>> {
    let mut entries = Vec::new();
    let mut entry: Option<LockEntry> = None;
    for line in text.split('\n') {
        let rest = line.trim_start_matches(' ');
        if rest.is_empty() || rest.starts_with('#') {
            continue;
        }
        let (words, is_key) = yarn_tokens(rest)?;
        match (line.len() - rest.len(), words.as_slice(), is_key) {
            (0, names, true) if !names.is_empty() => {
                entries.extend(entry.take());
                entry = Some(LockEntry {
                    names: names.to_vec(),
                    ..LockEntry::default()
                });
            }
            (2, [key, value], false) => {
                let entry = entry.as_mut()?;
                entry.values.push((key.clone(), value.clone()));
            }
            // Lists of dependencies: `dependencies:` and its lines.
            (2, [_], true) | (4, [_, _], false) => {}
            _ => return None,
        }
    }
    entries.extend(entry);
    for entry in &mut entries {
        let mut keys: Vec<_> = entry.values.iter().map(|(key, _)| key).collect();
        keys.sort_unstable();
        if keys.windows(2).any(|two| two[0] == two[1]) {
            return None;
        }
        let name = entry.names.first()?;
        let name = name
            .rfind('@')
            .filter(|at| *at > 0)
            .map_or(name.as_str(), |at| &name[..at]);
        let version = entry.values.iter().find(|(key, _)| key == "version");
        let version = version.map_or("", |(_, version)| version);
        entry.id = format!("{}@{}", visible(name), visible(version));
    }
    Some(entries)
}

/// Returns the words of a line of yarn 1, and whether it ends in a colon.
fn yarn_tokens(line: &str) -> Option<(Vec<String>, bool)> {
    let mut words = Vec::new();
    let mut rest = line;
    loop {
        let (word, after) = if rest.starts_with('"') {
            let mut parsed = serde_json::Deserializer::from_str(rest).into_iter::<String>();
            let word = parsed.next()?.ok()?;
            let end = parsed.byte_offset();
            (word, &rest[end..])
        } else {
            let is_end = |c: char| c.is_whitespace() || matches!(c, ':' | ',' | '"');
            let end = rest.find(is_end).unwrap_or(rest.len());
            (rest[..end].to_owned(), &rest[end..])
        };
        if word.is_empty() {
            return None;
        }
        words.push(word);
        rest = match after {
            "" => return Some((words, false)),
            ":" => return Some((words, true)),
            _ => after
                .strip_prefix(", ")
                .or_else(|| after.strip_prefix(' '))?,
        };
    }
}

/// Returns the sources and packages of a `Gemfile.lock`.
pub(super) fn gem_entries(text: &str) -> Option<Vec<LockEntry>> {
    let mut entries: Vec<LockEntry> = Vec::new();
    let mut section = "";
    let mut source = String::new();
    for line in text.split('\n') {
        let rest = line.trim_start_matches(' ');
        if rest.trim().is_empty() {
            continue;
        }
        let indent = line.len() - rest.len();
        if indent == 0 {
            let is_known = GEM_SOURCES.contains(&rest) || GEM_SECTIONS.contains(&rest);
            if !is_known && rest != "CHECKSUMS" {
                return None;
            }
            section = rest;
            source = section.to_owned();
            continue;
        }
        if GEM_SECTIONS.contains(&section) {
            continue;
        }
        if section.is_empty() || rest.contains(char::is_control) {
            return None;
        }
        let (name, facts) = match indent {
            GEM_OPTION_INDENT if section == "CHECKSUMS" => {
                rest.split_once(") ").unwrap_or((rest, ""))
            }
            GEM_OPTION_INDENT if rest == "specs:" => continue,
            GEM_OPTION_INDENT => {
                let (key, value) = rest.split_once(": ")?;
                source = format!("{source} {rest}");
                let key = match section {
                    "GEM" => key,
                    // Directories and repositories, on whatever host.
                    _ => "git",
                };
                entries.push(LockEntry {
                    values: vec![(key.to_owned(), value.to_owned())],
                    ..LockEntry::default()
                });
                continue;
            }
            GEM_PACKAGE_INDENT => (rest, source.as_str()),
            // The dependencies of a package.
            _ if indent > GEM_PACKAGE_INDENT => continue,
            _ => return None,
        };
        let kind = if section == "CHECKSUMS" {
            "checksum:"
        } else {
            ""
        };
        entries.push(LockEntry {
            id: format!("{kind}{}", visible(name.trim_end_matches(')'))),
            facts: vec![visible(facts)],
            ..LockEntry::default()
        });
    }
    Some(entries)
}

/// Returns the modules of a `go.sum`.
pub(super) fn go_sum_entries(text: &str) -> Option<Vec<LockEntry>> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let entries = lines.map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        let [module, version, hash] = words.as_slice() else {
            return None;
        };
        if !version.starts_with('v') || !hash.starts_with("h1:") {
            return None;
        }
        Some(LockEntry {
            id: visible(&format!("{module}@{version}")),
            facts: vec![visible(hash)],
            ..LockEntry::default()
        })
    });
    entries.collect()
}

/// Removes comments and the commas at the end of lists, outside of texts.
pub(super) fn without_comments(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    // The position of the last comma with only blanks after it.
    let mut comma: Option<usize> = None;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '"' => {
                comma = None;
                plain.push(c);
                while let Some(inner) = rest.next() {
                    plain.push(inner);
                    match inner {
                        '\\' => plain.extend(rest.next()),
                        '"' => break,
                        _ => {}
                    }
                }
            }
            '/' if rest.peek() == Some(&'/') => {
                while rest.next_if(|next| *next != '\n').is_some() {}
            }
            '/' if rest.peek() == Some(&'*') => {
                rest.next();
                let mut last = ' ';
                for next in rest.by_ref() {
                    if last == '*' && next == '/' {
                        break;
                    }
                    last = next;
                }
            }
            ',' => {
                comma = Some(plain.len());
                plain.push(c);
            }
            ']' | '}' => {
                if let Some(at) = comma.take() {
                    plain.replace_range(at..=at, " ");
                }
                plain.push(c);
            }
            c if c.is_ascii_whitespace() => plain.push(c),
            c => {
                comma = None;
                plain.push(c);
            }
        }
    }
    plain
}
