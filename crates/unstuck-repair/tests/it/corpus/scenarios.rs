//! Broken projects stored outside the repository; without them the `corpus` tests are not run.
//!
//! Each directory creates a project (`setup.sh`), checks it (`check.sh`) and names in `meta.json` the command that
//! repairs it, if any. `UNSTUCK_SCENARIOS=DIR:DIR` lists the directories, `UNSTUCK_SCENARIO=WORD` selects those whose
//! name contains it, and `UNSTUCK_SCENARIOS_KEPT=DIR` keeps the broken projects there for the next measurement.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde::Deserialize;
use unstuck_core::repair::{RepairCatalog, RepairSuggestions, probes_for, suggest_repairs};
use unstuck_core::{ClockReading, Failure, Timestamp, classify};

#[derive(Deserialize)]
struct Meta {
    auto_repair: bool,
    repair_command: Option<String>,
    #[serde(default)]
    needs: Vec<String>,
}

/// A broken project; only a fresh one is deleted afterwards.
enum Project {
    Fresh(tempfile::TempDir),
    Kept(PathBuf),
}

impl Project {
    fn path(&self) -> &Path {
        match self {
            Self::Fresh(place) => place.path(),
            Self::Kept(place) => place,
        }
    }
}

struct Scenario {
    name: String,
    folder: PathBuf,
    meta: Meta,
}

impl Scenario {
    fn read(folder: &Path) -> Option<Self> {
        let meta = fs::read_to_string(folder.join("meta.json")).ok()?;
        Some(Self {
            name: folder.file_name()?.to_string_lossy().into_owned(),
            folder: folder.to_owned(),
            meta: serde_json::from_str(&meta).unwrap(),
        })
    }

    #[expect(clippy::disallowed_methods, reason = "scripts as a person runs them")]
    fn script(&self, name: &str, at: &Path) -> Output {
        let mut command = Command::new("timeout");
        command
            .args(["-k", "2", "120", "bash"])
            .arg(self.folder.join(name));
        in_project(&mut command, at).output().unwrap()
    }

    /// Creates a fresh broken project.
    fn set_up(&self) -> tempfile::TempDir {
        let place = tempfile::tempdir().unwrap();
        self.set_up_in(place.path());
        place
    }

    fn set_up_in(&self, at: &Path) {
        let output = self.script("setup.sh", at);
        let needs = &self.meta.needs;
        assert!(
            output.status.success(),
            "{} cannot be set up here (it needs {needs:?}): {output:?}",
            self.name
        );
    }

    /// Returns the broken project to inspect: a kept one if there is one.
    fn project(&self) -> Project {
        let kept = std::env::var_os("UNSTUCK_SCENARIOS_KEPT");
        // A project that needs a teardown cannot be kept.
        let kept = kept.filter(|_| !self.folder.join("teardown.sh").exists());
        let Some(kept) = kept else {
            return Project::Fresh(self.set_up());
        };
        let place = Path::new(&kept).join(&self.name);
        if !place.exists() {
            fs::create_dir_all(&place).unwrap();
            self.set_up_in(&place);
        }
        Project::Kept(place)
    }

    /// Returns the failure of the check, as `unstuck exec` sees it.
    fn failure(&self, at: &Path) -> Option<Failure> {
        let check = self.script("check.sh", at);
        let code = check.status.code().unwrap_or(1);
        let line = format!("bash {}", self.folder.join("check.sh").display());
        let failure = Failure::tool("bash")
            .with_command(line)
            .with_exit_code(code);
        let failure = failure.with_stdout(check.stdout).with_stderr(check.stderr);
        (code != 0).then_some(failure)
    }

    /// Returns the kind of the failure and the suggested repair, or `None` if the check passes.
    fn offers(&self, at: &Path, entries: &[String]) -> Option<(String, RepairSuggestions)> {
        let failure = self.failure(at)?;
        let diagnosis = classify(&failure, &ClockReading::utc(Timestamp::from_seconds(0)));
        let book = RepairCatalog::built_in();
        let asked = probes_for(book, &failure, &diagnosis, entries);
        let path = std::env::var_os("PATH");
        let facts = unstuck_repair::probe_project(at, at, path.as_deref(), &asked);
        let kind = diagnosis.kind.to_string();
        Some((
            kind,
            suggest_repairs(book, &failure, &diagnosis, &facts, entries),
        ))
    }

    /// True if the check passes after a command, in a fresh project.
    fn is_healed_by(&self, command: &str) -> bool {
        let place = self.set_up();
        let _ = shell(command, place.path());
        let healed = self.script("check.sh", place.path()).status.success();
        self.tear_down(place.path());
        healed
    }

    /// Returns commands that seem to fix the failure but do not.
    fn tempting(&self) -> Vec<String> {
        let script = fs::read_to_string(self.folder.join("wrong.sh")).unwrap_or_default();
        let is_command = |line: &&str| {
            let other = ["#", "set ", "export "];
            !line.is_empty() && !other.iter().any(|start| line.starts_with(start))
        };
        let lines = script.lines().map(str::trim).filter(is_command);
        lines.map(str::to_owned).collect()
    }

    fn tear_down(&self, at: &Path) {
        if self.folder.join("teardown.sh").exists() {
            self.script("teardown.sh", at);
        }
    }

    /// Returns the errors in the suggestions.
    #[expect(
        clippy::print_stdout,
        reason = "what was offered is worth a look also where it is right"
    )]
    fn problem(&self, all: &[String]) -> Result<(), String> {
        let place = self.project();
        let own = self.meta.repair_command.clone().unwrap_or_default();
        let others: Vec<String> = all.iter().filter(|one| **one != own).cloned().collect();
        let with_own: Vec<String> = others
            .iter()
            .chain(&self.meta.repair_command)
            .cloned()
            .collect();
        let offered = self.offers(place.path(), &with_own);
        let without = self.offers(place.path(), &others);
        if matches!(place, Project::Fresh(_)) {
            self.tear_down(place.path());
        }
        let (Some((kind, offered)), Some((_, without))) = (offered, without) else {
            return Err("it is not broken".to_owned());
        };
        let owner = |offers: &RepairSuggestions| {
            let mut all = offers
                .suggestions
                .iter()
                .filter(|offer| offer.source.is_owner());
            all.next().map(|offer| offer.command.clone())
        };
        let built_in = without
            .suggestions
            .iter()
            .find(|offer| !offer.source.is_owner());
        let built_in = built_in.map(|offer| offer.command.as_str());
        let (first, other) = (owner(&offered), owner(&without));
        println!(
            "{:34} {kind:20} first {first:?}, without {other:?}, built in {built_in:?}",
            self.name
        );
        if !self.meta.auto_repair {
            let touched = offered
                .suggestions
                .iter()
                .map(|offer| offer.command.as_str());
            let touched: Vec<&str> = touched.collect();
            return if touched.is_empty() {
                Ok(())
            } else {
                Err(format!("{kind}: must be left alone, offers {touched:?}"))
            };
        }
        let right = |command: &String| *command == own || self.is_healed_by(command);
        if !first.as_ref().is_some_and(right) {
            let reasons = offered
                .skipped_entries
                .iter()
                .filter(|one| one.command == own);
            let reasons: Vec<&str> = reasons.map(|one| one.reason.as_str()).collect();
            return Err(format!(
                "{kind}: wants `{own}`, offers {first:?} {reasons:?} {:?}",
                offered.refusal
            ));
        }
        match other.filter(|other| !self.is_healed_by(other)) {
            Some(other) => Err(format!("{kind}: `{other}` does not heal it")),
            None => Ok(()),
        }
    }
}

fn in_project<'c>(command: &'c mut Command, at: &Path) -> &'c mut Command {
    for name in [
        "GIT_DIR",
        "GIT_WORK_TREE",
        "VIRTUAL_ENV",
        "PYTHONPATH",
        "NODE_OPTIONS",
        "CARGO_TARGET_DIR",
    ] {
        command.env_remove(name);
    }
    command
        .current_dir(at)
        .stdin(std::process::Stdio::null())
        .envs([
            ("LANG", "C.UTF-8"),
            ("LC_ALL", "C.UTF-8"),
            ("NO_COLOR", "1"),
            ("CARGO_TERM_COLOR", "never"),
            ("GIT_TERMINAL_PROMPT", "0"),
        ])
        .envs([
            ("npm_config_update_notifier", "false"),
            ("npm_config_fund", "false"),
            ("npm_config_audit", "false"),
            ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
        ])
}

#[expect(clippy::disallowed_methods, reason = "the repair as a person runs it")]
fn shell(text: &str, at: &Path) -> Output {
    let mut command = Command::new("timeout");
    command.args(["-k", "2", "120", "sh", "-c", text]);
    in_project(&mut command, at).output().unwrap()
}

/// Returns the scenarios of all directories.
fn scenarios() -> Vec<Scenario> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/scenarios");
    let named = std::env::var_os("UNSTUCK_SCENARIOS");
    let folders: Vec<PathBuf> = match &named {
        Some(list) => std::env::split_paths(list).collect(),
        None => vec![beside],
    };
    let entries = folders
        .iter()
        .filter_map(|folder| fs::read_dir(folder).ok())
        .flatten();
    let mut all: Vec<_> = entries
        .flatten()
        .filter_map(|one| Scenario::read(&one.path()))
        .collect();
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all
}

/// S3-45, S3-53, S3-54: of all allowed commands the fixing one is suggested, and none if none is allowed.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "which to measure is said from outside"
)]
fn the_fixing_repair_is_suggested_among_the_allowed_ones() {
    let scenarios = scenarios();
    assert!(!scenarios.is_empty(), "there is no scenario");
    let all = scenarios.iter().flat_map(|one| {
        let repair = one.meta.repair_command.clone();
        repair.into_iter().chain(one.tempting())
    });
    let all: Vec<String> = all.collect();
    let word = std::env::var("UNSTUCK_SCENARIO").unwrap_or_default();
    let wanted = scenarios.iter().filter(|one| one.name.contains(&word));
    let wrong: Vec<_> = wanted
        .filter_map(|one| Some(format!("{}: {}", one.name, one.problem(&all).err()?)))
        .collect();
    assert!(
        wrong.is_empty(),
        "{} are wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
