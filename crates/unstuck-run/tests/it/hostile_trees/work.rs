//! The operations of unstuck that read and write in a project.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use unstuck_config::{ConfigLayers, ConfigLoadResult};
use unstuck_core::decision::default_template;
use unstuck_core::event::{
    Event, EventRecord, RoleInstance, RunFinished, RunKind, RunOutcome, RunStarted, SessionSpec,
    VERSION,
};
use unstuck_core::project_settings_snapshot::ProjectSettingsSnapshot;
use unstuck_core::redact::Redactor;
use unstuck_core::views::RunProjection;
use unstuck_core::{RunId, Timestamp};
use unstuck_files::DirHandle;
use unstuck_files::safe_open::PathResolutionMethod;
use unstuck_repair::proposal_file::ProposalFile;
use unstuck_run::prompt::{ProjectPromptFileProvider, PromptFileProvider};
use unstuck_run::run_dir::RunDir;
use unstuck_run::runner::{resolve_target, write_atomically};
use unstuck_run::worktree::{CommittedTree, SnapshotStore, fingerprint};

use super::planting::{NAMES, RUN, Tree};
use super::{CANARY, Chance};

/// The output of an attempt.
const PRINTED: &str = "what the agent printed\n";

/// Largest size that is read of a file.
const MOST: u64 = 1 << 20;

/// Runs some operations of unstuck in a project.
pub(crate) fn work(tree: &Tree, outside: &Path, chance: &mut Chance) {
    for _ in 0..3 {
        match chance.below(24) {
            0..8 => run_files(tree),
            8..11 => included(tree, chance),
            11..14 => configured(tree),
            14..17 => answered(tree),
            17..22 => handled(tree, chance),
            22 if chance.below(8) == 0 => redirected(tree, outside, chance),
            22 => drop(fingerprint(&tree.project, &tree.state)),
            _ if chance.below(25) == 0 => snapshots(tree, chance),
            _ => {}
        }
    }
}

#[track_caller]
fn expect_own(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    assert!(!text.contains(CANARY), "this was read: {text}");
}

fn events(tree: &Tree) -> Vec<EventRecord> {
    let run = RunId::new(RUN);
    let spec = SessionSpec {
        session: run.session_id(1),
        cwd: tree.project.display().to_string(),
        command: vec!["true".to_owned()],
        agent: None,
        model: None,
        policy: default_template(),
        origins: std::collections::BTreeMap::new(),
        timeout_ms: None,
        idle_timeout_ms: None,
        options: serde_json::Value::Null,
        unrepeatable_reason: None,
        knowledge: "1".to_owned(),
    };
    let started = RunStarted {
        head: None,
        project: tree.project.display().to_string(),
        kind: RunKind::Command(Box::new(spec)),
    };
    let finished = RunFinished {
        outcome: RunOutcome::Failed,
        exit_code: 1,
        reason: "it failed".to_owned(),
        attempts: 1,
        retry_count: 0,
        recovery_level: None,
        cost_usd: None,
        duration_ms: 1,
    };
    let all = [Event::from(Box::new(started)), Event::from(finished)];
    let recorded = |(event, seq): (Event, u64)| EventRecord {
        version: VERSION,
        run: run.clone(),
        seq,
        at: Timestamp::from_seconds(1_794_744_000),
        event,
    };
    all.into_iter().zip(1..).map(recorded).collect()
}

/// Writes the files of a run, and a proposal in one attempt. The authoritative files are written whatever is in the
/// project.
fn run_files(tree: &Tree) {
    let redactor = Redactor::new([]);
    let run = RunId::new(RUN);
    let events = events(tree);
    let (fold, with_states) = RunProjection::from_events_with_states(&events).unwrap();
    let mut folder = RunDir::open(&tree.state, &tree.project, &run).unwrap();
    folder
        .record_events(&with_states, &fold, &redactor)
        .unwrap();
    let attempt = folder.open_attempt_files(None, 1, 1).unwrap();
    let mut log = attempt.open_log("stdout.log", &redactor);
    log.push(PRINTED.as_bytes());
    log.finish();
    attempt.write("prompt.md", "do it");
    let part = RoleInstance {
        role: "a".to_owned(),
        iteration: 1,
        instance: 1,
    };
    folder
        .write_role_file(&part, 1, "output.md", PRINTED)
        .unwrap();
    if let Some((proposals, _)) = folder.open_proposal_dir(None, 1, 1) {
        let read = ProposalFile::read_in(&proposals, Path::new("recovery.json"));
        if let Ok(Some(document)) = read {
            expect_own(&document.bytes);
        }
    }
    let own = folder.path();
    for (name, expected) in [
        ("attempt-1/stdout.log", PRINTED),
        ("roles/a/output.md", PRINTED),
    ] {
        assert_eq!(fs::read_to_string(own.join(name)).unwrap(), expected);
    }
    assert!(own.join("state.json").is_file() && own.join("checkpoint.json").is_file());
}

fn included(tree: &Tree, chance: &mut Chance) {
    let files = ProjectPromptFileProvider::new(&tree.project);
    for _ in 0..4 {
        if let Ok(text) = files.read(chance.one::<&str>(NAMES)) {
            expect_own(text.as_bytes());
        }
    }
}

/// Loads the configuration as at the start of a run, and as during one.
fn configured(tree: &Tree) {
    for accepted in [None, Some(ProjectSettingsSnapshot::default())] {
        configured_with(tree, accepted);
    }
}

fn configured_with(tree: &Tree, accepted: Option<ProjectSettingsSnapshot>) {
    let layers = ConfigLayers {
        work_dir: Some(tree.project.clone()),
        accepted,
        ..ConfigLayers::default()
    };
    let ConfigLoadResult { config, problems } = match ConfigLoadResult::read(&layers) {
        Ok(loaded) => loaded,
        Err(error) => return expect_own(format!("{error:?}").as_bytes()),
    };
    expect_own(format!("{problems:?}").as_bytes());
    expect_own(format!("{:?}", config.unapproved_changes()).as_bytes());
    expect_own(format!("{:?}", config.written_settings()).as_bytes());
    let problems = config.check();
    expect_own(format!("{problems:?}").as_bytes());
    for role in config.roles() {
        if let Ok(Some(text)) = config.prompt_template(role) {
            expect_own(text.as_bytes());
        }
    }
}

fn answered(tree: &Tree) {
    // Resolved before anything runs, as in a real run.
    let target = tree.project.join("answer.md");
    let _ = write_atomically(&target, PRINTED.as_bytes());
    let _ = resolve_target(&target);
}

/// Runs every operation of a handle, at any name, resolved by the kernel and step by step.
fn handled(tree: &Tree, chance: &mut Chance) {
    let resolver = *chance.one(&[PathResolutionMethod::Kernel, PathResolutionMethod::Stepwise]);
    let project = DirHandle::open(&tree.project)
        .unwrap()
        .with_resolver(resolver);
    for _ in 0..6 {
        let (name, other) = (Path::new(*chance.one(NAMES)), Path::new(*chance.one(NAMES)));
        match chance.below(14) {
            0 => drop(project.read(name, MOST).map(|bytes| expect_own(&bytes))),
            1 => drop(
                project
                    .read_within(name, MOST)
                    .map(|bytes| expect_own(&bytes)),
            ),
            2 => drop(
                project
                    .read_tail(name, 100)
                    .map(|(bytes, _)| expect_own(&bytes)),
            ),
            3 => drop(project.replace(name, b"ours\n")),
            4 => {
                let data = project.metadata(name);
                drop(data.map(|_| project.permission_bits(name)));
            }
            5 => {
                if let Ok(mut file) = project.create(name) {
                    file.write_all(b"ours\n").unwrap();
                }
            }
            6 => drop(project.create_dirs(name)),
            7 => drop(project.create_new(name, b"ours\n")),
            8 => drop(project.remove_file(name)),
            9 => drop(project.remove_tree(name)),
            10 => drop(project.link(name, other)),
            11 => drop(project.rename(name, other)),
            12 => {
                let names = project.entries(name).unwrap_or_default();
                expect_own(format!("{names:?}").as_bytes());
            }
            _ => {
                if let Ok(file) = project.open_file(name) {
                    let mut bytes = Vec::new();
                    file.take(MOST).read_to_end(&mut bytes).unwrap();
                    expect_own(&bytes);
                }
            }
        }
    }
}

/// Opens a project whose `.git` file leads to the owner's own repository.
fn redirected(tree: &Tree, outside: &Path, chance: &mut Chance) {
    let (git, own) = (
        tree.project.join(".git"),
        chance.one(&[&tree.project, &tree.place]).join("evil"),
    );
    let _ = fs::remove_dir_all(&git);
    let _ = fs::remove_dir_all(&own);
    fs::create_dir(&own).unwrap();
    let common = outside.join("repository/.git");
    fs::write(own.join("gitdir"), format!("{}\n", git.display())).unwrap();
    fs::write(own.join("commondir"), format!("{}\n", common.display())).unwrap();
    fs::write(own.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    fs::write(&git, format!("gitdir: {}\n", own.display())).unwrap();
    let opened = SnapshotStore::open(&tree.project, &RunId::new(RUN), &tree.state);
    assert!(opened.is_err(), "it leads to {}", common.display());
    assert!(CommittedTree::at_head(&tree.project).is_err());
    fs::remove_file(&git).unwrap();
}

/// Takes a snapshot of the work tree and restores it.
fn snapshots(tree: &Tree, chance: &mut Chance) {
    crate::worktree::git(&tree.project, &["init", "-q", "-b", "main"]);
    let Ok(snapshots) = SnapshotStore::open(&tree.project, &RunId::new(RUN), &tree.state) else {
        return;
    };
    let before = snapshots.create("before");
    let project = DirHandle::open(&tree.project).unwrap();
    for _ in 0..4 {
        let name = Path::new(*chance.one(NAMES));
        let _ = project.replace(name, b"changed\n");
        let _ = project.remove_tree(Path::new(*chance.one(NAMES)));
    }
    if let Ok(before) = before {
        let _ = snapshots.restore(&before);
    }
    let args = ["cat-file", "--batch-all-objects", "--batch", "--unordered"];
    expect_own(crate::worktree::git(&tree.project, &args).as_bytes());
}

/// Checks that no outside contents were copied to the project or to the state directory.
pub(crate) fn expect_nothing_leaked(tree: &Tree) {
    for folder in [&tree.project, &tree.state] {
        if folder.exists() {
            expect_own_files(folder);
        }
    }
}

fn expect_own_files(folder: &Path) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let data = entry.metadata().unwrap();
        if data.is_dir() {
            expect_own_files(&entry.path());
        } else if data.is_file() && data.nlink() == 1 && data.len() < MOST {
            expect_own(&fs::read(entry.path()).unwrap());
        }
    }
}
