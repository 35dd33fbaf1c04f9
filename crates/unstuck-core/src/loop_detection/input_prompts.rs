//! Detects questions that nobody will answer: input prompts, and final answers that only ask.

use super::kind::LoopKind;
use super::line_signature::visible_text;
use super::loop_patterns::LoopPatterns;
use super::signal::LoopSignal;

/// Number of bytes kept from the end of a stream.
const TAIL_LEN: usize = 1024;

/// The end of a stream.
#[derive(Debug, Default)]
pub(super) struct OutputTail(Vec<u8>);

impl OutputTail {
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        let new = &bytes[bytes.len().saturating_sub(TAIL_LEN)..];
        let old = (self.0.len() + new.len()).saturating_sub(TAIL_LEN);
        self.0.drain(..old);
        self.0.extend_from_slice(new);
    }

    /// Returns the question at the end of the stream.
    pub(super) fn question(&self) -> Option<LoopSignal> {
        let known = &LoopPatterns::built_in().questions;
        let mut lines = self.0.split(|byte| *byte == b'\n').map(visible_text).rev();
        let last = lines.next()?;
        let is_ended = last.trim().is_empty();
        let last = if is_ended {
            lines.find(|line| !line.trim().is_empty())?
        } else {
            last
        };
        let bytes = last.trim_end().as_bytes();
        let asks = known.any.match_any(bytes) || !is_ended && known.unterminated.match_any(bytes);
        (asks && !known.never.match_any(bytes))
            .then(|| LoopSignal::new(LoopKind::WaitingForInput, 1, &last, ""))
    }
}

/// Returns a signal if a final answer only asks a question and reports no work.
///
/// ```
/// use unstuck_core::loop_detection::detect_question_answer;
///
/// assert!(detect_question_answer("I found two ways to do it. Which one do you prefer?").is_some());
/// assert!(detect_question_answer("I have fixed the bug. Shall I also add a test?").is_none());
/// ```
pub fn detect_question_answer(text: &str) -> Option<LoopSignal> {
    let known = &LoopPatterns::built_in().answers;
    let text = text.trim();
    if text.len() > known.max_length || known.done.match_any(text.as_bytes()) {
        return None;
    }
    let last = text.lines().rev().find(|line| !line.trim().is_empty())?;
    let question = last_sentence(last.trim());
    known
        .asking
        .match_any(question.as_bytes())
        .then(|| LoopSignal::new(LoopKind::AsksBack, 1, question, ""))
}

/// Returns the last sentence of a line.
fn last_sentence(line: &str) -> &str {
    let inner = line.trim_end_matches(['.', '!', '?', '*', '_', '"', ')', ' ']);
    let start = [". ", "! ", "? ", ": "]
        .iter()
        .filter_map(|end| inner.rfind(end).map(|at| at + end.len()))
        .max();
    &line[start.unwrap_or(0)..]
}
