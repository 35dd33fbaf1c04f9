//! Which answers make sense for a question, and what each will do.

use super::{Answer, Choice};
use crate::decision::{AskWhy, Changed};
use crate::event::{BudgetReached, RecoveryEscalated};

/// What decides which answers make sense.
#[derive(Debug, Clone, Copy, Default)]
pub struct Circumstances<'a> {
    /// The repair that is proposed.
    pub repair: Option<&'a str>,
    /// The role that it is about; none where it is about a single command or the run as a whole.
    pub role: Option<&'a str>,
    /// How many further iterations may be allowed, where it is about a loop.
    pub iterations: Option<u32>,
    /// Whether the command cannot be run again, so that nothing is left but to end the run.
    pub unrepeatable: bool,
    /// Whether a person's words can be handed on.
    pub words: bool,
    /// The next stronger model, and what it is expected to cost more.
    pub model: Option<NextModel<'a>>,
    /// The budget that is used up, where it is about one.
    pub budget: Option<&'a BudgetReached>,
    /// How many settings of the project were changed, where it is about them.
    pub settings: usize,
}

/// The next stronger model.
#[derive(Debug, Clone, Copy)]
pub struct NextModel<'a> {
    /// The model so far.
    pub from: &'a str,
    /// The stronger one.
    pub to: &'a str,
    /// What it is expected to cost more, in USD.
    pub cost: Option<f64>,
}

impl NextModel<'_> {
    fn change(&self) -> Changed {
        Changed::Model {
            from: self.from.to_owned(),
            to: self.to.to_owned(),
        }
    }
}

/// The answers that make sense, the likeliest first.
pub fn choices(why: AskWhy, of: &Circumstances<'_>) -> Vec<Choice> {
    let approve = of.approve(why).map(|does| (Answer::Approve, does));
    let reject = of.reject(why).map(|does| (Answer::Reject, does));
    let is_about_trust = why == AskWhy::Trust;
    // To try again without more money would only ask the same again.
    let is_about_money = why == AskWhy::MaxCost;
    let rest = [
        (!is_about_money && of.settings == 0).then(|| (Answer::Resolve, of.resolve(why))),
        (of.words && !is_about_trust && !is_about_money)
            .then(|| (Answer::Retry, "tries again with your words".to_owned())),
        of.escalate(why).map(|does| (Answer::Escalate, does)),
        (!is_about_trust).then(|| (Answer::Skip, of.skip())),
        (!is_about_trust).then(|| (Answer::Abort, "ends the run".to_owned())),
    ];
    let all = [approve, reject].into_iter().chain(rest).flatten();
    // Nobody is offered an answer that cannot work.
    let all = all.filter(|(answer, _)| !of.unrepeatable || is_about_trust || !answer.goes_on());
    let model = |answer| match answer {
        Answer::Escalate => of.model,
        Answer::Approve if why == AskWhy::DearerModel => of.model,
        _ => None,
    };
    all.map(|(answer, does)| Choice {
        answer,
        does,
        changes: model(answer).iter().map(NextModel::change).collect(),
        cost: model(answer).and_then(|model| model.cost),
    })
    .collect()
}

/// The answers that make sense for a question; one from before they were written down has the usual ones.
pub fn offered(asked: &RecoveryEscalated) -> Vec<Choice> {
    let shown = &asked.shown;
    if !shown.choices.is_empty() {
        return shown.choices.clone();
    }
    let usual = Circumstances {
        repair: shown.command.as_deref(),
        role: shown.role.as_deref(),
        budget: asked.budget.as_ref(),
        settings: shown.settings.len(),
        ..Circumstances::default()
    };
    choices(asked.why, &usual)
}

impl Circumstances<'_> {
    fn approve(&self, why: AskWhy) -> Option<String> {
        match why {
            AskWhy::Repair => {
                let command = self.repair?;
                Some(format!("runs `{command}` once, then tries again"))
            }
            AskWhy::DearerModel => {
                let model = self.model?;
                Some(format!("goes on with {}{}", model.to, more(model.cost)))
            }
            AskWhy::MaxCost => Some(match self.budget {
                Some(budget) => budget.approval(),
                None => "goes on until the next limit".to_owned(),
            }),
            AskWhy::WaitTooLong => None,
            AskWhy::Trust => match self.settings {
                0 => None,
                1 => Some("uses the changed setting from the next iteration on".to_owned()),
                n => Some(format!(
                    "uses the {n} changed settings from the next iteration on"
                )),
            },
            _ => {
                let more = self.iterations?;
                Some(format!("allows {more} more iterations"))
            }
        }
    }

    fn reject(&self, why: AskWhy) -> Option<String> {
        match why {
            AskWhy::Repair => Some("does not run it, and tries again without".to_owned()),
            AskWhy::DearerModel => Some("stays with the model, and tries again".to_owned()),
            AskWhy::Trust if self.settings > 0 => Some("keeps what the run began with".to_owned()),
            _ => None,
        }
    }

    fn resolve(&self, why: AskWhy) -> String {
        match why {
            AskWhy::Trust => {
                "notes that you have seen it; `unstuck trust` makes it count".to_owned()
            }
            _ => "tries again: you have seen to it".to_owned(),
        }
    }

    /// A dearer model that is asked about is approved or not.
    fn escalate(&self, why: AskWhy) -> Option<String> {
        if matches!(why, AskWhy::DearerModel | AskWhy::Trust | AskWhy::MaxCost) {
            return None;
        }
        let model = self.model?;
        Some(format!("tries again with {}{}", model.to, more(model.cost)))
    }

    fn skip(&self) -> String {
        match (self.role, self.iterations) {
            (Some(role), _) => format!("leaves {role} out; the others go on without it"),
            (None, Some(_)) => "ends the loop as it is".to_owned(),
            (None, None) => "gives it up; the failure is passed on".to_owned(),
        }
    }
}

fn more(cost: Option<f64>) -> String {
    match cost {
        Some(cost) => format!(" (about ${cost:.2} more)"),
        None => String::new(),
    }
}
