//! Network symptoms in a failure's text: an unresolved name, or an unreachable network (`data/network.toml`).
//!
//! Text alone cannot distinguish a wrong name from a lost network; the runner probes the network, see [`probe_names`].

use std::sync::LazyLock;

use regex::{Regex, RegexBuilder};
use serde::Deserialize;

/// The line that separates the definitions from the samples, which only tests read.
const SAMPLES: &str = "\n# --- samples ---\n";
const FILE: &str = include_str!("../data/network.toml");
/// Maximum number of bytes of a text examined.
const MAX_TEXT_LEN: usize = 16 << 10;

/// A network symptom of a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NetworkSymptom {
    /// A name could not be resolved; the name, if stated.
    Unresolved(Option<String>),
    /// No network is reachable.
    Unreachable,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct NetworkFile {
    unresolved: Vec<String>,
    unreachable: Vec<String>,
    known_hosts: Vec<String>,
    probe_names: Vec<String>,
}

#[derive(Debug, Default)]
struct NetworkKnowledge {
    unresolved: Vec<Regex>,
    unreachable: Vec<Regex>,
    file: NetworkFile,
}

/// A test ensures that the file is valid; an invalid one would provide no knowledge.
static KNOWLEDGE: LazyLock<NetworkKnowledge> = LazyLock::new(|| {
    let (known, _) = FILE.split_once(SAMPLES).unwrap_or((FILE, ""));
    let file: NetworkFile = toml::from_str(known).unwrap_or_default();
    let read = |sources: &[String]| {
        let regex = |source: &String| RegexBuilder::new(source).case_insensitive(true).build();
        sources
            .iter()
            .filter_map(|source| regex(source).ok())
            .collect()
    };
    NetworkKnowledge {
        unresolved: read(&file.unresolved),
        unreachable: read(&file.unreachable),
        file,
    }
});

/// Returns the network symptom in a text, if any.
///
/// ```
/// use unstuck_core::network_symptom::{NetworkSymptom, find_symptom};
///
/// let found = find_symptom("curl: (6) Could not resolve host: nosuch.invalid");
/// assert_eq!(found, Some(NetworkSymptom::Unresolved(Some("nosuch.invalid".into()))));
/// assert_eq!(find_symptom("connect ECONNREFUSED 127.0.0.1:5432"), None);
/// ```
pub fn find_symptom(text: &str) -> Option<NetworkSymptom> {
    let start = text.len().saturating_sub(MAX_TEXT_LEN);
    let text = &text[text.ceil_char_boundary(start)..];
    let found = |regex: &Regex| {
        let found = regex.captures(text)?;
        let host = found.name("host").map(|host| host.as_str().to_owned());
        Some(host.map(|host| host.trim_matches('.').to_lowercase()))
    };
    let mut hosts = KNOWLEDGE.unresolved.iter().filter_map(found);
    // Patterns that capture the name come first.
    if let Some(host) = hosts.next() {
        return Some(NetworkSymptom::Unresolved(host));
    }
    let is_unreachable = KNOWLEDGE.unreachable.iter().any(|one| one.is_match(text));
    is_unreachable.then_some(NetworkSymptom::Unreachable)
}

/// Returns true if a host belongs to a provider or registry, so it certainly exists.
pub fn is_known_host(host: &str) -> bool {
    KNOWLEDGE.file.known_hosts.iter().any(|known| {
        host.strip_suffix(known.as_str())
            .is_some_and(|before| before.is_empty() || before.ends_with('.'))
    })
}

/// Returns names that always exist: if none of them resolves, no name does.
pub fn probe_names() -> &'static [String] {
    &KNOWLEDGE.file.probe_names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct Samples {
        sample: Vec<Sample>,
    }

    #[derive(Deserialize)]
    struct Sample {
        text: String,
        host: Option<String>,
        is: Option<String>,
    }

    #[test]
    fn file_is_valid_and_its_samples_hold() {
        let (known, samples) = FILE.split_once(SAMPLES).unwrap();
        let file: NetworkFile = toml::from_str(known).unwrap();
        assert_eq!(KNOWLEDGE.unresolved.len(), file.unresolved.len());
        assert_eq!(KNOWLEDGE.unreachable.len(), file.unreachable.len());
        let samples: Samples = toml::from_str(samples).unwrap();
        for one in samples.sample {
            let expected = match (one.host, one.is.as_deref()) {
                (Some(host), None) => Some(NetworkSymptom::Unresolved(Some(host))),
                (None, Some("unresolved")) => Some(NetworkSymptom::Unresolved(None)),
                (None, Some("unreachable")) => Some(NetworkSymptom::Unreachable),
                (None, None) => None,
                other => panic!("{other:?}"),
            };
            assert_eq!(find_symptom(&one.text), expected, "{}", one.text);
        }
    }

    #[test]
    fn provider_names_are_known_and_lookalikes_are_not() {
        for host in ["api.anthropic.com", "openai.com", "x.openai.azure.com"] {
            assert!(is_known_host(host), "{host}");
        }
        for host in ["nosuch.invalid", "notopenai.com", "openai.com.evil.example"] {
            assert!(!is_known_host(host), "{host}");
        }
    }
}
