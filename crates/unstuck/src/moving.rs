//! Moving a session that goes on to another model: which one is meant, from what to what, and what that costs.

use anyhow::Result;
use unstuck_core::Timestamp;
use unstuck_core::decision::{
    Catalog, CostEstimate, EscalationReason, EscalationRecord, NoModel, Tokens,
};
use unstuck_core::episode::{RunView, SessionView};
use unstuck_core::event::{CallRecord, Event, ModelEscalated, Recorded};
use unstuck_store::{Append, CallFilter, Location, Store};

use crate::history::History;
use crate::report::refused;
use crate::store::explained;

/// What a call is taken to use where nothing is known of the session's.
const USUAL: Tokens = Tokens {
    input: 10_000,
    cached: 0,
    output: 1_000,
    requests: 1,
};

/// Where a session is to be moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum To<'a> {
    /// To the next model of its ladder.
    Next,
    /// To this one.
    Named(&'a str),
    /// To the one that it had.
    Back,
}

/// The session that is meant.
#[derive(Debug)]
pub(crate) struct Meant {
    pub(crate) run: RunView,
    pub(crate) session: SessionView,
    /// The model in use, as far as is known.
    pub(crate) model: Option<String>,
    /// The model that it had before it was moved.
    before: Option<String>,
    /// What its calls used so far.
    tokens: Tokens,
}

impl Meant {
    /// The session that goes on and is meant by its id, or that of its run.
    pub(crate) async fn find(id: &str, store: &Location) -> Result<Self> {
        let (letters, number) = match id.rsplit_once('-') {
            Some((run, number)) if number.parse::<u32>().is_ok() => (run, Some(number)),
            _ => (id, None),
        };
        let history = History::open(store).await?;
        let run = history.find(Some(letters)).await?;
        let events = history.events(&run.id).await?;
        let mut sessions = SessionView::all(&events);
        if let Some(number) = number {
            let id = format!("{}-{number}", run.id);
            sessions.retain(|one| one.id.as_str() == id);
        }
        sessions.retain(|one| one.finished.is_none());
        let found = match (sessions.len(), sessions.pop()) {
            (1, Some(found)) => found,
            (0, _) => {
                return Err(refused(
                    format!("no session of run {} is going on", run.id.short()),
                    "`unstuck runs` lists the runs; a finished one is not moved",
                ));
            }
            (_, last) => {
                let ids = sessions.iter().chain(&last).map(|one| one.id.as_str());
                return Err(refused(
                    format!("run {} has several sessions", run.id.short()),
                    format!("one of {}", ids.collect::<Vec<_>>().join(", ")),
                ));
            }
        };
        Self::of(run, found, &events, store).await
    }

    /// A session of a run in which all this happened, whether or not it goes on.
    pub(crate) async fn of(
        run: RunView,
        session: SessionView,
        events: &[Recorded],
        store: &Location,
    ) -> Result<Self> {
        let (asked, tokens) = used(store, &session).await?;
        let moves = moves(events, &session);
        Ok(Self {
            model: moves
                .last()
                .map(|one| one.to_model.clone())
                .or(asked)
                .or(session.model.clone()),
            before: moves.first().map(|one| one.from_model.clone()),
            run,
            session,
            tokens,
        })
    }

    /// From which model to which.
    pub(crate) fn models(&self, to: To<'_>, catalog: &Catalog) -> Result<(String, String)> {
        match (to, &self.model) {
            (To::Back, _) => self.back(),
            (To::Named(to), Some(from)) if to == from => Err(refused(
                format!("this session uses {to} already"),
                "nothing is to be done",
            )),
            (To::Named(to), from) => {
                let from = from.clone().unwrap_or_else(|| "unknown".to_owned());
                Ok((from, to.to_owned()))
            }
            (To::Next, None) => Err(refused(
                "nothing is known of the model of this session yet",
                "wait for its first call, or name one with --to",
            )),
            (To::Next, Some(from)) => match catalog.next(from) {
                Ok(to) => Ok((from.clone(), to.to_owned())),
                Err(NoModel::AtTheTop) => Err(refused(
                    format!("Already at most capable model: {from}"),
                    "--to names any other; [[models.ladder]] says what comes after what",
                )),
                Err(why) => Err(refused(
                    format!("there is no stronger model after {from}: {why}"),
                    "--to names one; [[models.ladder]] says what comes after what",
                )),
            },
        }
    }

    fn back(&self) -> Result<(String, String)> {
        match (&self.model, &self.before) {
            (Some(from), Some(to)) if from == to => Err(refused(
                "this session is back at its model",
                "nothing is to be done",
            )),
            (Some(from), Some(to)) => Ok((from.clone(), to.clone())),
            _ => Err(refused(
                "this session was not moved",
                "`unstuck escalate ID` moves it to a stronger model",
            )),
        }
    }

    /// What that is expected to cost more.
    pub(crate) fn dearer(&self, (from, to): (&str, &str), catalog: &Catalog) -> CostEstimate {
        catalog.difference(from, to, self.tokens)
    }

    /// Writes down that its further calls go to the other model.
    pub(crate) async fn record(
        &self,
        store: &Store,
        (from, to): (String, String),
        cost: &CostEstimate,
        now: Timestamp,
    ) -> Result<EscalationRecord> {
        let change = EscalationRecord {
            from_model: from,
            to_model: to,
            reason: EscalationReason::Manual,
            timestamp: now,
            cost_estimate: cost.usd(),
        };
        let event = ModelEscalated {
            session: Some(self.session.id.clone()),
            change: change.clone(),
        };
        let append = Append::new(self.run.id.clone(), now, [Event::from(event)]);
        store.append(append).await.map_err(explained)?;
        Ok(change)
    }
}

/// The changes of a session's model that count: those since it was last moved back.
fn moves<'e>(events: &'e [Recorded], session: &SessionView) -> Vec<&'e EscalationRecord> {
    let mut moves: Vec<&EscalationRecord> = Vec::new();
    for recorded in events {
        let Event::ModelEscalated(moved) = &recorded.event else {
            continue;
        };
        if moved.session.as_ref().is_some_and(|id| *id != session.id) {
            continue;
        }
        let own = moves.first().map(|first| first.from_model.as_str());
        match own == Some(moved.change.to_model.as_str()) {
            true => moves.clear(),
            false => moves.push(&moved.change),
        }
    }
    moves
}

/// The model of the newest call, and what all of them used.
async fn used(store: &Location, of: &SessionView) -> Result<(Option<String>, Tokens)> {
    let store = crate::store::open_existing(store).await?;
    let calls = match &store {
        Some(store) => calls(store, of).await?,
        None => Vec::new(),
    };
    let model = calls.iter().find_map(|call| call.asked_model.clone());
    let mut sum = Tokens::default();
    for tokens in calls.iter().filter_map(|call| call.tokens) {
        sum.input += tokens.input;
        sum.cached += tokens.cached;
        sum.output += tokens.output;
        sum.requests += 1;
    }
    let sum = match sum.requests {
        0 => USUAL,
        _ => sum,
    };
    Ok((model, sum))
}

async fn calls(store: &Store, of: &SessionView) -> Result<Vec<CallRecord>> {
    let filter = CallFilter {
        session: Some(of.id.clone()),
        ..CallFilter::default()
    };
    let calls = store.calls(&filter).await.map_err(explained)?;
    Ok(calls.into_iter().map(|call| call.record).collect())
}
