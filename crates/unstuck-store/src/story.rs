//! The story of a run, with what the gateway has counted where its agent did not tell what it used.
//!
//! An agent's own figure counts for its attempt; what the gateway saw of that attempt is not added to it.

use unstuck_core::decision::Tokens;
use unstuck_core::episode::{AttemptStory, Timeline, Untold};
use unstuck_core::event::{Recorded, RunId};

use crate::error::StoreError;
use crate::spending::Spent;
use crate::store::Store;

impl Store {
    /// The story of a run, attempt by attempt; none if there is no such run, or its beginning is not here.
    pub async fn story(&self, run: &RunId) -> Result<Option<Timeline>, StoreError> {
        let events = self.load(run).await?;
        let Some(mut timeline) = Timeline::fold(&events) else {
            return Ok(None);
        };
        self.add_counted(&mut timeline, &events).await?;
        Ok(Some(timeline))
    }

    /// Tells what the run and its sessions used, and what the calls of an attempt used that did not tell.
    async fn add_counted(
        &self,
        timeline: &mut Timeline,
        events: &[Recorded],
    ) -> Result<(), StoreError> {
        let run = timeline.view.id.clone();
        let Some(all) = self.spent_by(&run).await? else {
            return Ok(());
        };
        timeline.view.cost_usd = all.cost_usd;
        timeline.view.tokens = all.new_tokens();
        let unpriced = timeline.sessions.iter().map(|session| session.unpriced);
        timeline.view.unpriced = all.unpriced.max(unpriced.sum());
        let used = self.spent_by_sessions(&run).await?;
        for session in &mut timeline.sessions {
            if let Some(used) = used.iter().find(|one| one.id == session.id.as_str()) {
                session.cost_usd = used.cost_usd;
                session.tokens = used.new_tokens();
                session.unpriced = session.unpriced.max(used.unpriced);
            }
            if session.model.is_none() && all.calls > 0 {
                session.model = self.model_of(&run, &session.id).await?;
            }
        }
        if timeline.view.model.is_none() {
            let mut known = timeline.sessions.iter().rev();
            timeline.view.model = known.find_map(|session| session.model.clone());
        }
        for time in Untold::fold(events) {
            let used = self.spent_in(&run, &time).await?;
            if used.calls > 0 {
                add_one(timeline, &time, &used);
            }
        }
        Ok(())
    }
}

fn add_one(timeline: &mut Timeline, time: &Untold, used: &Spent) {
    let cost = if time.cost { used.cost_usd } else { 0.0 };
    // An attempt that was cut off is told with the one that was made in its place.
    let is_its =
        |story: &&mut AttemptStory| story.session == time.session && story.started >= time.from;
    if let Some(story) = timeline.attempts.iter_mut().find(is_its) {
        if time.cost && cost > 0.0 {
            *story.used.cost_usd.get_or_insert(0.0) += cost;
        }
        if time.tokens {
            let known = story.used.tokens.get_or_insert_default();
            *known = Tokens {
                input: known.input + used.input_tokens,
                cached: known.cached + used.cached_tokens,
                output: known.output + used.output_tokens,
                requests: known.requests + used.calls,
            };
        }
    }
}
