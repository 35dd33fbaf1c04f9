//! Which of several rules that hold explains a failure best.

use super::automaton::Place;
use super::rule::{Finding, Rule};
use super::view::View;
use crate::knowledge::Stream;

/// What a rule loses for a match on a line that only warns.
const NOISE: i32 = 30;
/// What a rule loses for a match inside a path or an address: a file called `timeout.rs` is no timeout.
const IN_A_PATH: i32 = 25;
/// What a rule loses at most for a match that was followed by others much later.
const EARLY: usize = 20;
/// What a rule loses if only the text states the status.
const STATED: i32 = 3;

/// A rule that holds, where, and what speaks for it.
pub(crate) struct Candidate<'c> {
    pub(crate) rule: &'c Rule,
    pub(crate) place: Option<Place>,
    pub(crate) line_number: usize,
    pub(crate) score: i32,
}

/// What speaks for a rule that holds, before the others are looked at.
pub(crate) fn candidate<'c>(rule: &'c Rule, finding: Finding, view: &View<'_>) -> Candidate<'c> {
    let line_number = finding.place.as_ref().and_then(|place| {
        view.screen(place.stream)
            .map(|screen| screen.line_number(place.range.start))
    });
    let score = rule.rank - if finding.by_stated_status { STATED } else { 0 };
    Candidate {
        rule,
        place: finding.place,
        line_number: line_number.unwrap_or(0),
        score,
    }
}

/// By the weight of the rule, less if another kind explains it nearly as well.
pub(crate) fn confidence(candidates: &[Candidate<'_>], view: &View<'_>) -> f32 {
    let Some(best) = candidates.first() else {
        return if view.ended_well() { 0.9 } else { 0.2 };
    };
    let own = best.rule.spec.confidence.unwrap_or(match best.score {
        75.. => 0.95,
        50.. => 0.85,
        30.. => 0.7,
        20.. => 0.6,
        _ => 0.4,
    });
    let rival = candidates
        .iter()
        .find(|candidate| candidate.rule.kind != best.rule.kind);
    if rival.is_some_and(|rival| best.score - rival.score < 5) {
        (own - 0.15).max(0.05)
    } else {
        own
    }
}

/// The last error in a log wins over early noise, unless the earlier one explains more.
pub(crate) fn weigh(candidates: &mut [Candidate<'_>], view: &View<'_>, noisy: &[Place]) {
    let mut last_line = [0_usize; Stream::ALL.len()];
    for candidate in candidates.iter() {
        if let Some(place) = &candidate.place {
            let last = &mut last_line[place.stream as usize];
            *last = (*last).max(candidate.line_number);
        }
    }
    for candidate in candidates {
        let (Some(place), Some(screen)) = (
            &candidate.place,
            candidate
                .place
                .as_ref()
                .and_then(|place| view.screen(place.stream)),
        ) else {
            continue;
        };
        let early = (last_line[place.stream as usize] - candidate.line_number) / 2;
        candidate.score -= i32::try_from(early.min(EARLY)).unwrap_or(0);
        let line = screen.lines_of(&place.range);
        if !candidate.rule.spec.on_warning
            && noisy
                .iter()
                .any(|noise| noise.stream == place.stream && line.contains(&noise.range.start))
        {
            candidate.score -= NOISE;
        }
        if screen.is_inside_a_path(&place.range) {
            candidate.score -= IN_A_PATH;
        }
    }
}
