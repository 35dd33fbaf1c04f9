//! Random mixes are reproducible: the same seed and order give the same failures.

use unstuck_faults::{FaultMix, FaultScript, FaultScriptReply, FaultServer};

use crate::exchange::{ANTHROPIC, CHAT};

fn mixed(mix: FaultMix) -> FaultScript {
    FaultScript::default().with_mix(mix)
}

async fn drawn(script: &FaultScript, count: usize) -> Vec<Option<&'static str>> {
    let server = FaultServer::start(script.clone()).unwrap();
    for _ in 0..count {
        CHAT.ask(&server).await;
    }
    let requests = server.requests();
    requests.iter().map(|request| request.reply).collect()
}

#[tokio::test]
async fn the_same_seed_gives_the_same_failures() {
    let mix = |seed| {
        mixed(
            FaultMix::failing(0.4, seed)
                .with_fault(2, FaultScriptReply::Overloaded)
                .with_fault(1, FaultScriptReply::status(502)),
        )
    };
    let first = drawn(&mix(7), 60).await;
    assert_eq!(first, drawn(&mix(7), 60).await);
    assert_ne!(first, drawn(&mix(8), 60).await);
    let failed = first
        .iter()
        .filter(|reply| **reply != Some("answer"))
        .count();
    assert!((12..36).contains(&failed), "{failed}");
}

#[tokio::test]
async fn a_mix_supports_weights_and_conditions() {
    let script: FaultScript = r#"
        [mix]
        seed = 3
        failures = 1.0

        [[mix.fault]]
        when = { model = "other" }
        quota = {}

        [[mix.fault]]
        weight = 5
        status = { code = 504 }
    "#
    .parse()
    .unwrap();
    assert_eq!(drawn(&script, 10).await, [Some("status"); 10]);
}

#[tokio::test]
async fn a_restart_repeats_the_same_failures() {
    let script = mixed(FaultMix::failing(0.5, 5).with_fault(1, FaultScriptReply::Auth))
        .with_step(FaultScriptReply::Quota);
    let server = FaultServer::start(script).unwrap();
    let play = async || {
        for _ in 0..20 {
            ANTHROPIC.ask(&server).await;
        }
        let requests = server.requests();
        requests
            .iter()
            .map(|request| request.reply)
            .collect::<Vec<_>>()
    };
    let first = play().await;
    assert_eq!(first[0], Some("quota"));
    server.restart();
    assert_eq!(server.stats().requests, 0);
    assert_eq!(play().await, first);
}
