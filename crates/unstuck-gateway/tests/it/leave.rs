//! Calls that are blocked: exhausted budgets, and looping agents.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use unstuck_core::Event;
use unstuck_core::event::{BudgetScope, BudgetUnit};
use unstuck_core::money::ActiveUsageBudget;
use unstuck_gateway::loop_detection::LoopDetectionLimits;
use unstuck_gateway::protocol::Protocol::{Anthropic, OpenAi};
use unstuck_gateway::{
    CallUsage, GatewaySessionEventKind, GatewaySettings, OnLoop, RemainingRunBudget,
};

use crate::{Ground, Reply};

const PRICED: &str = "[[step]]\nanswer = { text = \"Done.\", input_tokens = 1000, output_tokens = 100 }\ntimes = \"always\"\n";

fn error(reply: &Reply) -> Value {
    serde_json::from_str(&reply.body).expect(&reply.body)
}

async fn ask(ground: &Ground) -> Reply {
    let body = json!({"model": "claude-sonnet-5-5", "max_tokens": 100, "messages": [{"role": "user", "content": "x"}]});
    ground
        .post("/s/one-1/anthropic/v1/messages", &body.to_string())
        .await
}

/// Sends a conversation with that many equal tool calls and results.
async fn repeat(ground: &Ground, turns: usize) -> Reply {
    let mut messages = vec![json!({"role": "user", "content": "fix the tests"})];
    let mut reply = None;
    for turn in 0..turns {
        let id = format!("toolu_{turn}");
        messages.push(json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "ls"}}]}));
        messages.push(json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "a.txt"}]}));
        let body = json!({"model": "claude-sonnet-5-5", "max_tokens": 100, "tools": [{"name": "Bash"}], "messages": messages});
        let path = "/s/one-1/anthropic/v1/messages";
        reply = Some(ground.post(path, &body.to_string()).await);
    }
    reply.unwrap()
}

fn circles(then: OnLoop) -> impl FnOnce(&mut GatewaySettings) {
    move |settings| {
        settings.loop_rules.action = then;
        settings.loop_rules.limits = LoopDetectionLimits {
            repeats: 3,
            ..LoopDetectionLimits::default()
        };
    }
}

/// S4-35: the budget is checked before each call, and the error is in the client's own protocol.
#[tokio::test]
async fn exhausted_budget_is_reported_in_the_clients_protocol() {
    let set = |settings: &mut GatewaySettings| settings.budgets.session = Some(0.000_001);
    let ground = Ground::with(Anthropic, &[PRICED], set).await;
    let mut notices = ground.gateway.subscribe();
    assert_eq!(ask(&ground).await.status, 200);
    let refused = ask(&ground).await;
    assert_eq!(refused.status, 402, "{}", refused.body);
    assert_eq!(refused.header("x-should-retry"), "false");
    let told = error(&refused)["error"]["message"].to_string();
    assert!(told.contains("of < $0.0001 for this session"), "{told}");
    assert_eq!(ask(&ground).await.status, 402);
    assert_eq!(ground.asked(), [1]);
    let notice = notices.try_recv().unwrap();
    assert!(
        matches!(notice.kind, GatewaySessionEventKind::BudgetExhausted { .. }),
        "{notice:?}"
    );
    assert!(notices.try_recv().is_err(), "it is told once");
    let session = ground.gateway.session("one-1").unwrap();
    assert_eq!(
        session.last_failure().unwrap().kind.to_string(),
        "quota_exhausted"
    );
    // A human approves continuing.
    session.allow_spending(session.spent() + 1.0);
    assert_eq!(ask(&ground).await.status, 200);
    assert!(session.last_failure().is_none());
}

/// A budget that cannot measure the cost of calls is reported, once: otherwise it would seem to work.
#[tokio::test]
async fn budget_with_unknown_cost_is_reported() {
    let chat = |model: &str, more: &str| {
        format!(r#"{{"model":"{model}",{more}"messages":[{{"role":"user","content":"x"}}]}}"#)
    };
    let streamed = chat("gpt-6.1-terra", r#""stream":true,"#);
    let usage = r#""stream":true,"stream_options":{"include_usage":true},"#;
    for (body, told) in [
        (streamed.clone(), Some("do not include usage")),
        (
            chat("my-own-model", ""),
            Some("the price of my-own-model is unknown"),
        ),
        (chat("gpt-6.1-terra", usage), None),
        (chat("gpt-6.1-terra", ""), None),
    ] {
        let set = |settings: &mut GatewaySettings| settings.budgets.session = Some(5.0);
        let ground = Ground::with(OpenAi, &[PRICED], set).await;
        let mut notices = ground.gateway.subscribe();
        for _ in 0..2 {
            let path = "/s/one-1/openai/v1/chat/completions";
            assert_eq!(ground.post(path, &body).await.status, 200);
        }
        let notice = notices.try_recv().ok().map(|notice| notice.kind);
        match (told, notice) {
            (Some(told), Some(GatewaySessionEventKind::CostUnknown { sentence })) => {
                assert!(sentence.contains(told), "{sentence}");
            }
            (None, None) => {}
            (_, notice) => panic!("{body}: {notice:?}"),
        }
        assert!(notices.try_recv().is_err(), "it is told once");
    }
    let ground = Ground::new(OpenAi, &[PRICED]).await;
    let mut notices = ground.gateway.subscribe();
    let path = "/openai/v1/chat/completions";
    assert_eq!(ground.post(path, &streamed).await.status, 200);
    assert!(
        notices.try_recv().is_err(),
        "where there is no budget, nobody believes in one"
    );
}

#[tokio::test]
async fn day_budget_is_shared_by_all_sessions() {
    let set = |settings: &mut GatewaySettings| settings.budgets.day = Some(5.0);
    let ground = Ground::with(Anthropic, &[PRICED], set).await;
    assert_eq!(ask(&ground).await.status, 200);
    let now = ground.record().await.at;
    ground.gateway.raise_usage_today(5.0, 0, now);
    let refused = ask(&ground).await;
    assert_eq!(refused.status, 402, "{}", refused.body);
    assert!(
        refused.body.contains("for all sessions today (UTC)"),
        "{}",
        refused.body
    );
}

/// `[budget] per_day` applies to the usage of all processes, and between the calls of an attempt.
#[tokio::test]
async fn day_budget_of_runs_includes_other_processes() {
    let ground = Ground::new(Anthropic, &[PRICED]).await;
    assert_eq!(ask(&ground).await.status, 200);
    assert!(!ground.gateway.has_day_budget());
    let now = ground.record().await.at;
    let budget = Arc::new(RemainingRunBudget::default());
    let limit = ActiveUsageBudget {
        scope: BudgetScope::Day,
        unit: BudgetUnit::Usd,
        used: 0.0,
        limit: 5.0,
        configured: 5.0,
    };
    budget.set_limits(&[limit], CallUsage::default(), now);
    let session = ground.gateway.session("one-1").unwrap();
    session.set_run_budget(Some(budget));
    assert!(ground.gateway.has_day_budget());
    assert_eq!(ask(&ground).await.status, 200);
    ground.gateway.raise_usage_today(5.0, 0, now);
    let refused = ask(&ground).await;
    assert_eq!(refused.status, 402, "{}", refused.body);
    let told = "of $5.00 for all runs today (UTC)";
    assert!(refused.body.contains(told), "{}", refused.body);
}

/// A repetitive conversation is held, and no other of the same client.
#[tokio::test]
async fn looping_agent_is_held_until_released() {
    let set = |settings: &mut GatewaySettings| {
        circles(OnLoop::Hold)(settings);
        settings.limits.hold = Duration::from_millis(200);
    };
    let ground = Ground::with(Anthropic, &[PRICED], set).await;
    let mut notices = ground.gateway.subscribe();
    let told = repeat(&ground, 4).await;
    assert_eq!(told.status, 503, "{}", told.body);
    assert!(told.body.contains("loop detected"), "{}", told.body);
    assert_eq!(told.header("x-should-retry"), "true");
    let notice = notices.try_recv().unwrap();
    assert!(
        matches!(notice.kind, GatewaySessionEventKind::LoopDetected(_)),
        "{notice:?}"
    );
    assert_eq!(ask(&ground).await.status, 200, "another conversation");
    ground
        .gateway
        .session("one-1")
        .unwrap()
        .begin_attempt(false);
    assert_eq!(repeat(&ground, 1).await.status, 200);
}

/// Without an answer a held conversation continues after a while, and the escalation is resolved.
#[tokio::test]
async fn held_conversation_continues_after_the_deadline() {
    let set = |settings: &mut GatewaySettings| {
        circles(OnLoop::Hold)(settings);
        settings.loop_rules.hold = Duration::from_millis(300);
    };
    let ground = Ground::with(Anthropic, &[PRICED], set).await;
    assert_eq!(repeat(&ground, 4).await.status, 200);
    let events = ground.book.events.lock().unwrap();
    let asked = events.iter().find_map(|event| match event {
        Event::EscalationOpened(asked) => Some(asked.id.clone()),
        _ => None,
    });
    let settled = events.iter().find_map(|event| match event {
        Event::EscalationResolved(resolved) => Some((resolved.by.clone(), resolved.id.clone())),
        _ => None,
    });
    assert_eq!(settled, Some(("deadline".to_owned(), asked)));
}

/// The same question asked repeatedly, by any client, is not held as a loop.
#[tokio::test]
async fn equal_requests_are_not_held() {
    let ground = Ground::with(Anthropic, &[PRICED], circles(OnLoop::Hold)).await;
    for _ in 0..40 {
        assert_eq!(ask(&ground).await.status, 200);
    }
}

#[tokio::test]
async fn looping_agent_continues_if_only_warned() {
    let ground = Ground::with(Anthropic, &[PRICED], circles(OnLoop::Warn)).await;
    assert_eq!(repeat(&ground, 4).await.status, 200);
    assert!(
        ground
            .gateway
            .session("one-1")
            .unwrap()
            .loop_signal()
            .is_some()
    );
}

/// The note is added once per signal, after everything else in the request.
#[tokio::test]
async fn loop_note_is_added_for_the_model() {
    let ground = Ground::with(Anthropic, &[PRICED], circles(OnLoop::Note)).await;
    assert_eq!(repeat(&ground, 5).await.status, 200);
    let noted = ground.upstreams[0].requests();
    let noted = noted
        .iter()
        .map(|request| String::from_utf8_lossy(&request.body).into_owned());
    let noted: Vec<_> = noted.map(|body| body.contains("Loop detected:")).collect();
    assert_eq!(noted.iter().filter(|noted| **noted).count(), 1, "{noted:?}");
}

/// S4-11: later calls keep the model until the session is switched back.
#[tokio::test]
async fn session_keeps_its_switched_model() {
    let ground = Ground::new(Anthropic, &[PRICED]).await;
    ask(&ground).await;
    let session = ground.gateway.session("one-1").unwrap();
    session.switch_model("claude-sonnet-5-5", "claude-opus-5-5");
    ask(&ground).await;
    ask(&ground).await;
    session.switch_model("claude-opus-5-5", "claude-sonnet-5-5");
    ask(&ground).await;
    assert_eq!(session.model(), None);
    let models: Vec<_> = ground.upstreams[0]
        .requests()
        .into_iter()
        .map(|request| request.model)
        .collect();
    assert_eq!(
        models,
        [
            "claude-sonnet-5-5",
            "claude-opus-5-5",
            "claude-opus-5-5",
            "claude-sonnet-5-5"
        ]
    );
}
