//! Retries of unusable output, if enabled.

use unstuck_core::event::ApiCallOutcome;
use unstuck_gateway::GatewaySettings;
use unstuck_gateway::protocol::Protocol::OpenAi;

use crate::Ground;

const JSON: &str = r#"{"model":"gpt-6-luna","response_format":{"type":"json_object"},"messages":[{"role":"user","content":"As JSON"}]}"#;

fn corrects(settings: &mut GatewaySettings) {
    settings.retry_bad_output = true;
}

async fn asked(ground: &Ground) -> crate::Reply {
    ground.post("/openai/v1/chat/completions", JSON).await
}

#[tokio::test]
async fn unusable_output_is_retried_with_the_error() {
    for (fault, why, kind) in [
        (
            "answer = { text = \"{ broken\", input_tokens = 10, output_tokens = 5 }",
            "not valid JSON",
            "json_parse_error",
        ),
        ("empty = {}", "was empty", "empty_output"),
        (
            "max_tokens = { text = \"{\" }",
            "too long",
            "format_validation",
        ),
    ] {
        let script = format!(
            "[[step]]\n{fault}\n\n[[step]]\nanswer = {{ text = '{{\"ok\":true}}', input_tokens = 10, output_tokens = 5 }}\n"
        );
        let ground = Ground::with(OpenAi, &[&script], corrects).await;
        let reply = asked(&ground).await;
        assert_eq!(
            (reply.status.as_u16(), ground.asked()),
            (200, vec![2]),
            "{fault}: {reply:?}"
        );
        assert!(reply.body.contains("ok"), "{fault}: {}", reply.body);
        let second = String::from_utf8(ground.upstreams[0].requests()[1].body.to_vec()).unwrap();
        assert!(second.contains(why), "{fault}: {second}");
        assert_eq!(ground.failures(), [kind]);
        let record = ground.record().await;
        assert_eq!(
            (record.outcome, record.attempts),
            (ApiCallOutcome::Recovered, 2)
        );
        assert!(record.tokens.unwrap().output >= 5, "{record:?}");
    }
}

#[tokio::test]
async fn output_retry_is_off_by_default_and_limited() {
    let broken = "[[step]]\nanswer = { text = \"{ broken\" }\ntimes = \"always\"\n";
    let ground = Ground::new(OpenAi, &[broken]).await;
    assert_eq!(asked(&ground).await.status.as_u16(), 200);
    assert_eq!(ground.asked(), [1]);
    let ground = Ground::with(OpenAi, &[broken], corrects).await;
    let reply = asked(&ground).await;
    assert!(
        reply.status.as_u16() == 200 && reply.body.contains("broken"),
        "{reply:?}"
    );
    let tries = ground.asked()[0];
    assert!((2..=4).contains(&tries), "{tries}");
}

/// A refusal is never retried, unless routing around refusals is enabled.
#[tokio::test]
async fn refusal_is_not_retried() {
    let script = "[[step]]\nrefusal = {}\ntimes = \"always\"\n";
    let ground = Ground::with(OpenAi, &[script], corrects).await;
    assert_eq!(asked(&ground).await.status.as_u16(), 200);
    assert_eq!(ground.asked(), [1]);
}

/// Every response is billed once: the unusable ones and the last one, in any case.
#[tokio::test]
async fn unusable_response_is_billed_once() {
    let broken =
        "[[step]]\nanswer = { text = \"{ broken\", input_tokens = 10, output_tokens = 5 }\n";
    let stays = format!("{broken}times = \"always\"\n");
    let fails = format!("{broken}\n[[step]]\nserver_error = {{}}\ntimes = \"always\"\n");
    for (script, is_answered) in [(stays, true), (fails, false)] {
        let ground = Ground::with(OpenAi, &[&script], corrects).await;
        let reply = asked(&ground).await;
        assert_eq!(reply.status.is_success(), is_answered, "{reply:?}");
        let record = ground.record().await;
        let answers = if is_answered {
            ground.asked()[0] as u64
        } else {
            1
        };
        let tokens = record.tokens.expect("it is counted");
        assert_eq!((tokens.input, tokens.output), (10 * answers, 5 * answers));
        let session = &ground.gateway.sessions()[0];
        assert!(session.spent() > 0.0);
        assert_eq!(Some(session.spent()), record.cost_usd);
    }
}
