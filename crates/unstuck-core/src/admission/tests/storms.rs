//! Brownouts and outages: the lane never makes them worse, and is back at once.

use super::{lane, scenario, seconds};
use crate::admission::simulation::{Manner, Report, Scenario, simulate};

/// What matters of ten seconds of health, a minute of brownout and what follows.
#[derive(Debug)]
struct Brownout {
    /// Tries that reached the upstream during the brownout, for each call that is asked for in health.
    load: f64,
    /// The least that got through in any 5 s after the first 2 s, as a share of what the upstream can still do.
    goodput: f64,
    /// Seconds after its end until as much gets through as before.
    back: Option<f64>,
    nobody_waits: Option<f64>,
    /// Tries for each call that was begun during the brownout.
    tries: f64,
    /// The share of calls that succeeded.
    success: f64,
}

impl Brownout {
    fn of(scenario: &Scenario, manner: &Manner) -> Self {
        let report = simulate(scenario, manner);
        let offered = f64::from(scenario.clients.count)
            / (scenario.clients.think + scenario.upstream.service).as_secs_f64();
        let capacity =
            0.3 * f64::from(scenario.upstream.places) / scenario.upstream.service.as_secs_f64();
        Self {
            load: sent(&report, 10.0, 70.0) / offered,
            goodput: report.least_goodput(5.0, 12.0, 70.0) / capacity,
            back: report.back_after(70.0, 0.95 * offered),
            nobody_waits: report.nobody_waits_after(70.0),
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

/// S4-33, S4-35. The upstream loses 70 % of what it can do for a minute, 500 clients call it.
#[test]
fn a_brownout_gets_no_storm_keeps_what_is_left_busy_and_is_over_within_five_seconds() {
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
    let plain = Brownout::of(&scenario(500, 2).with_brownout(), &Manner::Plain);
    println!("500 plain clients: {plain:.3?}");
    assert!(plain.tries > 2.5 && plain.goodput < 0.75, "{plain:?}");
}

/// What waits at the end of it is more than the upstream can serve in five seconds.
#[test]
fn a_hundred_thousand_clients_are_no_different() {
    let scenario = scenario(100_000, 60).with_brownout();
    let seen = Brownout::of(&scenario, &lane());
    println!("100,000 clients: {seen:.3?}");
    seen.holds_what_is_promised();
}

/// Calls that wait in the upstream until their clients give up are worked on for nothing.
#[test]
fn a_brownout_that_shows_in_timeouts_does_not_become_a_standstill() {
    let mut slow = scenario(500, 2).with_brownout();
    slow.clients.timeout = Some(seconds(2));
    slow.upstream.queue = 400;
    for seed in 1..=4 {
        slow.seed = seed;
        let (paced, plain) = (simulate(&slow, &lane()), simulate(&slow, &Manner::Plain));
        // First the calls have to be worked off that nobody waits for any more.
        let goodput = |report: &Report| report.per_second(20.0, 70.0, |tenth| tenth.good) / 84.0;
        let back = paced.back_after(70.0, 0.95 * 200.0);
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

/// S4-35: nobody asks an upstream that is down, but for one now and then who finds out that it is back.
#[test]
fn an_outage_is_left_alone_and_over_within_five_seconds_after_its_end() {
    for seed in 1..=8 {
        let scenario = Scenario {
            seed,
            lasts: seconds(60),
            ..scenario(500, 2).with_outage()
        };
        let report = simulate(&scenario, &lane());
        let load = sent(&report, 13.0, 40.0);
        let back = report.back_after(40.0, 0.95 * 200.0);
        println!(
            "outage, seed {seed}: {load:.2} tries per second, back after {back:?} s, {:.4}",
            report.success()
        );
        assert!(load <= 2.0, "{load}");
        assert!(back.is_some_and(|back| back <= 5.0), "{back:?}");
    }
}

#[test]
fn a_lane_limits_nothing_while_nothing_fails() {
    let scenario = scenario(500, 8);
    let (plain, paced) = (
        simulate(&scenario, &Manner::Plain),
        simulate(&scenario, &lane()),
    );
    assert_eq!(plain.responses, paced.responses);
    assert!(paced.tenths.iter().all(|tenth| tenth.waiting == 0));
}
