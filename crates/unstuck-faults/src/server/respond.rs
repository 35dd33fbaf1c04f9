//! From a request to its answer: who may come in, which step it takes, what is kept of it.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::{HeaderMap, StatusCode, Uri};
use serde_json::{Value, json};

use super::answer::{Answered, Asked, document, refused, with_headers};
use super::echo::echo;
use super::flight::Flight;
use super::limits::Moment;
use super::line::{Line, Severed};
use super::locked;
use super::seen::Request;
use super::state::State;
use crate::chance::{Chance, Purpose};
use crate::protocol::{Call, Headers, OverLimit, Protocol, Rejection, Route, Side, side_answer};
use crate::script::{Asked as Kind, Asking, Passthrough, Reply, Taken};

/// The longest request that is read; the real APIs refuse longer ones too.
const REQUEST_BYTES: usize = 32 * 1024 * 1024;

/// Answers a request.
pub(super) async fn respond(
    state: Arc<State>,
    line: Arc<Line>,
    request: hyper::Request<Incoming>,
) -> Result<Answered, Severed> {
    let route = Route::of(request.method(), request.uri(), request.headers());
    let (protocol, side) = match route {
        Route::Stats => {
            let stats = locked(&state.tally).stats();
            return Ok(document(StatusCode::OK, &json!(stats)));
        }
        Route::Restart => {
            state.restart();
            return Ok(document(StatusCode::OK, &json!({})));
        }
        Route::Generate(protocol) => (protocol, None),
        Route::Aside(protocol, side) => (protocol, Some(side)),
    };
    let flight = Flight::begin(&state, request.uri().path());
    let (head, body) = request.into_parts();
    let arrived = Arrived {
        number: state.next_number(),
        at: state.now(),
        line: &line,
        raw_head: line.head(),
        body: read(body).await,
        state: &state,
        protocol,
        side,
        head,
    };
    arrived.answer(flight).await
}

async fn read(body: Incoming) -> Result<Bytes, Rejection> {
    let whole = Limited::new(body, REQUEST_BYTES).collect().await;
    whole
        .map(|whole| whole.to_bytes())
        .map_err(|_| Rejection::TooLarge)
}

/// A request that was read to its end.
struct Arrived<'a> {
    state: &'a Arc<State>,
    line: &'a Arc<Line>,
    protocol: Protocol,
    /// What it asks, if no model.
    side: Option<Side>,
    head: Parts,
    raw_head: Option<Vec<u8>>,
    body: Result<Bytes, Rejection>,
    number: u64,
    at: Moment,
}

/// What a request gets instead of a step.
enum Barred {
    OverLimit(OverLimit),
    OverCapacity,
}

impl Arrived<'_> {
    async fn answer(self, mut flight: Flight) -> Result<Answered, Severed> {
        let parsed = self.parsed();
        let (body, json) = match parsed {
            Ok(parsed) => parsed,
            Err(rejection) => {
                self.keep(&Call::default(), &Bytes::new(), None);
                locked(&self.state.tally).chose("bad_request");
                return self.done(Ok(self.refused(&rejection, "")), flight);
            }
        };
        let call = Call::read(self.protocol, &self.head.uri, &json);
        let key = key(&self.head.headers, &self.head.uri);
        let mut told = self.protocol.id_headers(self.number);
        if let Err(barred) = self.admit(&call, &key, &mut told, &mut flight).await {
            let (name, rejection) = match barred {
                Barred::OverLimit(over) => ("over_limit", Rejection::OverLimit(over)),
                Barred::OverCapacity => ("over_capacity", Rejection::Overloaded),
            };
            self.keep(&call, &body, Some(name));
            locked(&self.state.tally).chose(name);
            let refused = with_headers(self.refused(&rejection, &call.model), &told);
            return self.done(Ok(refused), flight);
        }
        let taken = self.step(&call, &key, &body);
        let name = taken.as_ref().map(|taken| taken.reply.name());
        self.keep(&call, &body, name);
        self.count(&call, name);
        let answered = match taken {
            Some(taken) if *taken.reply == Reply::Echo => Ok(self.echoed(&body)),
            Some(taken) => {
                let asked = self.asked(&call, &key, &taken);
                if *taken.reply == Reply::Hang {
                    locked(&self.state.tally).answered(0, self.state.second());
                    let _waiting = Abandoned(flight);
                    std::future::pending::<()>().await;
                    return Err(Severed);
                }
                asked.reply(&taken).await
            }
            None => Ok(self.without_step(&call, &body, &json)),
        };
        let answered = answered.map(|answered| with_headers(answered, &told));
        self.done(answered, flight)
    }

    /// The body and what it says; only questions to models must be JSON.
    fn parsed(&self) -> Result<(Bytes, Value), Rejection> {
        let body = self.body.clone()?;
        match serde_json::from_slice(&body) {
            Ok(json) => Ok((body, json)),
            Err(_) if self.side.is_some() => Ok((body, Value::Null)),
            Err(_) => Err(Rejection::NotJson),
        }
    }

    /// Lets a question to a model in, within the limits of its key and the capacity of the server.
    async fn admit(
        &self,
        call: &Call,
        key: &str,
        told: &mut Headers,
        flight: &mut Flight,
    ) -> Result<(), Barred> {
        if self.side.is_some() {
            return Ok(());
        }
        let tokens = call.tokens();
        let limited = self.state.play(|play| {
            let buckets = play.buckets.as_mut();
            buckets.map(|buckets| buckets.take(key, tokens, self.at))
        });
        if let Some((budget, verdict)) = limited {
            told.extend(budget.headers(self.protocol));
            verdict.map_err(Barred::OverLimit)?;
        }
        let (gate, first) = self.state.play(|play| (play.gate.clone(), play.first()));
        let (Some(gate), Some(capacity)) = (gate, self.state.script.capacity) else {
            return Ok(());
        };
        let now = || first.elapsed().as_secs_f64();
        let pass = gate.enter(now).await.ok_or(Barred::OverCapacity)?;
        flight.hold(pass);
        let service = capacity.service.draw(self.chance(), Purpose::Service, 0);
        if !service.is_zero() {
            tokio::time::sleep(service).await;
        }
        Ok(())
    }

    fn chance(&self) -> Chance {
        Chance::of(self.state.script.seed(), self.number)
    }

    fn step(&self, call: &Call, key: &str, body: &Bytes) -> Option<Taken> {
        let asking = Asking {
            protocol: self.protocol,
            path: self.head.uri.path(),
            headers: &self.head.headers,
            key,
            call,
            body,
        };
        let kind = self.side.map_or(Kind::Model, |_| Kind::Aside);
        self.state.play(|play| {
            let passed = play.first().elapsed();
            let mut phases = self.state.script.phases.iter().rev();
            let phase = phases.find(|phase| {
                phase.failures.is_some() && (phase.from..phase.from + phase.lasts).contains(&passed)
            });
            let failures = phase.and_then(|phase| phase.failures);
            play.cursor.take(&asking, kind, failures, self.at.clock)
        })
    }

    fn asked<'b>(&'b self, call: &'b Call, key: &'b str, taken: &Taken) -> Asked<'b> {
        Asked {
            state: self.state,
            line: self.line,
            protocol: self.protocol,
            number: self.number,
            now: self.at.clock,
            chance: self.chance(),
            pace: taken.pace,
            call,
            key,
        }
    }

    /// What a request gets for which the script has nothing.
    fn without_step(&self, call: &Call, body: &Bytes, json: &Value) -> Answered {
        let Some(side) = self.side else {
            return self.refused(&Rejection::NoStep, &call.model);
        };
        let path = self.head.uri.path();
        if self.state.script.passthrough == Passthrough::Echo {
            return self.echoed(body);
        }
        let method = &self.head.method;
        match side_answer(self.protocol, side, method, path, json, call) {
            Some(answer) => document(StatusCode::OK, &answer),
            None => self.refused(&Rejection::NoSuchPath, ""),
        }
    }

    fn echoed(&self, body: &Bytes) -> Answered {
        let echoed = echo(&self.head, self.raw_head.as_deref(), body);
        document(StatusCode::OK, &echoed)
    }

    fn refused(&self, rejection: &Rejection, model: &str) -> Answered {
        refused(self.protocol, rejection, model, self.number)
    }

    fn keep(&self, call: &Call, body: &Bytes, reply: Option<&'static str>) {
        if !self.state.keeps {
            return;
        }
        let (method, headers) = (self.head.method.as_str(), &self.head.headers);
        let mut request = Request::new(self.at.clock, method, &self.head.uri, headers)
            .asking(call)
            .saying(body);
        request.reply = reply;
        locked(&self.state.seen).record(request);
    }

    fn count(&self, call: &Call, reply: Option<&'static str>) {
        let mut tally = locked(&self.state.tally);
        let aside = if self.side.is_some() {
            "aside"
        } else {
            "no_step"
        };
        tally.chose(reply.unwrap_or(aside));
        if self.side.is_none() {
            tally.asked(&call.model);
        }
    }

    /// Counts the answer and lets the request end with it.
    fn done(
        &self,
        answered: Result<Answered, Severed>,
        flight: Flight,
    ) -> Result<Answered, Severed> {
        let status = answered
            .as_ref()
            .map_or(0, |answer| answer.status().as_u16());
        locked(&self.state.tally).answered(status, self.state.second());
        answered.map(|answer| answer.map(|body| body.carrying(flight)))
    }
}

/// A request that hangs until its client goes away.
struct Abandoned(Flight);

impl Drop for Abandoned {
    fn drop(&mut self) {
        self.0.abandoned();
    }
}

/// The key that a request came with; empty if it had none.
fn key(headers: &HeaderMap, uri: &Uri) -> String {
    let header = |name: &str| headers.get(name)?.to_str().ok();
    let bearer = || {
        let value = header("authorization")?;
        Some(value.split_once(' ').map_or(value, |(_, key)| key))
    };
    let query = || {
        let mut pairs = uri.query()?.split('&');
        pairs.find_map(|pair| pair.strip_prefix("key="))
    };
    let key = header("x-api-key").or_else(|| header("x-goog-api-key"));
    key.or_else(bearer)
        .or_else(query)
        .unwrap_or_default()
        .to_owned()
}
