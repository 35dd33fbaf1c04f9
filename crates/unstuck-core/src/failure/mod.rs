//! Stage 1: raw observations.
//!
//! A [`Failure`] is data about an event at an agent, never an `Err` of unstuck itself. It does not state the kind of
//! failure: that is the [diagnosis](crate::diagnosis).

mod failure_input;
mod headers;
mod kind;
mod lossy_text;
mod recovery_level;

pub use failure_input::{FailureInputRecord, signal_number};
pub use headers::Headers;
pub use kind::{Category, FailureKind, UnknownFailureKind};
pub use lossy_text::LossyText;
pub use recovery_level::RecoveryLevel;

use serde::{Deserialize, Serialize};

/// The layer where a failure was observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureLayer {
    /// An LLM API response or transport error.
    Api,
    /// A command or tool call.
    Tool,
    /// An agent process and its output.
    Agent,
    /// The environment: a test or build run.
    Infra,
}

impl FailureLayer {
    /// The wire name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Tool => "tool",
            Self::Agent => "agent",
            Self::Infra => "infra",
        }
    }
}

/// The observations about a failure, or a possible one.
///
/// A text that is `None` is unknown; an empty one is known to be empty.
///
/// ```
/// use unstuck_core::Failure;
///
/// let refused = Failure::api("anthropic").with_status(529).with_body("Overloaded");
/// let crashed = Failure::agent("claude").with_exit_code(139).with_stderr("Segmentation fault");
/// assert_eq!(refused.status, Some(529));
/// assert_eq!(crashed.exit_code, Some(139));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The layer where it was observed.
    pub layer: FailureLayer,
    /// The LLM provider, if known to be involved.
    pub provider: Option<String>,
    /// The name of the tool or agent.
    pub tool: Option<String>,
    /// The command line that was run.
    pub command: Option<String>,
    /// The HTTP status.
    pub status: Option<u16>,
    /// The HTTP headers of the response.
    pub headers: Headers,
    /// The body of the response, the events of its stream, or the text of the transport error.
    pub body: Option<LossyText>,
    /// The exit code of the process.
    pub exit_code: Option<i32>,
    /// The signal that ended the process.
    pub signal: Option<i32>,
    /// True if the supervisor stopped it at its time limit.
    pub timed_out: bool,
    /// The stdout of the process.
    pub stdout: Option<LossyText>,
    /// The stderr of the process.
    pub stderr: Option<LossyText>,
    /// The findings of the checks of an agent's output.
    pub validation_errors: Vec<String>,
    /// True if the agent's output should have contained a diff.
    pub expects_diff: bool,
}

impl Failure {
    /// Creates a failure of a layer without further observations.
    pub fn new(layer: FailureLayer) -> Self {
        Self {
            layer,
            provider: None,
            tool: None,
            command: None,
            status: None,
            headers: Headers::default(),
            body: None,
            exit_code: None,
            signal: None,
            timed_out: false,
            stdout: None,
            stderr: None,
            validation_errors: Vec::new(),
            expects_diff: false,
        }
    }

    /// Creates a failed call of a provider's API.
    pub fn api(provider: impl Into<String>) -> Self {
        Self {
            provider: Some(provider.into()),
            ..Self::new(FailureLayer::Api)
        }
    }

    /// Creates a failed tool call.
    pub fn tool(name: impl Into<String>) -> Self {
        Self {
            tool: Some(name.into()),
            ..Self::new(FailureLayer::Tool)
        }
    }

    /// Creates a failed agent process.
    pub fn agent(name: impl Into<String>) -> Self {
        Self {
            tool: Some(name.into()),
            ..Self::new(FailureLayer::Agent)
        }
    }

    /// Creates a failed test or build run.
    pub fn infra(tool: impl Into<String>) -> Self {
        Self {
            tool: Some(tool.into()),
            ..Self::new(FailureLayer::Infra)
        }
    }

    /// Sets the HTTP status.
    #[must_use]
    pub fn with_status(self, status: u16) -> Self {
        Self {
            status: Some(status),
            ..self
        }
    }

    /// Adds an HTTP header.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.add(name, value);
        self
    }

    /// Sets the body of the response, its stream, or the text of the transport error.
    #[must_use]
    pub fn with_body(self, body: impl Into<LossyText>) -> Self {
        Self {
            body: Some(body.into()),
            ..self
        }
    }

    /// Sets the command line.
    #[must_use]
    pub fn with_command(self, command: impl Into<String>) -> Self {
        Self {
            command: Some(command.into()),
            ..self
        }
    }

    /// Sets the exit code.
    #[must_use]
    pub fn with_exit_code(self, code: i32) -> Self {
        Self {
            exit_code: Some(code),
            ..self
        }
    }

    /// Sets the signal.
    #[must_use]
    pub fn with_signal(self, signal: i32) -> Self {
        Self {
            signal: Some(signal),
            ..self
        }
    }

    /// Sets that the supervisor stopped it at its time limit.
    #[must_use]
    pub fn with_timeout(self) -> Self {
        Self {
            timed_out: true,
            ..self
        }
    }

    /// Sets the stdout.
    #[must_use]
    pub fn with_stdout(self, text: impl Into<LossyText>) -> Self {
        Self {
            stdout: Some(text.into()),
            ..self
        }
    }

    /// Sets the stderr.
    #[must_use]
    pub fn with_stderr(self, text: impl Into<LossyText>) -> Self {
        Self {
            stderr: Some(text.into()),
            ..self
        }
    }

    /// Sets the findings of the output checks.
    #[must_use]
    pub fn with_validation_errors(
        self,
        errors: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        Self {
            validation_errors: errors.into_iter().map(Into::into).collect(),
            ..self
        }
    }

    /// Sets that the output should have contained a diff.
    #[must_use]
    pub fn with_diff_expected(self) -> Self {
        Self {
            expects_diff: true,
            ..self
        }
    }
}
