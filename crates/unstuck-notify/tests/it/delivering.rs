//! Delivery to a real server, including failures on the way.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use tempfile::TempDir;
use unstuck_core::Timestamp;
use unstuck_notify::{
    DeliveryAttemptReport, DeliveryWorker, MessageSender, NotificationEvent,
    NotificationSubscription, NotificationSubscriptions, NotificationTarget, WebhookTarget,
};
use unstuck_store::{DeliveryResult, DeliveryState, OUTBOX_CLAIM_TTL, OutboxFilter, Store};

use crate::receiver::{Receiver, Reply};
use crate::samples::{START, ask, here, hook, later, open};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

fn sender() -> MessageSender {
    MessageSender::new(Arc::new(|name| match name {
        "HOOK_SECRET" => Some(SECRET.to_owned()),
        "HOOK_TOKEN" => Some("tk_123".to_owned()),
        "HOOK_BAD" => Some("whsec_%%%".to_owned()),
        _ => None,
    }))
}

fn telling(address: WebhookTarget) -> NotificationSubscriptions {
    NotificationSubscriptions {
        list: vec![hook(NotificationEvent::Escalation, address)],
        store_option: String::new(),
    }
}

/// Returns a store with one run that needs input, and its delivery worker.
async fn asking(folder: &TempDir, address: WebhookTarget) -> (Store, DeliveryWorker) {
    let store = open(folder).await;
    ask(&store, &telling(address), "k3v9x0m2qa", START).await;
    let courier = DeliveryWorker::new(store.clone(), sender());
    (store, courier)
}

async fn states(store: &Store) -> Vec<DeliveryState> {
    let letters = store
        .outbox_messages(&OutboxFilter::default())
        .await
        .unwrap();
    letters.iter().map(|letter| letter.state).collect()
}

fn failure(deliveries: &[DeliveryAttemptReport]) -> (&str, Option<Timestamp>) {
    match deliveries {
        [
            DeliveryAttemptReport {
                result: DeliveryResult::Failed { error, next },
                ..
            },
        ] => (error, *next),
        other => panic!("{other:?}"),
    }
}

/// Computes the first signature here, following the specification.
fn expected(id: &str, timestamp: &str, body: &str) -> String {
    let key = STANDARD
        .decode(SECRET.strip_prefix("whsec_").unwrap())
        .unwrap();
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
    mac.update([id, ".", timestamp, ".", body].concat().as_bytes());
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

/// S3-24, S3-42 (AC-9): a webhook fires on escalation, signed so that the receiver can verify the sender.
#[tokio::test]
async fn escalation_is_delivered_with_a_signature() {
    let folder = tempfile::tempdir().unwrap();
    let server = Receiver::start([]).await;
    let address = WebhookTarget {
        secret_env: Some("HOOK_SECRET".into()),
        token_env: Some("HOOK_TOKEN".into()),
        ..here(server.url("/hook"))
    };
    let (store, courier) = asking(&folder, address).await;
    courier.deliver(later(7)).await.unwrap();
    let got = &server.got()[0];
    assert_eq!(
        (&*got.path, got.header("content-type")),
        ("/hook", "application/json")
    );
    assert_eq!(got.header("webhook-id"), "k3v9x0m2qa.3.1");
    assert_eq!(got.header("webhook-timestamp"), "1794777616");
    let signature = expected("k3v9x0m2qa.3.1", "1794777616", &got.body);
    assert_eq!(got.header("webhook-signature"), signature);
    assert_eq!(got.header("authorization"), "Bearer tk_123");
    let json = got.json();
    assert_eq!(
        (&json["id"], &json["type"]),
        (&"k3v9x0m2qa.3.1".into(), &"escalation".into())
    );
    assert_eq!(json["answers"]["manual"], "unstuck resolve k3v9x0m2qa-e1");
    assert_eq!(states(&store).await, [DeliveryState::Delivered]);
    assert_eq!(courier.deliver(later(9999)).await.unwrap(), []);
}

#[tokio::test]
async fn failing_server_is_retried_with_the_same_id() {
    let folder = tempfile::tempdir().unwrap();
    let busy = Reply::With(429, "retry-after", "120".into());
    let server = Receiver::start([Reply::Status(503), busy]).await;
    let (store, courier) = asking(&folder, here(server.url("/"))).await;
    let sent = courier.deliver(START).await.unwrap();
    let (error, next) = failure(&sent);
    assert_eq!(error, "server returned 503 Service Unavailable");
    let next = next.unwrap();
    assert!(next.since(START) <= Duration::from_secs(6), "{next}");
    assert_eq!(
        courier.deliver(START).await.unwrap(),
        [],
        "not before its time"
    );
    let sent = courier.deliver(next).await.unwrap();
    assert_eq!(failure(&sent).1, Some(next.after(Duration::from_secs(120))));
    courier
        .deliver(next.after(Duration::from_secs(120)))
        .await
        .unwrap();
    let ids: Vec<_> = server
        .got()
        .iter()
        .map(|got| got.header("webhook-id").to_owned())
        .collect();
    assert_eq!(ids, ["k3v9x0m2qa.3.1"; 3]);
    assert_eq!(states(&store).await, [DeliveryState::Delivered]);
}

/// The server is down for a minute, and nothing is lost.
#[tokio::test]
async fn server_that_is_down_gets_the_message_later() {
    let folder = tempfile::tempdir().unwrap();
    let server = Receiver::start([]).await;
    let (at, url) = (server.address, server.url("/"));
    drop(server);
    let (store, courier) = asking(&folder, here(url)).await;
    let mut now = START;
    while now.since(START) < Duration::from_secs(60) {
        let sent = courier.deliver(now).await.unwrap();
        now = failure(&sent).1.unwrap();
    }
    let server = Receiver::at(at, []).await;
    courier.deliver(now).await.unwrap();
    assert_eq!(server.got().len(), 1);
    assert_eq!(states(&store).await, [DeliveryState::Delivered]);
}

/// A process dies during delivery: nobody knows if the message arrived, so the next process sends it again with the
/// same id.
#[tokio::test]
async fn message_of_a_dead_process_is_sent_by_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let server = Receiver::start([Reply::Never]).await;
    let (store, courier) = asking(&folder, here(server.url("/"))).await;
    let hangs = tokio::time::timeout(Duration::from_millis(300), courier.deliver(START));
    assert!(hangs.await.is_err());
    store.close().await.unwrap();

    let store = open(&folder).await;
    let next = DeliveryWorker::new(store.clone(), sender());
    assert_eq!(
        next.deliver(later(1)).await.unwrap(),
        [],
        "the first may still live"
    );
    next.deliver(START.after(OUTBOX_CLAIM_TTL)).await.unwrap();
    let got = server.got();
    assert_eq!(got.len(), 2);
    assert_eq!(got[0].header("webhook-id"), got[1].header("webhook-id"));
    assert_eq!(got[0].body, got[1].body);
    assert_eq!(states(&store).await, [DeliveryState::Delivered]);
}

#[tokio::test]
async fn permanent_rejection_is_not_retried() {
    for status in [400, 401, 404, 410] {
        let folder = tempfile::tempdir().unwrap();
        let server = Receiver::start([Reply::Status(status)]).await;
        let (store, courier) = asking(&folder, here(server.url("/"))).await;
        courier.deliver(START).await.unwrap();
        assert_eq!(states(&store).await, [DeliveryState::GivenUp], "{status}");
    }
    for status in [408, 425, 429, 500, 302] {
        let folder = tempfile::tempdir().unwrap();
        let server = Receiver::start([Reply::Status(status)]).await;
        let (store, courier) = asking(&folder, here(server.url("/"))).await;
        courier.deliver(START).await.unwrap();
        assert_eq!(states(&store).await, [DeliveryState::Waiting], "{status}");
    }
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let other = Receiver::start([]).await;
    let moved = Reply::With(307, "location", other.url("/"));
    let server = Receiver::start([moved]).await;
    let (_store, courier) = asking(&folder, here(server.url("/"))).await;
    let sent = courier.deliver(START).await.unwrap();
    assert!(failure(&sent).0.contains("redirects are not followed"));
    assert_eq!(other.got().len(), 0);
}

#[tokio::test]
async fn delivery_is_given_up_after_three_days() {
    let folder = tempfile::tempdir().unwrap();
    let server = Receiver::start(vec![Reply::Status(500); 200]).await;
    let (store, courier) = asking(&folder, here(server.url("/"))).await;
    let mut now = START;
    while let Some(next) = failure(&courier.deliver(now).await.unwrap()).1 {
        now = next;
    }
    let days = now.since(START).as_secs_f64() / 86_400.0;
    assert!((2.9..=3.0).contains(&days), "{days}");
    assert!(
        (75..=110).contains(&server.got().len()),
        "{}",
        server.got().len()
    );
    assert_eq!(states(&store).await, [DeliveryState::GivenUp]);
}

#[tokio::test]
async fn private_networks_are_blocked_unless_allowed() {
    let server = Receiver::start([]).await;
    let port = server.address.port();
    for host in [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "2130706433",
        "0x7f.1",
        "169.254.169.254",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let address = WebhookTarget::unsigned_json(format!("http://{host}:{port}/"));
        let (store, courier) = asking(&folder, address).await;
        let sent = courier.deliver(START).await.unwrap();
        let (error, next) = failure(&sent);
        // Some resolvers do not accept the unusual spellings as addresses.
        let is_odd = host.starts_with("2130") || host.starts_with("0x");
        if !(is_odd && next.is_some()) {
            assert!(
                error.contains("private network") && error.contains("allow_private"),
                "{error}"
            );
            assert_eq!(states(&store).await, [DeliveryState::GivenUp], "{host}");
        }
    }
    assert_eq!(server.got().len(), 0);
}

#[tokio::test]
async fn slow_server_times_out_and_long_response_is_truncated() {
    let folder = tempfile::tempdir().unwrap();
    let server = Receiver::start([Reply::Never, Reply::Long(50_000_000)]).await;
    let address = WebhookTarget {
        timeout_ms: 200,
        ..here(server.url("/"))
    };
    let (store, courier) = asking(&folder, address).await;
    let sent = courier.deliver(START).await.unwrap();
    assert_eq!(failure(&sent).0, "no response within 0.2 s");
    courier.deliver(later(60)).await.unwrap();
    assert_eq!(states(&store).await, [DeliveryState::Delivered]);
}

/// A missing or invalid secret is reported without showing it; nothing is sent unsigned.
#[tokio::test]
async fn nothing_is_sent_without_the_secret() {
    for (name, why) in [
        ("HOOK_MISSING", "HOOK_MISSING is not set"),
        ("HOOK_BAD", "HOOK_BAD is not base64 after the prefix whsec_"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let server = Receiver::start([]).await;
        let address = WebhookTarget {
            secret_env: Some(name.into()),
            ..here(server.url("/"))
        };
        let (store, courier) = asking(&folder, address).await;
        let sent = courier.deliver(START).await.unwrap();
        assert_eq!(failure(&sent).0, why);
        assert_eq!(server.got().len(), 0);
        // Another process may have it.
        assert_eq!(states(&store).await, [DeliveryState::Waiting]);
    }
}

#[tokio::test]
async fn store_contains_no_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let server = Receiver::start([Reply::Status(500)]).await;
    let address = WebhookTarget {
        secret_env: Some("HOOK_SECRET".into()),
        token_env: Some("HOOK_TOKEN".into()),
        ..here(server.url("/"))
    };
    let (store, courier) = asking(&folder, address).await;
    courier.deliver(START).await.unwrap();
    store.close().await.unwrap();
    for file in std::fs::read_dir(folder.path()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        for secret in [&SECRET.as_bytes()[6..], b"tk_123"] {
            assert!(!bytes.windows(secret.len()).any(|part| part == secret));
        }
    }
}

/// Twenty requests about the same subject are two messages: the first at once, the rest as a digest.
#[tokio::test]
async fn repeated_requests_are_grouped() {
    let folder = tempfile::tempdir().unwrap();
    let server = Receiver::start([]).await;
    let store = open(&folder).await;
    let hooks = telling(here(server.url("/")));
    let courier = DeliveryWorker::new(store.clone(), sender());
    for n in 0..20 {
        ask(&store, &hooks, &format!("r{n}"), later(n)).await;
        courier.deliver(later(n)).await.unwrap();
    }
    assert_eq!(server.got().len(), 1);
    courier.deliver(later(600)).await.unwrap();
    let got = server.got();
    assert_eq!(got.len(), 2);
    assert_eq!(
        (
            got[0].json()["count"].as_u64(),
            got[1].json()["count"].as_u64()
        ),
        (Some(1), Some(19))
    );
    assert_eq!(
        got[1].json()["title"],
        "19 times: shop: claude needs your input (auth_expired)"
    );
    assert!(
        states(&store)
            .await
            .iter()
            .all(|state| *state == DeliveryState::Delivered)
    );
}

/// Two processes poll the outbox repeatedly at the same time: each message is sent once.
#[tokio::test]
async fn two_workers_send_each_message_once() {
    let folder = tempfile::tempdir().unwrap();
    let server = Receiver::start([]).await;
    let mut hooks = telling(here(server.url("/")));
    hooks.list[0].window = Duration::ZERO;
    let (one, two) = (open(&folder).await, open(&folder).await);
    let couriers = [&one, &two].map(|store| DeliveryWorker::new(store.clone(), sender()));
    for n in 0..10 {
        ask(&one, &hooks, &format!("r{n}"), later(n)).await;
        let [first, second] = couriers.each_ref().map(|courier| courier.deliver(later(n)));
        let (first, second) = tokio::join!(first, second);
        assert_eq!(first.unwrap().len() + second.unwrap().len(), 1);
    }
    assert_eq!(server.got().len(), 10);
}

/// The user's command gets the message as JSON on its standard input and the rest in its environment.
#[tokio::test]
async fn command_receives_the_message() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder).await;
    let file = folder.path().join("told");
    let line = format!(
        "{{ echo \"$UNSTUCK_EVENT $UNSTUCK_RUN $UNSTUCK_TITLE\"; cat; }} > {}",
        file.display()
    );
    let hooks = NotificationSubscriptions {
        list: vec![NotificationSubscription {
            event: NotificationEvent::Escalation,
            target: NotificationTarget::Command(line),
            window: Duration::ZERO,
        }],
        store_option: String::new(),
    };
    ask(&store, &hooks, "k3v9x0m2qa", START).await;
    let courier = DeliveryWorker::new(store.clone(), sender());
    courier.deliver(START).await.unwrap();
    let told = std::fs::read_to_string(file).unwrap();
    let (first, json) = told.split_once('\n').unwrap();
    assert_eq!(
        first,
        "escalation k3v9x0m2qa shop: claude needs your input (auth_expired)"
    );
    let json: serde_json::Value = serde_json::from_str(json).unwrap();
    assert_eq!(json["id"], "k3v9x0m2qa.3.1");
    assert_eq!(states(&store).await, [DeliveryState::Delivered]);
}

#[tokio::test]
async fn failed_command_is_retried_later() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder).await;
    let target = NotificationTarget::Command("echo sorry >&2; exit 3".into());
    let hooks = NotificationSubscriptions {
        list: vec![NotificationSubscription {
            event: NotificationEvent::Escalation,
            target,
            window: Duration::ZERO,
        }],
        store_option: String::new(),
    };
    ask(&store, &hooks, "k3v9x0m2qa", START).await;
    let courier = DeliveryWorker::new(store.clone(), sender());
    let sent = courier.deliver(START).await.unwrap();
    assert_eq!(failure(&sent).0, "failed with exit status: 3");
    assert!(failure(&sent).1.is_some());
}
