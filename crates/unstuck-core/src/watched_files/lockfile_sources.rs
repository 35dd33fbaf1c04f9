//! Package sources in a lockfile other than the default registry.
//!
//! Lockfiles are JSON, TOML, YAML or custom formats. All contain URLs and paths, so they are read as text: anything
//! that looks like a source is relevant, wherever it occurs.

use std::collections::BTreeSet;

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
/// Returns the sources other than the default registry, one per line: a directory, a repository or a plain URL verbatim
/// with its content hash, any other URL by its host. Only lines with one of the keys, and lines that begin an entry,
/// are read; all lines if there are no keys.
pub(super) fn non_registry_sources(text: &str, registries: &[String], keys: &[String]) -> String {
    let mut found = BTreeSet::new();
    let lines: Vec<&str> = text.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        let key = key_value(line).map_or("", |(key, _)| key);
        let names_source = keys.is_empty() || keys.iter().any(|known| known == key);
        let begins = line.trim_end().ends_with(':');
        for word in line_words(line).filter(|_| names_source || begins) {
            if let Some(source) = non_registry_source(word, registries) {
                found.insert(with_contents(source, &lines, at));
            } else if names_source && !begins && is_path(word, key) {
                found.insert(word.to_owned());
            }
        }
        if lacks_integrity_hash(&lines, at, registries) {
            let address = line_words(line).find(|word| is_registry(word, registries));
            let address = address.unwrap_or_default();
            found.insert(format!("{address} without the hash of its contents"));
        }
    }
    found.into_iter().map(|line| line + "\n").collect()
}

/// Splits a line at quotes, blanks, commas and brackets.
fn line_words(line: &str) -> impl Iterator<Item = &str> {
    let is_between = |c: char| c.is_whitespace() || "\"',(){}[]<>".contains(c);
    line.split(is_between).filter(|word| !word.is_empty())
}

fn non_registry_source(word: &str, registries: &[String]) -> Option<String> {
    // `name@git+https://…` and `"name": "file:…"` both end in the source.
    let odd = NON_REGISTRY_PREFIXES.iter().filter_map(|begin| {
        let at = word.find(begin)?;
        let is_begin = at == 0 || word[..at].ends_with(['@', ':', '=']);
        (is_begin && word.len() > at + begin.len()).then_some(&word[at..])
    });
    if let Some(odd) = odd.max_by_key(|source| source.len()) {
        let is_usual = registries
            .iter()
            .any(|known| odd.starts_with(known.as_str()));
        return (!is_usual).then(|| odd.to_owned());
    }
    let at = word.find("https://")?;
    if is_registry(word, registries) {
        return None;
    }
    let rest = &word[at + "https://".len()..];
    let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
    Some(format!("https://{host}"))
}

fn is_registry(word: &str, registries: &[String]) -> bool {
    registries.iter().any(|known| word.contains(known.as_str()))
}

/// Adds the hash that follows a file source.
fn with_contents(source: String, lines: &[&str], at: usize) -> String {
    if source.starts_with("https://") {
        return source;
    }
    let hash = lines.get(at + 1).and_then(|line| key_value(line));
    match hash.filter(|(key, _)| *key == "integrity" || *key == "checksum") {
        Some((_, hash)) => format!("{source} {hash}"),
        None => source,
    }
}

/// Parses a key and its value, in any format.
fn key_value(line: &str) -> Option<(&str, &str)> {
    let line = line.trim().trim_end_matches(',');
    let line = line.trim_start_matches(['{', '-', ' ']);
    let (key, value) = line.split_once(['=', ':', ' '])?;
    Some((
        unquoted(key),
        unquoted(value.trim_start_matches(['=', ':', ' '])),
    ))
}

fn unquoted(text: &str) -> &str {
    text.trim().trim_matches(['"', '\''])
}

/// Returns true if a word is a path by itself.
fn is_path(word: &str, key: &str) -> bool {
    let begins = ["./", "../", "/", "~/"]
        .iter()
        .any(|begin| word.starts_with(begin));
    begins || key == "resolved" && word != key && word.contains('/') && !word.contains("://")
}

/// Returns true if a registry package of `package-lock.json` has no integrity hash.
fn lacks_integrity_hash(lines: &[&str], at: usize, registries: &[String]) -> bool {
    let Some(("resolved", address)) = lines[at]
        .trim()
        .starts_with('"')
        .then(|| key_value(lines[at]))
        .flatten()
    else {
        return false;
    };
    let promised = lines.get(at + 1).and_then(|line| key_value(line));
    is_registry(address, registries) && promised.is_none_or(|(key, _)| key != "integrity")
}

#[cfg(test)]
mod tests {
    use super::non_registry_sources;

    fn npm(text: &str) -> String {
        let keys = [
            "resolved",
            "resolution",
            "version",
            "source",
            "url",
            "remote",
        ];
        let registries = ["https://registry.npmjs.org/".to_owned()];
        non_registry_sources(text, &registries, &keys.map(str::to_owned))
    }

    fn entry(resolved: &str) -> String {
        format!(
            "    \"node_modules/a\": {{\n      \"version\": \"1.0.0\",\n      \"resolved\": \"{resolved}\",\n      \"integrity\": \"sha512-x==\"\n    }}\n"
        )
    }

    #[test]
    fn registry_packages_are_ignored() {
        assert_eq!(
            npm(&entry("https://registry.npmjs.org/a/-/a-1.0.0.tgz")),
            ""
        );
        let more = "  \"funding\": {\n    \"link\": \"https://example.com/x\"\n  },\n  \"deprecated\": \"see http://example.com\"\n";
        assert_eq!(npm(more), "");
    }

    #[test]
    fn directories_repositories_and_other_hosts_are_relevant() {
        assert_eq!(
            npm(&entry("file:vendor.tgz")),
            "file:vendor.tgz sha512-x==\n"
        );
        assert_eq!(
            npm(&entry("git+ssh://git@github.com/x/y.git#abc")),
            "git+ssh://git@github.com/x/y.git#abc sha512-x==\n"
        );
        assert_eq!(
            npm(&entry("http://registry.npmjs.org/a/-/a-1.0.0.tgz")),
            "http://registry.npmjs.org/a/-/a-1.0.0.tgz sha512-x==\n"
        );
        assert_eq!(
            npm(&entry("https://npm.example.com/a/-/a-1.0.0.tgz")),
            "https://npm.example.com\n"
        );
        let without = "      \"resolved\": \"https://registry.npmjs.org/a/-/a-1.0.0.tgz\"\n    }\n";
        assert!(npm(without).contains("without the hash"));
    }

    #[test]
    fn every_lockfile_format_is_read() {
        for (text, expected) in [
            ("a@file:../a:\n", "file:../a"),
            (
                "a@^1:\n  version \"1\"\n  resolved \"git+https://example.com/a.git#1\"\n",
                "git+https://example.com/a.git#1",
            ),
            ("\"a@file:../a\":\n  version: 1\n", "file:../a"),
            (
                "    resolution: {tarball: https://evil.example/a.tgz}\n",
                "https://evil.example",
            ),
            (
                "    resolution: {directory: ../a, type: directory}\n",
                "../a",
            ),
            (
                "[package.source]\ntype = \"directory\"\nurl = \"../evil\"\n",
                "../evil",
            ),
            (
                "source = { git = \"https://evil.example/x?rev=1#2\" }\n",
                "https://evil.example",
            ),
            ("source = { directory = \"../evil\" }\n", "../evil"),
            (
                "source = \"git+https://example.com/x#1\"\n",
                "git+https://example.com/x#1",
            ),
            ("  remote: ../evil\n", "../evil"),
        ] {
            let found = npm(text);
            assert!(found.contains(expected), "{text}: {found}");
        }
    }

    #[test]
    fn ordinary_lockfiles_of_other_tools_are_ignored() {
        let cargo = "[[package]]\nname = \"a\"\nversion = \"1\"\nsource = \"registry+https://github.com/rust-lang/crates.io-index\"\nchecksum = \"x\"\ndependencies = [\n \"b\",\n]\n";
        let known = ["registry+https://github.com/rust-lang/crates.io-index".to_owned()];
        assert_eq!(non_registry_sources(cargo, &known, &[]), "");
        let uv = "source = { registry = \"https://pypi.org/simple\" }\nsdist = { url = \"https://files.pythonhosted.org/packages/a.tar.gz\", hash = \"sha256:x\", size = 1 }\n";
        let known = [
            "https://pypi.org/simple".to_owned(),
            "https://files.pythonhosted.org/".to_owned(),
        ];
        assert_eq!(non_registry_sources(uv, &known, &[]), "");
    }
}
