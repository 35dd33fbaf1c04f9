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

    /// Adds what the calls of a run used while nobody told.
    async fn add_counted(
        &self,
        timeline: &mut Timeline,
        events: &[Recorded],
    ) -> Result<(), StoreError> {
        let run = timeline.view.id.clone();
        let Some(all) = self.spent_by(&run).await? else {
            return Ok(());
        };
        // A client's own session has no attempts that could tell.
        if timeline.attempts.is_empty() {
            timeline.view.cost_usd += all.cost_usd;
            timeline.view.tokens += all.new_tokens();
            return Ok(());
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
    let tokens = if time.tokens { used.new_tokens() } else { 0 };
    timeline.view.cost_usd += cost;
    timeline.view.tokens += tokens;
    let mut sessions = timeline.sessions.iter_mut();
    if let Some(session) = sessions.find(|session| session.id == time.session) {
        session.cost_usd += cost;
        session.tokens += tokens;
    }
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
