//! Time limits for a silent upstream.
//!
//! The first token of a stream comes soon. A response that is not streamed sends nothing until the model has written
//! all of it, so its time grows with the allowed output. SDKs calculate alike: Anthropic's assumes 128,000 tokens an
//! hour and refuses requests without a stream that would take longer than ten minutes (for its slowest models more than
//! 8192 tokens: 14 a second); OpenAI's waits for ten minutes.

use std::time::Duration;

use crate::protocol::RequestFacts;
use crate::settings::GatewayTimeLimits;

/// The prompt tokens read per second before the first token.
const PROMPT_TOKENS_PER_SECOND: u64 = 2000;
/// The output speed of the slowest healthy models behind public APIs, and of small machines.
const SLOW_TOKENS_PER_SECOND: u64 = 10;
/// The usual output speed, as assumed by Anthropic's SDK.
const USUAL_TOKENS_PER_SECOND: u64 = 35;
/// The output expected from a response without a limit, in tokens.
const DEFAULT_MAX_OUTPUT: u64 = 4096;
/// The markers of a request that asks the model to think first; their position does not matter.
const THINKING: [&[u8]; 4] = [
    b"\"thinking\"",
    b"\"reasoning\"",
    b"\"reasoning_effort\"",
    b"\"thinkingConfig\"",
];

/// The inputs of the time limits for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TimeoutInputs {
    /// If set, the response is streamed.
    pub(crate) stream: bool,
    /// The time to read the prompt.
    prompt_time: Duration,
    /// The maximum output, in tokens.
    max_output: Option<u64>,
    /// If set, the model was asked to think first.
    thinks: bool,
    /// If set, the upstream is a local machine, which may be slow.
    is_nearby: bool,
}

impl TimeoutInputs {
    /// Derives the limits from a request.
    pub(crate) fn for_request(asked: &RequestFacts, body: &[u8], is_nearby: bool) -> Self {
        let has = |name: &&[u8]| memchr::memmem::find(body, name).is_some();
        Self {
            stream: asked.stream,
            prompt_time: Duration::from_secs(asked.prompt_tokens / PROMPT_TOKENS_PER_SECOND),
            max_output: asked.max_output,
            thinks: THINKING.iter().any(has),
            is_nearby,
        }
    }

    /// Returns the time limit for the response head.
    pub(crate) fn head_timeout(&self, limits: &GatewayTimeLimits) -> Duration {
        match self.max_output {
            _ if self.stream => limits.response,
            // The speed of a local machine is unknown, and so is the length of an unbounded output.
            _ if self.is_nearby => limits.whole,
            None => limits.whole,
            Some(tokens) => {
                let writing = Duration::from_secs(tokens / SLOW_TOKENS_PER_SECOND);
                let all = limits.response.saturating_add(self.prompt_time);
                limits.whole.min(all.saturating_add(writing))
            }
        }
    }

    /// Returns the shorter limit that applies if a fallback exists; `None` if only the longest limit is enough, since a
    /// thinking model may be silent for any time.
    pub(crate) fn fallback_timeout(&self, limits: &GatewayTimeLimits) -> Option<Duration> {
        let rate = if self.is_nearby {
            SLOW_TOKENS_PER_SECOND
        } else {
            USUAL_TOKENS_PER_SECOND
        };
        let tokens = match (self.stream, self.max_output) {
            (true, _) | (false, None) if self.thinks => return None,
            (true, _) => 0,
            // Thinking counts toward the output limit.
            (false, most) => most.unwrap_or(DEFAULT_MAX_OUTPUT),
        };
        let writing = Duration::from_secs(tokens / rate);
        let all = limits.fallback_silence.saturating_add(self.prompt_time);
        Some(self.head_timeout(limits).min(all.saturating_add(writing)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn silence(stream: bool, max_output: Option<u64>, body: &str) -> TimeoutInputs {
        let asked = RequestFacts {
            stream,
            max_output,
            prompt_tokens: 20_000,
            ..RequestFacts::default()
        };
        TimeoutInputs::for_request(&asked, body.as_bytes(), false)
    }

    fn longest(max_output: Option<u64>) -> u64 {
        let limits = GatewayTimeLimits::default();
        silence(false, max_output, "{}")
            .head_timeout(&limits)
            .as_secs()
    }

    fn before_fallback(silence: TimeoutInputs) -> Option<u64> {
        let limits = GatewayTimeLimits::default();
        silence.fallback_timeout(&limits).map(|time| time.as_secs())
    }

    /// A model that writes ten tokens a second is never cut off, and a small output limit does not wait ten minutes.
    #[test]
    fn complete_response_gets_the_time_of_a_slow_model() {
        assert_eq!(longest(Some(100)), 120 + 10 + 10);
        assert_eq!(longest(Some(1024)), 120 + 10 + 102);
        assert_eq!(longest(Some(4096)), 120 + 10 + 409);
        assert_eq!(longest(Some(64_000)), 600);
        assert_eq!(longest(None), 600);
        let limits = GatewayTimeLimits::default();
        assert_eq!(
            silence(true, Some(9), "{}").head_timeout(&limits).as_secs(),
            120
        );
    }

    #[test]
    fn nearby_machine_may_be_slow() {
        let nearby = TimeoutInputs {
            is_nearby: true,
            ..silence(false, Some(1024), "{}")
        };
        assert_eq!(
            nearby.head_timeout(&GatewayTimeLimits::default()).as_secs(),
            600
        );
        assert_eq!(before_fallback(nearby), Some(10 + 10 + 102));
    }

    #[test]
    fn upstream_with_fallback_gets_less_time() {
        assert_eq!(before_fallback(silence(true, Some(9), "{}")), Some(20));
        assert_eq!(before_fallback(silence(false, Some(1024), "{}")), Some(49));
        assert_eq!(before_fallback(silence(false, None, "{}")), Some(137));
        let thinks = r#"{"thinking":{}}"#;
        assert_eq!(before_fallback(silence(true, Some(9), thinks)), None);
        assert_eq!(before_fallback(silence(false, None, thinks)), None);
        assert_eq!(
            before_fallback(silence(false, Some(1024), thinks)),
            Some(49)
        );
    }
}
