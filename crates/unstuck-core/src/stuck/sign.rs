//! What shows that an agent is stuck, and what that comes to as a diagnosis.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::data::Data;
use crate::diagnosis::{Diagnosis, Evidence, fingerprint};
use crate::failure::{Kind, Layer};
use crate::knowledge::Knowledge;
use crate::moment::Timestamp;

/// A longer text is cut to so many characters before it is shown.
const SHORT: usize = 160;

/// In which way an agent is stuck.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StuckWhat {
    /// It writes the same again and again.
    RepeatingOutput,
    /// It says the same again and again, and does nothing new.
    RepeatingMessage,
    /// It makes the same call again and again, which fails each time in the same way.
    RepeatingAction,
    /// It makes ever other calls that all fail in the same way.
    RepeatingError,
    /// It makes the same call again and again, and learns nothing new from it.
    RepeatingResult,
    /// It waits for an answer that nobody will give.
    WaitingForInput,
    /// It ended with a question instead of the work.
    AsksBack,
    /// The same failure came again and again while nothing changed.
    SameFailure,
    /// Nothing fails and nothing changes.
    NoChange,
    /// What one did another undid.
    Undoing,
}

impl StuckWhat {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::RepeatingOutput,
        Self::RepeatingMessage,
        Self::RepeatingAction,
        Self::RepeatingError,
        Self::RepeatingResult,
        Self::WaitingForInput,
        Self::AsksBack,
        Self::SameFailure,
        Self::NoChange,
        Self::Undoing,
    ];

    /// The name used on every wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RepeatingOutput => "repeating_output",
            Self::RepeatingMessage => "repeating_message",
            Self::RepeatingAction => "repeating_action",
            Self::RepeatingError => "repeating_error",
            Self::RepeatingResult => "repeating_result",
            Self::WaitingForInput => "waiting_for_input",
            Self::AsksBack => "asks_back",
            Self::SameFailure => "same_failure",
            Self::NoChange => "no_change",
            Self::Undoing => "undoing",
        }
    }
}

impl fmt::Display for StuckWhat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What shows that an agent is stuck. Shown, it is a sentence about "it", the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StuckSign {
    /// In which way it is stuck.
    pub what: StuckWhat,
    /// How often it was seen.
    pub times: u32,
    /// What was repeated, short: the call, the text, the question, the failure.
    pub repeated: String,
    /// What came of it each time, short; empty if that is all the same.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub result: String,
    /// When it was seen for the first time, where attempts or iterations were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
}

impl StuckSign {
    pub(super) fn new(what: StuckWhat, times: u32, repeated: &str, result: &str) -> Self {
        Self {
            what,
            times,
            repeated: short(repeated),
            result: short(result),
            since: None,
        }
    }

    pub(super) fn since(self, since: Timestamp) -> Self {
        Self {
            since: Some(since),
            ..self
        }
    }

    /// The diagnosis: [`Kind::Stuck`], certain, with the sentence as its evidence. The same repetition has the same
    /// fingerprint, however often it was seen.
    pub fn diagnosis(&self) -> Diagnosis {
        let known = Knowledge::built_in().kind(Kind::Stuck);
        let rule = format!("{}.{}", Kind::Stuck, self.what);
        let thing = format!("{} {}", self.repeated, self.result);
        let line = self.to_string();
        Diagnosis {
            kind: Kind::Stuck,
            layer: Layer::Agent,
            level: known.level(Kind::Stuck, Layer::Agent),
            confidence: 1.0,
            retry_after: None,
            fingerprint: fingerprint(Kind::Stuck, &rule, &thing, 0),
            message: format!("{}: {line}", known.title),
            hint: Data::built_in().words(self.what).hint.clone(),
            truncated: false,
            evidence: Evidence { rule, line },
        }
    }
}

impl fmt::Display for StuckSign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let says = &Data::built_in().words(self.what).says;
        let sentence = says
            .replace("{times}", &self.times.to_string())
            .replace("{repeated}", &self.repeated);
        f.write_str(&sentence)?;
        match &*self.result {
            "" => Ok(()),
            result => write!(f, ": {result}"),
        }
    }
}

/// A text on one line, cut where it is long.
pub(super) fn short(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match text.char_indices().nth(SHORT) {
        Some((at, _)) => format!("{}…", text[..at].trim_end()),
        None => text,
    }
}
