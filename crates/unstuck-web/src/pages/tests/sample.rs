//! Pages full of what they can hold. Every text goes through one function, so that a test can put anything in its place.

use std::collections::BTreeMap;
use std::time::Duration;

use unstuck_core::episode::Status;
use unstuck_core::{Kind, Level, RetryPolicy, Timestamp};

use crate::model::*;
use crate::pages::failures::{
    self, Day, Failures, Helped, Message, Recovery, Saved, TimeToRecovery,
};
use crate::pages::inbox::{Inbox, QuestionPage};
use crate::pages::layout::{Frame, May};
use crate::pages::now::Now;
use crate::pages::policies::Policies;
use crate::pages::run::RunPage;
use crate::pages::runs::{self, Runs};
use crate::pages::session::SessionPage;
use crate::pages::settings::Settings;

pub(super) const NOW: Timestamp = Timestamp::from_seconds(1_794_850_000);

/// Makes pages whose texts are what `says` makes of them.
pub(super) struct Sample<F> {
    pub(super) says: F,
    pub(super) may: May,
}

fn before(seconds: u64) -> Timestamp {
    NOW.before(Duration::from_secs(seconds))
}

fn after(seconds: u64) -> Timestamp {
    NOW.after(Duration::from_secs(seconds))
}

impl<F: Fn(&str) -> String> Sample<F> {
    fn s(&self, text: &str) -> String {
        (self.says)(text)
    }

    /// An id: ours, so that it holds no commands to terminals.
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

    pub(super) fn frame(&self) -> Frame {
        Frame {
            now: NOW,
            open: 2,
            may: self.may,
            stream: Some("/api/events".into()),
        }
    }

    pub(super) fn run(&self, id: &str, status: Status) -> Run {
        let ended = matches!(
            status,
            Status::Succeeded | Status::Recovered | Status::Failed | Status::Interrupted
        );
        Run {
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
            driven: !ended,
            kind: Some(Kind::RateLimit),
            recovery_level: Some(Level::Alternative),
            started: before(1_260),
            updated: before(20),
            finished: ended.then(|| before(30)),
            until: (status == Status::Waiting).then(|| after(42)),
            attempt_count: 2,
            error_count: 1,
            retry_count: 1,
            is_hiccup: false,
            cost_usd: 0.4231,
            tokens: 182_400,
            exit_code: ended.then_some(1),
            reason: self.o("rate limited; the server said to wait 45 s"),
        }
    }

    pub(super) fn session(&self, id: &str, status: Status) -> Session {
        let run = self.run("k3v9x0m2qa", status);
        Session {
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
            driven: true,
            started: run.started,
            finished: run.finished,
            until: run.until,
            attempt_count: 3,
            max_attempts: Some(4),
            error_count: 2,
            retry_count: 2,
            is_hiccup: false,
            last_error: Some(Kind::RateLimit),
            recovery_level: Some(Level::Alternative),
            cost_usd: 0.4231,
            tokens: 182_400,
            agent_session: self.o("5f0c"),
            timeout_ms: Some(1_200_000),
            reason: run.reason,
            retries: vec![RetryTold {
                attempt_number: 1,
                error: Kind::Timeout,
                error_message: self.s("timed out"),
                timestamp: before(400),
                delay_ms: 2_000,
                succeeded: false,
            }],
            model_changes: vec![self.model_change()],
        }
    }

    fn model_change(&self) -> ModelChange {
        ModelChange {
            from_model: self.s("claude-haiku-5"),
            to_model: self.s("claude-sonnet-5-5"),
            reason: self.s("auto_after_retries"),
            timestamp: before(300),
            cost_estimate: Some(0.21),
        }
    }

    pub(super) fn question(&self, id: &str) -> Escalation {
        let offered = |answer, does: &str, cost_usd| Offered {
            answer,
            does: self.s(does),
            cost_usd,
        };
        Escalation {
            id: self.id(id),
            question: self.s("recovery_approval_required"),
            trigger: self.s("RECOVERY"),
            run: self.id("k3v9x0m2qa"),
            session: Some(self.id("k3v9x0m2qa-1")),
            project: self.s("/home/me/shop"),
            project_id: self.id("3f9a1c07be52"),
            role: self.o("tester"),
            kind: Kind::LockfileDrift,
            doing: self.s("running the tests of the checkout"),
            evidence: self.s("npm error `npm ci` can only install packages when your package.json and package-lock.json are in sync"),
            reason: self.s("The lockfile is out of date; installing would change it, and nobody has allowed that yet."),
            tried: vec![Tried { what: self.s("the same again after 2 s"), why: self.s("failed the same way") }],
            command: self.o("npm install --package-lock-only"),
            proposed: self.o("repair"),
            cost: Some(self.estimate()),
            can_preview: true,
            answers: vec![
                offered(Answer::Approve, "runs `npm install --package-lock-only` once, then tries again", None),
                offered(Answer::Reject, "does not run it, and tries again without", None),
                offered(Answer::Resolve, "tries again: you have seen to it", None),
                offered(Answer::Retry, "tries again with your words", None),
                offered(Answer::Escalate, "tries again with claude-opus-5", Some(1.2)),
                offered(Answer::Skip, "leaves tester out; the others go on without it", None),
                offered(Answer::Abort, "ends the run", None),
            ],
            created: before(600),
            deadline: Some(Deadline { at: after(3_000), answer: Answer::Abort }),
            fingerprint: self.s("7b1c"),
            hash: self.s("00ff00ff00ff00ff"),
            answered: None,
        }
    }

    pub(super) fn answered(&self, id: &str) -> Escalation {
        let how = Resolved {
            by: self.s("human"),
            method: self.s("approve"),
            who: self.o("ada"),
            note: self.s("fine by me"),
            said: self.s("approved by ada"),
        };
        Escalation {
            answered: Some(Answered {
                at: before(90),
                how: Some(how),
            }),
            ..self.question(id)
        }
    }

    pub(super) fn estimate(&self) -> Estimate {
        Estimate {
            from_model: self.o("claude-sonnet-5-5"),
            to_model: self.o("claude-opus-5"),
            usd: Some(1.2),
            formula: self
                .s("(25 - 15) × 12 000 output tokens / 1M + (5 - 3) × 500 000 input tokens / 1M"),
            keeps: self.s("The conversation and all files stay as they are."),
        }
    }

    pub(super) fn prompt(&self) -> RetryPrompt {
        RetryPrompt {
            prompt: self.s("The last attempt failed.\n\nError: tests failed"),
            original: self.s("fix the failing tests"),
            continues: true,
            model: self.o("claude-sonnet-5-5"),
            timeout_ms: Some(600_000),
        }
    }

    pub(super) fn preview(&self) -> Preview {
        Preview {
            command: self.s("npm install"),
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

    fn attempt(&self, number: u32, outcome: &str) -> Attempt {
        let failed = outcome == "failed";
        Attempt {
            id: self.id(&format!("k3v9x0m2qa/{number}")),
            index: number,
            session: self.id("k3v9x0m2qa-1"),
            role: self.o("tester"),
            iteration: Some(1),
            instance: Some(1),
            number,
            outcome: outcome.to_owned(),
            cut_off: 0,
            started: before(u64::from(600 / number)),
            ended: (outcome != "running").then(|| before(u64::from(500 / number))),
            duration_ms: (outcome != "running").then_some(94_300),
            command: self.words(&["claude", "-p", "fix the failing tests"]),
            model: self.o("claude-sonnet-5-5"),
            answering: (number > 1).then(|| Answering {
                kind: Kind::FormatValidation,
                level: Level::Alternative,
                strategy: self.o("simplify_prompt"),
            }),
            changes: if number > 1 {
                vec![self.s("the prompt tells what was wrong")]
            } else {
                Vec::new()
            },
            exit_code: failed.then_some(1),
            signal: None,
            limit: (number == 2).then(|| self.s("timeout")),
            used: Used {
                cost_usd: Some(0.12),
                tokens: Some(TokenCount {
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
            excerpt: Some(Excerpt {
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
            wait: failed.then(|| Wait {
                until: if number == 2 { after(42) } else { before(300) },
                reason: self.s("the server said so"),
                stated: true,
            }),
            escalation: (number == 2).then(|| self.id("q1")),
            resolved: (number == 2).then(|| Resolved {
                by: self.s("human"),
                method: self.s("retry"),
                who: self.o("ada"),
                note: self.s("use the fixtures"),
                said: self.s("retried with words by ada"),
            }),
            repairs: if number == 1 {
                vec![self.repair()]
            } else {
                Vec::new()
            },
        }
    }

    fn diagnosis(&self) -> Diagnosis {
        Diagnosis {
            kind: Kind::FormatValidation,
            layer: self.s("agent"),
            level: Some(Level::Alternative),
            confidence: 0.92,
            retry_after_ms: Some(45_000),
            rule: self.s("format_validation/section"),
            line: self.s("error: the section “Risks” is missing from the report"),
            fingerprint: self.s("9c2e"),
            message: self.s("The output does not have the form that was asked for"),
            hint: self.s("Say in the prompt which sections are needed"),
            truncated: false,
        }
    }

    fn decision(&self) -> Decision {
        Decision {
            level: Some(Level::Alternative),
            strategy: self.o("tell_what_was_wrong"),
            reason: self.s("The same prompt would fail the same way; the next strategy of the chain helped 7 of 9 times"),
            attempt: 1,
            of: 2,
            delay_ms: Some(2_000),
            stated: false,
            passed_over: vec![PassedOver { strategy: self.s("same"), why: self.s("a systematic failure is not repeated unchanged") }],
            cost_usd: Some(0.14),
            at: before(480),
            knowledge: self.s("0.1.0"),
            policy_hash: self.s("ab12"),
        }
    }

    fn call(&self) -> ApiCall {
        ApiCall {
            id: self.id("c81"),
            tries: vec![ApiTry {
                at: before(520),
                number: 1,
                upstream: self.s("anthropic"),
                model: self.o("claude-sonnet-5-5"),
                status: Some(529),
                kind: Kind::ServerOverloaded,
                message: self.s("Overloaded"),
                reason: self.s("tried again after 1.2 s"),
                fallback: self.o("bedrock"),
            }],
            outcome: self.o("recovered"),
            status: Some(200),
            model: self.o("claude-sonnet-5-5"),
            attempts: Some(2),
            duration_ms: Some(4_800),
            cost_usd: Some(0.02),
        }
    }

    fn repair(&self) -> Repair {
        Repair {
            id: self.id("r1"),
            command: self.s("npm ci"),
            working_dir: self.o("web"),
            root_cause: self.s("node_modules are missing."),
            expected_outcome: self.s("The tests can start."),
            reason: self.s("Allowed by the project's configuration."),
            approved: true,
            exit_code: Some(0),
            duration_ms: Some(8_100),
            sandbox: self.o("landlock"),
            output: self.s("added 812 packages\n"),
            failed: self.o("Something else failed afterwards."),
            worked: true,
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
            cut: true,
        }
    }

    fn event(&self, seq: u64, name: &str) -> EventLine {
        let mut data = serde_json::Map::new();
        data.insert(
            "reason".into(),
            self.s("the chain goes on with the next strategy").into(),
        );
        EventLine {
            id: seq,
            run: self.id("k3v9x0m2qa"),
            seq,
            at: before(600 - seq * 40),
            event: self.s(name),
            session: Some(self.id("k3v9x0m2qa-1")),
            kind: Some(Kind::FormatValidation),
            data,
        }
    }

    fn events(&self) -> Vec<EventLine> {
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

    fn lane(&self, upstream: &str, breaker: &str) -> Lane {
        let window = |limit: u64, remaining| {
            Some(Window {
                limit: Some(limit),
                remaining,
                reset: after(31),
            })
        };
        Lane {
            upstream: self.id(upstream),
            model: self.id("claude-sonnet-5-5"),
            breaker: Breaker {
                state: breaker.to_owned(),
                failures: Some(1),
                until: (breaker != "closed").then(|| after(17)),
            },
            in_flight: 3,
            pace_per_second: None,
            requests: window(1_000, 120),
            tokens: None,
            input_tokens: window(400_000, 381_000),
            output_tokens: window(80_000, 4_000),
            plan: Some(Plan {
                used_percent: 71.0,
                reset: after(7_200),
                spent: false,
            }),
            cool_down_until: None,
            retry_budget: 4.0,
            usual_took_ms: 4_210.0,
            counts: LaneCounts {
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

    pub(super) fn now(&self) -> Now {
        Now {
            frame: self.frame(),
            questions: vec![self.question("q1")],
            sessions: vec![
                self.session("k3v9x0m2qa-1", Status::Waiting),
                Session {
                    role: self.o("reviewer"),
                    ..self.session("k3v9x0m2qa-2", Status::Running)
                },
                Session {
                    until: None,
                    ..self.session("k3v9x0m2qa-3", Status::AwaitingHuman)
                },
            ],
            lanes: vec![
                self.lane("anthropic", "closed"),
                self.lane("openai", "open"),
                Lane {
                    cool_down_until: Some(after(12)),
                    ..self.lane("gemini", "closed")
                },
            ],
            ended: vec![
                self.run("r1", Status::Recovered),
                self.run("r2", Status::Succeeded),
                self.run("r3", Status::Failed),
                self.run("r4", Status::Interrupted),
            ],
            failed_by_hour: (0..24).map(|hour| (hour * 7) % 11).collect(),
            spent_today: 4.2,
        }
    }

    pub(super) fn runs(&self) -> Runs {
        Runs {
            frame: self.frame(),
            asked: runs::Asked {
                status: self.id("waiting"),
                project: self.id(""),
                ..runs::Asked::default()
            },
            projects: vec![self.project()],
            runs: Page {
                items: vec![
                    self.run("r1", Status::Waiting),
                    Run {
                        task: self.o("Build the checkout and review it"),
                        roles: Some(3),
                        ..self.run("r2", Status::Running)
                    },
                ],
                next: Some(self.id("r2")),
            },
        }
    }

    pub(super) fn project(&self) -> Project {
        Project {
            id: self.id("3f9a1c07be52"),
            name: self.s("shop"),
            root: self.s("/home/me/shop"),
            runs: BTreeMap::new(),
            last_activity: before(20),
            cost_usd: 3.0,
        }
    }

    pub(super) fn run_page(&self) -> RunPage {
        RunPage {
            frame: self.frame(),
            run: RunDetail {
                run: self.run("k3v9x0m2qa", Status::Waiting),
                cwd: self.s("/home/me/shop"),
                config_path: self.o("unstuck.toml"),
                sessions: vec![
                    self.session("k3v9x0m2qa-1", Status::Waiting),
                    Session {
                        role: self.o("reviewer"),
                        ..self.session("k3v9x0m2qa-2", Status::Succeeded)
                    },
                ],
                calls: vec![self.call()],
                model_changes: vec![self.model_change()],
                spent: Some(Spending {
                    id: self.s("k3v9x0m2qa"),
                    calls: 41,
                    recovered: 3,
                    failed: 1,
                    tries: 46,
                    input_tokens: 120_000,
                    cached_tokens: 300_000,
                    output_tokens: 9_000,
                    cost_usd: 0.42,
                    unknown_price: 1,
                }),
            },
            attempts: vec![
                self.attempt(1, "failed"),
                self.attempt(2, "failed"),
                self.attempt(3, "running"),
            ],
            earlier: 4,
            questions: vec![self.question("q1")],
            events: self.events(),
        }
    }

    pub(super) fn session_page(&self) -> SessionPage {
        SessionPage {
            frame: self.frame(),
            session: self.session("k3v9x0m2qa-1", Status::Waiting),
            attempts: vec![
                (self.attempt(1, "failed"), Some(self.texts(1))),
                (self.attempt(2, "failed"), Some(self.texts(2))),
                (self.attempt(3, "succeeded"), None),
            ],
            questions: Vec::new(),
            events: self.events(),
        }
    }

    pub(super) fn inbox(&self) -> Inbox {
        Inbox {
            frame: self.frame(),
            open: vec![
                self.question("q1"),
                Escalation {
                    question: "hiccup".into(),
                    command: None,
                    ..self.question("q2")
                },
            ],
            answered: vec![self.answered("q0")],
        }
    }

    pub(super) fn question_page(&self) -> QuestionPage {
        QuestionPage {
            frame: self.frame(),
            asked: self.question("q1"),
        }
    }

    pub(super) fn failures(&self) -> Failures {
        let day = |back: u64| before(back * 86_400).to_string()[..10].to_owned();
        let counted = |all: &[(&str, u64)]| {
            all.iter()
                .map(|(name, count)| (self.s(name), *count))
                .collect::<Vec<_>>()
        };
        let helped = |name: &str, helped, did_not| Helped {
            name: self.s(name),
            helped,
            did_not,
        };
        Failures {
            frame: self.frame(),
            asked: failures::Asked { model: self.s(""), ..failures::Asked::default() },
            projects: vec![self.project()],
            days: (0..14).filter(|back| *back != 5).map(|back| (day(back), Day { failed: (back * 13) % 29, tries: 90 + back })).collect(),
            kinds: counted(&[("rate_limit", 61), ("timeout", 33), ("format_validation", 20), ("lockfile_drift", 4)]),
            models: counted(&[("claude-sonnet-5-5", 80), ("gpt-6", 31), ("", 7)]),
            by_project: counted(&[("/home/me/shop", 90), ("/home/me/docs", 28)]),
            prompts: vec![(self.s("tester"), self.s("Fix the failing tests in <path>. Write a report with the sections <str>."), 31), (String::new(), self.s("summarise <path>"), 4)],
            messages: vec![Message { message: self.s("rate_limit_error: This request would exceed your rate limit of <num> tokens per minute"), count: 61, kind: self.s("rate_limit"), fingerprint: self.s("7b1c"), last_seen: before(300) }],
            recovery: Recovery {
                levels: vec![helped("the same again", 80, 12), helped("another way", 21, 9)],
                strategies: vec![helped("backoff", 80, 12), helped("simplify_prompt", 9, 4), helped("next_model", 12, 5)],
                times: (0..14).rev().map(|back| TimeToRecovery { day: day(back), median: (back != 3).then(|| Duration::from_secs(3 + back * 7 % 40)), most: Some(Duration::from_secs(120)) }).collect(),
                median: Some(Duration::from_secs(10)),
                most: Some(Duration::from_secs(120)),
                saved: Saved { runs: 31, cost_usd: 12.4 },
            },
        }
    }

    pub(super) fn policies(&self) -> Policies {
        let policy = RetryPolicy {
            name: self.s("Standard"),
            description: self.s("Three retries, then other ways."),
            ..RetryPolicy::default()
        };
        Policies {
            frame: self.frame(),
            projects: vec![self.project()],
            project: Some(self.project()),
            kept: PolicyKept {
                policy: policy.clone(),
                origin: PolicyOrigin::Set,
                version: 3,
            },
            templates: vec![
                policy.clone(),
                RetryPolicy {
                    name: self.s("Patient"),
                    max_retries: 10,
                    auto_escalate: true,
                    ..policy
                },
            ],
        }
    }

    pub(super) fn settings(&self) -> Settings {
        let price = Some(Price {
            input: 3.0,
            output: 15.0,
            cached: Some(0.3),
            as_of: self.s("2026-11-01"),
        });
        let agent = |id: &str, installed| Agent {
            id: self.id(id),
            title: self.s("Claude Code"),
            installed,
            path: self.o("/usr/bin/claude"),
            version: self.o("3.1.0"),
            prompt: self.s("stdin"),
            resumes: true,
            model: true,
            tools: installed.is_some(),
        };
        Settings {
            frame: self.frame(),
            agents: vec![
                agent("claude", Some(true)),
                agent("codex", Some(false)),
                agent("command", None),
            ],
            models: Models {
                models: vec![Model {
                    id: self.s("claude-sonnet-5-5"),
                    provider: self.s("anthropic"),
                    family: self.o("sonnet"),
                    context: Some(1_000_000),
                    max_output: Some(64_000),
                    price,
                    long_price: None,
                    aliases: vec![self.s("sonnet")],
                }],
                ladders: vec![Ladder {
                    id: self.s("anthropic"),
                    models: self.words(&["claude-haiku-5", "claude-sonnet-5-5", "claude-opus-5"]),
                }],
            },
            webhooks: vec![Webhook {
                id: self.id("escalation-1"),
                occasion: self.s("escalation"),
                target: self.s("https://hooks.example/…"),
                format: self.s("slack"),
            }],
            budgets: Budgets::new(
                vec![
                    Budget {
                        id: self.s("day"),
                        usd: Some(20.0),
                        tokens: None,
                        spent_usd: Some(4.2),
                    },
                    Budget {
                        id: self.s("run"),
                        usd: Some(5.0),
                        tokens: None,
                        spent_usd: None,
                    },
                ],
                4.2,
            ),
        }
    }
}
