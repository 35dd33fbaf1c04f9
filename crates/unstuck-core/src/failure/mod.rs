//! Stage 1: what was observed, raw.
//!
//! A [`Failure`] is data about what happened to an agent, never an `Err` of ours. It says nothing about
//! what kind of failure it is: that is the [diagnosis](crate::diagnosis).

mod failure_record;
mod headers;
mod kind;
mod level;
mod lossy_text;

pub use failure_record::{FailureRecord, signal_number};
pub use headers::Headers;
pub use kind::{Category, Kind, UnknownKind};
pub use level::Level;
pub use lossy_text::LossyText;

use serde::{Deserialize, Serialize};

/// Where a failure was observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// An LLM API answer or transport error.
    Api,
    /// A command or tool call.
    Tool,
    /// An agent process and what it wrote.
    Agent,
    /// The environment: a test or build run.
    Infra,
}

impl Layer {
    /// The name used on every wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Tool => "tool",
            Self::Agent => "agent",
            Self::Infra => "infra",
        }
    }
}

/// What was observed when something failed, or might have.
///
/// A text that is `None` is not known; one that is empty is known to be empty.
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
    /// Where it was observed.
    pub layer: Layer,
    /// The LLM provider, if one is known to be involved.
    pub provider: Option<String>,
    /// The tool's or agent's name.
    pub tool: Option<String>,
    /// The command line that was run.
    pub command: Option<String>,
    /// The HTTP status.
    pub status: Option<u16>,
    /// The HTTP headers of the answer.
    pub headers: Headers,
    /// The body of the answer, the events of its stream, or the transport error's text.
    pub body: Option<LossyText>,
    /// The exit code of the process.
    pub exit_code: Option<i32>,
    /// The signal that ended the process.
    pub signal: Option<i32>,
    /// Whether the supervisor ended it because its time was up.
    pub timed_out: bool,
    /// What the process wrote to its standard output.
    pub stdout: Option<LossyText>,
    /// What the process wrote to its standard error.
    pub stderr: Option<LossyText>,
    /// What the checks of an agent's output found wrong.
    pub validation_errors: Vec<String>,
    /// Whether the agent's output had to contain a diff.
    pub expects_diff: bool,
}

impl Failure {
    /// A failure of a layer about which nothing else is known yet.
    pub fn new(layer: Layer) -> Self {
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

    /// A failed call of a provider's API.
    pub fn api(provider: impl Into<String>) -> Self {
        Self {
            provider: Some(provider.into()),
            ..Self::new(Layer::Api)
        }
    }

    /// A failed tool call.
    pub fn tool(name: impl Into<String>) -> Self {
        Self {
            tool: Some(name.into()),
            ..Self::new(Layer::Tool)
        }
    }

    /// A failed agent process.
    pub fn agent(name: impl Into<String>) -> Self {
        Self {
            tool: Some(name.into()),
            ..Self::new(Layer::Agent)
        }
    }

    /// A failed test or build run.
    pub fn infra(tool: impl Into<String>) -> Self {
        Self {
            tool: Some(tool.into()),
            ..Self::new(Layer::Infra)
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

    /// Sets the answer's body, its stream, or the transport error's text.
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

    /// Says that the supervisor ended it because its time was up.
    #[must_use]
    pub fn with_timeout(self) -> Self {
        Self {
            timed_out: true,
            ..self
        }
    }

    /// Sets the standard output.
    #[must_use]
    pub fn with_stdout(self, text: impl Into<LossyText>) -> Self {
        Self {
            stdout: Some(text.into()),
            ..self
        }
    }

    /// Sets the standard error.
    #[must_use]
    pub fn with_stderr(self, text: impl Into<LossyText>) -> Self {
        Self {
            stderr: Some(text.into()),
            ..self
        }
    }

    /// Sets what the checks of the output found wrong.
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

    /// Says that the output had to contain a diff.
    #[must_use]
    pub fn with_diff_expected(self) -> Self {
        Self {
            expects_diff: true,
            ..self
        }
    }
}
