//! What is worth telling an owner about rules that can be read, but may not mean what they seem to.

use super::characters::{hidden_in_command, trimmed};
use super::programs::Programs;
use super::rules::{OnUnknown, Rules};
use super::script::Script;
use super::show::{holds_secret, show_command};

/// Something in the rules that may not be meant as it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RulesWarning {
    /// The key, such as `auto_approve`.
    pub key: &'static str,
    /// What may not be meant.
    pub says: String,
}

impl Rules {
    /// What may not be meant as it stands. Nothing of it changes a verdict.
    pub fn warnings(&self) -> Vec<RulesWarning> {
        let entries = self.auto_approve.iter().map(|entry| trimmed(entry));
        let about = entries.filter_map(about_entry).map(|says| RulesWarning {
            key: "auto_approve",
            says,
        });
        let mut warnings: Vec<_> = about.collect();
        if self.on_unknown == OnUnknown::Allow {
            warnings.push(RulesWarning {
                key: "on_unknown",
                says: "lets plain commands run although nobody listed them".to_owned(),
            });
        }
        warnings
    }
}

fn about_entry(entry: &str) -> Option<String> {
    let shown = show_command(entry);
    if hidden_in_command(entry).is_some() {
        return Some(format!(
            "has `{shown}`, which no proposal can ask for: it contains a character that cannot be seen"
        ));
    }
    if entry.contains(['*', '?', '[']) {
        return Some(format!(
            "has `{shown}`: only this very text is approved, `*` stands for nothing else there"
        ));
    }
    if holds_secret(entry) {
        return Some(format!(
            "has `{shown}`: put the secret into the environment and name it in env_keep"
        ));
    }
    let Script::Plain(commands) = Script::of(entry) else {
        return None;
    };
    let starts = |words: &Vec<String>| {
        let words: Vec<_> = words.iter().map(String::as_str).collect();
        Programs::built_in().operands(&words).is_some()
    };
    commands.iter().any(starts).then(|| {
        format!("has `{shown}`: whoever can write the files that it runs decides what it does")
    })
}
