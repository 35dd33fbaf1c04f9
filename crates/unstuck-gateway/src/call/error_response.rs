//! The error response of a failed call.

use std::time::Duration;

use hyper::StatusCode;
use unstuck_core::Diagnosis;

use super::upstream_error::UpstreamError;
use crate::protocol::ErrorDetails;
use crate::system_clock;

/// The error response of a failed call.
#[derive(Debug, Clone)]
pub(crate) struct ErrorResponse {
    pub(crate) status: StatusCode,
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) retry_after: Option<Duration>,
    /// If set, the client should send the same request again.
    pub(crate) should_come_back: bool,
}

impl ErrorResponse {
    /// Builds the response for a failed attempt.
    pub(crate) fn from_upstream_error(broken: &UpstreamError, diagnosis: &Diagnosis) -> Self {
        Self {
            status: broken.status,
            code: diagnosis.kind.name().to_owned(),
            message: format!("{} (unstuck: {})", broken.message, diagnosis.kind.name()),
            retry_after: diagnosis.retry_after,
            should_come_back: false,
        }
    }

    /// Returns the details in the form that the protocols use.
    pub(crate) fn details(&self) -> ErrorDetails<'_> {
        ErrorDetails {
            status: self.status.as_u16(),
            code: &self.code,
            message: &self.message,
            retry_after: self.retry_after,
            reset_at: self
                .retry_after
                .map(|wait| system_clock::timestamp_now().after(wait)),
        }
    }
}
