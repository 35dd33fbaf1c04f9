//! Remote URLs: their parts, the tarball of a repository, and mirrors.

use minijinja::{Environment, context};
use regex::Regex;

use crate::knowledge::ForgesAndMirrors;

/// A parsed remote URL, without user name or key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RemoteUrl {
    /// The URL as written.
    pub(crate) text: String,
    /// The host, with its port.
    pub(crate) host: String,
    /// The path without leading and trailing slashes, and without query.
    pub(crate) path: String,
}

impl RemoteUrl {
    /// Parses `https://host/path`, `ssh://git@host/path` and `git@host:path`.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        let schemes = ["https://", "http://", "ssh://", "git://"];
        let after = schemes.iter().find_map(|scheme| word.strip_prefix(scheme));
        let (host, path) = match after {
            Some(rest) => rest.split_once('/').unwrap_or((rest, "")),
            None => word.strip_prefix("git@")?.split_once(':')?,
        };
        let host = host.rsplit('@').next().unwrap_or(host);
        let known = |c: char| c.is_ascii_alphanumeric() || ".-:[]".contains(c);
        if host.is_empty() || !host.chars().all(known) {
            return None;
        }
        let path = path.split(['?', '#']).next().unwrap_or_default();
        Some(Self {
            text: word.to_owned(),
            host: host.to_owned(),
            path: path.trim_matches('/').to_owned(),
        })
    }

    /// Returns the first URL among words.
    pub(crate) fn first_in<'a>(words: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        words.into_iter().find_map(Self::parse)
    }

    /// Returns the last segment of the path.
    pub(crate) fn last_segment(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// Returns the name of the repository.
    pub(crate) fn repository_name(&self) -> &str {
        self.last_segment().trim_end_matches(".git")
    }

    /// Returns the forge's tarball URL of a branch.
    pub(crate) fn archive_url(&self, hosts: &ForgesAndMirrors, branch: &str) -> Option<String> {
        let forge = hosts.forge.iter().find(|forge| {
            forge.hosts.is_empty() || forge.hosts.iter().any(|part| self.host.contains(part))
        })?;
        let values = context! {
            host => self.host.as_str(), path => self.path.trim_end_matches(".git"),
            repo => self.repository_name(), branch,
        };
        Environment::new().render_str(&forge.archive, values).ok()
    }

    /// Returns other URLs of the same content.
    pub(crate) fn mirrors(&self, hosts: &ForgesAndMirrors) -> Vec<String> {
        let found = hosts.mirror.iter().filter_map(|mirror| {
            let from = Regex::new(&mirror.from).ok()?;
            from.is_match(&self.text)
                .then(|| from.replace(&self.text, &mirror.to).into_owned())
        });
        found.filter(|url| is_quote_safe(url)).collect()
    }
}

/// True if a URL can be used in a command with or without quotes.
fn is_quote_safe(url: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._~:/@%+=,".contains(c);
    url.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knowledge::RecoveryKnowledge;

    #[test]
    fn each_forge_has_its_own_tarball_urls() {
        let hosts = RecoveryKnowledge::built_in().hosts.clone();
        let archive = |url: &str| {
            RemoteUrl::parse(url)
                .unwrap()
                .archive_url(&hosts, "main")
                .unwrap()
        };
        for (url, tarball) in [
            (
                "https://github.com/u/r",
                "https://github.com/u/r/archive/refs/heads/main.tar.gz",
            ),
            (
                "git@github.com:u/r.git",
                "https://github.com/u/r/archive/refs/heads/main.tar.gz",
            ),
            (
                "https://gitlab.com/g/s/r.git",
                "https://gitlab.com/g/s/r/-/archive/main/r-main.tar.gz",
            ),
            (
                "https://bitbucket.org/u/r",
                "https://bitbucket.org/u/r/get/main.tar.gz",
            ),
            (
                "https://codeberg.org/u/r",
                "https://codeberg.org/u/r/archive/main.tar.gz",
            ),
            (
                "https://git.example.org/u/r",
                "https://git.example.org/u/r/archive/refs/heads/main.tar.gz",
            ),
        ] {
            assert_eq!(archive(url), tarball);
        }
    }

    #[test]
    fn a_key_in_a_url_is_removed() {
        let link = RemoteUrl::parse("https://user:key@github.com/u/r").unwrap();
        assert_eq!(
            (link.host.as_str(), link.path.as_str()),
            ("github.com", "u/r")
        );
        assert_eq!(RemoteUrl::parse("https://$(id)/x"), None);
    }

    #[test]
    fn mirrors_exist_for_common_downloads() {
        let hosts = RecoveryKnowledge::built_in().hosts.clone();
        let mirrors = |url: &str| RemoteUrl::parse(url).unwrap().mirrors(&hosts);
        assert_eq!(
            mirrors("https://raw.githubusercontent.com/u/r/main/a/b.sh"),
            ["https://cdn.jsdelivr.net/gh/u/r@main/a/b.sh"]
        );
        assert_eq!(
            mirrors("https://github.com/u/r/archive/refs/heads/main.tar.gz"),
            ["https://codeload.github.com/u/r/tar.gz/main"]
        );
        assert_eq!(
            mirrors("https://registry.npmjs.org/left-pad"),
            ["https://registry.yarnpkg.com/left-pad"]
        );
        for mirror in &hosts.mirror {
            assert!(Regex::new(&mirror.from).is_ok(), "{}", mirror.from);
        }
    }
}
