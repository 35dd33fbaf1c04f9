//! The possible answers of an escalation and their effects.

use super::{AnswerOption, EscalationAnswer};
use crate::decision::{ConcreteAttemptChange, EscalationReason};
use crate::event::{BudgetReached, EscalationOpened};

/// The context that determines the possible answers.
#[derive(Debug, Clone, Copy, Default)]
pub struct AnswerOptionsContext<'a> {
    /// The proposed repair.
    pub repair: Option<&'a str>,
    /// The role; none if it is about a single command or the whole run.
    pub role: Option<&'a str>,
    /// The number of further iterations that may be approved, if it is about a loop.
    pub iterations: Option<u32>,
    /// True if the command cannot be run again, so that only aborting is possible.
    pub is_unrepeatable: bool,
    /// True if a human's message can be passed to the agent.
    pub accepts_message: bool,
    /// The next stronger model with its expected extra cost.
    pub model: Option<StrongerModel<'a>>,
    /// The reached budget, if it is about one.
    pub budget: Option<&'a BudgetReached>,
    /// The number of changed project settings, if it is about them.
    pub settings: usize,
}

/// The next stronger model.
#[derive(Debug, Clone, Copy)]
pub struct StrongerModel<'a> {
    /// The current model.
    pub from: &'a str,
    /// The stronger model.
    pub to: &'a str,
    /// The expected extra cost in USD.
    pub cost: Option<f64>,
}

impl StrongerModel<'_> {
    fn change(&self) -> ConcreteAttemptChange {
        ConcreteAttemptChange::Model {
            from: self.from.to_owned(),
            to: self.to.to_owned(),
        }
    }
}

/// Returns the possible answers, most likely first.
pub fn answer_options(why: EscalationReason, of: &AnswerOptionsContext<'_>) -> Vec<AnswerOption> {
    let approve = of
        .approve_effect(why)
        .map(|does| (EscalationAnswer::Approve, does));
    let reject = of
        .reject_effect(why)
        .map(|does| (EscalationAnswer::Reject, does));
    let is_about_trust = why == EscalationReason::Trust;
    // A retry without a higher budget would only escalate again.
    let is_about_money = why == EscalationReason::MaxCost;
    let rest = [
        (!is_about_money && of.settings == 0)
            .then(|| (EscalationAnswer::Resolve, of.resolve_effect(why))),
        (of.accepts_message && !is_about_trust && !is_about_money).then(|| {
            (
                EscalationAnswer::Retry,
                "retry with your message".to_owned(),
            )
        }),
        of.switch_model_effect(why)
            .map(|does| (EscalationAnswer::SwitchModel, does)),
        (!is_about_trust).then(|| (EscalationAnswer::Skip, of.skip_effect())),
        (!is_about_trust).then(|| (EscalationAnswer::Abort, "abort the run".to_owned())),
    ];
    let all = [approve, reject].into_iter().chain(rest).flatten();
    // An answer that cannot work is not offered.
    let all =
        all.filter(|(answer, _)| !of.is_unrepeatable || is_about_trust || !answer.continues());
    let model = |answer| match answer {
        EscalationAnswer::SwitchModel => of.model,
        EscalationAnswer::Approve if why == EscalationReason::CostlierModel => of.model,
        _ => None,
    };
    all.map(|(answer, does)| AnswerOption {
        answer,
        effect: does,
        changes: model(answer).iter().map(StrongerModel::change).collect(),
        cost: model(answer).and_then(|model| model.cost),
    })
    .collect()
}

/// Returns the offered answers of an escalation; an older one without recorded options has the usual ones.
pub fn offered_options(asked: &EscalationOpened) -> Vec<AnswerOption> {
    let shown = &asked.details;
    if !shown.options.is_empty() {
        return shown.options.clone();
    }
    let usual = AnswerOptionsContext {
        repair: shown.command.as_deref(),
        role: shown.role.as_deref(),
        budget: asked.budget.as_ref(),
        settings: shown.settings.len(),
        ..AnswerOptionsContext::default()
    };
    answer_options(asked.reason_code, &usual)
}

impl AnswerOptionsContext<'_> {
    fn approve_effect(&self, why: EscalationReason) -> Option<String> {
        match why {
            EscalationReason::Repair => {
                let command = self.repair?;
                Some(format!("run `{command}` once, then retry"))
            }
            EscalationReason::CostlierModel => {
                let model = self.model?;
                Some(format!(
                    "continue with {}{}",
                    model.to,
                    extra_cost_note(model.cost)
                ))
            }
            EscalationReason::MaxCost => Some(match self.budget {
                Some(budget) => budget.approval_effect(),
                None => "continue until the next limit".to_owned(),
            }),
            EscalationReason::WaitTooLong => None,
            EscalationReason::Trust => match self.settings {
                0 => None,
                1 => Some("apply the changed setting from the next iteration".to_owned()),
                n => Some(format!(
                    "apply the {n} changed settings from the next iteration"
                )),
            },
            _ => {
                let more = self.iterations?;
                let noun = if more == 1 { "iteration" } else { "iterations" };
                Some(format!("allow {more} more {noun}"))
            }
        }
    }

    fn reject_effect(&self, why: EscalationReason) -> Option<String> {
        match why {
            EscalationReason::Repair => Some("retry without running it".to_owned()),
            EscalationReason::CostlierModel => Some("keep the current model and retry".to_owned()),
            EscalationReason::Trust if self.settings > 0 => {
                Some("keep the settings from the start of the run".to_owned())
            }
            _ => None,
        }
    }

    fn resolve_effect(&self, why: EscalationReason) -> String {
        match why {
            EscalationReason::Trust => {
                "mark as seen without applying; `unstuck trust` applies it".to_owned()
            }
            _ => "retry; you fixed it manually".to_owned(),
        }
    }

    /// Describes a switch to a more expensive model, which is approved or rejected.
    fn switch_model_effect(&self, why: EscalationReason) -> Option<String> {
        if matches!(
            why,
            EscalationReason::CostlierModel | EscalationReason::Trust | EscalationReason::MaxCost
        ) {
            return None;
        }
        let model = self.model?;
        Some(format!(
            "retry with {}{}",
            model.to,
            extra_cost_note(model.cost)
        ))
    }

    fn skip_effect(&self) -> String {
        match (self.role, self.iterations) {
            (Some(role), _) => format!("skip {role} and continue without it"),
            (None, Some(_)) => "end the loop with its current result".to_owned(),
            (None, None) => "give up and execute nothing more".to_owned(),
        }
    }
}

fn extra_cost_note(cost: Option<f64>) -> String {
    match cost {
        Some(cost) => format!(" (about ${cost:.2} more)"),
        None => String::new(),
    }
}
