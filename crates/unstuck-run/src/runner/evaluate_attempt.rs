//! Evaluates an attempt: success, or the failure and its diagnosis.

use std::borrow::Cow;

use unstuck_core::agent::{Agent, ParsedAgentOutput};
use unstuck_core::duration::to_millis;
use unstuck_core::event::{
    AttemptEnd, AttemptFailed, AttemptSucceeded, AttemptUsage, FailedCheck, FinishReason,
    LastApiCall, OutputExcerpt, RetryCause,
};
use unstuck_core::failure::LossyText;
use unstuck_core::loop_detection::{LoopSignal, detect_question_answer};
use unstuck_core::recovery_plan::shell_quote;
use unstuck_core::{
    Category, Classifier, ClockReading, Diagnosis, Event, Failure, FailureKind, FailureLayer,
    SessionId, Timestamp,
};

use super::check_outcome::CheckOutcome;
use super::excerpt::{MAX_EXCERPT_BYTES, tail_excerpt};
use super::knowledge::RunKnowledgeBase;
use super::merge_diagnosis::{is_api_failure, merge_diagnoses};
use super::output_tee::StreamTimestamps;
use super::run_request::RunAttemptOptions;
use crate::process::{ChildExitStatus, ProcessResult, ReachedTimeLimit};

/// The facts by which an attempt is evaluated.
pub(super) struct AttemptFacts<'a> {
    pub(super) session: &'a SessionId,
    pub(super) number: u32,
    pub(super) retry_with: Option<RetryCause>,
    pub(super) model: Option<String>,
    pub(super) command: &'a [String],
    /// Its standard input, if it was built for the attempt.
    pub(super) stdin: Option<&'a str>,
    /// The conversation that the agent was to use.
    pub(super) conversation: Option<String>,
    pub(super) agent: Option<&'a Agent>,
    pub(super) options: &'a RunAttemptOptions,
    pub(super) ended: &'a ProcessResult,
    /// The result of the check command, if there is one.
    pub(super) check: Option<&'a CheckOutcome>,
    /// The full standard output, if more than the usual excerpt is kept.
    pub(super) stdout: Option<&'a str>,
    /// Timestamps of the parts of its output.
    pub(super) times: &'a StreamTimestamps,
    /// The loop signal for which the agent was stopped.
    pub(super) loop_signal: Option<&'a LoopSignal>,
    /// The diagnosis of its newest API call, if the gateway saw it fail.
    pub(super) gateway_diagnosis: Option<&'a Diagnosis>,
    /// The end of that call, if the gateway saw it.
    pub(super) last_call: Option<&'a LastApiCall>,
    /// True if it was to resume a conversation.
    pub(super) is_resumed: bool,
    /// True if the agent runs headless, so that it exits when its task is done.
    pub(super) is_headless: bool,
    /// Usage measured by the gateway; used if the agent reports none.
    pub(super) gateway_usage: AttemptUsage,
    /// The resulting work tree.
    pub(super) tree: Option<String>,
    /// Timestamp of the last progress.
    pub(super) last_progress: Option<Timestamp>,
    /// Start of the current series of failed API calls, if the gateway saw them.
    pub(super) failing_since: Option<Timestamp>,
    /// True if it is a role of a pipeline, whose output other roles use.
    pub(super) is_role: bool,
    /// True if an answer that is only a question is a failure.
    pub(super) is_question_failure: bool,
}

/// The result of an attempt and its final answer.
pub(super) struct AttemptEvaluation {
    pub(super) event: Event,
    pub(super) answer: String,
    /// True if the answer was extracted and is not the whole output.
    pub(super) is_extracted: bool,
    /// The complete failure; the event keeps only the end of its output.
    pub(super) failure: Option<Failure>,
}

impl AttemptFacts<'_> {
    /// Evaluates the attempt.
    pub(super) fn evaluate(
        &self,
        knowledge: RunKnowledgeBase<'_>,
        now: &ClockReading,
    ) -> AttemptEvaluation {
        let stdout = match self.stdout {
            Some(whole) => whole.to_owned(),
            None => self.ended.stdout.text(),
        };
        let stderr = self.ended.stderr.text();
        let report = self.agent.map(|agent| agent.read_output(&stdout, &stderr));
        let text = match &report {
            // JSON without an answer in it means an empty answer.
            Some(report) => report.text.clone().unwrap_or_default(),
            None => stdout.clone(),
        };
        let event = self.outcome_event(knowledge, now, report.as_ref(), &text, (&stdout, &stderr));
        let failure = matches!(event, Event::AttemptFailed(_)).then(|| match self.failed_check() {
            Some(check) => check.failure(),
            None => self.failure(&stdout, &stderr, Vec::new()),
        });
        let event = match event {
            Event::AttemptFailed(mut attempt) => {
                attempt.lost_conversation = self.has_lost_conversation(&stdout, &stderr);
                Event::AttemptFailed(attempt)
            }
            other => other,
        };
        AttemptEvaluation {
            is_extracted: text != stdout,
            answer: text,
            event,
            failure,
        }
    }

    fn outcome_event(
        &self,
        knowledge: RunKnowledgeBase<'_>,
        now: &ClockReading,
        report: Option<&ParsedAgentOutput>,
        text: &str,
        (stdout, stderr): (&str, &str),
    ) -> Event {
        let wrong = self.validation_errors(text);
        let end = self.attempt_end(report);
        let asks = || {
            if self.is_only_question(text) {
                detect_question_answer(text)
            } else {
                None
            }
        };
        if let Some(sign) = self.loop_signal.cloned().or_else(asks) {
            return attempt_failed_event(end, sign.diagnosis(), Vec::new(), (stdout, stderr), None);
        }
        if let Some(diagnosis) = self.incomplete_end(report) {
            return attempt_failed_event(end, diagnosis, Vec::new(), (stdout, stderr), None);
        }
        if self.has_lost_conversation(stdout, stderr) {
            let said = "the conversation to resume no longer exists";
            let kind = FailureKind::InvalidArguments;
            let diagnosis =
                Diagnosis::from_observation(kind, FailureLayer::Agent, "lost_conversation", said);
            return attempt_failed_event(end, diagnosis, Vec::new(), (stdout, stderr), None);
        }
        let cut = self.is_output_truncated(text, stdout);
        if self.is_clearly_successful(text, &wrong) {
            return attempt_succeeded_event(end, cut);
        }
        let failure = self.failure(stdout, stderr, wrong);
        let mut diagnosis = match self.failed_check() {
            Some(check) => self.diagnose_check(check, &failure, knowledge.classifier(), now),
            None => {
                let own = self.diagnose(&failure, text, knowledge.classifier(), now);
                let own = match own.kind {
                    FailureKind::Unknown => self.unusable_response().unwrap_or(own),
                    _ => own,
                };
                merge_diagnoses(own, self.gateway_failure(), self.is_gateway_failure_cause())
            }
        };
        if self.is_certain(diagnosis.kind, text, !failure.validation_errors.is_empty()) {
            diagnosis.confidence = 1.0;
        }
        let is_fine =
            diagnosis.kind == FailureKind::None || self.has_recovered_from(&diagnosis, &failure);
        if is_fine && self.ended.status.is_success() {
            return attempt_succeeded_event(end, diagnosis.truncated || cut);
        }
        let check = self.failed_check().map(CheckOutcome::to_failed_check);
        attempt_failed_event(
            end,
            diagnosis,
            failure.validation_errors,
            (stdout, stderr),
            check,
        )
    }

    /// Diagnoses the failure; some agents report it only in their answer.
    fn diagnose(
        &self,
        failure: &Failure,
        text: &str,
        classifier: &Classifier,
        now: &ClockReading,
    ) -> Diagnosis {
        let diagnosis = classifier.diagnose(failure, now);
        let in_text = |agent: &Agent| agent.file().output.failures_in_text;
        let is_empty = self.agent.is_some() && text.trim().is_empty();
        if diagnosis.kind != FailureKind::None || !(is_empty || self.agent.is_some_and(in_text)) {
            return diagnosis;
        }
        let printed = self.times.stdout.last_output_at().map(|at| (0, at));
        let told = Failure {
            stdout: Some(LossyText::from(text).with_print_times(printed.into_iter().collect())),
            ..failure.clone()
        };
        classifier.diagnose(&told, now)
    }

    /// Returns the diagnosis of the gateway. An agent that ended well has recovered from it, unless it says otherwise.
    fn gateway_failure(&self) -> Option<&Diagnosis> {
        let in_text = |agent: &Agent| agent.file().output.failures_in_text;
        let is_told = !self.ended.status.is_success() || self.agent.is_some_and(in_text);
        self.gateway_diagnosis
            .filter(|_| is_told && self.ended.timed_out.is_none())
    }

    /// Returns true if it could not resume a conversation because the conversation does not exist.
    fn has_lost_conversation(&self, stdout: &str, stderr: &str) -> bool {
        let misses = |agent: &Agent| agent.reports_missing_conversation(stdout, stderr);
        self.is_resumed && !self.ended.status.is_success() && self.agent.is_some_and(misses)
    }

    /// Returns the evidence that an agent which ended well has no answer: its last API call, or truncated output.
    fn incomplete_end(&self, report: Option<&ParsedAgentOutput>) -> Option<Diagnosis> {
        let agent = self.agent.filter(|_| self.is_headless)?;
        if !self.ended.status.is_success() || self.ended.timed_out.is_some() {
            return None;
        }
        let observed = |kind, what, sentence: &str| {
            Some(Diagnosis::from_observation(
                kind,
                FailureLayer::Agent,
                what,
                sentence,
            ))
        };
        let decides = agent.file().output.last_call_decides;
        if let Some(last) = self.last_call.filter(|_| decides) {
            if !last.outcome.is_success() {
                let own = self.gateway_diagnosis.map(|trouble| Diagnosis {
                    layer: FailureLayer::Agent,
                    ..trouble.clone()
                });
                let said = "the last API call failed, but the agent exited with code 0";
                let kind = last.kind.unwrap_or(FailureKind::CliCrash);
                return own.or_else(|| observed(kind, "last_call", said));
            }
            if let Some(useless) = self.unusable_response() {
                return Some(useless);
            }
        }
        let is_unfinished = report.is_some_and(|report| report.is_unfinished);
        let said = "the output ends before the agent finished";
        is_unfinished
            .then(|| observed(FailureKind::CliCrash, "unfinished", said))
            .flatten()
    }

    /// Diagnoses a headless agent whose last API call got a response that it could not use.
    fn unusable_response(&self) -> Option<Diagnosis> {
        let last = self.last_call.filter(|last| {
            self.is_headless && self.ended.timed_out.is_none() && last.outcome.is_success()
        })?;
        let refused = matches!(
            last.finish,
            Some(FinishReason::Refusal | FinishReason::ContentFilter)
        );
        let (kind, said) = match (refused, last.is_empty) {
            (true, _) => (
                FailureKind::ContentFilter,
                "the last API response was a refusal",
            ),
            (false, true) => (FailureKind::EmptyOutput, "the last API response was empty"),
            (false, false) => return None,
        };
        Some(Diagnosis::from_observation(
            kind,
            FailureLayer::Agent,
            "last_call",
            said,
        ))
    }

    /// Returns true if its message is about a failed API call that it has recovered from: a later one succeeded.
    fn has_recovered_from(&self, diagnosis: &Diagnosis, failure: &Failure) -> bool {
        let is_answered =
            |last: &LastApiCall| last.is_usable() && last.finish != Some(FinishReason::ToolUse);
        is_api_failure(diagnosis.kind)
            && self.ended.timed_out.is_none()
            && self.failed_check().is_none()
            && failure.validation_errors.is_empty()
            && self.last_call.is_some_and(is_answered)
    }

    /// Returns true if the failed API call ended the agent: its last call, and no signal.
    fn is_gateway_failure_cause(&self) -> bool {
        let is_last = self.last_call.is_some_and(|last| !last.is_usable());
        is_last && matches!(self.ended.status, ChildExitStatus::Exited(_))
    }

    /// Returns true if an answer may be nothing but a question: a few lines without evidence of work.
    fn is_only_question(&self, text: &str) -> bool {
        let expect = &self.options.expect;
        let shown = !expect.sections.is_empty()
            || expect.json.is_some()
            || expect.diff
            || !expect.matches.is_empty()
            || self.options.check.is_some();
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        self.is_question_failure && self.ended.status.is_success() && !shown && lines.count() <= 3
    }

    /// Returns true if the output that others use is truncated; the answer that an agent reports is complete.
    fn is_output_truncated(&self, text: &str, stdout: &str) -> bool {
        let omitted = self.stdout.is_none() && self.ended.stdout.omitted() > 0;
        self.is_role && omitted && text == stdout
    }

    /// Returns the errors of the output checks.
    fn validation_errors(&self, text: &str) -> Vec<String> {
        if !self.ended.status.is_success() {
            return Vec::new();
        }
        let mut wrong = self.options.expect.check(text);
        wrong.extend(self.failed_check().map(CheckOutcome::failure_message));
        wrong
    }

    /// Returns true if unstuck itself observed what the diagnosis says and does not depend on text.
    fn is_certain(&self, kind: FailureKind, text: &str, checked: bool) -> bool {
        match kind {
            FailureKind::Timeout => self.ended.timed_out.is_some(),
            FailureKind::EmptyOutput => self.ended.status.is_success() && text.trim().is_empty(),
            FailureKind::MissingSections
            | FailureKind::FormatValidation
            | FailureKind::DiffParseError => checked,
            _ => false,
        }
    }

    fn failed_check(&self) -> Option<&CheckOutcome> {
        self.check.filter(|check| !check.ended.status.is_success())
    }

    /// An agent may report a failure with exit code 0; for any other command the exit code decides.
    fn is_clearly_successful(&self, text: &str, wrong: &[String]) -> bool {
        let fine = self.ended.status.is_success()
            && wrong.is_empty()
            && self.failed_check().is_none()
            && self.options.expect.is_met_by(text);
        // For any other program that runs as a role, the exit code decides, too.
        let any_program = |agent: &Agent| agent.file().call.command.is_empty();
        let by_code = self.agent.is_none_or(any_program) || self.options.interactive;
        fine && (by_code && !text.trim().is_empty()
            || self.agent.is_none()
            || text.trim().is_empty())
    }

    /// Returns its output without the prompt that some agents print first: failures quoted in a prompt are not its own.
    fn without_prompt<'t>(&self, text: &'t str) -> Cow<'t, str> {
        const SHORTEST: usize = 24;
        let told = self.command.iter().map(String::as_str).chain(self.stdin);
        let prompts = told
            .map(str::trim)
            .filter(|word| self.agent.is_some() && word.len() >= SHORTEST && word.contains(' '));
        prompts.fold(Cow::Borrowed(text), |text, prompt| {
            if text.contains(prompt) {
                Cow::Owned(text.replace(prompt, &blank_out(prompt)))
            } else {
                text
            }
        })
    }

    fn failure(&self, stdout: &str, stderr: &str, wrong: Vec<String>) -> Failure {
        let name = self.command.first().map(String::as_str).unwrap_or_default();
        let base = match self.agent {
            Some(agent) => Failure::agent(agent.id()),
            // Expectations of an output apply to agents, whatever the file is called.
            None if self.ended.status.is_success() && self.failed_check().is_none() => {
                Failure::agent(name)
            }
            None => Failure::tool(name),
        };
        let mut failure = Failure {
            command: Some(quote_command(self.command)),
            stdout: Some(
                LossyText::from(&*self.without_prompt(stdout))
                    .with_print_times(self.stdout_times()),
            ),
            stderr: Some(
                LossyText::from(&*self.without_prompt(stderr))
                    .with_print_times(self.times.stderr.by_text_offset(&self.ended.stderr)),
            ),
            timed_out: self.ended.timed_out.is_some(),
            validation_errors: wrong,
            expects_diff: self.options.expect.diff,
            ..base
        };
        match &self.ended.status {
            ChildExitStatus::Signaled(signal) => failure.signal = Some(*signal),
            ChildExitStatus::NotFound(_) => {
                failure.exit_code = Some(self.ended.status.code());
                failure.stderr = Some(format!("{name}: command not found").into());
            }
            ChildExitStatus::NotExecutable(why) | ChildExitStatus::CannotStart(why) => {
                failure.exit_code = Some(self.ended.status.code());
                failure.stderr = Some(why.as_str().into());
            }
            ChildExitStatus::Exited(code) => failure.exit_code = Some(*code),
        }
        failure
    }

    /// Returns the timestamps of the parts of the standard output, by their offsets in its text.
    fn stdout_times(&self) -> Vec<(usize, Timestamp)> {
        match self.stdout {
            Some(_) => self.times.stdout.by_stream_offset(),
            None => self.times.stdout.by_text_offset(&self.ended.stdout),
        }
    }

    /// Diagnoses a failed check: the cause if its output has one; otherwise, that the work is not done.
    fn diagnose_check(
        &self,
        check: &CheckOutcome,
        failure: &Failure,
        classifier: &Classifier,
        now: &ClockReading,
    ) -> Diagnosis {
        let mut diagnosis = classifier.diagnose(&check.failure(), now);
        let is_cause = matches!(
            diagnosis.category(),
            Category::Transient | Category::Systematic | Category::Fatal
        );
        if !is_cause && self.agent.is_some() {
            diagnosis = classifier.diagnose(failure, now);
            diagnosis.layer = FailureLayer::Infra;
            diagnosis.evidence.line = check.failure_message();
        } else if diagnosis.evidence.line.is_empty() {
            diagnosis.evidence.line = check.failure_message();
        }
        diagnosis
    }

    fn usage(&self, report: Option<&ParsedAgentOutput>) -> AttemptUsage {
        let told = report.cloned().unwrap_or_default();
        let is_told = told.cost_usd.is_some() || told.tokens.is_some();
        let is_counted =
            self.gateway_usage.cost_usd.is_some() || self.gateway_usage.tokens.is_some();
        AttemptUsage {
            cost_usd: told.cost_usd.or(self.gateway_usage.cost_usd),
            tokens: told.tokens.or(self.gateway_usage.tokens),
            agent_session: told.session.or_else(|| self.conversation.clone()),
            turns: told.turns,
            is_from_gateway: is_counted && (!is_told || told.cost_usd.is_none()),
            context_tokens: told.context_tokens,
        }
    }

    fn attempt_end(&self, report: Option<&ParsedAgentOutput>) -> AttemptEnd {
        let ended = self.ended;
        let (exit_code, signal) = match ended.status {
            ChildExitStatus::Signaled(signal) => (None, Some(signal)),
            _ => (Some(ended.status.code()), None),
        };
        AttemptEnd {
            session: self.session.clone(),
            number: self.number,
            exit_code,
            signal,
            limit: ended.timed_out.map(|limit| match limit {
                ReachedTimeLimit::Timeout => "timeout".into(),
                ReachedTimeLimit::IdleTimeout => "idle_timeout".into(),
            }),
            duration_ms: to_millis(ended.duration),
            stdout_bytes: ended.stdout.total(),
            stderr_bytes: ended.stderr.total(),
            leftover_processes: ended.leftover_count,
            model: report
                .and_then(|report| report.model.clone())
                .or(self.model.clone()),
            cause: self.retry_with.clone(),
            usage: self.usage(report),
            tree: self.tree.clone(),
            last_progress: self.last_progress,
            failing_since: self.failing_since,
        }
    }
}

fn attempt_failed_event(
    end: AttemptEnd,
    diagnosis: Diagnosis,
    validation_errors: Vec<String>,
    (stdout, stderr): (&str, &str),
    check: Option<FailedCheck>,
) -> Event {
    Event::from(Box::new(AttemptFailed {
        end,
        diagnosis,
        validation_errors,
        excerpt: OutputExcerpt {
            stdout: tail_excerpt(stdout, MAX_EXCERPT_BYTES),
            stderr: tail_excerpt(stderr, MAX_EXCERPT_BYTES),
        },
        check,
        lost_conversation: false,
    }))
}

fn attempt_succeeded_event(end: AttemptEnd, truncated: bool) -> Event {
    Event::from(Box::new(AttemptSucceeded { end, truncated }))
}

/// Replaces a text by blanks, line for line and byte for byte, so that the offsets behind it stay the same.
fn blank_out(text: &str) -> String {
    let blank = |byte: u8| if byte == b'\n' { '\n' } else { ' ' };
    text.bytes().map(blank).collect()
}

fn quote_command(command: &[String]) -> String {
    let words: Vec<_> = command.iter().map(|word| shell_quote(word)).collect();
    words.join(" ")
}
