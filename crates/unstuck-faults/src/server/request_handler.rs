//! Handles a request: admission, step selection, answer, and recording.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::http::request::Parts;
use hyper::{HeaderMap, StatusCode, Uri};
use serde_json::{Value, json};

use super::echo::echo;
use super::in_flight::InFlightRequest;
use super::key_limits::TimestampAndUptime;
use super::lock;
use super::raw_connection::{ConnectionEndedByScript, RawConnection};
use super::request_log::FaultServerRequestRecord;
use super::response_builder::{PacedResponse, ReplyContext, json_response, refusal, with_headers};
use super::state::ServerState;
use crate::protocol::{
    AuxiliaryQuery, Headers, ModelCall, OverLimit, Protocol, Rejection, Route, side_answer,
};
use crate::randomness::{RandomDrawPurpose, RequestRng};
use crate::script::{
    AuxiliaryAnswerMode, FaultScriptReply, MatchableRequest, ModelCallOrQuery as FailureKind,
    SelectedReply,
};

/// Maximum request length; the real APIs refuse longer ones too.
const REQUEST_BYTES: usize = 32 * 1024 * 1024;

/// Answers a request.
pub(super) async fn respond(
    state: Arc<ServerState>,
    line: Arc<RawConnection>,
    request: hyper::Request<Incoming>,
) -> Result<PacedResponse, ConnectionEndedByScript> {
    let route = Route::from_request(request.method(), request.uri(), request.headers());
    let (protocol, side) = match route {
        Route::Stats => {
            let stats = lock(&state.tally).stats();
            return Ok(json_response(StatusCode::OK, &json!(stats)));
        }
        Route::Restart => {
            state.restart();
            return Ok(json_response(StatusCode::OK, &json!({})));
        }
        Route::Generate(protocol) => (protocol, None),
        Route::Auxiliary(protocol, side) => (protocol, Some(side)),
    };
    let flight = InFlightRequest::begin(&state, request.uri().path());
    let (head, body) = request.into_parts();
    let arrived = IncomingRequest {
        number: state.next_number(),
        at: state.now(),
        connection: &line,
        raw_head: line.head(),
        body: read_body(body).await,
        state: &state,
        protocol,
        auxiliary: side,
        head,
    };
    arrived.answer(flight).await
}

async fn read_body(body: Incoming) -> Result<Bytes, Rejection> {
    let whole = Limited::new(body, REQUEST_BYTES).collect().await;
    whole
        .map(|whole| whole.to_bytes())
        .map_err(|_| Rejection::TooLarge)
}

/// A request that was read completely.
struct IncomingRequest<'a> {
    state: &'a Arc<ServerState>,
    connection: &'a Arc<RawConnection>,
    protocol: Protocol,
    /// Auxiliary query, if it is not a model call.
    auxiliary: Option<AuxiliaryQuery>,
    head: Parts,
    raw_head: Option<Vec<u8>>,
    body: Result<Bytes, Rejection>,
    number: u64,
    at: TimestampAndUptime,
}

/// The reason a request gets no step.
enum AdmissionError {
    OverLimit(OverLimit),
    OverCapacity,
}

impl IncomingRequest<'_> {
    async fn answer(
        self,
        mut flight: InFlightRequest,
    ) -> Result<PacedResponse, ConnectionEndedByScript> {
        let parsed = self.parse_body();
        let (body, json) = match parsed {
            Ok(parsed) => parsed,
            Err(rejection) => {
                self.log_request(&ModelCall::default(), &Bytes::new(), None);
                lock(&self.state.tally).count_reply("bad_request");
                return self.finish(Ok(self.refusal(&rejection, "")), flight);
            }
        };
        let call = ModelCall::read(self.protocol, &self.head.uri, &json);
        let key = api_key(&self.head.headers, &self.head.uri);
        let mut told = self.protocol.id_headers(self.number);
        if let Err(barred) = self.admit(&call, &key, &mut told, &mut flight).await {
            let (name, rejection) = match barred {
                AdmissionError::OverLimit(over) => ("over_limit", Rejection::OverLimit(over)),
                AdmissionError::OverCapacity => ("over_capacity", Rejection::Overloaded),
            };
            self.log_request(&call, &body, Some(name));
            lock(&self.state.tally).count_reply(name);
            let refused = with_headers(self.refusal(&rejection, &call.model), &told);
            return self.finish(Ok(refused), flight);
        }
        let taken = self.select_reply(&call, &key, &body);
        let name = taken.as_ref().map(|taken| taken.reply.name());
        self.log_request(&call, &body, name);
        self.count_request(&call, name);
        let answered = match taken {
            Some(taken) if *taken.reply == FaultScriptReply::Echo => Ok(self.echo_response(&body)),
            Some(taken) => {
                let asked = self.reply_context(&call, &key, &taken);
                if *taken.reply == FaultScriptReply::Hang {
                    lock(&self.state.tally).count_response(0, self.state.uptime_seconds());
                    let _waiting = HangingRequest(flight);
                    std::future::pending::<()>().await;
                    return Err(ConnectionEndedByScript);
                }
                asked.reply(&taken).await
            }
            None => Ok(self.no_step_response(&call, &body, &json)),
        };
        let answered = answered.map(|answered| with_headers(answered, &told));
        self.finish(answered, flight)
    }

    /// Returns the body and its JSON; only model calls must be JSON.
    fn parse_body(&self) -> Result<(Bytes, Value), Rejection> {
        let body = self.body.clone()?;
        match serde_json::from_slice(&body) {
            Ok(json) => Ok((body, json)),
            Err(_) if self.auxiliary.is_some() => Ok((body, Value::Null)),
            Err(_) => Err(Rejection::NotJson),
        }
    }

    /// Admits a model call within the limits of its key and the capacity of the server.
    async fn admit(
        &self,
        call: &ModelCall,
        key: &str,
        told: &mut Headers,
        flight: &mut InFlightRequest,
    ) -> Result<(), AdmissionError> {
        if self.auxiliary.is_some() {
            return Ok(());
        }
        let tokens = call.estimated_tokens();
        let limited = self.state.with_script_run(|play| {
            let buckets = play.buckets.as_mut();
            buckets.map(|buckets| buckets.take_request(key, tokens, self.at))
        });
        if let Some((budget, verdict)) = limited {
            told.extend(budget.headers(self.protocol));
            verdict.map_err(AdmissionError::OverLimit)?;
        }
        let (gate, first) = self
            .state
            .with_script_run(|play| (play.capacity.clone(), play.first_request()));
        let (Some(gate), Some(capacity)) = (gate, self.state.script.capacity) else {
            return Ok(());
        };
        let now = || first.elapsed().as_secs_f64();
        let pass = gate
            .acquire(now)
            .await
            .ok_or(AdmissionError::OverCapacity)?;
        flight.hold_permit(pass);
        let service = capacity
            .service
            .draw(self.chance(), RandomDrawPurpose::Service, 0);
        if !service.is_zero() {
            tokio::time::sleep(service).await;
        }
        Ok(())
    }

    fn chance(&self) -> RequestRng {
        RequestRng::for_request(self.state.script.seed(), self.number)
    }

    fn select_reply(&self, call: &ModelCall, key: &str, body: &Bytes) -> Option<SelectedReply> {
        let asking = MatchableRequest {
            protocol: self.protocol,
            path: self.head.uri.path(),
            headers: &self.head.headers,
            key,
            call,
            body,
        };
        let kind = self
            .auxiliary
            .map_or(FailureKind::Model, |_| FailureKind::Auxiliary);
        self.state.with_script_run(|play| {
            let passed = play.first_request().elapsed();
            let mut phases = self.state.script.phases.iter().rev();
            let phase = phases.find(|phase| {
                phase.failures.is_some() && (phase.from..phase.from + phase.lasts).contains(&passed)
            });
            let failures = phase.and_then(|phase| phase.failures);
            play.cursor.select(&asking, kind, failures, self.at.clock)
        })
    }

    fn reply_context<'b>(
        &'b self,
        call: &'b ModelCall,
        key: &'b str,
        taken: &SelectedReply,
    ) -> ReplyContext<'b> {
        ReplyContext {
            state: self.state,
            line: self.connection,
            protocol: self.protocol,
            number: self.number,
            now: self.at.clock,
            chance: self.chance(),
            pace: taken.pace,
            call,
            key,
        }
    }

    /// Returns the response for a request without a matching step.
    fn no_step_response(&self, call: &ModelCall, body: &Bytes, json: &Value) -> PacedResponse {
        let Some(side) = self.auxiliary else {
            return self.refusal(&Rejection::NoStep, &call.model);
        };
        let path = self.head.uri.path();
        if self.state.script.passthrough == AuxiliaryAnswerMode::Echo {
            return self.echo_response(body);
        }
        let method = &self.head.method;
        match side_answer(self.protocol, side, method, path, json, call) {
            Some(answer) => json_response(StatusCode::OK, &answer),
            None => self.refusal(&Rejection::NoSuchPath, ""),
        }
    }

    fn echo_response(&self, body: &Bytes) -> PacedResponse {
        let echoed = echo(&self.head, self.raw_head.as_deref(), body);
        json_response(StatusCode::OK, &echoed)
    }

    fn refusal(&self, rejection: &Rejection, model: &str) -> PacedResponse {
        refusal(self.protocol, rejection, model, self.number)
    }

    fn log_request(&self, call: &ModelCall, body: &Bytes, reply: Option<&'static str>) {
        if !self.state.is_recording {
            return;
        }
        let (method, headers) = (self.head.method.as_str(), &self.head.headers);
        let mut request =
            FaultServerRequestRecord::new(self.at.clock, method, &self.head.uri, headers)
                .with_call(call)
                .with_body(body);
        request.reply = reply;
        lock(&self.state.request_log).record(request);
    }

    fn count_request(&self, call: &ModelCall, reply: Option<&'static str>) {
        let mut tally = lock(&self.state.tally);
        let aside = if self.auxiliary.is_some() {
            "aside"
        } else {
            "no_step"
        };
        tally.count_reply(reply.unwrap_or(aside));
        if self.auxiliary.is_none() {
            tally.count_model(&call.model);
        }
    }

    /// Counts the answer and keeps the request in flight until it ends.
    fn finish(
        &self,
        answered: Result<PacedResponse, ConnectionEndedByScript>,
        flight: InFlightRequest,
    ) -> Result<PacedResponse, ConnectionEndedByScript> {
        let status = answered
            .as_ref()
            .map_or(0, |answer| answer.status().as_u16());
        lock(&self.state.tally).count_response(status, self.state.uptime_seconds());
        answered.map(|answer| answer.map(|body| body.with_in_flight(flight)))
    }
}

/// A request that hangs until its client disconnects.
struct HangingRequest(InFlightRequest);

impl Drop for HangingRequest {
    fn drop(&mut self) {
        self.0.mark_abandoned();
    }
}

/// Returns the API key of a request; empty if it has none.
fn api_key(headers: &HeaderMap, uri: &Uri) -> String {
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
