//! One attempt: start the child, pass on what it writes, judge what came of it.
#![expect(
    clippy::disallowed_methods,
    reason = "files in the state folder, out of the agents' reach"
)]

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use unstuck_core::decision::{Capability, WaitFor};
use unstuck_core::duration::in_millis;
use unstuck_core::event::{
    AttemptInterrupted, AttemptStarted, InterruptedBy, LastCall, Measured, WaitingUntil,
};
use unstuck_core::money::BudgetLimit;
use unstuck_core::recovery::{AttemptPlan, Next};
use unstuck_core::stuck::{StuckSign, ToolResults};
use unstuck_core::{Diagnosis, Event, Timestamp};

use super::answer_file::AnswerFile;
use super::around::Moment;
use super::checked::Checked;
use super::command::{Changer, Line, Since};
use super::engine::{CutOff, Engine, stopped};
use super::error::RunError;
use super::escape::unescape;
use super::go_between::{Attendance, Errand};
use super::input::Input;
use super::interruption::Interruption;
use super::judge::{Case, Judged};
use super::lease::lost;
use super::log::Log;
use super::passage::{Attended, LONGEST, Passage, StreamTimes, Watch};
use super::print_times::PrintTimes;
use super::repair::documents;
use super::supervisors::Taken;
use crate::folder;
use crate::inside::OUTER_RETRIES;
use crate::process::{
    Captured, Discard, Ended, HEAD, Inherits, Limits, ProcessId, Recorded, Spec, Status, Stdin,
    Stop, Supervisor, TAIL,
};

/// What a conversation is told when the files that it knows are not what they were.
const WORK_TREE_CHANGED: &str = "The files of the work tree were changed since this conversation stopped, by others or by being set back: read them again before you rely on what you know of them.";

/// What a conversation is told that somebody else has continued.
const CONTINUED_ELSEWHERE: &str = "Somebody else has continued this conversation since: read what was done there, and do not do it again.";

/// The change of an attempt whose conversation is not where it was left.
const MOVED: &str = "somebody else continued it meanwhile";

impl<'a> Engine<'a> {
    /// Makes the attempt that is planned, and notes what came of it.
    pub(super) async fn attempt(&mut self, log: &mut Log<'_, '_>) -> Result<(), RunError> {
        // What happened before is written down while a free one is waited for.
        if log.as_part().is_some() {
            self.flush(log).await?;
        }
        let limits = self.budget_limits(log).await?;
        if self.is_out_of_money(log, &limits) {
            return Ok(());
        }
        let Some(mut supervisor) = self.free_supervisor().await? else {
            self.interrupted(log, None);
            return Ok(());
        };
        let mut plan = log.recovery().plan();
        let Some(claim) = self.claim_conversation(log, plan.resume.as_deref()).await else {
            return Ok(());
        };
        let moved = claim.moved.then(|| MOVED.to_owned());
        plan.changes.extend(moved);
        let before = self.snapshot(log, plan.number, Moment::Before).await;
        let tree = before.as_ref().map(|before| before.tree.clone());
        let mut since = self.since(log, &plan, tree.as_deref());
        if claim.moved {
            since.meanwhile = Some(continued_elsewhere(since.meanwhile.take()));
        }
        let line = match self.line(log, &plan, since) {
            Err(error) if self.role.is_some() && error.is_about_the_call() => {
                self.ask_about_call(log, &error);
                return Ok(());
            }
            line => line?,
        };
        self.note_start(log, &plan, &line, supervisor.reaper(), tree);
        self.flush(log).await?;
        if *self.stop.borrow() != Stop::No {
            self.interrupted(log, Some(CutOff::default()));
            return Ok(());
        }
        let mut attendance = self.attend(log, &line, &limits);
        let attending = attendance.as_deref_mut();
        let ran = self
            .run_child(log, &plan, &line, &mut supervisor, attending)
            .await?;
        let (ended, stuck) = (ran.ended, ran.stuck);
        log.note_child(&ended.status);
        let is_lost = self.reporter.lost_output().is_some();
        if stuck.is_none() && (ended.stopped || ended.interrupted || is_lost) {
            self.interrupted_in(log, &line, &ended);
            return Ok(());
        }
        let after = self.snapshot(log, plan.number, Moment::After).await;
        let check = self.check(log, &ended, &mut supervisor).await?;
        if check.as_ref().is_some_and(|check| check.ended.stopped) {
            self.interrupted_in(log, &line, &ended);
            return Ok(());
        }
        let reached = attendance.as_ref().and_then(|one| one.budget_reached());
        log.set_budget_reached(reached);
        let seen = Seen {
            check: check.as_ref(),
            stuck: stuck.as_ref(),
            stdout: ran.stdout.as_deref(),
            tree: after.map(|after| after.tree),
            last_progress: ran.last_result,
            times: ran.times,
            ..Seen::of(&ended)
        };
        let seen = seen.with_calls(attendance.as_deref());
        let judged = self.judged(log, &plan, &line, &seen);
        let failed = matches!(judged.event, Event::AttemptFailed(_));
        if !self.accept_answer(log, ran.answer.filter(|_| !failed), &judged) {
            return Ok(());
        }
        drop(claim);
        log.note_judged(self.clock.at(), judged);
        self.after_attempt(log, !failed).await;
        if let Some(before) = before.filter(|_| failed) {
            self.roll_back(log, before).await;
        }
        Ok(())
    }

    /// Notes that an attempt was interrupted, with the conversation in which it can be continued.
    fn interrupted_in(&mut self, log: &mut Log<'_, '_>, line: &Line, ended: &Ended) {
        let conversation = self.conversation(log, line.session.as_deref(), ended);
        self.interrupted(log, Some(CutOff { conversation }));
    }

    /// Puts the answer in its file, where there is one; false if it could not be written.
    fn accept_answer(
        &mut self,
        log: &mut Log<'_, '_>,
        answer: Option<AnswerFile>,
        judged: &Judged,
    ) -> bool {
        let text = accepted_text(log, judged);
        let Some(Err(error)) = answer.map(|answer| answer.accept(text)) else {
            return true;
        };
        self.answer_is_lost(log, &error);
        false
    }

    /// A supervisor that is free; none if somebody wants to stop while it is waited for.
    async fn free_supervisor(&mut self) -> Result<Option<Taken<'a>>, RunError> {
        tokio::select! {
            biased;
            taken = self.supervisors.take() => Ok(Some(taken?)),
            () = stopped(&mut self.stop) => Ok(None),
        }
    }

    /// What a conversation that goes on is told about the time since it stopped.
    fn since(&self, log: &Log<'_, '_>, plan: &AttemptPlan, tree: Option<&str>) -> Since {
        let recovery = log.recovery();
        if plan.resume.is_none() {
            return Since::default();
        }
        let spec = recovery.spec();
        let agent = self.agent_of(&spec.command, spec.agent.as_deref());
        let written = self.on_disk(log, Status::Exited(0)).stdout.text();
        let left = recovery.end().filter(|_| !recovery.is_cut_off());
        let left = left.and_then(|end| end.tree.as_deref());
        let is_changed = left.is_some() && tree.is_some() && left != tree;
        Since {
            step: agent.and_then(|agent| agent.unfinished_step(&written)),
            meanwhile: is_changed.then(|| WORK_TREE_CHANGED.to_owned()),
        }
    }

    fn line(
        &mut self,
        log: &Log<'_, '_>,
        plan: &AttemptPlan,
        since: Since,
    ) -> Result<Line, RunError> {
        let recovery = log.recovery();
        if let Some(role) = self.role {
            return self.role_line(role.call, log, plan, since);
        }
        let spec = recovery.spec();
        let agent = self.agent_of(&spec.command, spec.agent.as_deref()).cloned();
        let prompts = self.knowledge.prompts();
        let input = match self.stdin.recorded() {
            Recorded::All(bytes) => String::from_utf8(bytes.to_vec()).ok(),
            _ => None,
        };
        let changer = Changer {
            agent: agent.as_ref(),
            recovery,
            plan,
            prompts,
            steps: None,
            since,
            refused: log.refused(),
        };
        changer.line(input.as_deref(), self.draws)
    }

    fn note_start(
        &mut self,
        log: &mut Log<'_, '_>,
        plan: &AttemptPlan,
        line: &Line,
        reaper: ProcessId,
        tree: Option<String>,
    ) {
        let now = self.clock.at();
        let reread = self.reread(log, now).map(|cost| cost.to_string());
        let spec = log.recovery().spec();
        let started = AttemptStarted {
            session: spec.session.clone(),
            number: plan.number,
            command: line.command.clone(),
            model: plan.model.clone().or_else(|| spec.model.clone()),
            timeout_ms: plan.timeout.map(in_millis),
            answering: plan.answering.clone(),
            changes: plan.changes.iter().cloned().chain(reread).collect(),
            agent_session: line.session.clone(),
            reaper: Some((reaper.pid, reaper.started)),
            tree,
        };
        log.note(now, Box::new(started));
    }

    async fn run_child(
        &mut self,
        log: &mut Log<'_, '_>,
        plan: &AttemptPlan,
        line: &Line,
        supervisor: &mut Supervisor,
        attendance: Option<&mut (dyn Attendance + 'static)>,
    ) -> Result<Ran, RunError> {
        // Without it an end that nobody saw is not known, and the attempt would be made again.
        let _ = std::fs::create_dir_all(self.state);
        let spec = self.spec(log, plan, line, attendance.as_deref());
        let taken = log.journal().taken_over();
        let files = log.journal().attempt_files(log.as_part(), plan.number);
        let mut replaced = line
            .stdin
            .as_ref()
            .map(|text| Stdin::from_bytes(text.clone().into_bytes()));
        let mut input = Input::of(self.state, log.recovery().id());
        match self.stdin.recorded() {
            Recorded::All(bytes) => input.came(&bytes, true, self.redactor),
            Recorded::TooLarge => input.is_too_large(),
            Recorded::Nothing | Recorded::Terminal | Recorded::NotYetAtEnd => {}
        }
        let answer = self.answer_file(log)?;
        let agent = self.role.map(|role| &role.call.agent);
        let limits = self.role.map(|role| role.stuck);
        let session = log.recovery().spec();
        let known = agent.or_else(|| self.agent_of(&session.command, session.agent.as_deref()));
        let results = known.and_then(ToolResults::of);
        let mut passage = Passage {
            whole: self.is_judged_whole(log).then(Vec::new),
            stdout_times: PrintTimes::default(),
            stderr_times: PrintTimes::default(),
            answer,
            watch: limits
                .filter(|limits| limits.enabled)
                .map(|limits| Watch::new(limits, agent)),
            attended: attendance.map(|attendance| Attended {
                attendance,
                name: log.as_part().map(|part| part.role.clone()),
                sign: None,
            }),
            results,
            last_result: None,
            // What an attempt gets instead is made anew each time.
            input: replaced.is_none().then_some(input),
            redactor: self.redactor,
            reporter: &mut *self.reporter,
            recovery: log.recovery(),
            since: self.clock.at(),
            clock: self.clock,
            stdout: files
                .as_ref()
                .map(|files| files.log("stdout.log", self.redactor)),
            stderr: files
                .as_ref()
                .map(|files| files.log("stderr.log", self.redactor)),
        };
        let stdin = replaced.as_mut().unwrap_or(&mut *self.stdin);
        let running = supervisor.run(&spec, stdin, &mut passage, self.stop.clone());
        let ended = tokio::select! {
            ended = running => ended?,
            // The child ends with the future that runs it: two must not work in one place.
            () = lost(taken) => {
                let run = log.recovery().id().clone();
                return Err(RunError::TakenOver { run });
            }
        };
        let gathered = passage.finish();
        if self.stdin.recorded() == Recorded::TooLarge {
            Input::of(self.state, log.recovery().id()).is_too_large();
        }
        let is_whole = |text: &Vec<u8>| text.len() as u64 == ended.stdout.total();
        let is_cut = gathered.whole.as_ref().is_some_and(|text| !is_whole(text));
        if is_cut && log.options().expect.looks_at_text() {
            self.reporter.warn(&judged_in_part());
        }
        let stdout = gathered.whole.filter(is_whole);
        Ok(Ran {
            stdout: stdout.map(|text| String::from_utf8_lossy(&text).into_owned()),
            ended,
            stuck: gathered.stuck,
            answer: gathered.answer,
            last_result: gathered.last_result,
            times: gathered.times,
        })
    }

    /// Whether all of an attempt's output is needed to judge it, or by others.
    fn is_judged_whole(&self, log: &Log<'_, '_>) -> bool {
        let options = log.options();
        self.role.is_some() || options.expect.looks_at_text() || options.output.is_some()
    }

    /// The draft of the answer of an attempt, where the answer is to be kept in a file.
    fn answer_file(&self, log: &Log<'_, '_>) -> Result<Option<AnswerFile>, RunError> {
        let Some(path) = log.options().output.as_ref().map(PathBuf::from) else {
            return Ok(None);
        };
        let begun = AnswerFile::begin(&path);
        let begun = begun.map_err(|source| RunError::File { path, source })?;
        Ok(Some(begun))
    }

    /// Keeps the answer of an attempt that ended while nobody looked; whether it is where it is wanted.
    fn keep_answer_left_behind(
        &mut self,
        log: &mut Log<'_, '_>,
        judged: &Judged,
        ended: &Ended,
    ) -> Result<bool, RunError> {
        if !matches!(judged.event, Event::AttemptSucceeded(_)) {
            return Ok(true);
        }
        let Some(mut answer) = self.answer_file(log)? else {
            return Ok(true);
        };
        answer.push(&ended.stdout.bytes());
        let text = accepted_text(log, judged);
        let Err(error) = answer.accept(text) else {
            return Ok(true);
        };
        self.answer_is_lost(log, &error);
        Ok(false)
    }

    /// Notes that an attempt did its work, and that its answer could not be kept where it is wanted.
    fn answer_is_lost(&mut self, log: &mut Log<'_, '_>, error: &std::io::Error) {
        let path = log.options().output.as_deref().unwrap_or_default();
        let reason = format!("the answer could not be written to {path}: {error}");
        let why = Interruption::by_lost_output(reason);
        self.interrupted_because(log, Some(CutOff::default()), why);
    }

    /// Has somebody stand between the agent and its API, where that is wanted.
    fn attend(
        &self,
        log: &Log<'_, '_>,
        line: &Line,
        budgets: &[BudgetLimit],
    ) -> Option<Box<dyn Attendance>> {
        let spec = log.recovery().spec();
        let project = log.journal().know(|run| run.view.project.clone());
        let go_between = self.go_between.filter(|_| !log.options().no_gateway);
        go_between?.attend(&Errand {
            run: log.recovery().id(),
            session: &spec.session,
            project: &project,
            cwd: &spec.cwd,
            policy: &spec.policy,
            agent: match self.role {
                Some(role) => Some(&role.call.agent),
                None => self.agent_of(&spec.command, spec.agent.as_deref()),
            },
            command: &line.command,
            env: self.role.map_or(&[], |role| &role.call.env),
            is_role: self.role.is_some(),
            budgets,
        })
    }

    fn spec(
        &self,
        log: &Log<'_, '_>,
        plan: &AttemptPlan,
        line: &Line,
        attendance: Option<&dyn Attendance>,
    ) -> Spec {
        let session = log.recovery().spec();
        let command = attendance.map_or(&*line.command, Attendance::command);
        let escaped = &log.options().escaped;
        let words = command.iter().map(|word| {
            if escaped.contains(word) {
                unescape(word)
            } else {
                OsString::from(word)
            }
        });
        let mut words = words.collect::<Vec<_>>().into_iter();
        let variable = |name: &str, value: String| (name.into(), value.into());
        let mut set = vec![
            variable("UNSTUCK_RUN", log.recovery().id().to_string()),
            variable("UNSTUCK_SESSION", session.session.as_str().to_owned()),
            variable("UNSTUCK_ATTEMPT", plan.number.to_string()),
        ];
        if session.policy.enabled {
            set.push(variable(OUTER_RETRIES, "1".to_owned()));
        }
        if let Some(attendance) = attendance {
            let variables = attendance.variables().iter();
            set.extend(variables.map(|(name, value)| variable(name, value.clone())));
        }
        let proposals = log.journal().proposals(log.as_part(), plan.number);
        if let Some((_, folder)) = proposals.filter(|_| self.repairer.is_some()) {
            let path = documents::path_in(&folder).display().to_string();
            set.push(variable("UNSTUCK_RECOVERY_FILE", path));
        }
        if let (Some(role), Some(part)) = (self.role, log.as_part()) {
            set.push(variable("UNSTUCK_ROLE", part.role.clone()));
            set.push(variable("UNSTUCK_ITERATION", part.iteration.to_string()));
            set.push(variable("UNSTUCK_INSTANCE", part.instance.to_string()));
            let own = role.call.env.iter();
            set.extend(own.map(|(name, value)| variable(name, value.clone())));
        }
        Spec {
            inherits: Inherits::All,
            program: words.next().unwrap_or_default(),
            arguments: words.collect(),
            folder: Some(PathBuf::from(&session.cwd)),
            set,
            remove: Vec::new(),
            limits: Limits {
                timeout: plan.timeout,
                idle_timeout: plan.idle_timeout,
                grace: log.options().grace(),
            },
            wiring: log.options().wiring(),
            exit_record: Some(self.exit_record(log, plan.number)),
        }
    }

    /// Runs the command that must pass afterwards, where there is one and the attempt itself is fine.
    async fn check(
        &mut self,
        log: &Log<'_, '_>,
        ended: &Ended,
        supervisor: &mut Supervisor,
    ) -> Result<Option<Checked>, RunError> {
        let Some(line) = &log.options().check else {
            return Ok(None);
        };
        if !ended.status.is_success() {
            return Ok(None);
        }
        let session = log.recovery().spec();
        let spec = Spec {
            folder: Some(PathBuf::from(&session.cwd)),
            limits: Limits {
                timeout: session.timeout_ms.map(Duration::from_millis),
                ..Limits::default()
            },
            ..Spec::shell(line)
        };
        let stop = self.stop.clone();
        let ended = supervisor
            .run(&spec, &mut Stdin::null(), &mut Discard, stop)
            .await?;
        Ok(Some(Checked {
            line: line.clone(),
            ended,
        }))
    }

    fn judged(
        &self,
        log: &Log<'_, '_>,
        plan: &AttemptPlan,
        line: &Line,
        seen: &Seen<'_>,
    ) -> Judged {
        let spec = log.recovery().spec();
        let case = Case {
            session: &spec.session,
            number: plan.number,
            answering: plan.answering.clone(),
            model: plan.model.clone().or_else(|| spec.model.clone()),
            command: &line.command,
            stdin: line.stdin.as_deref(),
            conversation: line.session.clone().or(seen.conversation.clone()),
            agent: self.agent_of(&spec.command, spec.agent.as_deref()),
            options: log.options(),
            ended: seen.ended,
            check: seen.check,
            stdout: seen.stdout,
            times: &seen.times,
            stuck: seen.stuck,
            trouble: seen.trouble.as_ref(),
            last_call: seen.last_call.as_ref(),
            is_resumed: plan.resume.is_some(),
            is_headless: self.role.is_some() || self.is_headless(spec),
            counted: seen.used.clone(),
            tree: seen.tree.clone(),
            last_progress: seen.last_progress,
            failing_since: seen.failing_since,
            is_role: self.role.is_some(),
            asks_back: self.role.is_some_and(|role| role.stuck.enabled),
        };
        case.judge(self.knowledge, &self.clock.now())
    }

    /// Notes how the attempt ended that was under way when unstuck itself ended.
    pub(super) fn note_crash(&mut self, log: &mut Log<'_, '_>) -> Result<(), RunError> {
        let number = log.recovery().attempts();
        let record = Status::from_record(&self.exit_record(log, number));
        let record = record.filter(|status| !self.ended_with_gateway(log, status));
        match record.and_then(|status| self.left_behind(log, status)) {
            Some(ended) => {
                let mut plan = log.recovery().plan();
                plan.number = number;
                let line = self.line(log, &plan, Since::default())?;
                let whole = self.whole_on_disk(log);
                let seen = Seen {
                    stdout: whole.as_deref(),
                    times: self.times_on_disk(log),
                    ..Seen::of(&ended)
                };
                let judged = self.judged(log, &plan, &line, &seen);
                if !self.keep_answer_left_behind(log, &judged, &ended)? {
                    return Ok(());
                }
                log.note_judged(self.clock.at(), judged);
            }
            None => {
                let conversation = self.left_conversation(log);
                let written = std::fs::metadata(self.newest_folder(log).join("stdout.log"));
                let cut_off = AttemptInterrupted {
                    progressed: written.is_ok_and(|file| file.len() > 0),
                    ..log.interruption(InterruptedBy::Crash, conversation)
                };
                let now = self.clock.at();
                log.note(now, cut_off);
                self.note_held(log, now);
            }
        }
        Ok(())
    }

    /// Whether a child that ended when nobody looked any more may have ended because its way to its API was gone: the gateway
    /// ended with the process that supervised it.
    fn ended_with_gateway(&self, log: &Log<'_, '_>, status: &Status) -> bool {
        let spec = log.recovery().spec();
        let has_gateway = self.go_between.is_some() && !log.options().no_gateway;
        let is_agent = self.role.is_some() || self.is_headless(spec);
        let is_doubtful = !status.is_success() || log.recovery().is_held();
        has_gateway && is_agent && spec.policy.enabled && is_doubtful
    }

    /// Notes that what an API call waited for when the attempt was cut off is still waited for.
    fn note_held(&self, log: &mut Log<'_, '_>, now: Timestamp) {
        if let Next::Wait(until) = log.recovery().next(now) {
            let session = Some(log.recovery().spec().session.clone());
            let reason = "an API call was waiting for this when the attempt was cut off".to_owned();
            let wait = WaitingUntil {
                session,
                until,
                reason,
                stated: true,
                source: log.recovery().reset_source(),
                wait_for: WaitFor::Retry,
                give_up_at: None,
                reread: self.reread(log, until),
            };
            log.note(now, wait);
        }
    }

    /// Runs only the check again that failed after the newest attempt: a repair was run since.
    pub(super) async fn check_again(&mut self, log: &mut Log<'_, '_>) -> Result<(), RunError> {
        let answer = log.answer().to_owned();
        if answer.trim().is_empty() {
            // What the attempt had made is not known any more.
            return self.attempt(log).await;
        }
        let Some(mut supervisor) = self.free_supervisor().await? else {
            self.interrupted(log, None);
            return Ok(());
        };
        let plan = AttemptPlan {
            changes: vec!["only its check is run again".to_owned()],
            ..log.recovery().plan()
        };
        let conversation = log.recovery().end();
        let conversation = conversation.and_then(|end| end.used.agent_session.clone());
        let line = Line {
            command: log.recovery().spec().command.clone(),
            stdin: None,
            session: conversation,
        };
        self.note_start(log, &plan, &line, supervisor.reaper(), None);
        self.flush(log).await?;
        let ended = left_behind(Status::Exited(0), answer.as_bytes(), &[]);
        let check = self.check(log, &ended, &mut supervisor).await?;
        if check.as_ref().is_some_and(|check| check.ended.stopped) {
            self.interrupted(log, Some(CutOff::default()));
            return Ok(());
        }
        let seen = Seen {
            check: check.as_ref(),
            ..Seen::of(&ended)
        };
        let judged = self.judged(log, &plan, &line, &seen);
        if !self.keep_answer_left_behind(log, &judged, &ended)? {
            return Ok(());
        }
        let failed = matches!(judged.event, Event::AttemptFailed(_));
        log.note_judged(self.clock.at(), judged);
        self.after_attempt(log, !failed).await;
        Ok(())
    }

    /// The conversation that an agent had begun before it was cut off, where it can be gone on in.
    fn conversation(
        &self,
        log: &Log<'_, '_>,
        given: Option<&str>,
        ended: &Ended,
    ) -> Option<String> {
        let spec = log.recovery().spec();
        let can = self.capabilities(spec).has(Capability::Resume) && spec.policy.enabled;
        let agent = self.agent_of(&spec.command, spec.agent.as_deref())?;
        let (stdout, stderr) = (ended.stdout.text(), ended.stderr.text());
        let told = agent.read_output(&stdout, &stderr).session;
        // One that had said nothing yet may not have begun it; it is tried where the agent says if there is none.
        let tells = !agent.file().session.missing.is_empty();
        let given = given
            .filter(|_| tells || !stdout.trim().is_empty())
            .map(str::to_owned);
        told.or(given).filter(|_| can)
    }

    /// The same of an attempt that nobody saw the end of, from what is on disk.
    fn left_conversation(&self, log: &Log<'_, '_>) -> Option<String> {
        let ended = self.on_disk(log, Status::Exited(0));
        let given = log.recovery().given_conversation().map(str::to_owned);
        self.conversation(log, given.as_deref(), &ended)
    }

    /// What a child left behind that ended by itself when nobody looked any more.
    fn left_behind(&self, log: &Log<'_, '_>, status: Status) -> Option<Ended> {
        // A check that must pass afterwards has to be run; so the attempt has to be made again.
        if log.options().check.is_some() {
            return None;
        }
        Some(self.on_disk(log, status))
    }

    /// The folder of the newest attempt.
    fn newest_folder(&self, log: &Log<'_, '_>) -> PathBuf {
        let run = log.journal().files_path();
        let part = log.as_part();
        let instances = log.journal().know(|run| run.run.instances(part));
        folder::attempt_of(&run, part, instances, log.recovery().attempts())
    }

    /// All of the standard output of an attempt that nobody saw the end of, where all of it is needed.
    fn whole_on_disk(&self, log: &Log<'_, '_>) -> Option<String> {
        let read = || folder::read(&self.newest_folder(log).join("stdout.log")).ok();
        let bytes = self.is_judged_whole(log).then(read).flatten()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// When the output of an attempt was printed that nobody saw the end of.
    fn times_on_disk(&self, log: &Log<'_, '_>) -> StreamTimes {
        let folder = self.newest_folder(log);
        StreamTimes {
            stdout: PrintTimes::of_file(&folder.join("stdout.log")),
            stderr: PrintTimes::of_file(&folder.join("stderr.log")),
        }
    }

    fn on_disk(&self, log: &Log<'_, '_>, status: Status) -> Ended {
        let folder = self.newest_folder(log);
        let read = |name: &str| folder::read(&folder.join(name)).unwrap_or_default();
        left_behind(status, &read("stdout.log"), &read("stderr.log"))
    }
}

/// What a conversation is told that somebody else continued, before what else happened meanwhile.
fn continued_elsewhere(meanwhile: Option<String>) -> String {
    let told = [CONTINUED_ELSEWHERE.to_owned()].into_iter();
    told.chain(meanwhile).collect::<Vec<_>>().join("\n")
}

/// The accepted answer as text, where that is not all of the output.
fn accepted_text<'t>(log: &Log<'_, '_>, judged: &'t Judged) -> Option<&'t str> {
    let accepted = log.options().expect.accepted(&judged.answer);
    let is_part = judged.is_extracted || accepted.len() < judged.answer.len();
    is_part.then_some(accepted)
}

/// What is told when an output is too long to be judged as a whole.
fn judged_in_part() -> String {
    format!(
        "its output is longer than {} MiB: what is expected of it was looked for in its first {} KiB and its last {} KiB only",
        LONGEST >> 20,
        HEAD >> 10,
        TAIL >> 10
    )
}

/// The end of a child that nobody saw, from what is on disk.
fn left_behind(status: Status, stdout: &[u8], stderr: &[u8]) -> Ended {
    let captured = |bytes: &[u8]| {
        let mut captured = Captured::default();
        captured.push(bytes);
        captured
    };
    Ended {
        status,
        timed_out: None,
        stopped: false,
        interrupted: false,
        duration: Duration::ZERO,
        stdout: captured(stdout),
        stderr: captured(stderr),
        left: 0,
        survivors: 0,
    }
}

/// What came of a child.
struct Ran {
    ended: Ended,
    stuck: Option<StuckSign>,
    /// All of its standard output, where it is kept and not too long.
    stdout: Option<String>,
    /// Its answer for a file, where there is one.
    answer: Option<AnswerFile>,
    /// When its last tool result came.
    last_result: Option<Timestamp>,
    /// When the parts of its output were printed.
    times: StreamTimes,
}

/// What was seen of an attempt.
struct Seen<'a> {
    ended: &'a Ended,
    check: Option<&'a Checked>,
    stuck: Option<&'a StuckSign>,
    stdout: Option<&'a str>,
    tree: Option<String>,
    /// What was seen between the agent and its API.
    trouble: Option<Diagnosis>,
    /// How the newest of its API calls ended.
    last_call: Option<LastCall>,
    /// What its calls used, where somebody saw them.
    used: Measured,
    /// When there was progress last.
    last_progress: Option<Timestamp>,
    /// Since when its API calls have been failing.
    failing_since: Option<Timestamp>,
    /// The conversation that its requests named.
    conversation: Option<String>,
    /// When the parts of its output were printed.
    times: StreamTimes,
}

impl<'a> Seen<'a> {
    /// How an attempt ended, of which nothing else is known.
    fn of(ended: &'a Ended) -> Self {
        Self {
            ended,
            check: None,
            stuck: None,
            stdout: None,
            tree: None,
            trouble: None,
            last_call: None,
            used: Measured::default(),
            last_progress: None,
            failing_since: None,
            conversation: None,
            times: StreamTimes::default(),
        }
    }

    /// Adds what the gateway saw of the attempt's API calls, if one was in the way.
    fn with_calls(self, gateway: Option<&dyn Attendance>) -> Self {
        let Some(gateway) = gateway else {
            return self;
        };
        Self {
            used: gateway.used(),
            last_progress: self.last_progress.max(gateway.last_success()),
            failing_since: gateway.failing_since(),
            conversation: gateway.conversation(),
            trouble: gateway.trouble(),
            last_call: gateway.last_call(),
            ..self
        }
    }
}
