//! The same failure attempt after attempt, iteration after iteration: a fold over what happened in a run.

use std::collections::BTreeMap;

use super::limits::StuckLimits;
use super::sign::StuckSign;
use super::what::StuckWhat;
use crate::failure::{Category, Kind};
use crate::moment::Timestamp;

/// A strategy that failed so often against the same failure will not help.
const FUTILE: u32 = 2;

/// An attempt that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailedAttempt<'a> {
    /// Whose attempt it was.
    pub role: &'a str,
    /// What went wrong.
    pub kind: Kind,
    /// By which the same failure is known again.
    pub fingerprint: &'a str,
    /// What it says, for people.
    pub message: &'a str,
    /// By which the same state of the work tree is known again, where that is known.
    pub tree: Option<&'a str>,
    /// When it failed.
    pub at: Timestamp,
    /// The failure that this attempt was an answer to, and the strategy that was tried.
    pub answered: Option<Answered<'a>>,
}

/// The failure that an attempt was an answer to, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answered<'a> {
    /// The kind of that failure.
    pub kind: Kind,
    /// Its fingerprint.
    pub fingerprint: &'a str,
    /// The strategy that was tried.
    pub strategy: &'a str,
}

/// How an iteration of a loop ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IterationEnd<'a> {
    /// The fingerprint and message of its failure; none if nothing failed.
    pub failure: Option<(&'a str, &'a str)>,
    /// By which the same state of the work tree is known again, where that is known.
    pub tree: Option<&'a str>,
    /// When it ended.
    pub at: Timestamp,
}

/// A strategy that was tried against the same failure and did not help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Futility {
    /// How often it was tried.
    pub times: u32,
    /// When it failed for the first time.
    pub since: Timestamp,
}

/// What has been repeated in a run so far. The same facts in the same order give the same answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repetition {
    stuck_after: u32,
    enabled: bool,
    /// The newest failure of each role.
    roles: BTreeMap<String, Row>,
    /// The newest end of an iteration.
    iterations: Option<Row>,
    trees: Trees,
    tried: BTreeMap<(Kind, String, String), Futility>,
}

/// The same end several times in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    failure: Option<String>,
    tree: Option<String>,
    times: u32,
    since: Timestamp,
    /// Whether it was not always known what became of the work tree.
    blind: bool,
}

impl Repetition {
    /// Nothing has happened yet.
    pub fn new(limits: &StuckLimits) -> Self {
        Self {
            stuck_after: limits.stuck_after.max(2),
            enabled: limits.enabled,
            roles: BTreeMap::new(),
            iterations: None,
            trees: Trees::default(),
            tried: BTreeMap::new(),
        }
    }

    /// Takes in an attempt that failed, and says whether its role is stuck. Failures that pass by themselves do not count.
    pub fn attempt_failed(&mut self, failed: &FailedAttempt<'_>) -> Option<StuckSign> {
        if let Some(answered) = &failed.answered {
            self.tried(failed, answered);
        }
        if failed.kind.category() == Category::Transient {
            return None;
        }
        let end = IterationEnd {
            failure: Some((failed.fingerprint, failed.message)),
            tree: failed.tree,
            at: failed.at,
        };
        let row = Row::after(self.roles.get(failed.role), &end);
        let sign = self.same_failure(&row, failed.message);
        self.roles.insert(failed.role.to_owned(), row);
        sign
    }

    /// Takes in that a role succeeded.
    pub fn attempt_succeeded(&mut self, role: &str) {
        self.roles.remove(role);
    }

    /// Takes in how a role left the work tree, and says whether it goes back and forth.
    pub fn tree_left(&mut self, role: &str, tree: &str, at: Timestamp) -> Option<StuckSign> {
        self.trees.push(role, tree, at);
        let sign = self.trees.back_and_forth(self.stuck_after)?;
        self.enabled.then_some(sign)
    }

    /// Takes in how an iteration ended, and says whether the loop is stuck.
    pub fn iteration_ended(&mut self, end: &IterationEnd<'_>) -> Option<StuckSign> {
        let row = Row::after(self.iterations.as_ref(), end);
        let sign = match end.failure {
            Some((_, message)) => self.same_failure(&row, message),
            None => self.no_change(&row),
        };
        self.iterations = Some(row);
        sign
    }

    /// Whether a strategy was tried against the same failure often enough to know that it does not help: twice.
    pub fn futile(&self, kind: Kind, fingerprint: &str, strategy: &str) -> Option<Futility> {
        let key = (kind, fingerprint.to_owned(), strategy.to_owned());
        let futility = *self.tried.get(&key)?;
        (self.enabled && futility.times >= FUTILE).then_some(futility)
    }

    /// A strategy helped if another failure came, and waiting for what passes by itself is no strategy that fails.
    fn tried(&mut self, failed: &FailedAttempt<'_>, answered: &Answered<'_>) {
        let again = (failed.kind, failed.fingerprint) == (answered.kind, answered.fingerprint);
        if !again || failed.kind.category() == Category::Transient {
            return;
        }
        let key = (
            failed.kind,
            failed.fingerprint.to_owned(),
            answered.strategy.to_owned(),
        );
        let futility = self.tried.entry(key).or_insert(Futility {
            times: 0,
            since: failed.at,
        });
        futility.times += 1;
    }

    fn same_failure(&self, row: &Row, message: &str) -> Option<StuckSign> {
        // Where nobody knows what changed, more is needed to be sure.
        let most = match row.blind {
            true => self.stuck_after * 2,
            false => self.stuck_after,
        };
        (self.enabled && row.times >= most).then(|| {
            let sign = StuckSign::new(StuckWhat::SameFailure, row.times, message, "");
            sign.since(row.since)
        })
    }

    fn no_change(&self, row: &Row) -> Option<StuckSign> {
        (self.enabled && !row.blind && row.times >= self.stuck_after).then(|| {
            let sign = StuckSign::new(StuckWhat::NoChange, row.times, "", "");
            sign.since(row.since)
        })
    }
}

impl Row {
    /// The row that follows from one more end.
    fn after(earlier: Option<&Self>, end: &IterationEnd<'_>) -> Self {
        let failure = end.failure.map(|(fingerprint, _)| fingerprint);
        let tree = end.tree.map(str::to_owned);
        let goes_on = earlier.filter(|row| {
            let changed = matches!((&row.tree, &tree), (Some(before), Some(now)) if before != now);
            row.failure.as_deref() == failure && !changed
        });
        Self {
            failure: failure.map(str::to_owned),
            times: goes_on.map_or(1, |row| row.times.saturating_add(1)),
            since: goes_on.map_or(end.at, |row| row.since),
            blind: tree.is_none() || goes_on.is_some_and(|row| row.blind),
            tree,
        }
    }
}

/// The states that the work tree went through.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Trees {
    /// The last two states with who left them, the newer one last.
    last: Vec<(String, String)>,
    /// How often in a row it went back to the last but one.
    returns: u32,
    since: Option<Timestamp>,
}

impl Trees {
    fn push(&mut self, role: &str, tree: &str, at: Timestamp) {
        if self.last.last().is_some_and(|(_, last)| last == tree) {
            return;
        }
        let went_back = self.last.len() == 2 && self.last[0].1 == tree;
        if went_back {
            self.returns = self.returns.saturating_add(1);
            self.since.get_or_insert(at);
        } else {
            (self.returns, self.since) = (0, None);
        }
        self.last.push((role.to_owned(), tree.to_owned()));
        if self.last.len() > 2 {
            self.last.remove(0);
        }
    }

    /// Each of two states was reached so often.
    fn back_and_forth(&self, most: u32) -> Option<StuckSign> {
        let times = self.returns / 2 + 1;
        let (one, other) = match &self.last[..] {
            [(one, _), (other, _)] if times >= most => (one, other),
            _ => return None,
        };
        let who = match one == other {
            true => format!("by {one}"),
            false => format!("{one} and {other} undo each other's work"),
        };
        let sign = StuckSign::new(StuckWhat::Undoing, times, &who, "");
        Some(match self.since {
            Some(since) => sign.since(since),
            None => sign,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_seconds(seconds)
    }

    fn failed<'a>(fingerprint: &'a str, tree: Option<&'a str>, seconds: i64) -> FailedAttempt<'a> {
        FailedAttempt {
            role: "tester",
            kind: Kind::TestFailure,
            fingerprint,
            message: "2 tests failed",
            tree,
            at: at(seconds),
            answered: None,
        }
    }

    fn ended<'a>(failure: Option<&'a str>, tree: Option<&'a str>) -> IterationEnd<'a> {
        IterationEnd {
            failure: failure.map(|fingerprint| (fingerprint, "2 tests failed")),
            tree,
            at: at(9),
        }
    }

    fn folded(ends: &[IterationEnd<'_>]) -> Vec<Option<StuckWhat>> {
        let mut repetition = Repetition::new(&StuckLimits::default());
        let sign = |end| repetition.iteration_ended(end).map(|sign| sign.what);
        ends.iter().map(sign).collect()
    }

    #[test]
    fn the_same_failure_three_times_with_no_change_is_stuck() {
        let mut repetition = Repetition::new(&StuckLimits::default());
        assert_eq!(repetition.attempt_failed(&failed("f", Some("t"), 1)), None);
        assert_eq!(repetition.attempt_failed(&failed("f", Some("t"), 2)), None);
        let sign = repetition
            .attempt_failed(&failed("f", Some("t"), 3))
            .unwrap();
        assert_eq!(
            (sign.what, sign.times, sign.since),
            (StuckWhat::SameFailure, 3, Some(at(1)))
        );
        assert_eq!(
            sign.to_string(),
            "the same failure came 3 times in a row while nothing changed in the work tree: 2 tests failed"
        );
        repetition.attempt_succeeded("tester");
        assert_eq!(repetition.attempt_failed(&failed("f", Some("t"), 4)), None);
    }

    #[test]
    fn another_failure_or_a_change_is_progress() {
        let same = ended(Some("f"), Some("t"));
        let other = ended(Some("g"), Some("t"));
        let changed = ended(Some("f"), Some("u"));
        assert_eq!(folded(&[same, same, other, same, same]), [None; 5]);
        assert_eq!(folded(&[same, changed, same, changed, same]), [None; 5]);
    }

    #[test]
    fn without_a_known_work_tree_twice_as_many_are_needed() {
        let blind = ended(Some("f"), None);
        let stuck = Some(StuckWhat::SameFailure);
        assert_eq!(folded(&[blind; 6]), [None, None, None, None, None, stuck]);
        assert_eq!(folded(&[ended(None, None); 8]), [None; 8]);
    }

    #[test]
    fn nothing_fails_and_nothing_changes() {
        let idle = ended(None, Some("t"));
        assert_eq!(folded(&[idle; 3]), [None, None, Some(StuckWhat::NoChange)]);
    }

    #[test]
    fn what_passes_by_itself_is_not_counted() {
        let mut repetition = Repetition::new(&StuckLimits::default());
        let limited = FailedAttempt {
            kind: Kind::RateLimit,
            ..failed("r", Some("t"), 1)
        };
        for _ in 0..9 {
            assert_eq!(repetition.attempt_failed(&limited), None);
        }
    }

    #[test]
    fn two_roles_that_undo_each_other_are_stuck() {
        let mut repetition = Repetition::new(&StuckLimits::default());
        let mut left = |role, tree| repetition.tree_left(role, tree, at(1));
        for _ in 0..2 {
            assert_eq!(left("implementer", "a"), None);
            assert_eq!(left("tester", "a"), None);
            assert_eq!(left("reviewer", "b"), None);
        }
        assert_eq!(left("implementer", "a"), None);
        let sign = left("reviewer", "b").unwrap();
        assert_eq!((sign.what, sign.times), (StuckWhat::Undoing, 3));
        assert_eq!(
            sign.repeated,
            "implementer and reviewer undo each other's work"
        );
        assert_eq!(left("implementer", "c"), None);
    }

    #[test]
    fn a_strategy_that_did_not_help_twice_is_futile() {
        let mut repetition = Repetition::new(&StuckLimits::default());
        let answered = Answered {
            kind: Kind::TestFailure,
            fingerprint: "f",
            strategy: "change_approach",
        };
        let futile =
            |repetition: &Repetition, strategy| repetition.futile(Kind::TestFailure, "f", strategy);
        for seconds in 1..=2 {
            assert_eq!(futile(&repetition, "change_approach"), None);
            repetition.attempt_failed(&FailedAttempt {
                answered: Some(answered),
                ..failed("f", Some("t"), seconds)
            });
        }
        let since = Futility {
            times: 2,
            since: at(1),
        };
        assert_eq!(futile(&repetition, "change_approach"), Some(since));
        assert_eq!(futile(&repetition, "fresh_session"), None);
        assert_eq!(
            repetition.futile(Kind::TestFailure, "g", "change_approach"),
            None
        );
    }

    #[test]
    fn a_strategy_after_which_something_else_failed_has_helped() {
        let mut repetition = Repetition::new(&StuckLimits::default());
        let answered = Answered {
            kind: Kind::TestFailure,
            fingerprint: "f",
            strategy: "change_approach",
        };
        for seconds in 1..=3 {
            repetition.attempt_failed(&FailedAttempt {
                answered: Some(answered),
                ..failed("g", Some("t"), seconds)
            });
        }
        assert_eq!(
            repetition.futile(Kind::TestFailure, "f", "change_approach"),
            None
        );
    }
}
