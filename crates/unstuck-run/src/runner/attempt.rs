//! Makes one attempt: starts the child, forwards its output and evaluates the result.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use unstuck_core::decision::{RetryChangeCapability, WaitPurpose};
use unstuck_core::duration::to_millis;
use unstuck_core::event::{
    AttemptInterrupted, AttemptStarted, AttemptUsage, InterruptionCause, LastApiCall, WaitStarted,
};
use unstuck_core::loop_detection::{LoopSignal, ToolResultCounter};
use unstuck_core::money::ActiveUsageBudget;
use unstuck_core::session_state::{NextAttempt, NextSessionStep};
use unstuck_core::{Diagnosis, Event, Timestamp};
use unstuck_files::DirHandle;

use super::agent_answer_file::AgentAnswerFile;
use super::attempt_command::{AttemptCommandBuilder, AttemptCommandLine, ContinuationContext};
use super::attempt_snapshots::SnapshotPhase;
use super::check_outcome::CheckOutcome;
use super::child_supervisor_pool::PooledChildSupervisor;
use super::error::RunError;
use super::evaluate_attempt::{AttemptEvaluation, AttemptFacts};
use super::gateway_hook::{GatewayAttachment, UpcomingAttemptInfo};
use super::interruption::Interruption;
use super::os_text_escape::unescape;
use super::output_tee::{
    AttachedGateway, LiveLoopDetector, MAX_WHOLE_OUTPUT, OutputTee, StreamTimestamps,
};
use super::output_timestamps::OutputTimestamps;
use super::pinned_program::{inherited_path, pinned_program};
use super::repair::agent_proposal;
use super::run_lease::wait_until_lost;
use super::session_event_log::SessionEventLog;
use super::session_runner::{InterruptedAttempt, SessionRunner, wait_for_stop};
use super::stored_stdin::StoredStdin;
use crate::nested_run_detection::OUTER_RETRIES_VARIABLE;
use crate::process::{
    AttemptStopRequest, CapturedOutput, ChildExitStatus, ChildSupervisor, DiscardOutput,
    EnvInheritance, KnownStdinContents, MAX_HEAD_BYTES, MAX_TAIL_BYTES, ProcessId, ProcessResult,
    ProcessSpec, ProcessTimeouts, Stdin,
};
use crate::run_dir;

/// Message to a conversation when the files that it knows have changed.
const WORK_TREE_CHANGED_MESSAGE: &str = "Files in the work tree have changed since this conversation stopped (edited by others or rolled back). Re-read them before you use them.";

/// Message to a conversation that was continued elsewhere.
const CONTINUED_ELSEWHERE_MESSAGE: &str =
    "This conversation was continued elsewhere. Review what was done there, and do not repeat it.";

/// Reason of an attempt whose conversation was continued elsewhere.
const CONVERSATION_MOVED: &str = "the conversation was continued elsewhere";

impl<'a> SessionRunner<'a> {
    /// Makes the planned attempt and records the result.
    pub(super) async fn run_attempt(
        &mut self,
        log: &mut SessionEventLog<'_, '_>,
    ) -> Result<(), RunError> {
        // Pending events are written while it waits for a free supervisor.
        if log.role_instance().is_some() {
            self.flush(log).await?;
        }
        let limits = self.budget_limits(log).await?;
        if self.is_budget_exhausted(log, &limits) {
            return Ok(());
        }
        let Some(mut supervisor) = self.acquire_supervisor().await? else {
            self.note_interrupted(log, None);
            return Ok(());
        };
        let mut plan = log.recovery().next_attempt();
        let claim = self.claim_conversation(log, plan.resume.as_deref()).await?;
        let Some(claim) = claim else {
            return Ok(());
        };
        let moved = claim
            .was_continued_elsewhere
            .then(|| CONVERSATION_MOVED.to_owned());
        plan.changes.extend(moved);
        let before = self
            .take_snapshot(log, plan.number, SnapshotPhase::Before)
            .await;
        let tree = before.as_ref().map(|before| before.tree.clone());
        let mut since = self.continuation_context(log, &plan, tree.as_deref());
        if claim.was_continued_elsewhere {
            since.meanwhile = Some(continued_elsewhere_message(since.meanwhile.take()));
        }
        let line = match self.build_command_line(log, &plan, since) {
            Err(error) if self.role.is_some() && error.is_invocation_error() => {
                self.escalate_invocation_error(log, &error);
                return Ok(());
            }
            line => line?,
        };
        self.note_start(log, &plan, &line, supervisor.reaper_id(), tree);
        self.flush(log).await?;
        if *self.stop.borrow() != AttemptStopRequest::Continue {
            self.note_interrupted(log, Some(InterruptedAttempt::default()));
            return Ok(());
        }
        let mut attendance = self.attach_gateway(log, &line, &limits);
        let attending = attendance.as_deref_mut();
        let ran = self
            .run_child(log, &plan, &line, &mut supervisor, attending)
            .await?;
        let (ended, stuck) = (ran.ended, ran.loop_signal);
        log.note_child_exit(&ended.status);
        let is_lost = self.reporter.lost_output().is_some();
        if stuck.is_none() && (ended.was_stopped || ended.was_interrupted || is_lost) {
            self.note_interrupted_conversation(log, &line, &ended);
            return Ok(());
        }
        let after = self
            .take_snapshot(log, plan.number, SnapshotPhase::After)
            .await;
        let check = self.run_attempt_check(log, &ended, &mut supervisor).await?;
        if check.as_ref().is_some_and(|check| check.ended.was_stopped) {
            self.note_interrupted_conversation(log, &line, &ended);
            return Ok(());
        }
        let reached = attendance.as_ref().and_then(|one| one.budget_reached());
        log.set_budget_reached(reached);
        let seen = AttemptObservations {
            check: check.as_ref(),
            loop_signal: stuck.as_ref(),
            stdout: ran.stdout.as_deref(),
            tree: after.map(|after| after.tree),
            last_progress: ran.last_result,
            times: ran.times,
            ..AttemptObservations::from_process_result(&ended)
        };
        let seen = seen.with_gateway_observations(attendance.as_deref());
        let judged = self.evaluate_attempt(log, &plan, &line, &seen);
        let failed = matches!(judged.event, Event::AttemptFailed(_));
        if !self.save_answer(log, ran.answer.filter(|_| !failed), &judged) {
            return Ok(());
        }
        drop(claim);
        log.note_evaluation(self.clock.timestamp(), judged);
        self.record_proposals_after_attempt(log, !failed).await;
        if let Some(before) = before.filter(|_| failed) {
            self.roll_back_attempt(log, before).await;
        }
        Ok(())
    }

    /// Records an interrupted attempt, with the conversation in which it can be continued.
    fn note_interrupted_conversation(
        &mut self,
        log: &mut SessionEventLog<'_, '_>,
        line: &AttemptCommandLine,
        ended: &ProcessResult,
    ) {
        let conversation = self.resumable_conversation(log, line.session.as_deref(), ended);
        self.note_interrupted(log, Some(InterruptedAttempt { conversation }));
    }

    /// Saves the answer to its file, if there is one; returns false if it could not be written.
    fn save_answer(
        &mut self,
        log: &mut SessionEventLog<'_, '_>,
        answer: Option<AgentAnswerFile>,
        judged: &AttemptEvaluation,
    ) -> bool {
        let text = accepted_text(log, judged);
        let Some(Err(error)) = answer.map(|answer| answer.accept(text)) else {
            return true;
        };
        self.note_lost_answer(log, &error);
        false
    }

    /// Returns a free supervisor; `None` if a stop is requested while waiting.
    async fn acquire_supervisor(&mut self) -> Result<Option<PooledChildSupervisor<'a>>, RunError> {
        tokio::select! {
            biased;
            taken = self.supervisors.acquire() => Ok(Some(taken?)),
            () = wait_for_stop(&mut self.stop) => Ok(None),
        }
    }

    /// Returns the message to a continued conversation about the time since it stopped.
    fn continuation_context(
        &self,
        log: &SessionEventLog<'_, '_>,
        plan: &NextAttempt,
        tree: Option<&str>,
    ) -> ContinuationContext {
        let recovery = log.recovery();
        if plan.resume.is_none() {
            return ContinuationContext::default();
        }
        let spec = recovery.spec();
        let agent = self.agent_of(&spec.command, spec.agent.as_deref());
        let written = self
            .process_result_on_disk(log, ChildExitStatus::Exited(0))
            .stdout
            .text();
        let left = recovery
            .last_attempt_end()
            .filter(|_| !recovery.was_interrupted());
        let left = left.and_then(|end| end.tree.as_deref());
        let is_changed = left.is_some() && tree.is_some() && left != tree;
        ContinuationContext {
            step: agent.and_then(|agent| agent.unfinished_step(&written)),
            meanwhile: is_changed.then(|| WORK_TREE_CHANGED_MESSAGE.to_owned()),
        }
    }

    fn build_command_line(
        &mut self,
        log: &SessionEventLog<'_, '_>,
        plan: &NextAttempt,
        since: ContinuationContext,
    ) -> Result<AttemptCommandLine, RunError> {
        let recovery = log.recovery();
        if let Some(role) = self.role {
            return self.role_command_line(role.invocation, log, plan, since);
        }
        let spec = recovery.spec();
        let agent = self.agent_of(&spec.command, spec.agent.as_deref()).cloned();
        let prompts = self.knowledge.prompts();
        let input = match self.stdin.contents() {
            KnownStdinContents::Complete(bytes) => String::from_utf8(bytes.to_vec()).ok(),
            _ => None,
        };
        let changer = AttemptCommandBuilder {
            agent: agent.as_ref(),
            recovery,
            plan,
            prompts,
            steps: None,
            since,
            refused_proposals: log.refused_proposals(),
        };
        changer.build(input.as_deref(), self.random_draws)
    }

    fn note_start(
        &mut self,
        log: &mut SessionEventLog<'_, '_>,
        plan: &NextAttempt,
        line: &AttemptCommandLine,
        reaper: ProcessId,
        tree: Option<String>,
    ) {
        let now = self.clock.timestamp();
        let reread = self.reread_cost(log, now).map(|cost| cost.to_string());
        let spec = log.recovery().spec();
        let started = AttemptStarted {
            session: spec.session.clone(),
            number: plan.number,
            command: line.command.clone(),
            model: plan.model.clone().or_else(|| spec.model.clone()),
            timeout_ms: plan.timeout.map(to_millis),
            cause: plan.cause.clone(),
            changes: plan.changes.iter().cloned().chain(reread).collect(),
            agent_session: line.session.clone(),
            reaper: Some((reaper.pid, reaper.started)),
            tree,
        };
        log.note(now, Box::new(started));
    }

    async fn run_child(
        &mut self,
        log: &mut SessionEventLog<'_, '_>,
        plan: &NextAttempt,
        line: &AttemptCommandLine,
        supervisor: &mut ChildSupervisor,
        attendance: Option<&mut (dyn GatewayAttachment + 'static)>,
    ) -> Result<ChildRunResult, RunError> {
        // Without the directory, an unobserved end would go unnoticed and the attempt would be repeated.
        let _ = DirHandle::open_private(self.state);
        let spec = self.process_spec(log, plan, line, attendance.as_deref());
        let taken = log.journal().takeover_signal();
        let files = log
            .journal()
            .attempt_files(log.role_instance(), plan.number);
        let mut replaced = line
            .stdin
            .as_ref()
            .map(|text| Stdin::from_bytes(text.clone().into_bytes()));
        let mut input = StoredStdin::new(self.state, log.recovery().id());
        match self.stdin.contents() {
            KnownStdinContents::Complete(bytes) => input.record(&bytes, true, self.redactor),
            KnownStdinContents::TooLarge => input.mark_too_large(),
            KnownStdinContents::Nothing
            | KnownStdinContents::Terminal
            | KnownStdinContents::Incomplete => {}
        }
        let answer = self.answer_file(log)?;
        let agent = self.role.map(|role| &role.invocation.agent);
        let limits = self.role.map(|role| role.loop_limits);
        let session = log.recovery().spec();
        let known = agent.or_else(|| self.agent_of(&session.command, session.agent.as_deref()));
        let results = known.and_then(ToolResultCounter::for_agent);
        let mut passage = OutputTee {
            full_stdout: self.needs_full_output(log).then(Vec::new),
            stdout_times: OutputTimestamps::default(),
            stderr_times: OutputTimestamps::default(),
            answer,
            watch: limits
                .filter(|limits| limits.enabled)
                .map(|limits| LiveLoopDetector::new(limits, agent)),
            gateway: attendance.map(|attendance| AttachedGateway {
                attachment: attendance,
                name: log.role_instance().map(|part| part.role.clone()),
                loop_signal: None,
                told_held_at: None,
            }),
            results,
            last_result: None,
            heartbeat: self.heartbeat,
            enter_key: self.stdin.enter_key(),
            // A replaced input is built again for each attempt.
            input: replaced.is_none().then_some(input),
            redactor: self.redactor,
            reporter: &mut *self.reporter,
            recovery: log.recovery(),
            since: self.clock.timestamp(),
            clock: self.clock,
            stdout: files
                .as_ref()
                .map(|files| files.open_log("stdout.log", self.redactor)),
            stderr: files
                .as_ref()
                .map(|files| files.open_log("stderr.log", self.redactor)),
        };
        let stdin = replaced.as_mut().unwrap_or(&mut *self.stdin);
        let running = supervisor.run(&spec, stdin, &mut passage, self.stop.clone());
        let ended = tokio::select! {
            ended = running => ended?,
            // The child ends with the future that runs it: two processes must not work in one directory.
            () = wait_until_lost(taken) => {
                let run = log.recovery().id().clone();
                return Err(RunError::TakenOver { run });
            }
        };
        let gathered = passage.finish();
        if self.stdin.contents() == KnownStdinContents::TooLarge {
            StoredStdin::new(self.state, log.recovery().id()).mark_too_large();
        }
        let is_whole = |text: &Vec<u8>| text.len() as u64 == ended.stdout.total();
        let is_cut = gathered
            .full_stdout
            .as_ref()
            .is_some_and(|text| !is_whole(text));
        if is_cut && log.options().expect.needs_text() {
            self.reporter.warn(&partial_evaluation_warning());
        }
        let stdout = gathered.full_stdout.filter(is_whole);
        Ok(ChildRunResult {
            stdout: stdout.map(|text| String::from_utf8_lossy(&text).into_owned()),
            ended,
            loop_signal: gathered.loop_signal,
            answer: gathered.answer,
            last_result: gathered.last_result,
            times: gathered.times,
        })
    }

    /// Returns true if the full output of an attempt is needed to evaluate it or by other roles.
    fn needs_full_output(&self, log: &SessionEventLog<'_, '_>) -> bool {
        let options = log.options();
        self.role.is_some() || options.expect.needs_text() || options.output.is_some()
    }

    /// Returns the draft of the attempt's answer, if the answer goes to a file.
    fn answer_file(
        &self,
        log: &SessionEventLog<'_, '_>,
    ) -> Result<Option<AgentAnswerFile>, RunError> {
        let Some(path) = log.options().output.as_ref().map(PathBuf::from) else {
            return Ok(None);
        };
        let begun = AgentAnswerFile::begin(&path);
        let begun = begun.map_err(|source| RunError::File { path, source })?;
        Ok(Some(begun))
    }

    /// Saves the answer of an attempt that ended unobserved; returns false if it could not be written.
    fn save_orphaned_answer(
        &mut self,
        log: &mut SessionEventLog<'_, '_>,
        judged: &AttemptEvaluation,
        ended: &ProcessResult,
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
        self.note_lost_answer(log, &error);
        Ok(false)
    }

    /// Records that an attempt succeeded but its answer could not be saved.
    fn note_lost_answer(&mut self, log: &mut SessionEventLog<'_, '_>, error: &std::io::Error) {
        let path = log.options().output.as_deref().unwrap_or_default();
        let reason = format!("cannot write the answer to {path}: {error}");
        let why = Interruption::by_lost_output(reason);
        self.note_interruption(log, Some(InterruptedAttempt::default()), why);
    }

    /// Attaches the private gateway to an attempt, if wanted.
    fn attach_gateway(
        &self,
        log: &SessionEventLog<'_, '_>,
        line: &AttemptCommandLine,
        budgets: &[ActiveUsageBudget],
    ) -> Option<Box<dyn GatewayAttachment>> {
        let spec = log.recovery().spec();
        let project = log.journal().with_view(|run| run.summary.project.clone());
        let go_between = self.go_between.filter(|_| !log.options().no_gateway);
        go_between?.attach(&UpcomingAttemptInfo {
            run: log.recovery().id(),
            session: &spec.session,
            project: &project,
            cwd: &spec.cwd,
            policy: &spec.policy,
            agent: match self.role {
                Some(role) => Some(&role.invocation.agent),
                None => self.agent_of(&spec.command, spec.agent.as_deref()),
            },
            command: &line.command,
            env: self.role.map_or(&[], |role| &role.invocation.env),
            is_role: self.role.is_some(),
            budgets,
            is_probe: log.recovery().is_parked(),
        })
    }

    fn process_spec(
        &self,
        log: &SessionEventLog<'_, '_>,
        plan: &NextAttempt,
        line: &AttemptCommandLine,
        attendance: Option<&dyn GatewayAttachment>,
    ) -> ProcessSpec {
        let session = log.recovery().spec();
        let command = attendance.map_or(&*line.command, GatewayAttachment::command);
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
        let mut set: Vec<(OsString, OsString)> = vec![
            variable("UNSTUCK_RUN", log.recovery().id().to_string()),
            variable("UNSTUCK_SESSION", session.session.as_str().to_owned()),
            variable("UNSTUCK_ATTEMPT", plan.number.to_string()),
        ];
        if session.policy.enabled {
            set.push(variable(OUTER_RETRIES_VARIABLE, "1".to_owned()));
        }
        if let Some(attendance) = attendance {
            let variables = attendance.variables().iter();
            set.extend(variables.map(|(name, value)| variable(name, value.clone())));
        }
        let proposals = log.journal().proposal_dir(log.role_instance(), plan.number);
        if let Some((_, folder)) = proposals.filter(|_| self.repairer.is_some()) {
            let path = agent_proposal::proposal_path(&folder).display().to_string();
            set.push(variable("UNSTUCK_RECOVERY_FILE", path));
        }
        if let (Some(role), Some(part)) = (self.role, log.role_instance()) {
            set.push(variable("UNSTUCK_ROLE", part.role.clone()));
            set.push(variable("UNSTUCK_ITERATION", part.iteration.to_string()));
            set.push(variable("UNSTUCK_INSTANCE", part.instance.to_string()));
            let own = role.invocation.env.iter();
            set.extend(own.map(|(name, value)| variable(name, value.clone())));
        }
        let name = words.next().unwrap_or_default();
        let own_path = set.iter().rev().find(|(variable, _)| variable == "PATH");
        let search = own_path.map_or_else(inherited_path, |(_, path)| path.clone());
        let project = log.journal().with_view(|run| run.summary.project.clone());
        let pinned = pinned_program(
            (self.state, log.recovery().id()),
            &name,
            &search,
            (Path::new(&session.cwd), Path::new(&project)),
        );
        ProcessSpec {
            env_inheritance: EnvInheritance::All,
            program: pinned.map_or_else(|| name.clone(), PathBuf::into_os_string),
            arg0: Some(name),
            arguments: words.collect(),
            folder: Some(PathBuf::from(&session.cwd)),
            env: set,
            env_remove: Vec::new(),
            limits: ProcessTimeouts {
                timeout: plan.timeout,
                idle_timeout: plan.idle_timeout,
                grace: log.options().grace(),
            },
            wiring: log.options().wiring(),
            exit_record: Some(self.exit_record_path(log, plan.number)),
        }
    }

    /// Runs the check command of a successful attempt, if there is one.
    async fn run_attempt_check(
        &mut self,
        log: &SessionEventLog<'_, '_>,
        ended: &ProcessResult,
        supervisor: &mut ChildSupervisor,
    ) -> Result<Option<CheckOutcome>, RunError> {
        let Some(line) = &log.options().check else {
            return Ok(None);
        };
        if !ended.status.is_success() {
            return Ok(None);
        }
        let session = log.recovery().spec();
        let spec = ProcessSpec {
            folder: Some(PathBuf::from(&session.cwd)),
            limits: ProcessTimeouts {
                timeout: session.timeout_ms.map(Duration::from_millis),
                ..ProcessTimeouts::default()
            },
            ..ProcessSpec::shell(line)
        };
        let stop = self.stop.clone();
        let ended = supervisor
            .run(&spec, &mut Stdin::null(), &mut DiscardOutput, stop)
            .await?;
        Ok(Some(CheckOutcome {
            line: line.clone(),
            ended,
        }))
    }

    fn evaluate_attempt(
        &self,
        log: &SessionEventLog<'_, '_>,
        plan: &NextAttempt,
        line: &AttemptCommandLine,
        seen: &AttemptObservations<'_>,
    ) -> AttemptEvaluation {
        let spec = log.recovery().spec();
        let case = AttemptFacts {
            session: &spec.session,
            number: plan.number,
            retry_with: plan.cause.clone(),
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
            loop_signal: seen.loop_signal,
            gateway_diagnosis: seen.gateway_diagnosis.as_ref(),
            last_call: seen.last_call.as_ref(),
            is_resumed: plan.resume.is_some(),
            is_headless: self.role.is_some() || self.is_headless(spec),
            gateway_usage: seen.usage.clone(),
            tree: seen.tree.clone(),
            last_progress: seen.last_progress,
            failing_since: seen.failing_since,
            is_role: self.role.is_some(),
            is_question_failure: self.role.is_some_and(|role| role.loop_limits.enabled),
        };
        case.evaluate(self.knowledge, &self.clock.reading())
    }

    /// Records how the attempt ended that was running when unstuck crashed.
    pub(super) fn note_crash(&mut self, log: &mut SessionEventLog<'_, '_>) -> Result<(), RunError> {
        let number = log.recovery().attempt_count();
        let record = ChildExitStatus::from_record(&self.exit_record_path(log, number));
        let record = record.filter(|status| !self.ended_with_gateway(log, status));
        match record.and_then(|status| self.orphan_result_on_disk(log, status)) {
            Some(ended) => {
                let mut plan = log.recovery().next_attempt();
                plan.number = number;
                let line = self.build_command_line(log, &plan, ContinuationContext::default())?;
                let whole = self.full_stdout_on_disk(log);
                let seen = AttemptObservations {
                    stdout: whole.as_deref(),
                    times: self.print_times_on_disk(log),
                    ..AttemptObservations::from_process_result(&ended)
                };
                let judged = self.evaluate_attempt(log, &plan, &line, &seen);
                if !self.save_orphaned_answer(log, &judged, &ended)? {
                    return Ok(());
                }
                log.note_evaluation(self.clock.timestamp(), judged);
            }
            None => {
                let conversation = self.conversation_on_disk(log);
                let written = std::fs::metadata(self.newest_attempt_dir(log).join("stdout.log"));
                let cut_off = AttemptInterrupted {
                    has_output: written.is_ok_and(|file| file.len() > 0),
                    ..log.interruption_event(InterruptionCause::Crash, conversation)
                };
                let now = self.clock.timestamp();
                log.note(now, cut_off);
                self.note_held_call(log, now);
            }
        }
        Ok(())
    }

    /// Returns true if a child that ended unobserved may have failed because its gateway was gone: the gateway ended
    /// with the process that supervised the child.
    fn ended_with_gateway(&self, log: &SessionEventLog<'_, '_>, status: &ChildExitStatus) -> bool {
        let spec = log.recovery().spec();
        let has_gateway = self.go_between.is_some() && !log.options().no_gateway;
        let is_agent = self.role.is_some() || self.is_headless(spec);
        let is_doubtful = !status.is_success() || log.recovery().is_call_held();
        has_gateway && is_agent && spec.policy.enabled && is_doubtful
    }

    /// Records that the wait of an API call that was interrupted with its attempt still applies.
    fn note_held_call(&self, log: &mut SessionEventLog<'_, '_>, now: Timestamp) {
        if let NextSessionStep::Wait(until) = log.recovery().next_step(now) {
            let session = Some(log.recovery().spec().session.clone());
            let reason =
                "an API call was waiting for this when the attempt was interrupted".to_owned();
            let wait = WaitStarted {
                session,
                until,
                reason,
                is_stated: true,
                source: log.recovery().reset_source(),
                wait_purpose: WaitPurpose::Retry,
                give_up_at: None,
                reread: self.reread_cost(log, until),
            };
            log.note(now, wait);
        }
    }

    /// Re-runs only the check that failed after the newest attempt, since a repair has run.
    pub(super) async fn rerun_check(
        &mut self,
        log: &mut SessionEventLog<'_, '_>,
    ) -> Result<(), RunError> {
        let answer = log.answer().to_owned();
        if answer.trim().is_empty() {
            // The output of the attempt is no longer known.
            return self.run_attempt(log).await;
        }
        let Some(mut supervisor) = self.acquire_supervisor().await? else {
            self.note_interrupted(log, None);
            return Ok(());
        };
        let plan = NextAttempt {
            changes: vec!["re-run only the check".to_owned()],
            ..log.recovery().next_attempt()
        };
        let conversation = log.recovery().last_attempt_end();
        let conversation = conversation.and_then(|end| end.usage.agent_session.clone());
        let line = AttemptCommandLine {
            command: log.recovery().spec().command.clone(),
            stdin: None,
            session: conversation,
        };
        self.note_start(log, &plan, &line, supervisor.reaper_id(), None);
        self.flush(log).await?;
        let ended = process_result_from_output(ChildExitStatus::Exited(0), answer.as_bytes(), &[]);
        let check = self.run_attempt_check(log, &ended, &mut supervisor).await?;
        if check.as_ref().is_some_and(|check| check.ended.was_stopped) {
            self.note_interrupted(log, Some(InterruptedAttempt::default()));
            return Ok(());
        }
        let seen = AttemptObservations {
            check: check.as_ref(),
            ..AttemptObservations::from_process_result(&ended)
        };
        let judged = self.evaluate_attempt(log, &plan, &line, &seen);
        if !self.save_orphaned_answer(log, &judged, &ended)? {
            return Ok(());
        }
        let failed = matches!(judged.event, Event::AttemptFailed(_));
        log.note_evaluation(self.clock.timestamp(), judged);
        self.record_proposals_after_attempt(log, !failed).await;
        Ok(())
    }

    /// Returns the conversation that an agent had begun before a crash, if it can be resumed.
    fn resumable_conversation(
        &self,
        log: &SessionEventLog<'_, '_>,
        given: Option<&str>,
        ended: &ProcessResult,
    ) -> Option<String> {
        let spec = log.recovery().spec();
        let can = self.capabilities(spec).has(RetryChangeCapability::Resume) && spec.policy.enabled;
        let agent = self.agent_of(&spec.command, spec.agent.as_deref())?;
        let (stdout, stderr) = (ended.stdout.text(), ended.stderr.text());
        let told = agent.read_output(&stdout, &stderr).session;
        // A conversation without any output may not exist yet; it is tried if the agent reports missing conversations.
        let tells = !agent.file().session.missing.is_empty();
        let given = given
            .filter(|_| tells || !stdout.trim().is_empty())
            .map(str::to_owned);
        told.or(given).filter(|_| can)
    }

    /// Returns the resumable conversation of an unobserved attempt, from the files on disk.
    fn conversation_on_disk(&self, log: &SessionEventLog<'_, '_>) -> Option<String> {
        let ended = self.process_result_on_disk(log, ChildExitStatus::Exited(0));
        let given = log.recovery().assigned_conversation().map(str::to_owned);
        self.resumable_conversation(log, given.as_deref(), &ended)
    }

    /// Returns the result of a child that ended by itself while unobserved.
    fn orphan_result_on_disk(
        &self,
        log: &SessionEventLog<'_, '_>,
        status: ChildExitStatus,
    ) -> Option<ProcessResult> {
        // A check has to be run; so the attempt has to be repeated.
        if log.options().check.is_some() {
            return None;
        }
        Some(self.process_result_on_disk(log, status))
    }

    /// Returns the directory of the newest attempt.
    fn newest_attempt_dir(&self, log: &SessionEventLog<'_, '_>) -> PathBuf {
        let run = log.journal().files_dir();
        let part = log.role_instance();
        let instances = log.journal().with_view(|run| run.run.instances(part));
        run_dir::attempt_dir(&run, part, instances, log.recovery().attempt_count())
    }

    /// Returns the full standard output of an unobserved attempt, if all of it is needed.
    fn full_stdout_on_disk(&self, log: &SessionEventLog<'_, '_>) -> Option<String> {
        let read = || run_dir::read_run_file(&self.newest_attempt_dir(log).join("stdout.log")).ok();
        let bytes = self.needs_full_output(log).then(read).flatten()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Returns the timestamps of the output of an unobserved attempt.
    fn print_times_on_disk(&self, log: &SessionEventLog<'_, '_>) -> StreamTimestamps {
        let folder = self.newest_attempt_dir(log);
        StreamTimestamps {
            stdout: OutputTimestamps::from_file_mtime(&folder.join("stdout.log")),
            stderr: OutputTimestamps::from_file_mtime(&folder.join("stderr.log")),
        }
    }

    fn process_result_on_disk(
        &self,
        log: &SessionEventLog<'_, '_>,
        status: ChildExitStatus,
    ) -> ProcessResult {
        let folder = self.newest_attempt_dir(log);
        let read = |name: &str| run_dir::read_run_file(&folder.join(name)).unwrap_or_default();
        process_result_from_output(status, &read("stdout.log"), &read("stderr.log"))
    }
}

/// Returns the message to a conversation that was continued elsewhere, followed by other news.
fn continued_elsewhere_message(meanwhile: Option<String>) -> String {
    let told = [CONTINUED_ELSEWHERE_MESSAGE.to_owned()].into_iter();
    told.chain(meanwhile).collect::<Vec<_>>().join("\n")
}

/// Returns the accepted answer as text if it is not the whole output.
fn accepted_text<'t>(
    log: &SessionEventLog<'_, '_>,
    judged: &'t AttemptEvaluation,
) -> Option<&'t str> {
    let accepted = log.options().expect.accepted_part(&judged.answer);
    let is_part = judged.is_extracted || accepted.len() < judged.answer.len();
    is_part.then_some(accepted)
}

/// Returns the warning about an output that is too long to be evaluated completely.
fn partial_evaluation_warning() -> String {
    format!(
        "output exceeds {} MiB; success criteria were checked only in the first {} KiB and the last {} KiB",
        MAX_WHOLE_OUTPUT >> 20,
        MAX_HEAD_BYTES >> 10,
        MAX_TAIL_BYTES >> 10
    )
}

/// Returns the result of an unobserved child, from the files on disk.
fn process_result_from_output(
    status: ChildExitStatus,
    stdout: &[u8],
    stderr: &[u8],
) -> ProcessResult {
    let captured = |bytes: &[u8]| {
        let mut captured = CapturedOutput::default();
        captured.push(bytes);
        captured
    };
    ProcessResult {
        status,
        timed_out: None,
        was_stopped: false,
        was_interrupted: false,
        duration: Duration::ZERO,
        stdout: captured(stdout),
        stderr: captured(stderr),
        leftover_count: 0,
        survivor_count: 0,
    }
}

/// The result of a child run.
struct ChildRunResult {
    ended: ProcessResult,
    loop_signal: Option<LoopSignal>,
    /// The full standard output, if it is kept and not too long.
    stdout: Option<String>,
    /// The draft of the answer, if it goes to a file.
    answer: Option<AgentAnswerFile>,
    /// Timestamp of the last tool result.
    last_result: Option<Timestamp>,
    /// Timestamps of the parts of the output.
    times: StreamTimestamps,
}

/// Everything that was observed of an attempt.
struct AttemptObservations<'a> {
    ended: &'a ProcessResult,
    check: Option<&'a CheckOutcome>,
    loop_signal: Option<&'a LoopSignal>,
    stdout: Option<&'a str>,
    tree: Option<String>,
    /// The diagnosis of the gateway.
    gateway_diagnosis: Option<Diagnosis>,
    /// The end of the newest API call.
    last_call: Option<LastApiCall>,
    /// The usage of the API calls, if the gateway saw them.
    usage: AttemptUsage,
    /// Timestamp of the last progress.
    last_progress: Option<Timestamp>,
    /// Start of the current series of failed API calls.
    failing_since: Option<Timestamp>,
    /// The conversation that its requests named.
    conversation: Option<String>,
    /// Timestamps of the parts of the output.
    times: StreamTimestamps,
}

impl<'a> AttemptObservations<'a> {
    /// Returns the observations of an attempt of which only the process result is known.
    fn from_process_result(ended: &'a ProcessResult) -> Self {
        Self {
            ended,
            check: None,
            loop_signal: None,
            stdout: None,
            tree: None,
            gateway_diagnosis: None,
            last_call: None,
            usage: AttemptUsage::default(),
            last_progress: None,
            failing_since: None,
            conversation: None,
            times: StreamTimestamps::default(),
        }
    }

    /// Adds what the gateway observed of the attempt's API calls, if one was attached.
    fn with_gateway_observations(self, gateway: Option<&dyn GatewayAttachment>) -> Self {
        let Some(gateway) = gateway else {
            return self;
        };
        Self {
            usage: gateway.usage(),
            last_progress: self.last_progress.max(gateway.last_success()),
            failing_since: gateway.failing_since(),
            conversation: gateway.conversation(),
            gateway_diagnosis: gateway.newest_failure(),
            last_call: gateway.last_call(),
            ..self
        }
    }
}
