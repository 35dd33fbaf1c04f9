use std::time::Duration;

use hyper::HeaderMap;

use super::*;
use crate::protocol::{ModelCall, Protocol};
use crate::script::RequestCondition;

const START: Timestamp = Timestamp::from_seconds(1_763_000_000);

/// Sends a request as a client with one key.
fn take(
    cursor: &mut ScriptCursor,
    (model, prompt): (&str, &str),
    now: Timestamp,
) -> Option<SelectedReply> {
    let call = ModelCall {
        model: model.to_owned(),
        prompt: prompt.to_owned(),
        ..ModelCall::default()
    };
    let mut headers = HeaderMap::new();
    headers.insert("x-session", "abc".parse().unwrap());
    let asking = MatchableRequest {
        protocol: Protocol::Anthropic,
        path: "/v1/messages",
        headers: &headers,
        key: "sk-one",
        call: &call,
        body: b"{\"temperature\": 0}",
    };
    cursor.select(&asking, ModelCallOrQuery::Model, None, now)
}

fn names(script: &FaultScript, calls: &[(&str, &str)]) -> Vec<&'static str> {
    let mut cursor = ScriptCursor::new(script);
    calls
        .iter()
        .map(|call| take(&mut cursor, *call, START).map_or("nothing", |taken| taken.reply.name()))
        .collect()
}

#[test]
fn steps_are_used_in_order_and_the_last_repeats() {
    let script = FaultScript::default()
        .with_step(FaultScriptStep::from(FaultScriptReply::Overloaded).times(2))
        .with_step(FaultScriptReply::answer("done"));
    let taken = names(&script, &[("m", "p"); 4]);
    assert_eq!(taken, ["overloaded", "overloaded", "answer", "answer"]);
}

#[test]
fn a_step_for_one_model_does_not_match_others() {
    let script = FaultScript::default()
        .with_step(
            FaultScriptStep::from(FaultScriptReply::Quota)
                .when_model("haiku")
                .always(),
        )
        .with_step(FaultScriptReply::Auth)
        .with_step(FaultScriptStep::from(FaultScriptReply::Empty).when_prompt("title"));
    let calls = [
        ("haiku-4", "x"),
        ("opus", "x"),
        ("haiku-4", "x"),
        ("opus", "a title"),
        ("opus", "x"),
    ];
    assert_eq!(
        names(&script, &calls),
        ["quota", "auth", "quota", "empty", "auth"]
    );
}

#[test]
fn all_conditions_must_match() {
    let met = |conditions: &str| {
        let step = format!("[[step]]\nwhen = {{ {conditions} }}\nquota = {{}}");
        names(&step.parse().unwrap(), &[("m", "p")]) == ["quota"]
    };
    for conditions in [
        "path = \"/messages\"",
        "protocol = \"anthropic\"",
        "header = { x-session = \"b\" }",
        "header = { x-session = \"\" }",
        "key = \"one\"",
        "stream = false",
        "body = \"temperature\"",
        "body_lacks = \"top_p\"",
        "prefill = false",
        "key = \"one\", model = \"m\"",
    ] {
        assert!(met(conditions), "{conditions}");
    }
    for conditions in [
        "path = \"/responses\"",
        "protocol = \"chat\"",
        "header = { x-session = \"z\" }",
        "header = { x-other = \"\" }",
        "key = \"two\"",
        "stream = true",
        "body = \"top_p\"",
        "body_lacks = \"temperature\"",
        "prefill = true",
        "key = \"one\", model = \"n\"",
    ] {
        assert!(!met(conditions), "{conditions}");
    }
}

#[test]
fn positions_count_requests_that_match_otherwise() {
    let script: FaultScript = r#"
        [[step]]
        when = { model = "a", nth = "2-3" }
        quota = {}

        [[step]]
        when = { model = "b", every = 2 }
        auth = {}

        [[step]]
        answer = {}
    "#
    .parse()
    .unwrap();
    let calls = ["b", "a", "a", "b", "a", "a", "b", "b"].map(|model| (model, "p"));
    assert_eq!(
        names(&script, &calls),
        [
            "answer", "answer", "quota", "auth", "quota", "answer", "answer", "auth"
        ]
    );
}

#[test]
fn a_request_without_a_matching_step_gets_none() {
    let script = FaultScript::default()
        .with_step(FaultScriptStep::from(FaultScriptReply::Quota).when_prompt("title"));
    assert_eq!(names(&script, &[("m", "other")]), ["nothing"]);
}

#[test]
fn auxiliary_queries_get_only_steps_that_name_their_path() {
    let script = FaultScript::default()
        .with_step(FaultScriptReply::Quota)
        .with_step(FaultScriptStep::from(FaultScriptReply::Auth).when_path("/models"));
    let mut cursor = ScriptCursor::new(&script);
    let (call, headers) = (ModelCall::default(), HeaderMap::new());
    let mut aside = |path| {
        let asking = MatchableRequest {
            protocol: Protocol::Chat,
            path,
            headers: &headers,
            key: "",
            call: &call,
            body: b"",
        };
        let taken = cursor.select(&asking, ModelCallOrQuery::Auxiliary, None, START);
        taken.map(|taken| taken.reply.name())
    };
    assert_eq!(aside("/v1/files"), None);
    assert_eq!(aside("/v1/models"), Some("auth"));
    assert_eq!(aside("/v1/models"), None);
}

#[test]
fn the_mix_applies_when_all_steps_are_used_up() {
    let script = FaultScript::default()
        .with_step(FaultScriptStep::from(FaultScriptReply::Quota).times(2))
        .with_mix(FaultMix::failing(1.0, 1).with_fault(1, FaultScriptReply::Hang));
    let taken = names(&script, &[("m", "p"); 4]);
    assert_eq!(taken, ["quota", "quota", "hang", "hang"]);
}

#[test]
fn an_enforced_usage_limit_ends_at_its_reset() {
    let script = FaultScript::default()
        .with_step(FaultScriptReply::usage_limit(Duration::from_secs(5)))
        .with_step(FaultScriptReply::answer("done"));
    let mut cursor = ScriptCursor::new(&script);
    let mut after = |seconds| {
        let now = START.after(Duration::from_secs(seconds));
        take(&mut cursor, ("m", "p"), now).map(|taken| (taken.reply.name(), taken.reset))
    };
    let reset = Some(START.after(Duration::from_secs(5)));
    assert_eq!(after(0), Some(("usage_limit", reset)));
    assert_eq!(after(4), Some(("usage_limit", reset)));
    assert_eq!(after(5), Some(("answer", None)));
}

#[test]
fn a_position_is_a_number_or_a_range() {
    let place = |text: &str| {
        let when: Result<RequestCondition, _> = toml::from_str(&format!("nth = {text}"));
        when.ok()
            .and_then(|when| when.nth)
            .map(|nth| nth.to_string())
    };
    assert_eq!(place("3").as_deref(), Some("3"));
    assert_eq!(place("\"3-7\"").as_deref(), Some("3-7"));
    assert_eq!(place("\"3-\"").as_deref(), Some("3-"));
    for wrong in ["0", "-1", "\"7-3\"", "\"x\"", "\"-\""] {
        assert_eq!(place(wrong), None, "{wrong}");
    }
}

#[test]
fn a_step_can_last_for_a_time_after_its_first_use() {
    let script: FaultScript =
        "[[step]]\noverloaded = {}\ntimes = \"25s\"\n\n[[step]]\nempty = {}\n"
            .parse()
            .unwrap();
    let mut cursor = ScriptCursor::new(&script);
    let mut at = |seconds| {
        let now = START.after(Duration::from_secs(seconds));
        let taken = take(&mut cursor, ("m", "p"), now);
        taken.map_or("nothing", |taken| taken.reply.name())
    };
    assert_eq!(
        [at(100), at(124), at(125), at(126)],
        ["overloaded", "overloaded", "empty", "empty"]
    );
}
