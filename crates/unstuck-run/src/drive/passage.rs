//! The way of a child's output, to the person and to the files, and what is watched for meanwhile.

use tokio::time::Instant;
use unstuck_core::agent::Agent;
use unstuck_core::redact::Redactor;
use unstuck_core::stuck::{StuckLimits, StuckSign, ToolResults, Watcher};
use unstuck_core::{Recovery, Timestamp};

use super::answer_file::AnswerFile;
use super::go_between::Attendance;
use super::input::Input;
use super::print_times::PrintTimes;
use super::report::{Channel, Reporter};
use crate::folder::Log as Kept;
use crate::process::Sink;

/// How much of an output can be judged and built on as a whole: 16 MiB.
pub(super) const LONGEST: usize = 16 << 20;

/// The way of a child's output: to the person, and to the files.
pub(super) struct Passage<'a, 'r> {
    pub(super) reporter: &'a mut dyn Reporter,
    pub(super) recovery: &'a Recovery,
    pub(super) since: Timestamp,
    pub(super) clock: crate::clock::Clock,
    pub(super) stdout: Option<Kept<'r>>,
    pub(super) stderr: Option<Kept<'r>>,
    pub(super) input: Option<Input>,
    pub(super) redactor: &'r Redactor,
    pub(super) watch: Option<Watch>,
    pub(super) attended: Option<Attended<'a>>,
    /// What is judged as a whole, or built on: all of the standard output, up to its limit.
    pub(super) whole: Option<Vec<u8>>,
    /// When the parts of the standard output came.
    pub(super) stdout_times: PrintTimes,
    /// When the parts of the standard error came.
    pub(super) stderr_times: PrintTimes,
    /// Gets the answer of this attempt, where it is to be kept in a file.
    pub(super) answer: Option<AnswerFile>,
    /// Sees the tool results of the agent, where its stream tells them.
    pub(super) results: Option<ToolResults>,
    /// When the last of them came.
    pub(super) last_result: Option<Timestamp>,
}

/// What a passage has gathered when the child has ended.
pub(super) struct Gathered {
    /// What shows that the agent was stuck, if it was.
    pub(super) stuck: Option<StuckSign>,
    /// All of the standard output, where it is kept.
    pub(super) whole: Option<Vec<u8>>,
    /// The answer for a file, where there is one.
    pub(super) answer: Option<AnswerFile>,
    /// When the last tool result came.
    pub(super) last_result: Option<Timestamp>,
    /// When the parts of the two streams came.
    pub(super) times: StreamTimes,
}

/// When the parts of the two streams of an attempt were printed.
#[derive(Debug, Clone, Default)]
pub(super) struct StreamTimes {
    pub(super) stdout: PrintTimes,
    pub(super) stderr: PrintTimes,
}

impl Passage<'_, '_> {
    /// Brings the files to their end, and tells whether the agent was stuck, and what it wrote.
    pub(super) fn finish(mut self) -> Gathered {
        self.tell_news();
        for kept in [self.stdout.take(), self.stderr.take()]
            .into_iter()
            .flatten()
        {
            kept.finish();
        }
        let seen = self.attended.and_then(|attended| attended.sign);
        let sign = self.watch.and_then(|watch| watch.sign).or(seen);
        Gathered {
            stuck: sign,
            whole: self.whole,
            answer: self.answer,
            last_result: self.last_result,
            times: StreamTimes {
                stdout: self.stdout_times,
                stderr: self.stderr_times,
            },
        }
    }
}

/// Somebody stands between the agent and its API.
pub(super) struct Attended<'a> {
    pub(super) attendance: &'a mut (dyn Attendance + 'static),
    /// What the agent is called where there are several.
    pub(super) name: Option<String>,
    /// What showed that the agent goes in circles, while it ran.
    pub(super) sign: Option<StuckSign>,
}

impl Passage<'_, '_> {
    /// Tells what was seen between the agent and its API.
    fn tell_news(&mut self) {
        let Some(attended) = &mut self.attended else {
            return;
        };
        for line in attended.attendance.news() {
            match &attended.name {
                Some(name) => self.reporter.note(&format!("{name}: {line}")),
                None => self.reporter.note(&line),
            }
        }
    }

    fn is_stuck(&self) -> bool {
        let by_watch = self
            .watch
            .as_ref()
            .is_some_and(|watch| watch.sign.is_some());
        let attended = self.attended.as_ref();
        by_watch || attended.is_some_and(|attended| attended.sign.is_some())
    }
}

/// Looks whether an agent goes round in circles while it runs.
pub(super) struct Watch {
    watcher: Watcher,
    wrote: Instant,
    sign: Option<StuckSign>,
}

impl Watch {
    pub(super) fn new(limits: &StuckLimits, agent: Option<&Agent>) -> Self {
        Self {
            watcher: Watcher::new(limits, agent),
            wrote: Instant::now(),
            sign: None,
        }
    }

    fn wrote(&mut self) {
        self.wrote = Instant::now();
        if self.sign.is_none() {
            self.sign = self.watcher.verdict();
        }
    }

    fn tick(&mut self) {
        if self.sign.is_none() {
            self.sign = self.watcher.silent(self.wrote.elapsed());
        }
    }
}

impl Sink for Passage<'_, '_> {
    fn stdout(&mut self, bytes: &[u8]) {
        self.reporter.output(Channel::Stdout, bytes);
        self.stdout_times.printed(bytes.len(), self.clock.at());
        if let Some(results) = &mut self.results
            && results.stdout(bytes)
        {
            self.last_result = Some(self.clock.at());
        }
        if let Some(whole) = &mut self.whole {
            let left = LONGEST.saturating_sub(whole.len());
            whole.extend_from_slice(&bytes[..bytes.len().min(left)]);
        }
        if let Some(answer) = &mut self.answer {
            answer.push(bytes);
        }
        if let Some(watch) = &mut self.watch {
            watch.watcher.stdout(bytes);
            watch.wrote();
        }
        if let Some(kept) = &mut self.stdout {
            kept.push(bytes);
        }
    }

    fn stderr(&mut self, bytes: &[u8]) {
        self.reporter.output(Channel::Stderr, bytes);
        self.stderr_times.printed(bytes.len(), self.clock.at());
        if let Some(watch) = &mut self.watch {
            watch.watcher.stderr(bytes);
            watch.wrote();
        }
        if let Some(kept) = &mut self.stderr {
            kept.push(bytes);
        }
    }

    fn input(&mut self, so_far: &[u8], complete: bool) {
        if let Some(input) = &mut self.input {
            input.came(so_far, complete, self.redactor);
        }
    }

    fn ticks(&self) -> bool {
        self.reporter.live() || self.watch.is_some() || self.attended.is_some()
    }

    fn is_open(&self) -> bool {
        self.reporter.is_open() && !self.is_stuck()
    }

    fn tick(&mut self) {
        if let Some(watch) = &mut self.watch {
            watch.tick();
        }
        self.tell_news();
        if let Some(attended) = &mut self.attended {
            attended.sign = attended.attendance.stuck();
        }
        if !self.reporter.live() {
            return;
        }
        let elapsed = self.clock.at().since(self.since);
        let attended = self.attended.as_ref();
        match attended.and_then(|attended| attended.attendance.waits_until()) {
            Some(until) => self.reporter.calling(elapsed, until, self.recovery),
            None => self.reporter.running(elapsed, self.recovery),
        }
    }
}
