//! Events about API calls that needed recovery.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::run_ids::SessionId;
use crate::decision::Decision;
use crate::diagnosis::{Diagnosis, RetryAfterSource};
use crate::failure::FailureKind;
use crate::time::Timestamp;

/// An API attempt failed, and a decision was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallFailed {
    /// The session of the call.
    pub session: SessionId,
    /// The id of the call.
    pub call: String,
    /// The number of the API attempt, from 1.
    pub number: u32,
    /// The upstream.
    pub upstream: String,
    /// The requested model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The HTTP status, if there was a response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The diagnosis of the failure.
    pub diagnosis: Diagnosis,
    /// The decision about it.
    pub decision: Decision,
    /// The upstream used from now on instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
    /// The fallback upstreams that were skipped, in the order considered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "skipped", alias = "passed_over")]
    pub skipped_upstreams: Vec<SkippedUpstream>,
    /// The fingerprint of the policy used for the decision.
    pub policy_hash: String,
    /// The agent's own conversation id, if its requests name one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
}

/// A call waits without a failure of its own: for a limit that other calls met, or for a shared probe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallHeld {
    /// The session of the call.
    pub session: SessionId,
    /// The id of the call.
    pub call: String,
    /// The expected time of sending.
    pub until: Timestamp,
    /// The failure kind that is waited out.
    pub kind: FailureKind,
    /// The source of the end of the wait.
    pub source: RetryAfterSource,
}

/// A held call is sent now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallResumed {
    /// The session of the call.
    pub session: SessionId,
    /// The id of the call.
    pub call: String,
}

/// A fallback upstream that was skipped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedUpstream {
    /// The upstream.
    pub upstream: String,
    /// The name of the model at that upstream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The reason; completes "it is not asked: …".
    #[serde(rename = "reason", alias = "why")]
    pub why: String,
}

impl fmt::Display for SkippedUpstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.upstream)?;
        if let Some(model) = &self.model {
            write!(f, " ({model})")?;
        }
        write!(f, " was skipped: {}", self.why)
    }
}
