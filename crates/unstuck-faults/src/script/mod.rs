//! What the server will answer, as data.
//!
//! A request takes the first step that is not used up and that fits it. When all that fit are used up, the mix has
//! its turn; without one, the last of those steps is taken again.

mod answer;
mod bounded_numbers;
mod capacity;
mod cursor;
mod duration;
mod headers;
mod latency;
mod mix;
mod pace;
mod reply;
mod reply_table;
mod request_condition;
mod step;
mod stream_fault;
mod tls;

pub use answer::{AnswerSpec, ToolCall, ToolFailure, UsageLimit};
pub use capacity::{Capacity, CapacityPhase, KeyLimits};
pub(crate) use cursor::{RequestKind, ScriptCursor, SelectedReply};
pub use latency::Latency;
pub use mix::{FaultMix, WeightedFault};
pub use pace::ResponsePace;
pub use reply::Reply;
pub(crate) use request_condition::RequestView;
pub use request_condition::{RequestCondition, RequestRange};
pub use step::{ScriptStep, StepRepeat};
pub use stream_fault::{CutMode, ResetPoint, StreamErrorKind};
pub use tls::{CertificateFault, HandshakeFault, TlsScript};

use std::path::Path;

use serde::Deserialize;

use crate::error::FaultsError;

/// What the server does: steps in their order, then a mix, at a pace, within a capacity and limits.
///
/// | key | what it says |
/// |---|---|
/// | `[[step]]` | what one request, or several, are answered ([`ScriptStep`]): one reply (below), `times`, `when` ([`RequestCondition`]), `pace` |
/// | `[mix]`, `[[mix.fault]]` | a seeded random mix for requests that no step is left for ([`FaultMix`]) |
/// | `[pace]` | `first_byte`, `between`, `chunks`, `chunk_bytes` ([`ResponsePace`], [`Latency`]) |
/// | `[limits]` | requests and tokens per minute and key ([`KeyLimits`]) |
/// | `[capacity]`, `[[phase]]` | what the server can carry, and when it can carry less ([`Capacity`], [`CapacityPhase`]) |
/// | `[tls]` | the port speaks TLS as well, with a bad certificate or broken handshakes ([`TlsScript`]) |
/// | `passthrough = "echo"` | side questions are answered with what exactly came in ([`Passthrough`]) |
/// | `record = false` | requests are counted but not kept, for benchmarks |
///
/// | a step's reply | what the client meets |
/// |---|---|
/// | `answer = { text = "…", delay = "1s", input_tokens = 9, output_tokens = 9, cache_read_tokens = 4 }` | a proper answer; all may be left out |
/// | `rate_limit = { retry_after = 7 }` | too many requests; the wait may be left out |
/// | `rate_limit_as = { form = "http_date", wait = "1.5s" }` | the same, with the wait in one form ([`RetryAfterFormat`](crate::RetryAfterFormat)) |
/// | `usage_limit = { resets_in = "5s", holds = true }` | a plan that is used up until then; `resets_at` names the moment itself |
/// | `quota`, `overloaded`, `server_error`, `auth`, `auth_expired`, `context_limit`, `model_not_found`, `content_filter`, `prefill_rejected` | the provider's own error |
/// | `status = { code = 504, retry_after = 2, message = "…", headers = { x-should-retry = "false" } }` | the provider's error with that status |
/// | `parse_refusal`, `empty`, `max_tokens = { text = "…" }` | an answer in which the model refuses, says nothing, or is cut short |
/// | `tool_call = { name = "…", input = { … } }` | the call of a tool |
/// | `tool_failure = { stderr = "…", exit_code = 1 }` | the call of a tool that the scripted agent acts out |
/// | `hang`, `stall`, `close`, `reset = { by = "mid_body" }` | no headers; headers and no body; a closed or reset connection |
/// | `stall_at = { after = 3, wait = "5s", pings = "1s", cut = true }`, `slow_first_token = { wait = "5s" }` | a stream that falls silent |
/// | `cut_error`, `cut_at = { after = 3, by = "end" }`, `missing_end` | half an answer; a stream cut after a frame; one without its end |
/// | `stream_error`, `error_at = { after = 3, error = "rate_limit" }`, `bad_chunk = { after = 3, extra = true }` | a stream with an error or nonsense in it |
/// | `malformed`, `invalid_json`, `wrong_length = { by = 100 }`, `bad_framing`, `not_http`, `html = { status = 502 }` | answers that are not what they should be |
/// | `echo` | what exactly came in |
///
/// Those without values are written `overloaded = {}`. `times` is a number, a time after the first such as `"25s"`, or `"always"`;
/// once if left out.
///
/// ```
/// use unstuck_faults::{Reply, Script, ScriptStep};
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
///     .then(ScriptStep::from(Reply::Overloaded).times(2))
///     .then(Reply::answer("Done"));
/// assert_eq!(built.steps()[0], written.steps()[0]);
/// # Ok::<(), unstuck_faults::FaultsError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Script {
    #[serde(rename = "step")]
    pub(crate) steps: Vec<ScriptStep>,
    pub(crate) mix: Option<FaultMix>,
    pub(crate) pace: ResponsePace,
    pub(crate) limits: Option<KeyLimits>,
    pub(crate) capacity: Option<Capacity>,
    #[serde(rename = "phase")]
    pub(crate) phases: Vec<CapacityPhase>,
    pub(crate) tls: Option<TlsScript>,
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
            pace: ResponsePace::default(),
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
        Self::default().with_step(Reply::answer(text))
    }

    /// Adds a step at the end.
    #[must_use]
    pub fn with_step(mut self, step: impl Into<ScriptStep>) -> Self {
        self.steps.push(step.into());
        self
    }

    /// Answers what no step is left for by this mix.
    #[must_use]
    pub fn with_mix(mut self, mix: FaultMix) -> Self {
        self.mix = Some(mix);
        self
    }

    /// Answers at this pace where a step has none of its own.
    #[must_use]
    pub fn with_pace(mut self, pace: ResponsePace) -> Self {
        self.pace = pace;
        self
    }

    /// Gives every key these limits.
    #[must_use]
    pub fn with_limits(mut self, limits: KeyLimits) -> Self {
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
    pub fn with_phase(mut self, phase: CapacityPhase) -> Self {
        self.phases.push(phase);
        self
    }

    /// Lets the server speak TLS as well.
    #[must_use]
    pub fn with_tls(mut self, tls: TlsScript) -> Self {
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
    pub fn steps(&self) -> &[ScriptStep] {
        &self.steps
    }

    /// Reads a script from a TOML file.
    pub fn from_file(path: &Path) -> Result<Self, FaultsError> {
        let text = std::fs::read_to_string(path).map_err(FaultsError::file(path))?;
        toml::from_str(&text).map_err(FaultsError::script_file(path))
    }

    /// What all draws begin with.
    pub(crate) fn seed(&self) -> u64 {
        self.mix.as_ref().map_or(0, |mix| mix.seed)
    }

    /// Whether an answer may have to tell exactly what came in.
    pub(crate) fn may_echo(&self) -> bool {
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
