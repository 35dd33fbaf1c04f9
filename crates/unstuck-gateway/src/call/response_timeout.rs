//! How long an upstream may be silent.
//!
//! Of a stream the first token comes soon. Of an answer that is no stream nothing comes before the model has written all
//! of it, so its time grows with what the client lets it write. SDKs reckon alike: Anthropic's counts on 128,000 tokens an
//! hour, and does not ask without a stream for what takes longer than ten minutes (for its slowest models more than 8192
//! tokens: 14 a second); OpenAI's waits for ten minutes.

use std::time::Duration;

use crate::protocol::RequestFacts;
use crate::settings::TimeLimits;

/// A prompt of so many tokens more is read a second longer before the first token comes.
const PROMPT_TOKENS_PER_SECOND: u64 = 2000;
/// So many tokens a second are written by the slowest of the healthy models behind public APIs, and by small machines.
const SLOW_TOKENS_PER_SECOND: u64 = 10;
/// So many are usually written in a second, as Anthropic's SDK reckons.
const USUAL_TOKENS_PER_SECOND: u64 = 35;
/// An answer that is allowed any length is expected to have no more tokens than this.
const DEFAULT_MAX_OUTPUT: u64 = 4096;
/// What a request holds that asks the model to think first; in which place does not matter.
const THINKING: [&[u8]; 4] = [
    b"\"thinking\"",
    b"\"reasoning\"",
    b"\"reasoning_effort\"",
    b"\"thinkingConfig\"",
];

/// How long an upstream may be silent after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ResponseTimeout {
    /// Whether the answer comes in pieces.
    pub(crate) stream: bool,
    /// How long the prompt takes to be read.
    prompt_time: Duration,
    /// The most that may be written, in tokens.
    max_output: Option<u64>,
    /// Whether the model was asked to think first.
    thinks: bool,
    /// Whether the upstream is a machine nearby, which may be a slow one.
    is_nearby: bool,
}

impl ResponseTimeout {
    /// After such a request.
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

    /// How long the head of the answer may take.
    pub(crate) fn head_timeout(&self, limits: &TimeLimits) -> Duration {
        match self.max_output {
            _ if self.stream => limits.response,
            // Nobody knows how fast a machine of one's own is, or how much is written where nothing bounds it.
            _ if self.is_nearby => limits.whole,
            None => limits.whole,
            Some(tokens) => {
                let writing = Duration::from_secs(tokens / SLOW_TOKENS_PER_SECOND);
                let all = limits.response.saturating_add(self.prompt_time);
                limits.whole.min(all.saturating_add(writing))
            }
        }
    }

    /// The same where somebody else can be asked instead; none where only the longest time is enough: a model that thinks is
    /// silent for as long as it likes.
    pub(crate) fn fallback_timeout(&self, limits: &TimeLimits) -> Option<Duration> {
        let rate = if self.is_nearby {
            SLOW_TOKENS_PER_SECOND
        } else {
            USUAL_TOKENS_PER_SECOND
        };
        let tokens = match (self.stream, self.max_output) {
            (true, _) | (false, None) if self.thinks => return None,
            (true, _) => 0,
            // What a model thinks is part of what it may write.
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

    fn silence(stream: bool, max_output: Option<u64>, body: &str) -> ResponseTimeout {
        let asked = RequestFacts {
            stream,
            max_output,
            prompt_tokens: 20_000,
            ..RequestFacts::default()
        };
        ResponseTimeout::for_request(&asked, body.as_bytes(), false)
    }

    fn longest(max_output: Option<u64>) -> u64 {
        let limits = TimeLimits::default();
        silence(false, max_output, "{}")
            .head_timeout(&limits)
            .as_secs()
    }

    fn before_fallback(silence: ResponseTimeout) -> Option<u64> {
        let limits = TimeLimits::default();
        silence.fallback_timeout(&limits).map(|time| time.as_secs())
    }

    /// Whoever writes ten tokens a second is never cut off, and whoever is allowed little is not waited for ten minutes.
    #[test]
    fn a_whole_answer_gets_the_time_that_a_slow_model_needs_to_write_it() {
        assert_eq!(longest(Some(100)), 120 + 10 + 10);
        assert_eq!(longest(Some(1024)), 120 + 10 + 102);
        assert_eq!(longest(Some(4096)), 120 + 10 + 409);
        assert_eq!(longest(Some(64_000)), 600);
        assert_eq!(longest(None), 600);
        let limits = TimeLimits::default();
        assert_eq!(
            silence(true, Some(9), "{}").head_timeout(&limits).as_secs(),
            120
        );
    }

    #[test]
    fn a_machine_nearby_may_be_slow() {
        let nearby = ResponseTimeout {
            is_nearby: true,
            ..silence(false, Some(1024), "{}")
        };
        assert_eq!(nearby.head_timeout(&TimeLimits::default()).as_secs(), 600);
        assert_eq!(before_fallback(nearby), Some(10 + 10 + 102));
    }

    #[test]
    fn whoever_can_be_replaced_gets_less() {
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
