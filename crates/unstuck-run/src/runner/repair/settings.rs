//! The owner's repair settings in effect.

use std::path::PathBuf;

use unstuck_core::command_policy::RepairPolicy;
use unstuck_repair::sandbox::SandboxMode;

/// The owner's repair settings in effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairSettings {
    /// The mode of automatic repairs.
    pub mode: RepairMode,
    /// The repair rules.
    pub rules: RepairPolicy,
    /// The file whose approvals are ignored because it is not trusted.
    pub untrusted: Option<String>,
    /// The sandbox mode.
    pub sandbox: SandboxMode,
    /// True if pre-approved commands also run in an incomplete sandbox: only the owner's own file can allow this, not
    /// the project's.
    pub accepts_incomplete: bool,
    /// True if repairs have network access.
    pub network: bool,
    /// Writable paths of the project; empty for the whole project.
    pub write_paths: Vec<PathBuf>,
    /// Additional environment variables that repairs see.
    pub env_keep: Vec<String>,
    /// True if changed watched files make a command require approval.
    pub checks_watched_files: bool,
}

/// The mode of automatic repairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RepairMode {
    /// Pre-approved repairs run automatically.
    #[default]
    Auto,
    /// Every repair needs approval.
    Ask,
}

impl RepairSettings {
    /// Describes the differences from the earlier settings.
    pub(in crate::runner) fn describe_changes(
        before: Option<&Self>,
        now: Option<&Self>,
    ) -> Vec<String> {
        match (before, now) {
            (None, None) => Vec::new(),
            (None, Some(_)) => vec!["repairs are enabled".to_owned()],
            (Some(_), None) => vec!["repairs are disabled".to_owned()],
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

/// Describes the added and removed entries of a list.
fn describe_list_change(name: &str, before: &[String], now: &[String]) -> Vec<String> {
    let gained = now.iter().filter(|one| !before.contains(one));
    let lost = before.iter().filter(|one| !now.contains(one));
    let gained = gained.map(|one| format!("{name}: added `{one}`"));
    let lost = lost.map(|one| format!("{name}: removed `{one}`"));
    gained.chain(lost).collect()
}

fn describe_value_change<T: PartialEq + std::fmt::Debug>(
    name: &str,
    before: T,
    now: T,
) -> Option<String> {
    (before != now).then(|| format!("{name} changed from {before:?} to {now:?}"))
}
