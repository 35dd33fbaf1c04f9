//! Whether an attempt did what it should, and if not, what it was that failed.

use std::borrow::Cow;

use unstuck_core::action::shell_quote;
use unstuck_core::agent::{Agent, Report};
use unstuck_core::duration::in_millis;
use unstuck_core::event::{
    Answering, AttemptEnd, AttemptFailed, AttemptSucceeded, Excerpt, FailedCheck, Finish, LastCall,
    Measured,
};
use unstuck_core::failure::Text;
use unstuck_core::stuck::{StuckSign, asks_back};
use unstuck_core::{
    Category, Classifier, Diagnosis, Event, Failure, Kind, Layer, Now, SessionId, Timestamp,
};

use super::better_evidence::{better, is_about_api};
use super::checked::Checked;
use super::knowledge::Knowledge;
use super::passage::StreamTimes;
use super::request::Options;
use super::tail::{EXCERPT, end_of};
use crate::process::{Ended, Limit, Status};

/// What an attempt is judged by.
pub(super) struct Case<'a> {
    pub(super) session: &'a SessionId,
    pub(super) number: u32,
    pub(super) answering: Option<Answering>,
    pub(super) model: Option<String>,
    pub(super) command: &'a [String],
    /// What it got on its standard input, where that was made for it.
    pub(super) stdin: Option<&'a str>,
    /// The conversation that the agent was told to use.
    pub(super) conversation: Option<String>,
    pub(super) agent: Option<&'a Agent>,
    pub(super) options: &'a Options,
    pub(super) ended: &'a Ended,
    /// What the check that must pass afterwards came to, where there is one.
    pub(super) check: Option<&'a Checked>,
    /// All of the standard output, where more of it is kept than usual.
    pub(super) stdout: Option<&'a str>,
    /// When the parts of its output were printed.
    pub(super) times: &'a StreamTimes,
    /// What shows that the agent was stuck, if it was stopped because of that.
    pub(super) stuck: Option<&'a StuckSign>,
    /// What its newest call to its API failed of, where somebody saw it.
    pub(super) trouble: Option<&'a Diagnosis>,
    /// How that call ended, where somebody saw it.
    pub(super) last_call: Option<&'a LastCall>,
    /// Whether it was to go on with a conversation.
    pub(super) is_resumed: bool,
    /// Whether the agent runs without a person, so that its end is that of its task.
    pub(super) is_headless: bool,
    /// What its calls used, where somebody saw them; it counts for what the agent does not tell.
    pub(super) counted: Measured,
    /// What it made of the work tree.
    pub(super) tree: Option<String>,
    /// When there was progress last.
    pub(super) last_progress: Option<Timestamp>,
    /// Since when its API calls have been failing, where somebody saw them.
    pub(super) failing_since: Option<Timestamp>,
    /// Whether it is a role of a pipeline, which others build on.
    pub(super) is_role: bool,
    /// Whether an answer that only asks back is a failure.
    pub(super) asks_back: bool,
}

/// What came of an attempt, and its final answer.
pub(super) struct Judged {
    pub(super) event: Event,
    pub(super) answer: String,
    /// Whether the answer was found in the output and is not all of it.
    pub(super) is_extracted: bool,
    /// All that was seen of what failed; the event keeps only the end of it.
    pub(super) failure: Option<Failure>,
}

impl Case<'_> {
    /// What came of the attempt.
    pub(super) fn judge(&self, knowledge: Knowledge<'_>, now: &Now) -> Judged {
        let stdout = match self.stdout {
            Some(whole) => whole.to_owned(),
            None => self.ended.stdout.text(),
        };
        let stderr = self.ended.stderr.text();
        let report = self.agent.map(|agent| agent.read_output(&stdout, &stderr));
        let text = match &report {
            // JSON without an answer in it is none.
            Some(report) => report.text.clone().unwrap_or_default(),
            None => stdout.clone(),
        };
        let event = self.event(knowledge, now, report.as_ref(), &text, (&stdout, &stderr));
        let failure = matches!(event, Event::AttemptFailed(_)).then(|| match self.failed_check() {
            Some(check) => check.failure(),
            None => self.failure(&stdout, &stderr, Vec::new()),
        });
        let event = match event {
            Event::AttemptFailed(mut attempt) => {
                attempt.lost_conversation = self.lost_conversation(&stdout, &stderr);
                Event::AttemptFailed(attempt)
            }
            other => other,
        };
        Judged {
            is_extracted: text != stdout,
            answer: text,
            event,
            failure,
        }
    }

    fn event(
        &self,
        knowledge: Knowledge<'_>,
        now: &Now,
        report: Option<&Report>,
        text: &str,
        (stdout, stderr): (&str, &str),
    ) -> Event {
        let wrong = self.wrong(text);
        let end = self.end(report);
        let asks = || match self.only_asks(text) {
            true => asks_back(text),
            false => None,
        };
        if let Some(sign) = self.stuck.cloned().or_else(asks) {
            return failed(end, sign.diagnosis(), Vec::new(), (stdout, stderr), None);
        }
        if let Some(diagnosis) = self.broken_end(report) {
            return failed(end, diagnosis, Vec::new(), (stdout, stderr), None);
        }
        if self.lost_conversation(stdout, stderr) {
            let said = "the conversation that it was to go on with is not there any more";
            let kind = Kind::InvalidArguments;
            let diagnosis = Diagnosis::observed(kind, Layer::Agent, "lost_conversation", said);
            return failed(end, diagnosis, Vec::new(), (stdout, stderr), None);
        }
        let cut = self.is_cut(text, stdout);
        if self.is_plainly_fine(text, &wrong) {
            return succeeded(end, cut);
        }
        let failure = self.failure(stdout, stderr, wrong);
        let mut diagnosis = match self.failed_check() {
            Some(check) => self.of_check(check, &failure, knowledge.classifier(), now),
            None => {
                let own = self.diagnosed(&failure, text, knowledge.classifier(), now);
                let own = match own.kind {
                    Kind::Unknown => self.useless_answer().unwrap_or(own),
                    _ => own,
                };
                better(own, self.seen_trouble(), self.is_cause_seen())
            }
        };
        if self.is_certain(diagnosis.kind, text, !failure.validation_errors.is_empty()) {
            diagnosis.confidence = 1.0;
        }
        let is_fine = diagnosis.kind == Kind::None || self.got_over(&diagnosis, &failure);
        if is_fine && self.ended.status.is_success() {
            return succeeded(end, diagnosis.truncated || cut);
        }
        let check = self.failed_check().map(Checked::kept);
        failed(
            end,
            diagnosis,
            failure.validation_errors,
            (stdout, stderr),
            check,
        )
    }

    /// What failed; of some agents only the answer tells it.
    fn diagnosed(
        &self,
        failure: &Failure,
        text: &str,
        classifier: &Classifier,
        now: &Now,
    ) -> Diagnosis {
        let diagnosis = classifier.diagnose(failure, now);
        let in_text = |agent: &Agent| agent.file().output.failures_in_text;
        let is_empty = self.agent.is_some() && text.trim().is_empty();
        if diagnosis.kind != Kind::None || !(is_empty || self.agent.is_some_and(in_text)) {
            return diagnosis;
        }
        let printed = self.times.stdout.last().map(|at| (0, at));
        let told = Failure {
            stdout: Some(Text::from(text).printed_at(printed.into_iter().collect())),
            ..failure.clone()
        };
        classifier.diagnose(&told, now)
    }

    /// What was seen between it and its API. An agent that ended well has got over it, unless only its words tell.
    fn seen_trouble(&self) -> Option<&Diagnosis> {
        let in_text = |agent: &Agent| agent.file().output.failures_in_text;
        let is_told = !self.ended.status.is_success() || self.agent.is_some_and(in_text);
        self.trouble
            .filter(|_| is_told && self.ended.timed_out.is_none())
    }

    /// Whether it could not go on with a conversation because there is none.
    fn lost_conversation(&self, stdout: &str, stderr: &str) -> bool {
        let misses = |agent: &Agent| agent.misses_conversation(stdout, stderr);
        self.is_resumed && !self.ended.status.is_success() && self.agent.is_some_and(misses)
    }

    /// What shows that an agent which ended well has no answer: its last API call, or its own output that breaks off.
    fn broken_end(&self, report: Option<&Report>) -> Option<Diagnosis> {
        let agent = self.agent.filter(|_| self.is_headless)?;
        if !self.ended.status.is_success() || self.ended.timed_out.is_some() {
            return None;
        }
        let observed = |kind, what, sentence: &str| {
            Some(Diagnosis::observed(kind, Layer::Agent, what, sentence))
        };
        let decides = agent.file().output.last_call_decides;
        if let Some(last) = self.last_call.filter(|_| decides) {
            if !last.outcome.is_success() {
                let own = self.trouble.map(|trouble| Diagnosis {
                    layer: Layer::Agent,
                    ..trouble.clone()
                });
                let said = "its last API call failed, and it ended all the same";
                let kind = last.kind.unwrap_or(Kind::CliCrash);
                return own.or_else(|| observed(kind, "last_call", said));
            }
            if let Some(useless) = self.useless_answer() {
                return Some(useless);
            }
        }
        let is_unfinished = report.is_some_and(|report| report.is_unfinished);
        let said = "its output breaks off before its run came to an end";
        is_unfinished
            .then(|| observed(Kind::CliCrash, "unfinished", said))
            .flatten()
    }

    /// The last API call of an agent without a person was answered, but with nothing that it could go on with.
    fn useless_answer(&self) -> Option<Diagnosis> {
        let last = self.last_call.filter(|last| {
            self.is_headless && self.ended.timed_out.is_none() && last.outcome.is_success()
        })?;
        let refused = matches!(last.finish, Some(Finish::Refusal | Finish::ContentFilter));
        let (kind, said) = match (refused, last.is_empty) {
            (true, _) => (
                Kind::ContentFilter,
                "the last answer of its API was a refusal",
            ),
            (false, true) => (Kind::EmptyOutput, "the last answer of its API was empty"),
            (false, false) => return None,
        };
        Some(Diagnosis::observed(kind, Layer::Agent, "last_call", said))
    }

    /// Whether its words tell of a failed API call that it has got over: a later one was answered.
    fn got_over(&self, diagnosis: &Diagnosis, failure: &Failure) -> bool {
        let is_answered =
            |last: &LastCall| last.is_usable() && last.finish != Some(Finish::ToolUse);
        is_about_api(diagnosis.kind)
            && self.ended.timed_out.is_none()
            && self.failed_check().is_none()
            && failure.validation_errors.is_empty()
            && self.last_call.is_some_and(is_answered)
    }

    /// Whether the failed call that was seen is what ended the agent: its last one, and no signal.
    fn is_cause_seen(&self) -> bool {
        let is_last = self.last_call.is_some_and(|last| !last.is_usable());
        is_last && matches!(self.ended.status, Status::Exited(_))
    }

    /// Whether an answer may be nothing but a question: a few lines, and nothing that shows the work.
    fn only_asks(&self, text: &str) -> bool {
        let expect = &self.options.expect;
        let shown = !expect.sections.is_empty()
            || expect.json.is_some()
            || expect.diff
            || !expect.matches.is_empty()
            || self.options.check.is_some();
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        self.asks_back && self.ended.status.is_success() && !shown && lines.count() <= 3
    }

    /// Whether what others build on is not all that was written; what an agent reports as its answer is whole.
    fn is_cut(&self, text: &str, stdout: &str) -> bool {
        let omitted = self.stdout.is_none() && self.ended.stdout.omitted() > 0;
        self.is_role && omitted && text == stdout
    }

    /// What the checks of the output found wrong.
    fn wrong(&self, text: &str) -> Vec<String> {
        if !self.ended.status.is_success() {
            return Vec::new();
        }
        let mut wrong = self.options.expect.check(text);
        wrong.extend(self.failed_check().map(Checked::complaint));
        wrong
    }

    /// Whether unstuck has seen itself what the diagnosis says, and need not go by words.
    fn is_certain(&self, kind: Kind, text: &str, checked: bool) -> bool {
        match kind {
            Kind::Timeout => self.ended.timed_out.is_some(),
            Kind::EmptyOutput => self.ended.status.is_success() && text.trim().is_empty(),
            Kind::MissingSections | Kind::FormatValidation | Kind::DiffParseError => checked,
            _ => false,
        }
    }

    fn failed_check(&self) -> Option<&Checked> {
        self.check.filter(|check| !check.ended.status.is_success())
    }

    /// An agent may say with exit code 0 that it failed; of any other command the code says all.
    fn is_plainly_fine(&self, text: &str, wrong: &[String]) -> bool {
        let fine = self.ended.status.is_success()
            && wrong.is_empty()
            && self.failed_check().is_none()
            && self.options.expect.met_by(text);
        // Of any program that plays a role the exit code says all, too.
        let any_program = |agent: &Agent| agent.file().call.command.is_empty();
        let by_code = self.agent.is_none_or(any_program) || self.options.interactive;
        fine && (by_code && !text.trim().is_empty()
            || self.agent.is_none()
            || text.trim().is_empty())
    }

    /// What it wrote, without the prompt that some agents print first: what stands there of failures is not its own.
    fn without_prompt<'t>(&self, text: &'t str) -> Cow<'t, str> {
        const SHORTEST: usize = 24;
        let told = self.command.iter().map(String::as_str).chain(self.stdin);
        let prompts = told
            .map(str::trim)
            .filter(|word| self.agent.is_some() && word.len() >= SHORTEST && word.contains(' '));
        prompts.fold(Cow::Borrowed(text), |text, prompt| {
            match text.contains(prompt) {
                true => Cow::Owned(text.replace(prompt, &blank(prompt))),
                false => text,
            }
        })
    }

    fn failure(&self, stdout: &str, stderr: &str, wrong: Vec<String>) -> Failure {
        let name = self.command.first().map(String::as_str).unwrap_or_default();
        let base = match self.agent {
            Some(agent) => Failure::agent(agent.id()),
            // What is expected of an output is expected of an agent, whatever its name.
            None if self.ended.status.is_success() && self.failed_check().is_none() => {
                Failure::agent(name)
            }
            None => Failure::tool(name),
        };
        let mut failure = Failure {
            command: Some(quoted(self.command)),
            stdout: Some(Text::from(&*self.without_prompt(stdout)).printed_at(self.stdout_times())),
            stderr: Some(
                Text::from(&*self.without_prompt(stderr))
                    .printed_at(self.times.stderr.in_text(&self.ended.stderr)),
            ),
            timed_out: self.ended.timed_out.is_some(),
            validation_errors: wrong,
            expects_diff: self.options.expect.diff,
            ..base
        };
        match &self.ended.status {
            Status::Signaled(signal) => failure.signal = Some(*signal),
            Status::NotFound(_) => {
                failure.exit_code = Some(self.ended.status.code());
                failure.stderr = Some(format!("{name}: command not found").into());
            }
            Status::NotExecutable(why) | Status::CannotStart(why) => {
                failure.exit_code = Some(self.ended.status.code());
                failure.stderr = Some(why.as_str().into());
            }
            Status::Exited(code) => failure.exit_code = Some(*code),
        }
        failure
    }

    /// When the parts of the standard output were printed, by their places in its text.
    fn stdout_times(&self) -> Vec<(usize, Timestamp)> {
        match self.stdout {
            Some(_) => self.times.stdout.in_whole(),
            None => self.times.stdout.in_text(&self.ended.stdout),
        }
    }

    /// What a failed check says: the cause, where its own output tells one; otherwise, that the work is not done.
    fn of_check(
        &self,
        check: &Checked,
        failure: &Failure,
        classifier: &Classifier,
        now: &Now,
    ) -> Diagnosis {
        let mut diagnosis = classifier.diagnose(&check.failure(), now);
        let is_cause = matches!(
            diagnosis.category(),
            Category::Transient | Category::Systematic | Category::Fatal
        );
        if !is_cause && self.agent.is_some() {
            diagnosis = classifier.diagnose(failure, now);
            diagnosis.layer = Layer::Infra;
            diagnosis.evidence.line = check.complaint();
        } else if diagnosis.evidence.line.is_empty() {
            diagnosis.evidence.line = check.complaint();
        }
        diagnosis
    }

    fn used(&self, report: Option<&Report>) -> Measured {
        let told = report.cloned().unwrap_or_default();
        let is_told = told.cost_usd.is_some() || told.tokens.is_some();
        let is_counted = self.counted.cost_usd.is_some() || self.counted.tokens.is_some();
        Measured {
            cost_usd: told.cost_usd.or(self.counted.cost_usd),
            tokens: told.tokens.or(self.counted.tokens),
            agent_session: told.session.or_else(|| self.conversation.clone()),
            turns: told.turns,
            is_counted: is_counted && (!is_told || told.cost_usd.is_none()),
            context_tokens: told.context_tokens,
        }
    }

    fn end(&self, report: Option<&Report>) -> AttemptEnd {
        let ended = self.ended;
        let (exit_code, signal) = match ended.status {
            Status::Signaled(signal) => (None, Some(signal)),
            _ => (Some(ended.status.code()), None),
        };
        AttemptEnd {
            session: self.session.clone(),
            number: self.number,
            exit_code,
            signal,
            limit: ended.timed_out.map(|limit| match limit {
                Limit::Timeout => "timeout".into(),
                Limit::IdleTimeout => "idle_timeout".into(),
            }),
            duration_ms: in_millis(ended.duration),
            stdout_bytes: ended.stdout.total(),
            stderr_bytes: ended.stderr.total(),
            left: ended.left,
            model: report
                .and_then(|report| report.model.clone())
                .or(self.model.clone()),
            answering: self.answering.clone(),
            used: self.used(report),
            tree: self.tree.clone(),
            last_progress: self.last_progress,
            failing_since: self.failing_since,
        }
    }
}

fn failed(
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
        excerpt: Excerpt {
            stdout: end_of(stdout, EXCERPT),
            stderr: end_of(stderr, EXCERPT),
        },
        check,
        lost_conversation: false,
    }))
}

fn succeeded(end: AttemptEnd, truncated: bool) -> Event {
    Event::from(Box::new(AttemptSucceeded { end, truncated }))
}

/// Blanks in the place of a text, line for line and byte for byte, so that what follows stands where it stood.
fn blank(text: &str) -> String {
    let blank = |byte: u8| if byte == b'\n' { '\n' } else { ' ' };
    text.bytes().map(blank).collect()
}

fn quoted(command: &[String]) -> String {
    let words: Vec<_> = command.iter().map(|word| shell_quote(word)).collect();
    words.join(" ")
}
