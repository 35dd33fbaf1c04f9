//! Whole sample pages.

use std::collections::BTreeMap;
use std::time::Duration;

use unstuck_core::RetryPolicy;
use unstuck_core::views::RunStatus;

use super::{Sample, after, before};
use crate::model::*;
use crate::pages::failures::{
    self, DailyAttempts, DailyRecoveryTime, FailuresPage, RecoverySavings, RecoveryStatistics,
    RecurringFailure, StrategyOutcomes,
};
use crate::pages::inbox::{EscalationPage, InboxPage};
use crate::pages::overview::OverviewPage;
use crate::pages::policies::PoliciesPage;
use crate::pages::run::RunPage;
use crate::pages::runs::{self, RunsPage};
use crate::pages::session::SessionPage;
use crate::pages::settings::SettingsPage;
use crate::queries::ActiveRunCounts;

impl<F: Fn(&str) -> String> Sample<F> {
    pub(crate) fn now(&self) -> OverviewPage {
        OverviewPage {
            frame: self.frame(),
            escalations: vec![self.question("q1")],
            sessions: vec![
                self.session("k3v9x0m2qa-1", RunStatus::Waiting),
                SessionResponse {
                    role: self.o("reviewer"),
                    ..self.session("k3v9x0m2qa-2", RunStatus::Running)
                },
                SessionResponse {
                    until: None,
                    ..self.session("k3v9x0m2qa-3", RunStatus::AwaitingHuman)
                },
            ],
            gateway: "http://127.0.0.1:4141".to_owned(),
            lanes: vec![
                self.lane("anthropic", "closed"),
                self.lane("openai", "open"),
                UpstreamStatus {
                    cool_down_until: Some(after(12)),
                    ..self.lane("gemini", "closed")
                },
            ],
            ended: vec![
                self.run("r1", RunStatus::Recovered),
                self.run("r2", RunStatus::Succeeded),
                self.run("r3", RunStatus::Failed),
                self.run("r4", RunStatus::Interrupted),
            ],
            failed_by_hour: (0..24).map(|hour| (hour * 7) % 11).collect(),
            spent_today: UsageTotals {
                cost_usd: Some(4.2),
                unknown_price: 3,
                ..unstuck_store::CostSummary::default().into()
            },
            counts: ActiveRunCounts {
                running: 1,
                waiting: 2,
                crashed: 1,
                active_runs: 61,
                shown_runs: 50,
            },
        }
    }

    pub(crate) fn runs(&self) -> RunsPage {
        RunsPage {
            frame: self.frame(),
            query: runs::RunsPageQuery {
                status: self.id("waiting"),
                project: self.id(""),
                ..runs::RunsPageQuery::default()
            },
            projects: vec![self.project()],
            runs: ListPage {
                items: vec![
                    self.run("r1", RunStatus::Waiting),
                    RunSummaryResponse {
                        task: self.o("Build the checkout and review it"),
                        roles: Some(3),
                        ..self.run("r2", RunStatus::Running)
                    },
                ],
                next: Some(self.id("r2")),
            },
        }
    }

    pub(crate) fn project(&self) -> ProjectResponse {
        ProjectResponse {
            id: self.id("3f9a1c07be52"),
            name: self.s("shop"),
            root: self.s("/home/me/shop"),
            runs: BTreeMap::new(),
            last_activity: before(20),
            cost_usd: Some(3.0),
            unknown_price: 0,
        }
    }

    pub(crate) fn run_page(&self) -> RunPage {
        RunPage {
            frame: self.frame(),
            run: RunDetail {
                run: self.run("k3v9x0m2qa", RunStatus::Waiting),
                cwd: self.s("/home/me/shop"),
                config_path: self.o("unstuck.toml"),
                sessions: vec![
                    self.session("k3v9x0m2qa-1", RunStatus::Waiting),
                    SessionResponse {
                        role: self.o("reviewer"),
                        ..self.session("k3v9x0m2qa-2", RunStatus::Succeeded)
                    },
                ],
                calls: vec![self.call()],
                model_changes: vec![self.model_change()],
                spent: Some(UsageTotals {
                    id: self.s("k3v9x0m2qa"),
                    calls: 41,
                    recovered: 3,
                    failed: 1,
                    api_attempts: 46,
                    input_tokens: 120_000,
                    cached_tokens: 300_000,
                    output_tokens: 9_000,
                    cost_usd: Some(0.42),
                    unknown_price: 1,
                }),
            },
            attempts: vec![
                self.attempt(1, "failed"),
                self.attempt(2, "failed"),
                self.attempt(3, "running"),
            ],
            hidden_attempts: 4,
            escalations: vec![self.question("q1")],
            events: self.events(),
        }
    }

    pub(crate) fn session_page(&self) -> SessionPage {
        SessionPage {
            frame: self.frame(),
            session: self.session("k3v9x0m2qa-1", RunStatus::Waiting),
            attempts: vec![
                (self.attempt(1, "failed"), Some(self.texts(1))),
                (self.attempt(2, "failed"), Some(self.texts(2))),
                (self.attempt(3, "succeeded"), None),
            ],
            escalations: Vec::new(),
            events: self.events(),
        }
    }

    pub(crate) fn inbox(&self) -> InboxPage {
        InboxPage {
            frame: self.frame(),
            open: vec![
                self.question("q1"),
                EscalationResponse {
                    escalation_kind: "hiccup".into(),
                    command: None,
                    ..self.question("q2")
                },
            ],
            answered: vec![self.answered("q0")],
        }
    }

    pub(crate) fn question_page(&self) -> EscalationPage {
        EscalationPage {
            frame: self.frame(),
            escalation: self.question("q1"),
        }
    }

    pub(crate) fn failures(&self) -> FailuresPage {
        let day = |back: u64| before(back * 86_400).to_string()[..10].to_owned();
        let counted = |all: &[(&str, u64)]| {
            all.iter()
                .map(|(name, count)| (self.s(name), *count))
                .collect::<Vec<_>>()
        };
        let helped = |name: &str, helped, did_not| StrategyOutcomes {
            name: self.s(name),
            helped,
            not_helped: did_not,
        };
        FailuresPage {
            frame: self.frame(),
            query: failures::FailuresPageQuery { model: self.s(""), ..failures::FailuresPageQuery::default() },
            projects: vec![self.project()],
            days: (0..14).filter(|back| *back != 5).map(|back| (day(back), DailyAttempts { failed: (back * 13) % 29, tries: 90 + back })).collect(),
            kinds: counted(&[("rate_limit", 61), ("timeout", 33), ("format_validation", 20), ("lockfile_drift", 4)]),
            models: counted(&[("claude-sonnet-5-5", 80), ("gpt-6", 31), ("", 7)]),
            by_project: counted(&[("/home/me/shop", 90), ("/home/me/docs", 28)]),
            prompts: vec![(self.s("tester"), self.s("Fix the failing tests in <path>. Write a report with the sections <str>."), 31), (String::new(), self.s("summarise <path>"), 4)],
            messages: vec![RecurringFailure { message: self.s("rate_limit_error: This request would exceed your rate limit of <num> tokens per minute"), count: 61, kind: self.s("rate_limit"), fingerprint: self.s("7b1c"), last_seen: before(300) }],
            recovery: RecoveryStatistics {
                levels: vec![helped("retry unchanged", 80, 12), helped("next strategy", 21, 9)],
                strategies: vec![helped("backoff", 80, 12), helped("simplify_prompt", 9, 4), helped("next_model", 12, 5)],
                times: (0..14).rev().map(|back| DailyRecoveryTime { day: day(back), median: (back != 3).then(|| Duration::from_secs(3 + back * 7 % 40)), p90: Some(Duration::from_secs(120)) }).collect(),
                median: Some(Duration::from_secs(10)),
                p90: Some(Duration::from_secs(120)),
                saved: RecoverySavings { runs: 31, cost_usd: 12.4 },
            },
        }
    }

    pub(crate) fn policies(&self) -> PoliciesPage {
        let policy = RetryPolicy {
            name: self.s("Standard"),
            description: self.s("Three retries, then other strategies."),
            ..RetryPolicy::default()
        };
        PoliciesPage {
            frame: self.frame(),
            projects: vec![self.project()],
            project: Some(self.project()),
            effective: EffectiveRetryPolicy {
                policy: policy.clone(),
                origin: PolicyOrigin::Set,
                version: 3,
            },
            draft: None,
            templates: vec![
                policy.clone(),
                RetryPolicy {
                    name: self.s("Patient"),
                    max_retries: 10,
                    auto_switch_model: true,
                    ..policy
                },
            ],
        }
    }

    pub(crate) fn settings(&self) -> SettingsPage {
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
        SettingsPage {
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
                ladders: vec![ModelLadderResponse {
                    id: self.s("anthropic"),
                    models: self.words(&["claude-haiku-5", "claude-sonnet-5-5", "claude-opus-5"]),
                }],
            },
            webhooks: vec![Webhook {
                id: self.id("escalation-1"),
                event: self.s("escalation"),
                target: self.s("https://hooks.example/…"),
                format: self.s("slack"),
            }],
            budgets: Budgets::new(
                vec![
                    BudgetResponse {
                        id: self.s("day"),
                        usd: Some(20.0),
                        tokens: None,
                        spent_usd: Some(4.2),
                    },
                    BudgetResponse {
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
