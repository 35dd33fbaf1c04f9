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

/// Reads a variable of the environment: secrets come from there alone.
pub type EnvironmentReader = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// What the receiver answered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReceiverResponse {
    /// In a few words: `200 OK`.
    pub status: String,
    /// The beginning of what came with it.
    pub excerpt: String,
}

/// Why a message did not arrive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendError {
    /// Why, without secrets.
    pub reason: String,
    /// The beginning of what the receiver said.
    pub excerpt: String,
    /// Whether it may arrive later.
    pub retryable: Retryable,
}

/// Whether a message may arrive later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retryable {
    /// It never will.
    Never,
    /// It may, not earlier than after the stated time.
    After(Option<Duration>),
}

impl SendError {
    fn permanent(why: impl Into<String>) -> Self {
        Self::new(why, Retryable::Never)
    }

    fn temporary(why: impl Into<String>) -> Self {
        Self::new(why, Retryable::After(None))
    }

    /// Another version of unstuck may send it.
    pub(crate) fn unreadable(why: &str) -> Self {
        Self::temporary(why)
    }

    fn new(why: impl Into<String>, retryable: Retryable) -> Self {
        Self {
            reason: why.into(),
            excerpt: String::new(),
            retryable,
        }
    }
}

/// Sends messages.
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
    /// Sends with the secrets of this environment.
    pub fn new(environment: EnvironmentReader) -> Self {
        Self { environment }
    }

    /// Sends a message to a target, once.
    pub async fn send(
        &self,
        target: &NotificationTarget,
        message: &NotificationMessage,
        now: Timestamp,
    ) -> Result<ReceiverResponse, SendError> {
        match target {
            NotificationTarget::Address(address) => {
                let request = http::request(address, message, &*self.environment, now)?;
                http::post(request, address).await
            }
            NotificationTarget::Command(line) => {
                command::run_command(line, message, &json(message)).await
            }
            NotificationTarget::Desktop => {
                let path = (self.environment)("PATH").unwrap_or_default();
                command::show_on_desktop(message, &path, now).await
            }
        }
    }
}
