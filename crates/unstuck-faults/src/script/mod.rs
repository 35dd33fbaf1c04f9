//! What the server will answer, as data.
//!
//! A request takes the first step that is not used up and that fits it. When all that fit are used up, the mix has
//! its turn; without one, the last of those steps is taken again.

mod answer;
mod cursor;
mod duration;
mod entry;
mod headers;
mod latency;
mod load;
mod mix;
mod pace;
mod reply;
mod share;
mod step;
mod stream_fault;
mod tls;
mod when;

pub use answer::{Answer, ToolCall, ToolFailure, UsageLimit};
pub(crate) use cursor::{Asked, Cursor, Taken};
pub use latency::Latency;
pub use load::{Capacity, Limits, Phase};
pub use mix::{Mix, Weighted};
pub use pace::Pace;
pub use reply::Reply;
pub use step::{Step, Times};
pub use stream_fault::{BrokenBy, CutBy, InStream};
pub use tls::{Certificate, HandshakeFault, Tls};
pub(crate) use when::Asking;
pub use when::{Nth, When};

use std::path::Path;

use serde::Deserialize;

use crate::error::FaultsError;

/// What the server does: steps in their order, then a mix, at a pace, within a capacity and limits.
///
/// | key | what it says |
/// |---|---|
/// | `[[step]]` | what one request, or several, are answered ([`Step`]): one reply (below), `times`, `when` ([`When`]), `pace` |
/// | `[mix]`, `[[mix.fault]]` | a seeded random mix for requests that no step is left for ([`Mix`]) |
/// | `[pace]` | `first_byte`, `between`, `chunks`, `chunk_bytes` ([`Pace`], [`Latency`]) |
/// | `[limits]` | requests and tokens per minute and key ([`Limits`]) |
/// | `[capacity]`, `[[phase]]` | what the server can carry, and when it can carry less ([`Capacity`], [`Phase`]) |
/// | `[tls]` | the port speaks TLS as well, with a bad certificate or broken handshakes ([`Tls`]) |
/// | `passthrough = "echo"` | side questions are answered with what exactly came in ([`Passthrough`]) |
/// | `record = false` | requests are counted but not kept, for benchmarks |
///
/// | a step's reply | what the client meets |
/// |---|---|
/// | `answer = { text = "…", delay = "1s", input_tokens = 9, output_tokens = 9, cache_read_tokens = 4 }` | a proper answer; all may be left out |
/// | `rate_limit = { retry_after = 7 }` | too many requests; the wait may be left out |
/// | `rate_limit_as = { form = "http_date", wait = "1.5s" }` | the same, with the wait in one form ([`WaitForm`](crate::WaitForm)) |
/// | `usage_limit = { resets_in = "5s", holds = true }` | a plan that is used up until then; `resets_at` names the moment itself |
/// | `quota`, `overloaded`, `server_error`, `auth`, `auth_expired`, `context_limit`, `model_not_found`, `content_filter`, `prefill_rejected` | the provider's own error |
/// | `status = { code = 504, retry_after = 2, message = "…", headers = { x-should-retry = "false" } }` | the provider's error with that status |
/// | `refusal`, `empty`, `max_tokens = { text = "…" }` | an answer in which the model refuses, says nothing, or is cut short |
/// | `tool_call = { name = "…", input = { … } }` | the call of a tool |
/// | `tool_failure = { stderr = "…", exit_code = 1 }` | the call of a tool that the scripted agent acts out |
/// | `hang`, `stall`, `close`, `reset = { by = "mid_body" }` | no headers; headers and no body; a closed or reset connection |
/// | `stall_at = { after = 3, wait = "5s", pings = "1s", cut = true }`, `slow_first_token = { wait = "5s" }` | a stream that falls silent |
/// | `cut`, `cut_at = { after = 3, by = "end" }`, `missing_end` | half an answer; a stream cut after a frame; one without its end |
/// | `stream_error`, `error_at = { after = 3, error = "rate_limit" }`, `bad_chunk = { after = 3, extra = true }` | a stream with an error or nonsense in it |
/// | `malformed`, `invalid_json`, `wrong_length = { by = 100 }`, `bad_framing`, `not_http`, `html = { status = 502 }` | answers that are not what they should be |
/// | `echo` | what exactly came in |
///
/// Those without values are written `overloaded = {}`. `times` is a number, a time after the first such as `"25s"`, or `"always"`;
/// once if left out.
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
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Script {
    #[serde(rename = "step")]
    pub(crate) steps: Vec<Step>,
    pub(crate) mix: Option<Mix>,
    pub(crate) pace: Pace,
    pub(crate) limits: Option<Limits>,
    pub(crate) capacity: Option<Capacity>,
    #[serde(rename = "phase")]
    pub(crate) phases: Vec<Phase>,
    pub(crate) tls: Option<Tls>,
    pub(crate) passthrough: Passthrough,
    pub(crate) record: bool,
}

/// What side questions are answered: models, tokens, embeddings, files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Passthrough {
    /// What a provider might answer.
    #[default]
    Plausible,
    /// What exactly came in, on every path that asks no model.
    Echo,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            steps: Vec::new(),
            mix: None,
            pace: Pace::default(),
            limits: None,
            capacity: None,
            phases: Vec::new(),
            tls: None,
            passthrough: Passthrough::default(),
            record: true,
        }
    }
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

    /// Answers what no step is left for by this mix.
    #[must_use]
    pub fn with_mix(mut self, mix: Mix) -> Self {
        self.mix = Some(mix);
        self
    }

    /// Answers at this pace where a step has none of its own.
    #[must_use]
    pub fn with_pace(mut self, pace: Pace) -> Self {
        self.pace = pace;
        self
    }

    /// Gives every key these limits.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Lets the server carry only so much.
    #[must_use]
    pub fn with_capacity(mut self, capacity: Capacity) -> Self {
        self.capacity = Some(capacity);
        self
    }

    /// Adds a time in which the server can carry less, or fails more often.
    #[must_use]
    pub fn with_phase(mut self, phase: Phase) -> Self {
        self.phases.push(phase);
        self
    }

    /// Lets the server speak TLS as well.
    #[must_use]
    pub fn with_tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Answers side questions in this way.
    #[must_use]
    pub fn with_passthrough(mut self, passthrough: Passthrough) -> Self {
        self.passthrough = passthrough;
        self
    }

    /// Counts requests without keeping them.
    #[must_use]
    pub fn without_record(mut self) -> Self {
        self.record = false;
        self
    }

    /// The steps in their order.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Reads a script from a TOML file.
    pub fn read(path: &Path) -> Result<Self, FaultsError> {
        let text = std::fs::read_to_string(path).map_err(FaultsError::file(path))?;
        toml::from_str(&text).map_err(FaultsError::script_file(path))
    }

    /// What all draws begin with.
    pub(crate) fn seed(&self) -> u64 {
        self.mix.as_ref().map_or(0, |mix| mix.seed)
    }

    /// Whether an answer may have to tell exactly what came in.
    pub(crate) fn echoes(&self) -> bool {
        let of_steps = self.steps.iter().map(|step| &step.reply);
        let of_mix = self.mix.iter().flat_map(|mix| &mix.faults);
        let mut all = of_steps.chain(of_mix.map(|fault| &*fault.reply));
        self.passthrough == Passthrough::Echo || all.any(|reply| *reply == Reply::Echo)
    }
}

impl std::str::FromStr for Script {
    type Err = FaultsError;

    fn from_str(text: &str) -> Result<Self, FaultsError> {
        Ok(toml::from_str(text)?)
    }
}
