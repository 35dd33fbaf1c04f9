//! What the owner's configuration says about repairs, as far as it counts now.

use std::path::PathBuf;

use unstuck_core::command_policy::RepairPolicy;
use unstuck_repair::sandbox::SandboxMode;

/// What the owner's configuration says about repairs, as far as it counts now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairSettings {
    /// Whether what may run by itself does.
    pub mode: RepairMode,
    /// What may run.
    pub rules: RepairPolicy,
    /// The file whose approvals do not count because nobody has trusted it.
    pub untrusted: Option<String>,
    /// Whether repairs are confined.
    pub sandbox: SandboxMode,
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
    pub checks_watched_files: bool,
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

impl RepairSettings {
    /// What is different from what counted before, in words.
    pub(in crate::runner) fn describe_changes(
        before: Option<&Self>,
        now: Option<&Self>,
    ) -> Vec<String> {
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
        changes.extend(describe_list_change(
            "auto_approve",
            &old.auto_approve,
            &new.auto_approve,
        ));
        changes.extend(describe_list_change(
            "require_human",
            &old.require_human,
            &new.require_human,
        ));
        changes.extend(describe_list_change(
            "env_keep",
            &self.env_keep,
            &now.env_keep,
        ));
        let paths = |all: &[PathBuf]| -> Vec<String> {
            all.iter().map(|path| path.display().to_string()).collect()
        };
        let (wrote, writes) = (paths(&self.write_paths), paths(&now.write_paths));
        changes.extend(describe_list_change("allowed_write_paths", &wrote, &writes));
        let values = [
            describe_value_change("enabled", old.enabled, new.enabled),
            describe_value_change(
                "max_auto_recoveries_per_run",
                old.max_auto_recoveries_per_run,
                new.max_auto_recoveries_per_run,
            ),
            describe_value_change(
                "cooldown_seconds",
                old.cooldown_seconds,
                new.cooldown_seconds,
            ),
            describe_value_change("on_unknown", old.on_unknown, new.on_unknown),
            describe_value_change("sandbox", self.sandbox, now.sandbox),
            describe_value_change(
                "incomplete sandbox accepted",
                self.accepts_incomplete,
                now.accepts_incomplete,
            ),
            describe_value_change("network", self.network, now.network),
            describe_value_change(
                "guard_files",
                self.checks_watched_files,
                now.checks_watched_files,
            ),
        ];
        changes.extend(values.into_iter().flatten());
        changes
    }
}

/// What a list has gained and lost.
fn describe_list_change(name: &str, before: &[String], now: &[String]) -> Vec<String> {
    let gained = now.iter().filter(|one| !before.contains(one));
    let lost = before.iter().filter(|one| !now.contains(one));
    let gained = gained.map(|one| format!("{name} has `{one}` now"));
    let lost = lost.map(|one| format!("{name} has no `{one}` any more"));
    gained.chain(lost).collect()
}

fn describe_value_change<T: PartialEq + std::fmt::Debug>(
    name: &str,
    before: T,
    now: T,
) -> Option<String> {
    (before != now).then(|| format!("{name} was {before:?}, is {now:?}"))
}
