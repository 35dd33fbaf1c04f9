//! Brownouts and outages: admission control never makes them worse, and recovers at once.

use super::{lane, scenario, seconds};
use crate::admission::simulation::{AdmissionMode, Report, Scenario, simulate};

/// The figures of ten seconds of normal operation, a minute of brownout and the time after.
#[derive(Debug)]
struct Brownout {
    /// Attempts that reached the upstream during the brownout, per call requested in normal operation.
    load: f64,
    /// The lowest throughput in any 5 s after the first 2 s, as a share of the remaining capacity.
    goodput: f64,
    /// Seconds after its end until throughput is back to normal.
    back: Option<f64>,
    nobody_waits: Option<f64>,
    /// Attempts per call started during the brownout.
    tries: f64,
    /// The share of calls that succeeded.
    success: f64,
}

impl Brownout {
    fn of(scenario: &Scenario, manner: &AdmissionMode) -> Self {
        let report = simulate(scenario, manner);
        let offered = f64::from(scenario.clients.count)
            / (scenario.clients.think + scenario.upstream.service).as_secs_f64();
        let capacity =
            0.3 * f64::from(scenario.upstream.places) / scenario.upstream.service.as_secs_f64();
        Self {
            load: sent(&report, 10.0, 70.0) / offered,
            goodput: report.least_goodput(5.0, 12.0, 70.0) / capacity,
            back: report.time_to_recovery(70.0, 0.95 * offered),
            nobody_waits: report.time_until_queue_empty(70.0),
            tries: sent(&report, 10.0, 70.0) / report.per_second(10.0, 70.0, |tenth| tenth.offered),
            success: report.success(),
        }
    }

    fn holds_what_is_promised(&self) {
        assert!(self.load <= 1.2, "{self:?}");
        assert!(self.tries <= 1.2, "{self:?}");
        assert!(self.goodput >= 0.9, "{self:?}");
        assert!(self.back.is_some_and(|back| back <= 5.0), "{self:?}");
        assert!(self.success >= 0.99, "{self:?}");
    }
}

fn sent(report: &Report, from: f64, until: f64) -> f64 {
    report.per_second(from, until, |tenth| tenth.sent)
}

/// S4-33, S4-35. The upstream loses 70% of its capacity for a minute; 500 clients call it.
#[test]
fn brownout_causes_no_storm_and_ends_within_five_seconds() {
    for seed in 1..=8 {
        let scenario = Scenario {
            seed,
            ..scenario(500, 2).with_brownout()
        };
        let seen = Brownout::of(&scenario, &lane());
        println!("500 clients, seed {seed}: {seen:.3?}");
        seen.holds_what_is_promised();
        assert!(seen.nobody_waits.unwrap() <= 5.0);
    }
    let plain = Brownout::of(&scenario(500, 2).with_brownout(), &AdmissionMode::Plain);
    println!("500 plain clients: {plain:.3?}");
    assert!(plain.tries > 2.5 && plain.goodput < 0.75, "{plain:?}");
}

/// The calls queued at its end exceed what the upstream can serve in five seconds.
#[test]
fn a_hundred_thousand_clients_behave_the_same() {
    let scenario = scenario(100_000, 60).with_brownout();
    let seen = Brownout::of(&scenario, &lane());
    println!("100,000 clients: {seen:.3?}");
    seen.holds_what_is_promised();
}

/// The upstream still processes queued calls after their clients have timed out.
#[test]
fn brownout_with_timeouts_does_not_cause_a_standstill() {
    let mut slow = scenario(500, 2).with_brownout();
    slow.clients.timeout = Some(seconds(2));
    slow.upstream.queue = 400;
    for seed in 1..=4 {
        slow.seed = seed;
        let (paced, plain) = (
            simulate(&slow, &lane()),
            simulate(&slow, &AdmissionMode::Plain),
        );
        // The abandoned calls must be processed first.
        let goodput = |report: &Report| report.per_second(20.0, 70.0, |tenth| tenth.good) / 84.0;
        let back = paced.time_to_recovery(70.0, 0.95 * 200.0);
        println!(
            "timeouts, seed {seed}: goodput {:.3} (plain {:.3}), back after {back:?} s, success {:.4} (plain {:.4})",
            goodput(&paced),
            goodput(&plain),
            paced.success(),
            plain.success()
        );
        assert!(goodput(&paced) >= 0.9 && goodput(&plain) < 0.2);
        assert!(back.is_some_and(|back| back <= 5.0), "{back:?}");
    }
}

/// S4-35: an upstream that is down is not called, except for occasional probes.
#[test]
fn outage_is_not_loaded_and_ends_within_five_seconds() {
    for seed in 1..=8 {
        let scenario = Scenario {
            seed,
            lasts: seconds(60),
            ..scenario(500, 2).with_outage()
        };
        let report = simulate(&scenario, &lane());
        let load = sent(&report, 13.0, 40.0);
        let back = report.time_to_recovery(40.0, 0.95 * 200.0);
        println!(
            "outage, seed {seed}: {load:.2} tries per second, back after {back:?} s, {:.4}",
            report.success()
        );
        assert!(load <= 2.0, "{load}");
        assert!(back.is_some_and(|back| back <= 5.0), "{back:?}");
    }
}

#[test]
fn nothing_is_limited_while_nothing_fails() {
    let scenario = scenario(500, 8);
    let (plain, paced) = (
        simulate(&scenario, &AdmissionMode::Plain),
        simulate(&scenario, &lane()),
    );
    assert_eq!(plain.responses, paced.responses);
    assert!(paced.tenths.iter().all(|tenth| tenth.waiting == 0));
}
