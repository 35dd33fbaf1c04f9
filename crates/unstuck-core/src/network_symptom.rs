//! What a failure's words say about the network: a name that cannot be resolved, or no network at all
//! (`data/network.toml`).
//!
//! Words alone cannot tell a wrong name from a network that is gone; whoever runs the program looks, see
//! [`probe_names`].

use std::sync::LazyLock;

use regex::{Regex, RegexBuilder};
use serde::Deserialize;

/// The line that parts what is known from the samples, which only tests read.
const SAMPLES: &str = "\n# --- samples ---\n";
const FILE: &str = include_str!("../data/network.toml");
/// So much of a text is looked at.
const MAX_TEXT_LEN: usize = 16 << 10;

/// What a failure says about the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NetworkSymptom {
    /// A name could not be resolved; which one, where that is told.
    Unresolved(Option<String>),
    /// No network could be reached.
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

/// A test makes sure that the file can be read; from an unreadable one nothing would be known.
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

/// What a text says about the network; none if it says nothing about it.
///
/// ```
/// use unstuck_core::network::{NetworkSymptom, symptom};
///
/// let said = symptom("curl: (6) Could not resolve host: nosuch.invalid");
/// assert_eq!(said, Some(NetworkSymptom::Unresolved(Some("nosuch.invalid".into()))));
/// assert_eq!(symptom("connect ECONNREFUSED 127.0.0.1:5432"), None);
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
    // The words that tell the name come first.
    if let Some(host) = hosts.next() {
        return Some(NetworkSymptom::Unresolved(host));
    }
    let is_unreachable = KNOWLEDGE.unreachable.iter().any(|one| one.is_match(text));
    is_unreachable.then_some(NetworkSymptom::Unreachable)
}

/// Whether a name is that of a provider or registry, or below it: one that certainly exists.
pub fn is_known_host(host: &str) -> bool {
    KNOWLEDGE.file.known_hosts.iter().any(|known| {
        host.strip_suffix(known.as_str())
            .is_some_and(|before| before.is_empty() || before.ends_with('.'))
    })
}

/// Names that always exist: if none of them can be resolved, no name can.
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
    fn the_file_can_be_read_and_its_samples_hold() {
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
    fn the_names_of_providers_are_known_and_those_that_only_look_like_them_are_not() {
        for host in ["api.anthropic.com", "openai.com", "x.openai.azure.com"] {
            assert!(is_known_host(host), "{host}");
        }
        for host in ["nosuch.invalid", "notopenai.com", "openai.com.evil.example"] {
            assert!(!is_known_host(host), "{host}");
        }
    }
}
