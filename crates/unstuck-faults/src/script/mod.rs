//! What the server will answer, as data.
//!
//! A request takes the first step that is not used up and that fits it. When all that fit are used up, the
//! last of them is taken again.

mod cursor;
mod reply;
mod step;

pub(crate) use cursor::{Cursor, Taken};
pub use reply::{Answer, Reply, ToolFailure, UsageLimit};
pub use step::{Step, Times, When};

use std::path::Path;

use serde::Deserialize;

use crate::error::FaultsError;

/// An ordered list of steps.
///
/// | a step's reply | what the client meets |
/// |---|---|
/// | `answer = { text = "…", delay = "1s", input_tokens = 9, output_tokens = 9 }` | a proper answer; all but `text` may be left out |
/// | `rate_limit = { retry_after = 7 }` | too many requests; the wait may be left out |
/// | `usage_limit = { resets_in = "5s", holds = true }` | a plan that is used up until then; `resets_at` names the moment itself |
/// | `quota`, `overloaded`, `server_error`, `auth`, `context_limit`, `model_not_found` | the provider's own error |
/// | `refusal`, `empty` | an answer in which the model refuses, or says nothing |
/// | `hang`, `stall`, `cut` | no headers; headers and no body; half an answer |
/// | `stream_error` | half a stream, and then an error inside of it |
/// | `malformed`, `html = { status = 502 }` | broken JSON; the page of a proxy |
/// | `tool_failure = { stderr = "…", exit_code = 1 }` | the call of a tool that the scripted agent acts out |
///
/// Those without values are written `overloaded = {}`. Besides its reply a step may have `times` (a number, or
/// `"always"`; once if left out) and `when = { prompt = "…", model = "…" }`, texts that must occur.
///
/// ```
/// use unstuck_faults::{Reply, Script, Step};
///
/// let written: Script = r#"
///     [[step]]
///     overloaded = {}
///     times = 2
///
///     [[step]]
///     when = { model = "haiku" }
///     answer = { text = "A title" }
///     times = "always"
///
///     [[step]]
///     answer = { text = "Done", delay = "20ms" }
/// "#
/// .parse()?;
/// assert_eq!(written.steps().len(), 3);
///
/// let built = Script::default()
///     .then(Step::from(Reply::Overloaded).times(2))
///     .then(Reply::answer("Done"));
/// assert_eq!(built.steps()[0], written.steps()[0]);
/// # Ok::<(), unstuck_faults::FaultsError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    #[serde(default, rename = "step")]
    steps: Vec<Step>,
}

impl Script {
    /// A script whose only step answers every request with this text.
    pub fn answering(text: impl Into<String>) -> Self {
        Self::default().then(Reply::answer(text))
    }

    /// Adds a step at the end.
    #[must_use]
    pub fn then(mut self, step: impl Into<Step>) -> Self {
        self.steps.push(step.into());
        self
    }

    /// The steps in their order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Reads a script from a TOML file.
    pub fn read(path: &Path) -> Result<Self, FaultsError> {
        std::fs::read_to_string(path)
            .map_err(FaultsError::file(path))?
            .parse()
    }
}

impl std::str::FromStr for Script {
    type Err = FaultsError;

    fn from_str(text: &str) -> Result<Self, FaultsError> {
        Ok(toml::from_str(text)?)
    }
}
