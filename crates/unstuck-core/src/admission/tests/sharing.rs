//! Rate limits, random failures, and many sessions sharing a controller.

use super::{lane, scenario, seconds};
use crate::admission::ApiAdmissionSettings;
use crate::admission::simulation::{AdmissionMode, Limit, Report, Scenario, percentile, simulate};
use crate::decision::template;

fn limited_share(report: &Report) -> f64 {
    let count = |what: fn(&crate::admission::simulation::TenthSecondCounts) -> u32| {
        f64::from(report.tenths.iter().map(what).sum::<u32>())
    };
    count(|tenth| tenth.limited) / count(|tenth| tenth.sent)
}

/// Twice as many calls as allowed: the controller slows down before the limit is reached.
#[test]
fn stated_limit_is_rarely_hit_but_fully_used() {
    for refills in [false, true] {
        for (clients, requests) in [(20, 150), (500, 3000)] {
            let mut scenario = scenario(clients, 3);
            scenario.lasts = seconds(300);
            scenario.upstream.limit = Some(Limit {
                requests,
                per: seconds(60),
                refills,
            });
            let (plain, paced) = (
                simulate(&scenario, &AdmissionMode::Plain),
                simulate(&scenario, &lane()),
            );
            let used = |report: &Report| {
                report.per_second(60.0, 300.0, |tenth| tenth.good) * 60.0 / f64::from(requests)
            };
            println!(
                "limit {requests}/min, refills {refills}: 429s {:.4} (plain {:.3}), used {:.3} (plain {:.3}), success {:.4} (plain {:.4})",
                limited_share(&paced),
                limited_share(&plain),
                used(&paced),
                used(&plain),
                paced.success(),
                plain.success(),
            );
            assert!(limited_share(&paced) < 0.01, "{}", limited_share(&paced));
            assert!(used(&paced) > 0.85, "{}", used(&paced));
            assert!(paced.success() >= 0.999);
        }
    }
}

/// S4-34: a fifth of all attempts fails by chance.
#[test]
fn random_failures_recover_within_the_retry_budget() {
    let policies = ["standard", "resilient"];
    for (clients, policy) in [1, 20, 500]
        .into_iter()
        .flat_map(|n| policies.map(|id| (n, id)))
    {
        let mut scenario = scenario(clients, 4);
        scenario.policy = template(policy).unwrap().clone();
        scenario.upstream.transient = 0.2;
        scenario.lasts = seconds(if clients == 1 { 3600 } else { 300 });
        let report = simulate(&scenario, &lane());
        let time = |share| percentile(&report.recoveries, share).as_secs_f64();
        let sum: f64 = report
            .recoveries
            .iter()
            .map(std::time::Duration::as_secs_f64)
            .sum();
        let mean = sum / report.recoveries.len() as f64;
        println!(
            "{clients} clients, {policy}, 20 % fail: success {:.4}, recovered in {mean:.2} s (mean), {:.2} s (p50), {:.2} s (p99)",
            report.success(),
            time(0.5),
            time(0.99),
        );
        assert!(mean < 30.0, "{mean}");
        assert!(report.success() >= 0.99, "{}", report.success());
        assert!(time(0.5) < 2.0 && time(0.99) < 30.0);
    }
}

/// One session with 200 concurrent calls, and ten sessions with one each.
#[test]
fn busy_session_does_not_starve_the_others() {
    let settings = ApiAdmissionSettings {
        max_in_flight: Some(20),
        ..ApiAdmissionSettings::default()
    };
    let mut alone = scenario(10, 5);
    alone.upstream.places = 20;
    let mut crowded = alone.clone();
    crowded.clients.busy = 200;
    let mean = |scenario: &Scenario| {
        let responses = simulate(scenario, &AdmissionMode::Lane(settings.clone())).responses;
        let sum: f64 = responses.iter().map(std::time::Duration::as_secs_f64).sum();
        let slow = percentile(&responses, 0.95).as_secs_f64();
        (sum / responses.len() as f64, slow)
    };
    let (alone, crowded) = (mean(&alone), mean(&crowded));
    println!("small sessions alone: {alone:.3?} s, beside 200 calls: {crowded:.3?} s (mean, p95)");
    assert!(crowded.0 < 2.0 * alone.0 && crowded.1 < 2.0 * alone.1);
}
