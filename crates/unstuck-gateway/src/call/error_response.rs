//! What a client is told when a call does not work.

use std::time::Duration;

use hyper::StatusCode;
use unstuck_core::Diagnosis;

use super::upstream_error::UpstreamError;
use crate::clock;
use crate::protocol::ErrorDetails;

/// What a client is told when a call does not work.
#[derive(Debug, Clone)]
pub(crate) struct ErrorResponse {
    pub(crate) status: StatusCode,
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) retry_after: Option<Duration>,
    /// Whether the client is to come back with the same request.
    pub(crate) should_come_back: bool,
}

impl ErrorResponse {
    /// What is told of a try that broke.
    pub(crate) fn from_upstream_error(broken: &UpstreamError, diagnosis: &Diagnosis) -> Self {
        Self {
            status: broken.status,
            code: diagnosis.kind.name().to_owned(),
            message: format!("{} (unstuck: {})", broken.message, diagnosis.kind.name()),
            retry_after: diagnosis.retry_after,
            should_come_back: false,
        }
    }

    /// The same in the words of the protocols.
    pub(crate) fn details(&self) -> ErrorDetails<'_> {
        ErrorDetails {
            status: self.status.as_u16(),
            code: &self.code,
            message: &self.message,
            retry_after: self.retry_after,
            reset_at: self
                .retry_after
                .map(|wait| clock::timestamp_now().after(wait)),
        }
    }
}
