//! Model switch of a running session: target model and extra cost.

use anyhow::Result;
use unstuck_core::Timestamp;
use unstuck_core::decision::{
    CostEstimate, ModelCatalog, ModelSwitch, ModelSwitchReason, ModelSwitchTargetError, TokenUsage,
};
use unstuck_core::event::{ApiCallRecord, Event, EventRecord, ModelSwitched};
use unstuck_core::views::{RunSummary, SessionSummary};
use unstuck_store::{CallFilter, RunEventBatch, Store, StoreLocation};

use crate::error_report::refusal;
use crate::run_history::RunHistory;
use crate::store::with_hint;

/// Token usage assumed for a call if the session has none yet.
const DEFAULT_CALL_TOKENS: TokenUsage = TokenUsage {
    input: 10_000,
    cached: 0,
    output: 1_000,
    requests: 1,
};

/// The model to switch to: next, named or previous.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ModelSwitchDestination<'a> {
    /// The next model on the session's ladder.
    Next,
    /// The named model.
    Named(&'a str),
    /// The previous model.
    Previous,
}

/// The session whose model is switched, with its models and token usage.
#[derive(Debug)]
pub(crate) struct SessionToSwitch {
    pub(crate) run: RunSummary,
    pub(crate) session: SessionSummary,
    /// Current model, as far as known.
    pub(crate) model: Option<String>,
    /// Model before the last switch.
    previous_model: Option<String>,
    /// Token usage of its calls so far.
    tokens: TokenUsage,
}

impl SessionToSwitch {
    /// Finds the running session by its id or that of its run.
    pub(crate) async fn find(id: &str, store: &StoreLocation) -> Result<Self> {
        let (letters, number) = match id.rsplit_once('-') {
            Some((run, number)) if number.parse::<u32>().is_ok() => (run, Some(number)),
            _ => (id, None),
        };
        let history = RunHistory::open(store).await?;
        let run = history.find(Some(letters)).await?;
        let events = history.events(&run.id).await?;
        let mut sessions = SessionSummary::from_events(&events);
        if let Some(number) = number {
            let id = format!("{}-{number}", run.id);
            sessions.retain(|one| one.id.as_str() == id);
        }
        sessions.retain(|one| one.finished.is_none());
        let found = match (sessions.len(), sessions.pop()) {
            (1, Some(found)) => found,
            (0, _) => {
                return Err(refusal(
                    format!("run {} has no active session", run.id.short()),
                    "`unstuck runs` lists runs; finished runs cannot switch models",
                ));
            }
            (_, last) => {
                let ids = sessions.iter().chain(&last).map(|one| one.id.as_str());
                return Err(refusal(
                    format!("run {} has several sessions", run.id.short()),
                    format!("use one of {}", ids.collect::<Vec<_>>().join(", ")),
                ));
            }
        };
        Self::for_session(run, found, &events, store).await
    }

    /// Returns the target for a session of a run with these events, running or not.
    pub(crate) async fn for_session(
        run: RunSummary,
        session: SessionSummary,
        events: &[EventRecord],
        store: &StoreLocation,
    ) -> Result<Self> {
        let (asked, tokens) = model_and_usage(store, &session).await?;
        let moves = effective_switches(events, &session);
        Ok(Self {
            model: moves
                .last()
                .map(|one| one.to_model.clone())
                .or(asked)
                .or(session.model.clone()),
            previous_model: moves.first().map(|one| one.from_model.clone()),
            run,
            session,
            tokens,
        })
    }

    /// Resolves the current and the new model.
    pub(crate) fn resolve_models(
        &self,
        to: ModelSwitchDestination<'_>,
        catalog: &ModelCatalog,
    ) -> Result<(String, String)> {
        match (to, &self.model) {
            (ModelSwitchDestination::Previous, _) => self.previous_models(),
            (ModelSwitchDestination::Named(to), Some(from)) if to == from => Err(refusal(
                format!("session already uses {to}"),
                "choose another model with --to MODEL",
            )),
            (ModelSwitchDestination::Named(to), from) => {
                let from = from.clone().unwrap_or_else(|| "unknown".to_owned());
                Ok((from, to.to_owned()))
            }
            (ModelSwitchDestination::Next, None) => Err(refusal(
                "the model of this session is unknown until its first call",
                "wait for its first call, or specify a model with --to",
            )),
            (ModelSwitchDestination::Next, Some(from)) => match catalog.next_model(from) {
                Ok(to) => Ok((from.clone(), to.to_owned())),
                Err(ModelSwitchTargetError::AtTheTop) => Err(refusal(
                    format!("Already at most capable model: {from}"),
                    "specify another model with --to, or extend [[models.ladder]]",
                )),
                Err(why) => Err(refusal(
                    format!("no stronger model than {from}: {why}"),
                    "specify a model with --to, or define [[models.ladder]]",
                )),
            },
        }
    }

    fn previous_models(&self) -> Result<(String, String)> {
        match (&self.model, &self.previous_model) {
            (Some(from), Some(to)) if from == to => Err(refusal(
                "session already uses its original model",
                "nothing to do",
            )),
            (Some(from), Some(to)) => Ok((from.clone(), to.clone())),
            _ => Err(refusal(
                "session has not switched models",
                "`unstuck escalate ID` switches to a stronger model",
            )),
        }
    }

    /// Estimates the extra cost.
    pub(crate) fn extra_cost(
        &self,
        (from, to): (&str, &str),
        catalog: &ModelCatalog,
    ) -> CostEstimate {
        catalog.cost_difference(from, to, self.tokens)
    }

    /// Records the model switch for further calls.
    pub(crate) async fn record_switch(
        &self,
        store: &Store,
        (from, to): (String, String),
        cost: &CostEstimate,
        now: Timestamp,
    ) -> Result<ModelSwitch> {
        let change = ModelSwitch {
            from_model: from,
            to_model: to,
            reason: ModelSwitchReason::Manual,
            timestamp: now,
            cost_estimate: cost.usd(),
        };
        let event = ModelSwitched {
            session: Some(self.session.id.clone()),
            switch: change.clone(),
        };
        let append = RunEventBatch::new(self.run.id.clone(), now, [Event::from(event)]);
        store.append(append).await.map_err(with_hint)?;
        Ok(change)
    }
}

/// Returns the model switches in effect: those since the last switch back.
fn effective_switches<'e>(
    events: &'e [EventRecord],
    session: &SessionSummary,
) -> Vec<&'e ModelSwitch> {
    let mut moves: Vec<&ModelSwitch> = Vec::new();
    for recorded in events {
        let Event::ModelSwitched(moved) = &recorded.event else {
            continue;
        };
        if moved.session.as_ref().is_some_and(|id| *id != session.id) {
            continue;
        }
        let own = moves.first().map(|first| first.from_model.as_str());
        if own == Some(moved.switch.to_model.as_str()) {
            moves.clear()
        } else {
            moves.push(&moved.switch)
        }
    }
    moves
}

/// Returns the model of the newest call, and the token usage of all calls.
async fn model_and_usage(
    store: &StoreLocation,
    of: &SessionSummary,
) -> Result<(Option<String>, TokenUsage)> {
    let store = crate::store::open_existing(store).await?;
    let calls = match &store {
        Some(store) => call_records(store, of).await?,
        None => Vec::new(),
    };
    let model = calls.iter().find_map(|call| call.requested_model.clone());
    let mut sum = TokenUsage::default();
    for tokens in calls.iter().filter_map(|call| call.tokens) {
        sum.input += tokens.input;
        sum.cached += tokens.cached;
        sum.output += tokens.output;
        sum.requests += 1;
    }
    let sum = match sum.requests {
        0 => DEFAULT_CALL_TOKENS,
        _ => sum,
    };
    Ok((model, sum))
}

async fn call_records(store: &Store, of: &SessionSummary) -> Result<Vec<ApiCallRecord>> {
    let filter = CallFilter {
        session: Some(of.id.clone()),
        ..CallFilter::default()
    };
    let calls = store.calls(&filter).await.map_err(with_hint)?;
    Ok(calls.into_iter().map(|call| call.record).collect())
}
