//! Step selection: the state of a script while it is played.

use std::sync::Arc;

use unstuck_core::Timestamp;

use super::{
    FaultMix, FaultScript, FaultScriptReply, FaultScriptStep, FaultScriptStepRepeat,
    MatchableRequest, ResponsePace,
};

/// The progress of a script: its steps with their remaining uses.
#[derive(Debug)]
pub(crate) struct ScriptCursor {
    steps: Vec<StepProgress>,
    mix: Option<MixProgress>,
    pace: ResponsePace,
}

#[derive(Debug)]
struct StepProgress {
    step: FaultScriptStep,
    reply: Arc<FaultScriptReply>,
    taken: u32,
    /// Timestamp of its first use.
    first_taken: Option<Timestamp>,
    /// Number of matching requests, regardless of position.
    matched: u64,
    /// End of its usage limit, once it was reached.
    reset: Option<Timestamp>,
}

#[derive(Debug)]
struct MixProgress {
    mix: FaultMix,
    answer: Arc<FaultScriptReply>,
    drawn: u64,
}

/// The reply selected for a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SelectedReply {
    pub(crate) reply: Arc<FaultScriptReply>,
    pub(crate) pace: ResponsePace,
    /// End of the usage limit, if the reply is one.
    pub(crate) reset: Option<Timestamp>,
}

/// The kind of a request: model call or auxiliary query; the latter only gets steps that name its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModelCallOrQuery {
    Model,
    Auxiliary,
}

impl ScriptCursor {
    pub(crate) fn new(script: &FaultScript) -> Self {
        let playing = |step: &FaultScriptStep| StepProgress {
            step: step.clone(),
            reply: Arc::new(step.reply.clone()),
            taken: 0,
            first_taken: None,
            matched: 0,
            reset: None,
        };
        Self {
            steps: script.steps.iter().map(playing).collect(),
            mix: script.mix.clone().map(MixProgress::new),
            pace: script.pace,
        }
    }

    /// Returns the step for a request, or `None` if the script has none.
    ///
    /// `failures` overrides the mix's own share.
    pub(crate) fn select(
        &mut self,
        asking: &MatchableRequest<'_>,
        asked: ModelCallOrQuery,
        failures: Option<f64>,
        now: Timestamp,
    ) -> Option<SelectedReply> {
        let mut last = None;
        for (index, playing) in self.steps.iter_mut().enumerate() {
            let is_for = asked == ModelCallOrQuery::Model || playing.step.when.path.is_some();
            if !is_for || !playing.matches(asking) {
                continue;
            }
            last = Some(index);
            if !playing.is_exhausted(now) {
                return Some(playing.take_reply(self.pace, now));
            }
        }
        match (&mut self.mix, asked, last) {
            (Some(mixing), ModelCallOrQuery::Model, _) => {
                Some(mixing.draw_reply(asking, failures, self.pace))
            }
            (_, ModelCallOrQuery::Model, Some(index)) => {
                Some(self.steps[index].take_reply(self.pace, now))
            }
            _ => None,
        }
    }
}

impl StepProgress {
    /// True if the condition matches the request; counts it if everything except the position matches.
    fn matches(&mut self, asking: &MatchableRequest<'_>) -> bool {
        if !self.step.when.matches(asking) {
            return false;
        }
        self.matched = self.matched.saturating_add(1);
        self.step.when.matches_position(self.matched)
    }

    fn is_exhausted(&self, now: Timestamp) -> bool {
        match (&*self.reply, self.step.times) {
            (FaultScriptReply::UsageLimit(limit), _) if limit.is_enforced => {
                self.reset.is_some_and(|reset| now >= reset)
            }
            (_, FaultScriptStepRepeat::Count(count)) => self.taken >= count,
            (_, FaultScriptStepRepeat::Within(time)) => self
                .first_taken
                .is_some_and(|begun| begun.after(time) <= now),
            (_, FaultScriptStepRepeat::Always) => false,
        }
    }

    fn take_reply(&mut self, pace: ResponsePace, now: Timestamp) -> SelectedReply {
        self.taken = self.taken.saturating_add(1);
        self.first_taken.get_or_insert(now);
        if let FaultScriptReply::UsageLimit(limit) = &*self.reply {
            let stated = || {
                limit
                    .resets_at
                    .unwrap_or_else(|| now.after(limit.resets_in))
            };
            self.reset.get_or_insert_with(stated);
        }
        SelectedReply {
            reply: Arc::clone(&self.reply),
            pace: self.step.pace.unwrap_or(pace),
            reset: self.reset,
        }
    }
}

impl MixProgress {
    fn new(mix: FaultMix) -> Self {
        Self {
            answer: Arc::new(FaultScriptReply::Answer(mix.answer.clone())),
            mix: mix.with_default_faults(),
            drawn: 0,
        }
    }

    fn draw_reply(
        &mut self,
        asking: &MatchableRequest<'_>,
        failures: Option<f64>,
        pace: ResponsePace,
    ) -> SelectedReply {
        self.drawn = self.drawn.saturating_add(1);
        let failures = failures.unwrap_or(self.mix.failures);
        let fault = self
            .mix
            .draw_fault(self.drawn, failures, |when| when.matches(asking));
        SelectedReply {
            reply: fault.unwrap_or_else(|| Arc::clone(&self.answer)),
            pace,
            reset: None,
        }
    }
}

#[cfg(test)]
mod tests;
