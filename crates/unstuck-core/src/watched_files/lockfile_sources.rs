//! The relevant part of a lockfile: where packages come from, and the hashes of their contents.
//!
//! A lockfile is parsed in the format of its tool. The part has a line for every source that is not a registry, and one
//! for every package with its sources and hashes. A new registry package is irrelevant; see [`only_adds_packages`].

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::config_value::{self, ConfigValue};
use super::custom_lockfile_formats::{self as text_formats, LockEntry};

/// Begins a line with a source that is not a registry.
const SOURCE_LINE: &str = "source ";
/// Begins a line with a package, its sources and its hashes.
const PACKAGE_LINE: &str = "package ";
/// Begins every line of a lockfile that cannot be parsed.
const UNPARSED_LINE: &str = "unparsed ";
/// Maximum nesting depth.
const MAX_DEPTH: usize = 100;
/// Prefixes of sources that are not registries, whatever their host.
const NON_REGISTRY_PREFIXES: [&str; 17] = [
    "file:",
    "link:",
    "portal:",
    "git+",
    "git:",
    "git@",
    "ssh:",
    "github:",
    "gitlab:",
    "bitbucket:",
    "gist:",
    "http:",
    "hg+",
    "svn+",
    "bzr+",
    "path+",
    "patch:",
];
/// Keys of content hashes.
const HASH_KEYS: [&str; 8] = [
    "integrity",
    "checksum",
    "hash",
    "hashes",
    "shasum",
    "sha1",
    "sha256",
    "sha512",
];
/// Keys whose value may also be a version or a name.
const VERSION_KEYS: [&str; 9] = [
    "version",
    "from",
    "resolution",
    "resolved_reference",
    "reference",
    "type",
    "rev",
    "branch",
    "tag",
];
/// Keys of repositories: the whole address is a source.
const REPOSITORY_KEYS: [&str; 3] = ["git", "repo", "hg"];
/// Domains on which everybody can publish: their whole address is a source, not only the host.
const SHARED_DOMAINS: [&str; 16] = [
    "github.com",
    "githubusercontent.com",
    "github.io",
    "gitlab.com",
    "bitbucket.org",
    "codeberg.org",
    "sr.ht",
    "gitee.com",
    "sourceforge.net",
    "amazonaws.com",
    "googleapis.com",
    "windows.net",
    "jsdelivr.net",
    "unpkg.com",
    "esm.sh",
    "pages.dev",
];

/// The format of a lockfile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum LockFormat {
    /// JSON.
    #[default]
    Json,
    /// JSON with comments and commas at the end of lists: `bun.lock`.
    JsonWithComments,
    /// TOML.
    Toml,
    /// YAML.
    Yaml,
    /// The format of yarn 1, or YAML.
    Yarn,
    /// The format of Bundler.
    Gem,
    /// A module, a version and a hash on each line.
    GoSum,
}

/// The parts of a lockfile that are compared.
#[derive(Debug, Clone, Copy)]
pub(super) struct LockRule<'r> {
    /// The format.
    pub(super) format: LockFormat,
    /// The URLs of default registries.
    pub(super) registries: &'r [String],
    /// The keys below which every text is a source; if empty, texts are sources if they look like one.
    pub(super) keys: &'r [String],
}

/// Returns the sources and packages of a lockfile, one per line. If it cannot be parsed, every line counts.
pub(super) fn sources_and_hashes(text: &str, rule: LockRule<'_>) -> String {
    let lines = LockReader::new(rule).read(text).unwrap_or_else(|| {
        let lines = text.split('\n');
        lines.map(|line| format!("{UNPARSED_LINE}{line}")).collect()
    });
    lines.into_iter().map(|line| line + "\n").collect()
}

/// Returns true if the later part has no other sources than the earlier one, and the packages of the earlier one are
/// unchanged or gone.
pub(super) fn only_adds_packages(before: &str, after: &str) -> bool {
    let known: BTreeSet<&str> = before.lines().collect();
    let packages: BTreeSet<&str> = known.iter().copied().filter_map(package_id).collect();
    after.lines().all(|line| {
        if line.starts_with(UNPARSED_LINE) {
            return false;
        }
        known.contains(line) || package_id(line).is_some_and(|id| !packages.contains(id))
    })
}

/// Returns the identity of a package in its line.
fn package_id(line: &str) -> Option<&str> {
    line.strip_prefix(PACKAGE_LINE)?.split(' ').next()
}

/// A package with what decides about its contents.
#[derive(Debug, Default)]
struct LockedPackage {
    /// The name and version, as one word; empty outside of a package.
    id: String,
    /// Sources and hashes.
    facts: BTreeSet<String>,
    /// Directories, files, repositories and addresses.
    direct_sources: BTreeSet<String>,
    has_hash: bool,
    needs_hash: bool,
}

impl LockedPackage {
    fn new(id: String) -> Self {
        Self {
            id,
            ..Self::default()
        }
    }
}

/// The position of a value in its document.
#[derive(Clone, Copy)]
struct LockfilePosition<'v> {
    key: &'v str,
    is_source: bool,
    is_hash: bool,
}

struct LockReader<'r> {
    rule: LockRule<'r>,
    lines: BTreeSet<String>,
    /// The keys to the current value.
    path: Vec<String>,
    depth: usize,
    is_too_deep: bool,
}

impl<'r> LockReader<'r> {
    fn new(rule: LockRule<'r>) -> Self {
        Self {
            rule,
            lines: BTreeSet::new(),
            path: Vec::new(),
            depth: 0,
            is_too_deep: false,
        }
    }

    /// Returns the lines; none if the lockfile cannot be parsed.
    fn read(mut self, text: &str) -> Option<BTreeSet<String>> {
        match self.rule.format {
            LockFormat::Json => self.add_document(&config_value::from_json(text)?)?,
            LockFormat::JsonWithComments => {
                let plain = text_formats::without_comments(text);
                self.add_document(&config_value::from_json(&plain)?)?;
            }
            LockFormat::Toml => self.add_document(&config_value::from_toml(text)?)?,
            LockFormat::Yaml => self.add_yaml(text)?,
            LockFormat::Yarn => {
                // Yarn 1 also reads YAML: whatever one of the parsers accepts counts.
                let own = text_formats::yarn_entries(text);
                let is_yaml = text.contains("__metadata") && self.add_yaml(text).is_some();
                if own.is_none() && !is_yaml {
                    return None;
                }
                self.add_entries(own.unwrap_or_default());
            }
            LockFormat::Gem => self.add_entries(text_formats::gem_entries(text)?),
            LockFormat::GoSum => self.add_entries(text_formats::go_sum_entries(text)?),
        }
        (!self.is_too_deep).then_some(self.lines)
    }

    fn add_yaml(&mut self, text: &str) -> Option<()> {
        if text.trim().is_empty() {
            return Some(());
        }
        self.add_document(&config_value::from_yaml(text)?)
    }

    fn add_document(&mut self, value: &ConfigValue) -> Option<()> {
        if !matches!(value, ConfigValue::Table(_)) {
            return None;
        }
        let start = LockfilePosition {
            key: "",
            is_source: self.rule.keys.is_empty(),
            is_hash: false,
        };
        self.visit(value, start, None);
        Some(())
    }

    fn add_entries(&mut self, entries: Vec<LockEntry>) {
        for entry in entries {
            let mut package = LockedPackage::new(entry.id);
            for name in entry.names {
                self.add_name(&name, &mut package);
            }
            for (key, value) in entry.values {
                let at = self.position_of(&key, None);
                self.add_text(&value, at, &mut package);
            }
            package.facts.extend(entry.facts);
            self.finish(package);
        }
    }

    fn visit(
        &mut self,
        value: &ConfigValue,
        at: LockfilePosition<'_>,
        around: Option<&mut LockedPackage>,
    ) {
        if self.depth > MAX_DEPTH {
            self.is_too_deep = true;
            return;
        }
        self.depth += 1;
        match value {
            ConfigValue::Table(table) => {
                let own = self.package_of_table(table, at.key);
                self.visit_package(own, around, |reader, mut package| {
                    for (key, value) in table {
                        reader.add_key(key, package.as_deref_mut());
                        // The hash of the list of dependencies, not of a package.
                        if reader.path == ["_meta"] && key == "hash" {
                            continue;
                        }
                        let below = reader.position_of(key, Some(at));
                        reader.path.push(key.clone());
                        reader.visit(value, below, package.as_deref_mut());
                        reader.path.pop();
                    }
                });
            }
            ConfigValue::List(list) => {
                let own = self.package_of_list(list);
                self.visit_package(own, around, |reader, mut package| {
                    for value in list {
                        reader.visit(value, at, package.as_deref_mut());
                    }
                });
            }
            scalar => {
                if let Some(text) = scalar_text(scalar) {
                    match around {
                        Some(package) => self.add_text(&text, at, package),
                        None => self.add_text_without_package(&text, at),
                    }
                }
            }
        }
        self.depth -= 1;
    }

    /// Visits the contents of a package of its own, or of the one around it.
    fn visit_package(
        &mut self,
        own: Option<LockedPackage>,
        around: Option<&mut LockedPackage>,
        visit: impl FnOnce(&mut Self, Option<&mut LockedPackage>),
    ) {
        match own {
            Some(mut package) => {
                visit(self, Some(&mut package));
                self.finish(package);
            }
            None => visit(self, around),
        }
    }

    fn add_key(&mut self, key: &str, package: Option<&mut LockedPackage>) {
        match package {
            Some(package) => self.add_name(key, package),
            None => {
                let mut outside = LockedPackage::default();
                self.add_name(key, &mut outside);
                self.finish(outside);
            }
        }
    }

    /// Adds a text outside of any package: the path to it is its identity.
    fn add_text_without_package(&mut self, text: &str, at: LockfilePosition<'_>) {
        let path: Vec<_> = self.path.iter().map(|key| visible(key)).collect();
        let mut value = LockedPackage::new(path.join("/"));
        self.add_text(text, at, &mut value);
        value.needs_hash = false;
        if !value.facts.is_empty() || !value.direct_sources.is_empty() {
            self.finish(value);
        }
    }

    fn position_of<'v>(
        &self,
        key: &'v str,
        around: Option<LockfilePosition<'_>>,
    ) -> LockfilePosition<'v> {
        let is_hash = HASH_KEYS.contains(&key)
            || key.starts_with("checksum ")
            || around.is_some_and(|around| around.is_hash);
        let is_source = self.rule.keys.is_empty()
            || self.rule.keys.iter().any(|known| known == key)
            || around.is_some_and(|around| around.is_source);
        LockfilePosition {
            key,
            is_source,
            is_hash,
        }
    }

    /// Returns the package that a table describes, if it has a version or is an entry of `packages`.
    fn package_of_table(
        &self,
        table: &BTreeMap<String, ConfigValue>,
        key: &str,
    ) -> Option<LockedPackage> {
        let parent = self.path.len().checked_sub(2).map(|at| &self.path[at]);
        let is_entry = parent.is_some_and(|parent| parent == "packages");
        if self.path.is_empty() {
            return None;
        }
        let text_at = |key: &str| table.get(key).and_then(scalar_text);
        let name = text_at("name").or_else(|| text_at("resolution"));
        let name = visible(name.as_deref().unwrap_or_else(|| package_name(key)));
        let mut package = match text_at("version") {
            Some(version) => LockedPackage::new(format!("{name}@{}", visible(&version))),
            None if is_entry => LockedPackage::new(format!("packages/{name}")),
            None => return None,
        };
        let is_link = table.get("link") == Some(&ConfigValue::Flag(true));
        package.needs_hash = is_entry && key.contains("node_modules/") && !is_link;
        Some(package)
    }

    /// Returns the package that a list of `bun.lock` describes: `["name@version", …]`.
    fn package_of_list(&self, list: &[ConfigValue]) -> Option<LockedPackage> {
        if self.rule.format != LockFormat::JsonWithComments {
            return None;
        }
        let Some(ConfigValue::Text(first)) = list.first() else {
            return None;
        };
        let (_, version) = first.get(1..)?.split_once('@')?;
        let mut package = LockedPackage::new(visible(first));
        if !is_plain_version(version) && version != "root:" {
            package.direct_sources.insert(visible(first));
        }
        let texts = list.iter().skip(1).filter_map(scalar_text);
        package.facts = texts.map(|text| visible(&text)).collect();
        Some(package)
    }

    /// Adds the source in a name such as `a@file:../a`.
    fn add_name(&mut self, name: &str, package: &mut LockedPackage) {
        for word in name.split([',', ' ', '(', ')']) {
            self.add_if_source(word, package);
        }
    }

    fn add_text(&mut self, text: &str, at: LockfilePosition<'_>, package: &mut LockedPackage) {
        if text.is_empty() {
            return;
        }
        if at.is_hash {
            package.has_hash = true;
            package.facts.insert(visible(text));
        } else if at.is_source && self.rule.keys.is_empty() {
            self.add_if_source(text, package);
        } else if at.is_source && VERSION_KEYS.contains(&at.key) {
            if at.key != "version" {
                package.facts.insert(visible(text));
            }
            if !is_plain_version(text) && !self.add_if_source(text, package) && is_path(text) {
                package.direct_sources.insert(visible(text));
            }
        } else if at.is_source && text != "." {
            package.facts.insert(visible(text));
            let is_repository = REPOSITORY_KEYS.contains(&at.key);
            match host(text).filter(|_| !is_repository) {
                _ if self.is_registry(text) => package.needs_hash = true,
                Some(host) => {
                    package.needs_hash = true;
                    self.lines.insert(format!("{SOURCE_LINE}{host}"));
                }
                None => drop(package.direct_sources.insert(visible(text))),
            }
            // Yarn 1 appends the hash.
            package.has_hash |= text.contains('#');
        }
    }

    /// Adds a text if it looks like a source.
    fn add_if_source(&mut self, text: &str, package: &mut LockedPackage) -> bool {
        // `name@git+https://…` and `"name": "file:…"` both end in the source.
        let odd = NON_REGISTRY_PREFIXES.iter().filter_map(|begin| {
            let at = text.find(begin)?;
            let is_begin = at == 0 || text[..at].ends_with(['@', ':', '=']);
            (is_begin && text.len() > at + begin.len()).then_some(&text[at..])
        });
        let odd = odd.max_by_key(|source| source.len());
        if let Some(odd) = odd.filter(|odd| !self.is_registry(odd)) {
            package.direct_sources.insert(visible(odd));
            return true;
        }
        let Some(at) = text.find("https://") else {
            return false;
        };
        let url = &text[at..];
        if self.is_registry(text) || self.is_registry(url) {
            return false;
        }
        match host(url) {
            Some(host) => drop(self.lines.insert(format!("{SOURCE_LINE}{host}"))),
            None => drop(package.direct_sources.insert(visible(url))),
        }
        true
    }

    /// Returns true if a URL is one of a default registry.
    fn is_registry(&self, url: &str) -> bool {
        self.rule.registries.iter().any(|known| {
            let rest = url.strip_prefix(known.as_str());
            rest.is_some_and(|rest| {
                known.ends_with('/') || rest.is_empty() || rest.starts_with(['/', '#', '?'])
            })
        })
    }

    fn finish(&mut self, package: LockedPackage) {
        let facts: Vec<_> = package.facts.into_iter().collect();
        let facts = facts.join(" ");
        for source in package.direct_sources {
            let rest = if facts == source { "" } else { &facts };
            let line = format!("{SOURCE_LINE}{source} {rest}");
            self.lines.insert(line.trim_end().to_owned());
        }
        if package.needs_hash && !package.has_hash && !package.id.is_empty() {
            let id = &package.id;
            let line = format!("{SOURCE_LINE}{id} without the hash of its contents {facts}");
            self.lines.insert(line.trim_end().to_owned());
        }
        if !package.id.is_empty() {
            let line = format!("{PACKAGE_LINE}{} {facts}", package.id);
            self.lines.insert(line.trim_end().to_owned());
        }
    }
}

/// Returns a scalar as text.
fn scalar_text(value: &ConfigValue) -> Option<String> {
    match value {
        ConfigValue::Text(text) => Some(text.clone()),
        ConfigValue::Number(number) => Some(number.to_string()),
        ConfigValue::Flag(_) | ConfigValue::Null | ConfigValue::List(_) | ConfigValue::Table(_) => {
            None
        }
    }
}

/// Returns the name of a package in a path such as `node_modules/a/node_modules/b`.
fn package_name(key: &str) -> &str {
    key.rsplit_once("node_modules/")
        .map_or(key, |(_, name)| name)
}

/// Returns true for versions, ranges and names, which cannot be a path or URL.
fn is_plain_version(text: &str) -> bool {
    let text = match text.split_once("@npm:") {
        Some((name, version)) if !name.contains(':') => version,
        _ => text.strip_prefix("npm:").unwrap_or(text),
    };
    // Peer dependencies: `1.0.0(@types/node@20.0.0)`.
    let text = text.split('(').next().unwrap_or_default();
    let home = text.strip_prefix('~');
    let is_home = home.is_some_and(|rest| rest.starts_with(char::is_alphabetic));
    !text.contains(['/', ':', '\\', '%']) && !text.starts_with('.') && !is_home
}

/// Returns true if a text is a path by itself.
fn is_path(text: &str) -> bool {
    if let Some((_, member)) = text.split_once("workspace:") {
        return !matches!(member, "." | "*" | "^" | "~");
    }
    text.contains(['/', '\\', ':'])
}

/// Returns the address that identifies the source of a URL: its host, or all of it on a host that everybody can use.
/// None if it is no plain URL.
fn host(url: &str) -> Option<String> {
    let url = url
        .strip_prefix("registry+")
        .or(url.strip_prefix("sparse+"))
        .unwrap_or(url);
    let rest = url.strip_prefix("https://")?;
    let host = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let name = host
        .split(':')
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    let is_shared = SHARED_DOMAINS.iter().any(|domain| {
        let rest = name.strip_suffix(domain);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    });
    let is_name = |c: char| c.is_ascii_alphanumeric() || ".-_:[]".contains(c);
    if is_shared || host.is_empty() || !host.chars().all(is_name) {
        return None;
    }
    Some(format!("https://{host}"))
}

/// Returns a text as one word of a line.
pub(super) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_whitespace() || c.is_control() || c == '\\' {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    shown
}
