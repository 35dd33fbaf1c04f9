//! Sample pages with all fields filled. Every text passes through one function, so that a test can replace it.

use std::time::Duration;

use unstuck_core::diagnosis::RetryAfterSource;
use unstuck_core::views::{RunStatus, SessionStatusSummary};
use unstuck_core::{FailureKind, RecoveryLevel, Timestamp};

use crate::model::*;
use crate::pages::layout::PageFrame;
use crate::pages::parts::controls::Permissions;

mod pages;

pub(super) const NOW: Timestamp = Timestamp::from_seconds(1_794_850_000);

/// Builds pages whose texts are produced by `says`.
pub(super) struct Sample<F> {
    pub(super) says: F,
    pub(super) may: Permissions,
}

fn before(seconds: u64) -> Timestamp {
    NOW.before(Duration::from_secs(seconds))
}

fn state(state: RunStatus) -> SessionStatusSummary {
    let waits = state == RunStatus::Waiting;
    SessionStatusSummary {
        state,
        reason: Some(FailureKind::RateLimit),
        until: waits.then(|| after(42)),
        source: waits.then_some(RetryAfterSource::Header),
        next: None,
    }
}

fn after(seconds: u64) -> Timestamp {
    NOW.after(Duration::from_secs(seconds))
}

impl<F: Fn(&str) -> String> Sample<F> {
    fn s(&self, text: &str) -> String {
        (self.says)(text)
    }

    /// Returns an id, which never contains terminal escape sequences.
    fn id(&self, text: &str) -> String {
        let kept = self.s(text);
        kept.chars().filter(|c| !c.is_control()).collect()
    }

    fn o(&self, text: &str) -> Option<String> {
        Some(self.s(text))
    }

    fn words(&self, all: &[&str]) -> Vec<String> {
        all.iter().map(|word| self.s(word)).collect()
    }

    pub(super) fn frame(&self) -> PageFrame {
        PageFrame {
            now: NOW,
            open_escalations: 2,
            permissions: self.may,
            is_logged_in: self.may.can_answer,
            login_ended: false,
            rejected: None,
            stream: Some("/api/events".into()),
        }
    }

    pub(super) fn run(&self, id: &str, status: RunStatus) -> RunSummaryResponse {
        let ended = matches!(
            status,
            RunStatus::Succeeded
                | RunStatus::Recovered
                | RunStatus::Failed
                | RunStatus::Interrupted
        );
        RunSummaryResponse {
            id: self.id(id),
            project: self.s("/home/me/shop"),
            project_id: self.id("3f9a1c07be52"),
            command: self.words(&["claude", "-p", "fix the failing tests in checkout"]),
            agent: self.o("claude"),
            model: self.o("claude-sonnet-5-5"),
            policy: self.s("standard"),
            roles: None,
            task: None,
            iteration: Some(2),
            status,
            state: state(status),
            supervised: !ended,
            kind: Some(FailureKind::RateLimit),
            recovery_level: Some(RecoveryLevel::Alternative),
            started: before(1_260),
            updated: before(20),
            finished: ended.then(|| before(30)),
            until: (status == RunStatus::Waiting).then(|| after(42)),
            attempt_count: 2,
            error_count: 1,
            retry_count: 1,
            is_hiccup: false,
            cost_usd: Some(0.4231),
            unknown_price: 0,
            tokens: 182_400,
            exit_code: ended.then_some(1),
            reason: self
                .o("Rate limit exceeded: retrying in 45 s, as the server asked (retry 1 of 3)."),
        }
    }

    pub(super) fn session(&self, id: &str, status: RunStatus) -> SessionResponse {
        let run = self.run("k3v9x0m2qa", status);
        SessionResponse {
            id: self.id(id),
            run: run.id,
            project: run.project,
            project_id: run.project_id,
            role: None,
            iteration: None,
            instance: None,
            agent: run.agent,
            model: run.model,
            command: run.command,
            policy: self.o("standard"),
            status,
            state: state(status),
            supervised: true,
            started: run.started,
            finished: run.finished,
            until: run.until,
            attempt_count: 3,
            max_attempts: Some(4),
            error_count: 2,
            retry_count: 2,
            is_hiccup: false,
            last_error: Some(FailureKind::RateLimit),
            recovery_level: Some(RecoveryLevel::Alternative),
            cost_usd: Some(0.4231),
            unknown_price: 0,
            tokens: 182_400,
            conversation: self.o("5f0c"),
            timeout_ms: Some(1_200_000),
            reason: run.reason,
            retries: vec![RetryHistoryEntry {
                attempt_number: 1,
                error: FailureKind::Timeout,
                error_message: self.s("timed out"),
                timestamp: before(400),
                delay_ms: 2_000,
                succeeded: false,
            }],
            model_changes: vec![self.model_change()],
        }
    }

    fn model_change(&self) -> ModelSwitchEntry {
        ModelSwitchEntry {
            from_model: self.s("claude-haiku-5"),
            to_model: self.s("claude-sonnet-5-5"),
            reason: self.s("auto_after_retries"),
            timestamp: before(300),
            cost_estimate: Some(0.21),
        }
    }

    pub(super) fn question(&self, id: &str) -> EscalationResponse {
        let offered = |answer, does: &str, cost_usd| AnswerOption {
            answer,
            effect: self.s(does),
            cost_usd,
        };
        EscalationResponse {
            reread: None,
            id: self.id(id),
            escalation_kind: self.s("recovery_approval_required"),
            trigger: self.s("RECOVERY"),
            run: self.id("k3v9x0m2qa"),
            session: Some(self.id("k3v9x0m2qa-1")),
            project: self.s("/home/me/shop"),
            project_id: self.id("3f9a1c07be52"),
            role: self.o("tester"),
            kind: FailureKind::LockfileDrift,
            activity: self.s("running the tests of the checkout"),
            evidence: self.s("npm error `npm ci` can only install packages when your package.json and package-lock.json are in sync"),
            reason: self.s("Lockfile out of sync: `npm install --package-lock-only` may fix it; approval required."),
            prior_attempts: vec![PriorAttempt { action: self.s("retry unchanged after 2 s"), failure_reason: self.s("failed the same way") }],
            settings: vec![UnapprovedSettingChange { key: self.s("role.builder.command"), before: self.o("[\"make\"]"), after: self.o("[\"make\", \"-B\"]") }],
            command: self.o("npm install --package-lock-only"),
            conditions: Some(RepairConfinementResponse {
                sandbox: self.s("partial"),
                missing: vec![self.s("this kernel has no Landlock")],
                network: true,
                variables: vec![self.s("HOME"), self.s("PATH")],
                effects: vec![self.s("creates a git repository")],
            }),
            proposed: self.o("repair"),
            cost: Some(self.estimate()),
            can_preview: true,
            preview_needs_network: true,
            answers: vec![
                offered(EscalationAnswerChoice::Approve, "run `npm install --package-lock-only` once, then retry", None),
                offered(EscalationAnswerChoice::Reject, "retry without running it", None),
                offered(EscalationAnswerChoice::Resolve, "retry; you fixed it manually", None),
                offered(EscalationAnswerChoice::Retry, "retry with your message", None),
                offered(EscalationAnswerChoice::Escalate, "retry with claude-opus-5 (about $1.20 more)", Some(1.2)),
                offered(EscalationAnswerChoice::Skip, "skip tester and continue without it", None),
                offered(EscalationAnswerChoice::Abort, "abort the run", None),
            ],
            created: before(600),
            deadline: Some(AnswerDeadline { at: after(3_000), answer: EscalationAnswerChoice::Abort }),
            fingerprint: self.s("7b1c"),
            hash: self.s("00ff00ff00ff00ff"),
            outcome: None,
        }
    }

    pub(super) fn answered(&self, id: &str) -> EscalationResponse {
        let how = EscalationResolution {
            by: self.s("human"),
            method: self.s("approve"),
            user: self.o("ada"),
            note: self.s("fine by me"),
            summary: self.s("approved by ada"),
        };
        EscalationResponse {
            outcome: Some(EscalationOutcome {
                at: before(90),
                resolution: Some(how),
            }),
            ..self.question(id)
        }
    }

    pub(super) fn estimate(&self) -> ExtraCostEstimateResponse {
        ExtraCostEstimateResponse {
            from_model: self.o("claude-sonnet-5-5"),
            to_model: self.o("claude-opus-5"),
            usd: Some(1.2),
            formula: self
                .s("(25 - 15) × 12 000 output tokens / 1M + (5 - 3) × 500 000 input tokens / 1M"),
            preserved: self.s("The conversation and all files stay as they are."),
        }
    }

    pub(super) fn prompt(&self) -> RetryPromptResponse {
        RetryPromptResponse {
            prompt: self.s("The last attempt failed.\n\nError: tests failed"),
            original: self.s("fix the failing tests"),
            continues: true,
            model: self.o("claude-sonnet-5-5"),
            timeout_ms: Some(600_000),
        }
    }

    pub(super) fn preview(&self) -> RepairPreview {
        RepairPreview {
            command: self.s("npm install"),
            network: true,
            exit_code: Some(0),
            output: self.s("added 2 packages\n"),
            files: vec![PreviewedFile {
                path: self.s("package-lock.json"),
                change: self.s("changed"),
                diff: self.s("@@ -1 +1 @@\n-  \"version\": \"1.0.0\"\n+  \"version\": \"1.0.1\"\n"),
            }],
            more: true,
            notes: vec![self.s("It reached for the network; that was allowed.")],
        }
    }

    fn attempt(&self, number: u32, outcome: &str) -> AttemptResponse {
        let failed = outcome == "failed";
        AttemptResponse {
            id: self.id(&format!("k3v9x0m2qa/{number}")),
            index: number,
            session: self.id("k3v9x0m2qa-1"),
            role: self.o("tester"),
            iteration: Some(1),
            instance: Some(1),
            number,
            outcome: outcome.to_owned(),
            interruptions: 0,
            started: before(u64::from(600 / number)),
            ended: (outcome != "running").then(|| before(u64::from(500 / number))),
            duration_ms: (outcome != "running").then_some(94_300),
            command: self.words(&["claude", "-p", "fix the failing tests"]),
            model: self.o("claude-sonnet-5-5"),
            recovers_from: (number > 1).then(|| RetryCauseResponse {
                kind: FailureKind::FormatValidation,
                level: RecoveryLevel::Alternative,
                strategy: self.o("simplify_prompt"),
            }),
            changes: if number > 1 {
                vec![self.s("prompt: sections")]
            } else {
                Vec::new()
            },
            exit_code: failed.then_some(1),
            signal: None,
            limit: (number == 2).then(|| self.s("timeout")),
            usage: AttemptUsage {
                cost_usd: Some(0.12),
                tokens: Some(TokenCounts {
                    input: 41_000,
                    cached: 12_000,
                    output: 2_100,
                }),
                turns: Some(7),
            },
            diagnosis: failed.then(|| self.diagnosis()),
            validation_errors: if failed {
                vec![self.s("section “Risks” is missing")]
            } else {
                Vec::new()
            },
            excerpt: Some(OutputExcerpt {
                stdout: self.s("FAIL src/checkout.test.ts\n  expected 3, got 2\n"),
                stderr: self.s("npm error code 1\n"),
            }),
            decision: failed.then(|| self.decision()),
            calls: vec![self.call()],
            model_changes: if number == 2 {
                vec![self.model_change()]
            } else {
                Vec::new()
            },
            wait: failed.then(|| NextAttemptWait {
                reread: None,
                until: if number == 2 { after(42) } else { before(300) },
                reason: self.s("a rate limit"),
                stated: true,
            }),
            escalation: (number == 2).then(|| self.id("q1")),
            resolution: (number == 2).then(|| EscalationResolution {
                by: self.s("human"),
                method: self.s("retry"),
                user: self.o("ada"),
                note: self.s("use the fixtures"),
                summary: self.s("retried with a message by ada"),
            }),
            repairs: if number == 1 {
                vec![self.repair()]
            } else {
                Vec::new()
            },
        }
    }

    fn diagnosis(&self) -> DiagnosisResponse {
        DiagnosisResponse {
            kind: FailureKind::FormatValidation,
            layer: self.s("agent"),
            level: Some(RecoveryLevel::Alternative),
            confidence: 0.92,
            retry_after_ms: Some(45_000),
            rule: self.s("format_validation/section"),
            line: self.s("error: the section “Risks” is missing from the report"),
            fingerprint: self.s("9c2e"),
            message: self.s("The output does not have the required format"),
            hint: self.s("Show the required format in the prompt, with an example."),
            truncated: false,
        }
    }

    fn decision(&self) -> Decision {
        Decision {
            level: Some(RecoveryLevel::Alternative),
            strategy: self.o("tell_what_was_wrong"),
            reason: self.s("Invalid output format: retrying in 2 s: Require the exact format (strategy 1 of 2)."),
            attempt: 1,
            max_attempts: 2,
            delay_ms: Some(2_000),
            stated: false,
            skipped: vec![SkippedStrategy { strategy: self.s("same"), reason: self.s("the policy does not retry this kind unchanged") }],
            cost_usd: Some(0.14),
            at: before(480),
            knowledge: self.s("0.1.0"),
            policy_hash: self.s("ab12"),
        }
    }

    fn call(&self) -> FailedOrRecoveredCallResponse {
        FailedOrRecoveredCallResponse {
            id: self.id("c81"),
            api_attempts: vec![FailedApiAttemptResponse {
                at: before(520),
                number: 1,
                upstream: self.s("anthropic"),
                model: self.o("claude-sonnet-5-5"),
                status: Some(529),
                kind: FailureKind::ServerOverloaded,
                message: self.s("Overloaded"),
                reason: self.s("Server overloaded: retrying in 1.2 s (0 s of 30 min)."),
                fallback: self.o("bedrock"),
                skipped_upstreams: vec![
                    self.s("spare was skipped: cannot call tools, which the request requires"),
                ],
            }],
            outcome: self.o("recovered"),
            status: Some(200),
            model: self.o("claude-sonnet-5-5"),
            attempts: Some(2),
            duration_ms: Some(4_800),
            cost_usd: Some(0.02),
        }
    }

    fn repair(&self) -> RepairResponse {
        RepairResponse {
            id: self.id("r1"),
            command: self.s("npm ci"),
            working_dir: self.o("web"),
            root_cause: self.s("node_modules are missing."),
            expected_outcome: self.s("The tests can start."),
            reason: self.s("Allowed by the project's configuration."),
            approved: true,
            exit_code: Some(0),
            duration_ms: Some(8_100),
            sandbox: self.o("partial"),
            side_effects: vec![
                self.s(
                    "removed or restored, because git or unstuck would act on it: .git/commondir",
                ),
            ],
            output: self.s("added 812 packages\n"),
            failed: self.o("Something else failed afterwards."),
            succeeded: true,
        }
    }

    fn texts(&self, number: u32) -> AttemptTexts {
        let prompt = match number {
            1 => "Fix the failing tests in checkout.\nWrite a report.\n",
            _ => {
                "The last report had no section “Risks”.\nFix the failing tests in checkout.\nWrite a report with the sections Summary, Risks.\n"
            }
        };
        AttemptTexts {
            prompt: self.o(prompt),
            stdout: self.s("running tests…\n"),
            stderr: self.s("warning: slow\n"),
            truncated: true,
        }
    }

    fn event(&self, seq: u64, name: &str) -> EventResponse {
        let mut data = serde_json::Map::new();
        data.insert(
            "reason".into(),
            self.s("Rate limit exceeded: retrying in 2 s (0 s of 30 min).")
                .into(),
        );
        EventResponse {
            state: None,
            id: seq,
            run: self.id("k3v9x0m2qa"),
            seq,
            at: before(600 - seq * 40),
            event: self.s(name),
            session: Some(self.id("k3v9x0m2qa-1")),
            kind: Some(FailureKind::FormatValidation),
            data,
        }
    }

    fn events(&self) -> Vec<EventResponse> {
        let names = [
            "attempt_started",
            "decision_made",
            "attempt_failed",
            "attempt_started",
            "run_started",
        ];
        names
            .iter()
            .zip((1..=5).rev())
            .map(|(name, seq)| self.event(seq, name))
            .collect()
    }

    fn lane(&self, upstream: &str, breaker: &str) -> UpstreamStatus {
        let window = |limit: u64, remaining| {
            Some(RemainingQuotaResponse {
                limit: Some(limit),
                remaining,
                reset: after(31),
            })
        };
        UpstreamStatus {
            upstream: self.id(upstream),
            model: self.id("claude-sonnet-5-5"),
            breaker: BreakerStatus {
                state: breaker.to_owned(),
                failures: Some(1),
                until: (breaker != "closed").then(|| after(17)),
            },
            in_flight: 3,
            rate_per_second: None,
            requests: window(1_000, 120),
            tokens: None,
            input_tokens: window(400_000, 381_000),
            output_tokens: window(80_000, 4_000),
            subscription: Some(SubscriptionUsage {
                used_percent: 71.0,
                reset: after(7_200),
                exhausted: false,
            }),
            cool_down_until: None,
            retry_budget: 4.0,
            mean_duration_ms: 4_210.0,
            counts: UpstreamCallCounts {
                admitted: 812,
                retries: 31,
                answered: 790,
                failed: 19,
                rate_limited: 12,
                abandoned: 1,
                tokens: 12_000_000,
            },
        }
    }
}
