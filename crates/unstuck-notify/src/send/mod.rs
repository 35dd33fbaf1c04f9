//! Sends one message to one target, once.

mod address_filter;
mod command;
mod http;

pub use address_filter::is_private;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use unstuck_core::Timestamp;

use crate::format::json;
use crate::message::NotificationMessage;
use crate::target::NotificationTarget;

/// Reads an environment variable; secrets only come from the environment.
pub type EnvironmentReader = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// The response of a receiver.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeliveryTargetReply {
    /// The status, such as `200 OK`.
    pub status: String,
    /// The beginning of the body.
    pub excerpt: String,
}

/// A failed delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotificationSendError {
    /// The reason, without secrets.
    pub reason: String,
    /// The beginning of the receiver's response.
    pub excerpt: String,
    /// The retry advice.
    pub retryable: DeliveryRetryAdvice,
}

/// The retry advice for a failed delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeliveryRetryAdvice {
    /// Do not retry.
    Never,
    /// Retry, not earlier than after the stated time.
    After(Option<Duration>),
}

impl NotificationSendError {
    fn permanent(why: impl Into<String>) -> Self {
        Self::new(why, DeliveryRetryAdvice::Never)
    }

    fn temporary(why: impl Into<String>) -> Self {
        Self::new(why, DeliveryRetryAdvice::After(None))
    }

    /// Returns the error for an unreadable message; another version of unstuck may be able to send it.
    pub(crate) fn unreadable(why: &str) -> Self {
        Self::temporary(why)
    }

    fn new(why: impl Into<String>, retryable: DeliveryRetryAdvice) -> Self {
        Self {
            reason: why.into(),
            excerpt: String::new(),
            retryable,
        }
    }
}

/// Sends notification messages to their targets.
#[derive(Clone)]
pub struct MessageSender {
    environment: EnvironmentReader,
}

impl fmt::Debug for MessageSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sender(..)")
    }
}

impl MessageSender {
    /// Returns a sender that reads secrets from this environment.
    pub fn new(environment: EnvironmentReader) -> Self {
        Self { environment }
    }

    /// Sends a message to a target, once.
    pub async fn send(
        &self,
        target: &NotificationTarget,
        message: &NotificationMessage,
        now: Timestamp,
    ) -> Result<DeliveryTargetReply, NotificationSendError> {
        match target {
            NotificationTarget::Address(address) => {
                let request = http::request(address, message, &*self.environment, now)?;
                http::post(request, address).await
            }
            NotificationTarget::Command(line) => {
                let path = (self.environment)("PATH");
                command::run_command(line, message, &json(message), path.as_deref()).await
            }
            NotificationTarget::Desktop => {
                let path = (self.environment)("PATH").unwrap_or_default();
                command::show_on_desktop(message, &path, now).await
            }
        }
    }
}
