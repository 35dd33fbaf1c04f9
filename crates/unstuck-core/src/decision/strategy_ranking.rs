//! Ranks the strategies of a failure kind's chain.

use crate::failure::{FailureKind, FailureLayer};
use crate::knowledge::StrategyChainEntry;

use super::success_rates::SuccessRates;

/// A chain entry with its rank.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankedStrategy<'a> {
    /// The chain entry.
    pub entry: &'a StrategyChainEntry,
    /// The chance that it helps, adjusted by learned success rates.
    pub confidence: f64,
    /// The sort key: the confidence divided by the square root of its turns, so that simple strategies come first.
    pub score: f64,
}

/// Ranks the entries of a kind for a layer: the best first, without duplicates, those that escalate last.
///
/// Equal scores keep the given order.
pub fn rank_chain<'a>(
    kind: FailureKind,
    layer: FailureLayer,
    links: &'a [StrategyChainEntry],
    odds: &SuccessRates,
    asks: impl Fn(&str) -> bool,
) -> Vec<RankedStrategy<'a>> {
    let mut ranked: Vec<(bool, RankedStrategy<'a>)> = Vec::with_capacity(links.len());
    for link in links {
        let fits = link.layers.is_empty() || link.layers.contains(&layer);
        let known = ranked
            .iter()
            .any(|(_, one)| one.entry.strategy == link.strategy);
        if fits && !known {
            let confidence = odds.adjusted_confidence(kind, &link.strategy, link.confidence);
            let score = confidence / f64::from(link.iterations.max(1)).sqrt();
            let one = RankedStrategy {
                entry: link,
                confidence,
                score,
            };
            ranked.push((asks(&link.strategy), one));
        }
    }
    ranked.sort_by(|(a_asks, a), (b_asks, b)| a_asks.cmp(b_asks).then(b.score.total_cmp(&a.score)));
    ranked.into_iter().map(|(_, one)| one).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn link(
        strategy: &str,
        confidence: f64,
        iterations: u32,
        layers: &[FailureLayer],
    ) -> StrategyChainEntry {
        StrategyChainEntry {
            strategy: strategy.into(),
            confidence,
            iterations,
            layers: layers.to_vec(),
        }
    }

    fn names<'a>(ranked: &[RankedStrategy<'a>]) -> Vec<&'a str> {
        ranked.iter().map(|one| &*one.entry.strategy).collect()
    }

    fn asks(strategy: &str) -> bool {
        strategy.starts_with("ask")
    }

    #[test]
    fn simple_and_confident_strategies_come_first_and_escalations_last() {
        let links = [
            link("ask_user", 0.95, 1, &[]),
            link("slow", 0.9, 9, &[]),
            link("quick", 0.6, 1, &[]),
            link("equal", 0.6, 1, &[]),
            link("elsewhere", 1.0, 1, &[FailureLayer::Api]),
        ];
        let ranked = rank_chain(
            FailureKind::Timeout,
            FailureLayer::Tool,
            &links,
            &SuccessRates::empty(),
            asks,
        );
        assert_eq!(names(&ranked), ["quick", "equal", "slow", "ask_user"]);
    }

    /// S2-24: strategies that worked before move up.
    #[test]
    fn learned_success_rates_change_the_order() {
        let links = [link("first", 0.7, 1, &[]), link("second", 0.6, 1, &[])];
        let mut odds = SuccessRates::empty();
        odds.record(FailureKind::Timeout, "second", true);
        odds.record(FailureKind::Timeout, "first", false);
        let ranked = rank_chain(
            FailureKind::Timeout,
            FailureLayer::Tool,
            &links,
            &odds,
            asks,
        );
        assert_eq!(names(&ranked), ["second", "first"]);
    }

    proptest! {
        /// S2-20: no strategy twice.
        #[test]
        fn ranking_neither_duplicates_nor_drops_strategies(
            given in proptest::collection::vec((0_u8..6, 0.0..1.0_f64, 0_u32..9), 0..12),
        ) {
            let links: Vec<_> = given.iter().map(|(id, c, i)| link(&format!("s{id}"), *c, *i, &[])).collect();
            let ranked = rank_chain(FailureKind::Stuck, FailureLayer::Agent, &links, &SuccessRates::empty(), asks);
            let mut ids = names(&ranked);
            ids.sort_unstable();
            let mut wanted: Vec<_> = links.iter().map(|link| &*link.strategy).collect();
            wanted.sort_unstable();
            wanted.dedup();
            prop_assert_eq!(ids, wanted);
        }
    }
}
