//! What a person or an agent should know about a failure at one look: fixes, retries, message.

use serde::Serialize;

use crate::diagnosis::Diagnosis;
use crate::failure::{Category, Kind, Layer};
use crate::knowledge::{Change, Playbook};

/// How a kind of failure is recovered from in a layer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RecoveryRule {
    /// The kind.
    pub kind: Kind,
    /// How many retries it gets; none means as many as the policy says.
    pub retries: Option<u32>,
    /// What the wait before the n-th retry is multiplied by; 1 by default.
    pub backoff_multiplier: f64,
    /// What the first strategy of its chain changes.
    pub changes: Vec<Change>,
    /// Whether a checkpoint is kept from which the run goes on later.
    pub resumes: bool,
}

/// What to say about a failure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Advice {
    /// One sentence for a person.
    pub message: String,
    /// What can be done about it, the most promising first.
    pub fixes: Vec<String>,
    /// How it is recovered from.
    pub rule: RecoveryRule,
}

/// Looks up how a kind is recovered from in a layer.
///
/// ```
/// use unstuck_core::action::recovery_rule;
/// use unstuck_core::knowledge::Playbook;
/// use unstuck_core::{Kind, Layer};
///
/// let timeout = recovery_rule(Playbook::built_in(), Kind::Timeout, Layer::Agent);
/// assert_eq!((timeout.retries, timeout.backoff_multiplier), (Some(2), 1.5));
/// ```
pub fn recovery_rule(playbook: &Playbook, kind: Kind, layer: Layer) -> RecoveryRule {
    let defaults = playbook.kind(kind).map(|file| file.defaults(layer).clone());
    let defaults = defaults.unwrap_or_default();
    let first = playbook.chain(kind, layer).next();
    let first = first.and_then(|link| playbook.strategy(&link.strategy));
    RecoveryRule {
        kind,
        retries: defaults.retries,
        backoff_multiplier: defaults.backoff_multiplier.unwrap_or(1.0),
        changes: first
            .map(|strategy| strategy.changes.clone())
            .unwrap_or_default(),
        resumes: !matches!(kind.category(), Category::Unknown | Category::None),
    }
}

/// Says what can be done about a diagnosed failure.
pub fn advice(playbook: &Playbook, diagnosis: &Diagnosis) -> Advice {
    let file = playbook.kind(diagnosis.kind);
    let hint = file
        .map(|file| file.hint_in(diagnosis.layer).to_owned())
        .filter(|hint| !hint.is_empty());
    let chain = playbook.chain(diagnosis.kind, diagnosis.layer);
    let titles = chain.filter_map(|link| Some(playbook.strategy(&link.strategy)?.title.clone()));
    let message = match diagnosis.message.trim() {
        "" => file.map_or_else(
            || diagnosis.kind.name().to_owned(),
            |file| file.title.clone(),
        ),
        message => message.to_owned(),
    };
    Advice {
        message,
        fixes: hint.into_iter().chain(titles).collect(),
        rule: recovery_rule(playbook, diagnosis.kind, diagnosis.layer),
    }
}
