//! Run timelines, with gateway counts where the agent did not report its usage.
//!
//! An agent's own figure takes precedence for its attempt; gateway counts of that attempt are not added.

use unstuck_core::decision::TokenUsage;
use unstuck_core::event::{EventRecord, RunId};
use unstuck_core::views::{AttemptView, RunTimeline, UsageGap};

use crate::error::StoreError;
use crate::spending::CostSummary;
use crate::store::Store;

impl Store {
    /// Returns the timeline of a run; `None` if the run does not exist or its start is missing.
    pub async fn timeline(&self, run: &RunId) -> Result<Option<RunTimeline>, StoreError> {
        let events = self.load(run).await?;
        let Some(mut timeline) = RunTimeline::from_events(&events) else {
            return Ok(None);
        };
        self.add_gateway_usage(&mut timeline, &events).await?;
        Ok(Some(timeline))
    }

    /// Fills in the usage of the run, its sessions, and attempts without reported usage.
    async fn add_gateway_usage(
        &self,
        timeline: &mut RunTimeline,
        events: &[EventRecord],
    ) -> Result<(), StoreError> {
        let run = timeline.summary.id.clone();
        let Some(all) = self.run_cost(&run).await? else {
            return Ok(());
        };
        timeline.summary.cost_usd = all.cost_usd;
        timeline.summary.tokens = all.new_tokens();
        let unpriced = timeline
            .sessions
            .iter()
            .map(|session| session.unpriced_count);
        timeline.summary.unpriced_count = all.unpriced.max(unpriced.sum());
        let used = self.session_costs(&run).await?;
        for session in &mut timeline.sessions {
            if let Some(used) = used.iter().find(|one| one.id == session.id.as_str()) {
                session.cost_usd = used.cost_usd;
                session.tokens = used.new_tokens();
                session.unpriced_count = session.unpriced_count.max(used.unpriced);
            }
            if session.model.is_none() && all.calls > 0 {
                session.model = self.session_model(&run, &session.id).await?;
            }
        }
        if timeline.summary.model.is_none() {
            let mut known = timeline.sessions.iter().rev();
            timeline.summary.model = known.find_map(|session| session.model.clone());
        }
        for time in UsageGap::from_events(events) {
            let used = self.cost_in_gap(&run, &time).await?;
            if used.calls > 0 {
                add_usage(timeline, &time, &used);
            }
        }
        Ok(())
    }
}

fn add_usage(timeline: &mut RunTimeline, time: &UsageGap, used: &CostSummary) {
    let cost = if time.lacks_cost { used.cost_usd } else { 0.0 };
    // An interrupted attempt is reported with the one that replaced it.
    let is_its =
        |story: &&mut AttemptView| story.session == time.session && story.started >= time.from;
    if let Some(story) = timeline.attempts.iter_mut().find(is_its) {
        if time.lacks_cost && cost > 0.0 {
            *story.usage.cost_usd.get_or_insert(0.0) += cost;
        }
        if time.lacks_tokens {
            let known = story.usage.tokens.get_or_insert_default();
            *known = TokenUsage {
                input: known.input + used.input_tokens,
                cached: known.cached + used.cached_tokens,
                output: known.output + used.output_tokens,
                requests: known.requests + used.calls,
            };
        }
    }
}
