//! Events about calls of LLM APIs that did not simply work.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::id::SessionId;
use crate::decision::Decision;
use crate::diagnosis::{Diagnosis, RetryAfterSource};
use crate::failure::Kind;
use crate::time::Timestamp;

/// One try of a call failed, and it was decided what to do about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallFailed {
    /// The session that it belongs to.
    pub session: SessionId,
    /// The call.
    pub call: String,
    /// The number of the try, from 1.
    pub number: u32,
    /// Who was asked.
    pub upstream: String,
    /// The model that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The HTTP status, where there was an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// What it was found to be.
    pub diagnosis: Diagnosis,
    /// What was decided about it.
    pub decision: Decision,
    /// Who is asked instead from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
    /// Who could have been asked instead and was not, in the order in which they were looked at.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "passed_over")]
    pub skipped_upstreams: Vec<SkippedUpstream>,
    /// The fingerprint of the policy that it was decided by.
    pub policy_hash: String,
    /// The agent's own id of the conversation that it belongs to, where its requests name one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
}

/// A call waits for its turn without having failed just now: for a limit that others met, or for a probe that all who wait share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallHeld {
    /// The session that it belongs to.
    pub session: SessionId,
    /// The call.
    pub call: String,
    /// When it is sent, as far as is known.
    pub until: Timestamp,
    /// The failure that is waited out.
    pub kind: Kind,
    /// Where the end of the wait is known from.
    pub source: RetryAfterSource,
}

/// A call that waited is sent now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallResumed {
    /// The session that it belongs to.
    pub session: SessionId,
    /// The call.
    pub call: String,
}

/// Somebody who could have been asked instead and was not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedUpstream {
    /// Who.
    pub upstream: String,
    /// What the model is called there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Why not; completes "it is not asked: …".
    pub why: String,
}

impl fmt::Display for SkippedUpstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.upstream)?;
        if let Some(model) = &self.model {
            write!(f, " ({model})")?;
        }
        write!(f, " is not asked instead: {}", self.why)
    }
}
