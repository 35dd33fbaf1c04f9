//! What a client is told when a call does not work.

use std::time::Duration;

use hyper::StatusCode;
use unstuck_core::Diagnosis;

use super::broken::Broken;
use crate::clock;
use crate::protocol::Trouble;

/// What a client is told when a call does not work.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub(crate) status: StatusCode,
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) retry_after: Option<Duration>,
    /// Whether the client is to come back with the same request.
    pub(crate) comes_back: bool,
}

impl Told {
    /// What is told of a try that broke.
    pub(crate) fn of(broken: &Broken, diagnosis: &Diagnosis) -> Self {
        Self {
            status: broken.status,
            code: diagnosis.kind.name().to_owned(),
            message: format!("{} (unstuck: {})", broken.message, diagnosis.kind.name()),
            retry_after: diagnosis.retry_after,
            comes_back: false,
        }
    }

    /// The same in the words of the protocols.
    pub(crate) fn told(&self) -> Trouble<'_> {
        Trouble {
            status: self.status.as_u16(),
            code: &self.code,
            message: &self.message,
            retry_after: self.retry_after,
            reset_at: self.retry_after.map(|wait| clock::at().after(wait)),
        }
    }
}
