//! Scores matching rules to find the one that explains a failure best.

use super::compiled_rule::{CompiledRule, RuleMatch};
use super::pattern_index::TextSpan;
use super::prepared_failure::PreparedFailure;
use crate::knowledge::FailureTextSource;

/// Penalty for a match on a line that is only a warning.
const NOISE_PENALTY: i32 = 30;
/// Penalty for a match inside a path or URL: a file called `timeout.rs` is not a timeout.
const PATH_PENALTY: i32 = 25;
/// Maximum penalty for a match followed by others much later.
const MAX_EARLY_PENALTY: usize = 20;
/// Penalty if only the text states the status.
const STATED_STATUS_PENALTY: i32 = 3;

/// A matching rule, its match, and its score.
pub(crate) struct ScoredRule<'c> {
    pub(crate) rule: &'c CompiledRule,
    pub(crate) span: Option<TextSpan>,
    pub(crate) line_number: usize,
    pub(crate) score: i32,
}

/// Scores a matching rule by itself.
pub(crate) fn score_rule<'c>(
    rule: &'c CompiledRule,
    finding: RuleMatch,
    view: &PreparedFailure<'_>,
) -> ScoredRule<'c> {
    let line_number = finding.span.as_ref().and_then(|place| {
        view.text(place.stream)
            .map(|screen| screen.line_number(place.range.start))
    });
    let score = rule.rank
        - if finding.by_stated_status {
            STATED_STATUS_PENALTY
        } else {
            0
        };
    ScoredRule {
        rule,
        span: finding.span,
        line_number: line_number.unwrap_or(0),
        score,
    }
}

/// Returns the confidence: the weight of the rule, less if another kind explains the failure nearly as well.
pub(crate) fn confidence(candidates: &[ScoredRule<'_>], view: &PreparedFailure<'_>) -> f32 {
    let Some(best) = candidates.first() else {
        return if view.is_presumed_success() { 0.9 } else { 0.2 };
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

/// Ranks the rules: the last error in a log beats early noise, unless the earlier one explains more.
pub(crate) fn rank_rules(
    candidates: &mut [ScoredRule<'_>],
    view: &PreparedFailure<'_>,
    noisy: &[TextSpan],
) {
    let mut last_line = [0_usize; FailureTextSource::ALL.len()];
    for candidate in candidates.iter() {
        if let Some(place) = &candidate.span {
            let last = &mut last_line[place.stream as usize];
            *last = (*last).max(candidate.line_number);
        }
    }
    for candidate in candidates {
        let (Some(place), Some(screen)) = (
            &candidate.span,
            candidate
                .span
                .as_ref()
                .and_then(|place| view.text(place.stream)),
        ) else {
            continue;
        };
        let early = (last_line[place.stream as usize] - candidate.line_number) / 2;
        candidate.score -= i32::try_from(early.min(MAX_EARLY_PENALTY)).unwrap_or(0);
        let line = screen.line_range(&place.range);
        if !candidate.rule.spec.on_warning
            && noisy
                .iter()
                .any(|noise| noise.stream == place.stream && line.contains(&noise.range.start))
        {
            candidate.score -= NOISE_PENALTY;
        }
        if screen.is_inside_a_path(&place.range) {
            candidate.score -= PATH_PENALTY;
        }
    }
}
