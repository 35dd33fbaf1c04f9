//! Level 2: the kind's chain, walked until one of its ways is possible.

use std::borrow::Cow;
use std::time::Duration;

use crate::decision::chain::{self, Ranked};
use crate::decision::model::CostEstimate;
use crate::failure::{Layer, Level};
use crate::knowledge::{Change, ModelChoice, Strategy};

use super::made::{AskWhy, Changed, Chosen, Decision, Proposed};
use super::situation::{Capability, ModelUse, Repeat, Situation};
use super::{ALREADY_DONE, Deciding, reason, wait};

/// The time allowed where none was set and a strategy lengthens it.
const USUAL_TIMEOUT: Duration = Duration::from_secs(1800);

/// The risk that nobody takes without a person's leave.
const SAFETY: &str = "safety";

/// A strategy that is possible, with what it comes to here.
struct Way<'a> {
    id: &'a str,
    strategy: &'a Strategy,
    changes: Vec<Changed>,
    cost: Option<CostEstimate>,
}

impl<'a> Deciding<'a, '_> {
    /// Takes the first way of the chain that is possible, or asks.
    pub(super) fn alternative(&mut self) -> Decision {
        let used = self.s.history.retries_at(self.kind, Level::Alternative);
        if used >= self.limits.retries {
            self.fall(
                "chain",
                format!("{used} of {} ways are used", self.limits.retries),
            );
            return self.exhausted();
        }
        let ranked = self.ranked();
        match self.first_possible(&ranked) {
            Some(way) if way.strategy.asks => self.ask_chain(way),
            Some(way) => self.take(way, used + 1),
            None if self.s.repeat == Repeat::Unsafe => self.ask(AskWhy::NotRepeatable),
            None => self.ask(AskWhy::Exhausted),
        }
    }

    /// Asks because no more ways are allowed, in the way that the chain would ask.
    fn exhausted(&mut self) -> Decision {
        let mut ranked = self.ranked();
        ranked.retain(|one| self.strategy(one).is_some_and(|one| one.asks));
        let proposed = self.first_possible(&ranked).map(|way| Proposed {
            strategy: way.id.to_owned(),
            changes: way.changes,
        });
        let reason = reason::ask(self.s, AskWhy::Exhausted);
        self.ask_for(AskWhy::Exhausted, proposed, None, reason)
    }

    /// Whether the policy wants another model before anything else is tried.
    pub(super) fn model_is_due(&self) -> bool {
        self.s.policy.auto_escalate
            && self.s.history.retries(self.kind) >= self.s.policy.escalate_after_retries
    }

    /// Takes the chain's way to another model, if it has one that is possible.
    pub(super) fn next_model(&mut self) -> Option<Decision> {
        let used = self.s.history.retries_at(self.kind, Level::Alternative);
        if used >= self.limits.retries {
            return None;
        }
        let mut ranked = self.ranked();
        ranked.retain(|one| {
            self.strategy(one)
                .is_some_and(|one| changes_model(one) && !one.asks)
        });
        let before = self.fell.len();
        let way = self.first_possible(&ranked);
        if way.is_none() {
            // The walk of the whole chain will say it again, if it comes to that.
            self.fell.truncate(before);
        }
        way.map(|way| self.take(way, used + 1))
    }

    fn ranked(&self) -> Vec<Ranked<'a>> {
        let s = self.s;
        let asks = |id: &str| s.strategies.strategy(id).is_some_and(|one| one.asks);
        let layer = s.diagnosis.layer;
        let mut ranked = chain::order(self.kind, layer, &s.knowledge.chain, s.odds, asks);
        if self.model_is_due() || self.is_last_way() {
            ranked.sort_by_key(|one| !self.strategy(one).is_some_and(changes_model));
        }
        ranked
    }

    /// Whether only one way is left. Where the policy changes the model by itself, that is kept for the model: a kind
    /// with few ways would never come to it otherwise.
    fn is_last_way(&self) -> bool {
        let used = self.s.history.retries_at(self.kind, Level::Alternative);
        self.s.policy.auto_escalate && used > 0 && used + 1 == self.limits.retries
    }

    fn strategy(&self, one: &Ranked<'_>) -> Option<&'a Strategy> {
        self.s.strategies.strategy(&one.link.strategy)
    }

    /// The first way that is possible among those used least, and only unused ones unless the limit was set for this
    /// very kind. Those passed over are noted.
    fn first_possible(&mut self, ranked: &[Ranked<'a>]) -> Option<Way<'a>> {
        let mut again: Option<(u32, Way<'a>)> = None;
        let mut asking = None;
        for one in ranked {
            let id = &*one.link.strategy;
            let uses = self.s.history.uses(self.kind, id);
            match self.way(id) {
                Err(why) => self.fall(id.to_owned(), why),
                Ok(way) if way.strategy.asks => asking = asking.or(Some(way)),
                Ok(way) if uses == 0 => return Some(way),
                Ok(way) if self.limits.explicit => {
                    if again.as_ref().is_none_or(|(least, _)| uses < *least) {
                        again = Some((uses, way));
                    }
                }
                Ok(_) => self.fall(id.to_owned(), "it was already tried"),
            }
        }
        again.map(|(_, way)| way).or(asking)
    }

    /// What a strategy comes to here, or why it is not possible.
    fn way(&self, id: &'a str) -> Result<Way<'a>, Cow<'static, str>> {
        let strategy = self.s.strategies.strategy(id);
        let strategy = strategy.ok_or("there is no such strategy")?;
        self.allowed(strategy)?;
        let mut way = Way {
            id,
            strategy,
            changes: Vec::with_capacity(strategy.changes.len()),
            cost: None,
        };
        for change in &strategy.changes {
            self.apply(change, &mut way)?;
        }
        Ok(way)
    }

    /// Whether the user and the caller allow a strategy.
    fn allowed(&self, strategy: &Strategy) -> Result<(), Cow<'static, str>> {
        let s = self.s;
        if strategy.asks {
            return Ok(());
        }
        let safety = |risk: &String| risk == SAFETY;
        if strategy.risks.iter().any(safety) {
            return Err("going round a safety refusal is for a person to decide".into());
        }
        let unchanged = strategy.changes.is_empty();
        let steps = unchanged && matches!(s.diagnosis.layer, Layer::Tool | Layer::Infra);
        if steps && !s.can.has(Capability::Steps) {
            return Err(Capability::Steps.lack().into());
        }
        if !steps && s.repeat == Repeat::Unsafe {
            return Err(ALREADY_DONE.into());
        }
        // Without steps and without changes it is level 1 by another name.
        let was_tried = s.history.retries_at(self.kind, Level::Same) > 0 || tried_elsewhere(s);
        if !steps && unchanged && was_tried {
            return Err("the same was already tried".into());
        }
        let mut needed = strategy.changes.iter().filter_map(Capability::of);
        match needed.find(|needed| !s.can.has(*needed)) {
            Some(lacking) => Err(lacking.lack().into()),
            None => Ok(()),
        }
    }

    fn apply(&self, change: &Change, way: &mut Way<'_>) -> Result<(), Cow<'static, str>> {
        way.changes.push(match change {
            Change::Prompt(template) => Changed::Prompt(template.clone()),
            Change::Timeout(factor) => self.longer(*factor),
            Change::OutputLimit(factor) => Changed::OutputLimit { factor: *factor },
            Change::Model(choice) => {
                let (changed, cost) = self.other_model(*choice)?;
                way.cost = Some(cost);
                changed
            }
            Change::Session(choice) => Changed::Session(*choice),
            // One that fits is taken before the chain is walked.
            Change::Repair => return Err("no repair that fits may run here".into()),
        });
        Ok(())
    }

    fn longer(&self, factor: f64) -> Changed {
        let factor = self.limits.timeout_multiplier.unwrap_or(factor);
        Changed::Timeout {
            from_seconds: self.s.timeout.map(|time| time.as_secs()),
            // A part of a second counts as a whole one, so that a short time becomes longer too.
            to_seconds: self.s.timeout.map_or(USUAL_TIMEOUT.as_secs(), |time| {
                (time.as_secs_f64() * factor).ceil().max(1.0) as u64
            }),
        }
    }

    fn other_model(
        &self,
        choice: ModelChoice,
    ) -> Result<(Changed, CostEstimate), Cow<'static, str>> {
        if !self.s.policy.auto_escalate {
            return Err("the policy does not change the model by itself".into());
        }
        let Some(ModelUse {
            id,
            catalog,
            expected,
        }) = self.s.model
        else {
            return Err("the model in use is not known".into());
        };
        let to = catalog
            .choose(id, choice)
            .map_err(|none| Cow::Owned(none.to_string()))?;
        let cost = catalog.difference(id, to, expected);
        let changed = Changed::Model {
            from: id.to_owned(),
            to: to.to_owned(),
        };
        Ok((changed, cost))
    }

    fn take(&mut self, way: Way<'_>, n: u32) -> Decision {
        if let Some(decision) = self.needs_consent(&way) {
            return decision;
        }
        let wait = wait::wait(self.s, &self.limits, self.draw);
        if let Some(why) = wait::beyond(self.s, &wait) {
            return self.ask(why);
        }
        let of = self.limits.retries;
        let reason = reason::change(self.s, way.strategy, &way.changes, &wait, (n, of));
        let action = Chosen::Change {
            changes: way.changes,
            delay: wait.delay,
            until: self.s.now.after(wait.delay),
        };
        Decision {
            strategy: Some(way.id.to_owned()),
            attempt: n,
            cost: way.cost,
            stated: wait.reset,
            ..self.made(Some(Level::Alternative), action, reason)
        }
    }

    /// Asks, where a dearer model costs more than may be spent without asking, or where that is unknown.
    fn needs_consent(&mut self, way: &Way<'_>) -> Option<Decision> {
        let cost = way.cost.as_ref()?;
        let (from, to) = way.changes.iter().find_map(Changed::model)?;
        let more = cost.usd();
        let capped = more.is_some_and(|usd| usd > 0.0 && wait::over_budget(self.s, usd));
        let limited = self.s.policy.confirms(self.s.history.extra(), more);
        if !capped && !limited {
            return None;
        }
        let reason = reason::dearer(self.s, from, to, cost);
        let proposed = Proposed {
            strategy: way.id.to_owned(),
            changes: way.changes.clone(),
        };
        let cost = Some(cost.clone());
        Some(self.ask_for(AskWhy::DearerModel, Some(proposed), cost, reason))
    }

    fn ask_chain(&mut self, way: Way<'_>) -> Decision {
        let title = &self.s.knowledge.title;
        let reason = format!("{title}: nothing more can be tried without a person.");
        let proposed = Proposed {
            strategy: way.id.to_owned(),
            changes: way.changes,
        };
        self.ask_for(AskWhy::Chain, Some(proposed), None, reason)
    }
}

fn changes_model(strategy: &Strategy) -> bool {
    let model = |change: &Change| matches!(change, Change::Model(_));
    strategy.changes.iter().any(model)
}

impl Deciding<'_, '_> {
    /// Whether time bounds the retries, and somebody else has made some of them.
    pub(super) fn is_timed_elsewhere(&self) -> bool {
        self.limits.give_up_after.is_some() && tried_elsewhere(self.s)
    }
}

/// Whether somebody else, such as a gateway, has tried the same as often as it may be: the failure comes with another level
/// than its kind begins at.
fn tried_elsewhere(s: &Situation<'_>) -> bool {
    let usual = s.knowledge.level(s.diagnosis.kind, s.diagnosis.layer);
    usual == Some(Level::Same) && s.diagnosis.level == Some(Level::Alternative)
}
