//! What the owner's configuration says about repairs, as far as it counts now.

use std::path::PathBuf;

use unstuck_core::guard::Rules;
use unstuck_repair::sandbox::Demand;

/// What the owner's configuration says about repairs, as far as it counts now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairTerms {
    /// Whether what may run by itself does.
    pub mode: RepairMode,
    /// What may run.
    pub rules: Rules,
    /// The file whose approvals do not count because nobody has trusted it.
    pub untrusted: Option<String>,
    /// Whether repairs are confined.
    pub sandbox: Demand,
    /// Whether what is approved in advance also runs where the sandbox is not complete: the owner's own file, not a
    /// project's, says so.
    pub accepts_incomplete: bool,
    /// Whether they reach the network.
    pub network: bool,
    /// What of the project they may write to; all of it where nothing is named.
    pub write_paths: Vec<PathBuf>,
    /// Variables of the owner's environment that they see beside the usual ones.
    pub env_keep: Vec<String>,
    /// Whether changed files that decide what a command does make it ask.
    pub guard_files: bool,
}

/// Whether what may run by itself does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RepairMode {
    /// It does.
    #[default]
    Auto,
    /// A person is asked about each.
    Ask,
}

impl RepairTerms {
    /// What is different from what counted before, in words.
    pub(in crate::drive) fn changes(before: Option<&Self>, now: Option<&Self>) -> Vec<String> {
        match (before, now) {
            (None, None) => Vec::new(),
            (None, Some(_)) => vec!["repairs are switched on".to_owned()],
            (Some(_), None) => vec!["repairs are switched off".to_owned()],
            (Some(before), Some(now)) => before.differences(now),
        }
    }

    fn differences(&self, now: &Self) -> Vec<String> {
        let (old, new) = (&self.rules, &now.rules);
        let mut changes = Vec::new();
        changes.extend(lists("auto_approve", &old.auto_approve, &new.auto_approve));
        changes.extend(lists(
            "require_human",
            &old.require_human,
            &new.require_human,
        ));
        changes.extend(lists("env_keep", &self.env_keep, &now.env_keep));
        let paths = |all: &[PathBuf]| -> Vec<String> {
            all.iter().map(|path| path.display().to_string()).collect()
        };
        let (wrote, writes) = (paths(&self.write_paths), paths(&now.write_paths));
        changes.extend(lists("allowed_write_paths", &wrote, &writes));
        let values = [
            value("enabled", old.enabled, new.enabled),
            value(
                "max_auto_recoveries_per_run",
                old.max_auto_recoveries_per_run,
                new.max_auto_recoveries_per_run,
            ),
            value(
                "cooldown_seconds",
                old.cooldown_seconds,
                new.cooldown_seconds,
            ),
            value("on_unknown", old.on_unknown, new.on_unknown),
            value("sandbox", self.sandbox, now.sandbox),
            value(
                "incomplete sandbox accepted",
                self.accepts_incomplete,
                now.accepts_incomplete,
            ),
            value("network", self.network, now.network),
            value("guard_files", self.guard_files, now.guard_files),
        ];
        changes.extend(values.into_iter().flatten());
        changes
    }
}

/// What a list has gained and lost.
fn lists(name: &str, before: &[String], now: &[String]) -> Vec<String> {
    let gained = now.iter().filter(|one| !before.contains(one));
    let lost = before.iter().filter(|one| !now.contains(one));
    let gained = gained.map(|one| format!("{name} has `{one}` now"));
    let lost = lost.map(|one| format!("{name} has no `{one}` any more"));
    gained.chain(lost).collect()
}

fn value<T: PartialEq + std::fmt::Debug>(name: &str, before: T, now: T) -> Option<String> {
    (before != now).then(|| format!("{name} was {before:?}, is {now:?}"))
}
