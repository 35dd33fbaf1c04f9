//! Sends one message to one target, once.

mod command;
mod http;
mod reach;

pub use reach::is_private;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use unstuck_core::Timestamp;

use crate::format::json;
use crate::message::Message;
use crate::target::Target;

/// Reads a variable of the environment: secrets come from there alone.
pub type Environment = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// What the receiver answered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Answer {
    /// In a few words: `200 OK`.
    pub status: String,
    /// The beginning of what came with it.
    pub said: String,
}

/// Why a message did not arrive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendError {
    /// Why, without secrets.
    pub why: String,
    /// The beginning of what the receiver said.
    pub said: String,
    /// Whether it may arrive later.
    pub again: Again,
}

/// Whether a message may arrive later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// It never will.
    Never,
    /// It may, not earlier than after the stated time.
    After(Option<Duration>),
}

impl SendError {
    fn never(why: impl Into<String>) -> Self {
        Self::new(why, Again::Never)
    }

    fn later(why: impl Into<String>) -> Self {
        Self::new(why, Again::After(None))
    }

    /// Another version of unstuck may send it.
    pub(crate) fn unreadable(why: &str) -> Self {
        Self::later(why)
    }

    fn new(why: impl Into<String>, again: Again) -> Self {
        Self {
            why: why.into(),
            said: String::new(),
            again,
        }
    }
}

/// Sends messages.
#[derive(Clone)]
pub struct Sender {
    environment: Environment,
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sender(..)")
    }
}

impl Sender {
    /// Sends with the secrets of this environment.
    pub fn new(environment: Environment) -> Self {
        Self { environment }
    }

    /// Sends a message to a target, once.
    pub async fn send(
        &self,
        target: &Target,
        message: &Message,
        now: Timestamp,
    ) -> Result<Answer, SendError> {
        match target {
            Target::Address(address) => {
                let request = http::request(address, message, &*self.environment, now)?;
                http::post(request, address).await
            }
            Target::Command(line) => command::run(line, message, &json(message)).await,
            Target::Desktop => {
                let path = (self.environment)("PATH").unwrap_or_default();
                command::show(message, &path, now).await
            }
        }
    }
}
