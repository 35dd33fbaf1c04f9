//! Scripts: the server's answers as data.
//!
//! A request takes the first matching step that is not used up. When all matching steps are used up, the mix applies;
//! without one, the last of those steps is repeated.

mod bounded_numbers;
mod capacity;
mod cursor;
mod duration;
mod fault_mix;
mod headers;
mod latency;
mod reply;
mod reply_parameters;
mod reply_parser;
mod request_condition;
mod response_pace;
mod step;
mod stream_fault;
mod tls;

pub use capacity::{FaultServerCapacityPhase, FaultServerKeyLimits, ServerCapacity};
pub(crate) use cursor::{ModelCallOrQuery, ScriptCursor, SelectedReply};
pub use fault_mix::{FaultMix, WeightedFault};
pub use latency::LatencyDistribution;
pub use reply::FaultScriptReply;
pub use reply_parameters::{FaultScriptAnswer, ScriptedToolFailure, ToolCall, UsageLimit};
pub(crate) use request_condition::MatchableRequest;
pub use request_condition::{RequestCondition, RequestNumberRange};
pub use response_pace::ResponsePace;
pub use step::{FaultScriptStep, FaultScriptStepRepeat};
pub use stream_fault::{ConnectionResetPoint, FaultStreamCutMode, StreamedApiErrorKind};
pub use tls::{CertificateFault, TlsFaultOptions, TlsHandshakeFault};

use std::path::Path;

use serde::Deserialize;

use crate::error::FaultServerError;

/// The server's behavior: steps in order, then a mix, with a pace, a capacity and limits.
///
/// | key | meaning |
/// |---|---|
/// | `[[step]]` | the answer to one or more requests ([`FaultScriptStep`]): one reply (below), `times`, `when` ([`RequestCondition`]), `pace` |
/// | `[mix]`, `[[mix.fault]]` | a seeded random mix for requests without a remaining step ([`FaultMix`]) |
/// | `[pace]` | `first_byte`, `between`, `chunks`, `chunk_bytes` ([`ResponsePace`], [`LatencyDistribution`]) |
/// | `[limits]` | requests and tokens per minute and key ([`FaultServerKeyLimits`]) |
/// | `[capacity]`, `[[phase]]` | the capacity, and phases with less of it ([`ServerCapacity`], [`FaultServerCapacityPhase`]) |
/// | `[tls]` | the port speaks TLS as well, with a bad certificate or broken handshakes ([`TlsFaultOptions`]) |
/// | `passthrough = "echo"` | auxiliary queries get an exact copy of their request ([`AuxiliaryAnswerMode`]) |
/// | `record = false` | requests are counted but not kept, for benchmarks |
///
/// | a step's reply | effect on the client |
/// |---|---|
/// | `answer = { text = "…", delay = "1s", input_tokens = 9, output_tokens = 9, cache_read_tokens = 4 }` | a successful answer; all values are optional |
/// | `rate_limit = { retry_after = 7 }` | too many requests; the wait is optional |
/// | `rate_limit_as = { form = "http_date", wait = "1.5s" }` | the same, with the wait in one form ([`RetryAfterFormat`](crate::RetryAfterFormat)) |
/// | `usage_limit = { resets_in = "5s", holds = true }` | a plan that is used up until then; `resets_at` names the moment itself |
/// | `quota`, `overloaded`, `server_error`, `auth`, `auth_expired`, `context_limit`, `model_not_found`, `content_filter`, `prefill_rejected` | the provider's own error |
/// | `status = { code = 504, retry_after = 2, message = "…", headers = { x-should-retry = "false" } }` | the provider's error with that status |
/// | `refusal`, `empty`, `max_tokens = { text = "…" }` | an answer in which the model refuses, says nothing, or is truncated |
/// | `tool_call = { name = "…", input = { … } }` | a tool call |
/// | `tool_failure = { stderr = "…", exit_code = 1 }` | a tool call that the scripted agent reports as failed |
/// | `hang`, `stall`, `close`, `reset = { by = "mid_body" }` | no headers; headers and no body; a closed or reset connection |
/// | `stall_at = { after = 3, wait = "5s", pings = "1s", cut = true }`, `slow_first_token = { wait = "5s" }` | a stream that falls silent |
/// | `cut`, `cut_at = { after = 3, by = "end" }`, `missing_end` | half an answer; a stream cut after a frame; one without its end |
/// | `stream_error`, `error_at = { after = 3, error = "rate_limit" }`, `bad_chunk = { after = 3, extra = true }` | a stream with an error or invalid data in it |
/// | `malformed`, `invalid_json`, `wrong_length = { by = 100 }`, `bad_framing`, `not_http`, `html = { status = 502 }` | invalid answers |
/// | `echo` | an exact copy of the request |
///
/// A reply without values is written `overloaded = {}`. `times` is a number, a time after the first use such as
/// `"25s"`, or `"always"`; the default is once.
///
/// ```
/// use unstuck_faults::{FaultScriptReply, FaultScript, FaultScriptStep};
///
/// let written: FaultScript = r#"
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
/// let built = FaultScript::default()
///     .with_step(FaultScriptStep::from(FaultScriptReply::Overloaded).times(2))
///     .with_step(FaultScriptReply::answer("Done"));
/// assert_eq!(built.steps()[0], written.steps()[0]);
/// # Ok::<(), unstuck_faults::FaultServerError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FaultScript {
    #[serde(rename = "step")]
    pub(crate) steps: Vec<FaultScriptStep>,
    pub(crate) mix: Option<FaultMix>,
    pub(crate) pace: ResponsePace,
    pub(crate) limits: Option<FaultServerKeyLimits>,
    pub(crate) capacity: Option<ServerCapacity>,
    #[serde(rename = "phase")]
    pub(crate) phases: Vec<FaultServerCapacityPhase>,
    pub(crate) tls: Option<TlsFaultOptions>,
    pub(crate) passthrough: AuxiliaryAnswerMode,
    pub(crate) record: bool,
}

/// The answers to auxiliary queries: models, tokens, embeddings, files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuxiliaryAnswerMode {
    /// A plausible provider answer.
    #[default]
    Plausible,
    /// An exact copy of the request, on every path that is not a model call.
    Echo,
}

impl Default for FaultScript {
    fn default() -> Self {
        Self {
            steps: Vec::new(),
            mix: None,
            pace: ResponsePace::default(),
            limits: None,
            capacity: None,
            phases: Vec::new(),
            tls: None,
            passthrough: AuxiliaryAnswerMode::default(),
            record: true,
        }
    }
}

impl FaultScript {
    /// Returns a script whose only step answers every request with this text.
    pub fn answering(text: impl Into<String>) -> Self {
        Self::default().with_step(FaultScriptReply::answer(text))
    }

    /// Adds a step at the end.
    #[must_use]
    pub fn with_step(mut self, step: impl Into<FaultScriptStep>) -> Self {
        self.steps.push(step.into());
        self
    }

    /// Sets the mix for requests without a remaining step.
    #[must_use]
    pub fn with_mix(mut self, mix: FaultMix) -> Self {
        self.mix = Some(mix);
        self
    }

    /// Sets the pace of steps that have none of their own.
    #[must_use]
    pub fn with_pace(mut self, pace: ResponsePace) -> Self {
        self.pace = pace;
        self
    }

    /// Sets the limits of every key.
    #[must_use]
    pub fn with_limits(mut self, limits: FaultServerKeyLimits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Sets the capacity of the server.
    #[must_use]
    pub fn with_capacity(mut self, capacity: ServerCapacity) -> Self {
        self.capacity = Some(capacity);
        self
    }

    /// Adds a phase in which the server has less capacity or fails more often.
    #[must_use]
    pub fn with_phase(mut self, phase: FaultServerCapacityPhase) -> Self {
        self.phases.push(phase);
        self
    }

    /// Enables TLS.
    #[must_use]
    pub fn with_tls(mut self, tls: TlsFaultOptions) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Sets the answers to auxiliary queries.
    #[must_use]
    pub fn with_passthrough(mut self, passthrough: AuxiliaryAnswerMode) -> Self {
        self.passthrough = passthrough;
        self
    }

    /// Counts requests without keeping them.
    #[must_use]
    pub fn without_record(mut self) -> Self {
        self.record = false;
        self
    }

    /// Returns the steps in order.
    pub fn steps(&self) -> &[FaultScriptStep] {
        &self.steps
    }

    /// Reads a script from a TOML file.
    #[expect(clippy::disallowed_methods, reason = "a script that the user names")]
    pub fn from_file(path: &Path) -> Result<Self, FaultServerError> {
        let text = std::fs::read_to_string(path).map_err(FaultServerError::file(path))?;
        toml::from_str(&text).map_err(FaultServerError::script_file(path))
    }

    /// Returns the seed of all draws.
    pub(crate) fn seed(&self) -> u64 {
        self.mix.as_ref().map_or(0, |mix| mix.seed)
    }

    /// True if an answer may have to echo its request exactly.
    pub(crate) fn may_echo(&self) -> bool {
        let of_steps = self.steps.iter().map(|step| &step.reply);
        let of_mix = self.mix.iter().flat_map(|mix| &mix.faults);
        let mut all = of_steps.chain(of_mix.map(|fault| &*fault.reply));
        self.passthrough == AuxiliaryAnswerMode::Echo
            || all.any(|reply| *reply == FaultScriptReply::Echo)
    }
}

impl std::str::FromStr for FaultScript {
    type Err = FaultServerError;

    fn from_str(text: &str) -> Result<Self, FaultServerError> {
        Ok(toml::from_str(text)?)
    }
}
