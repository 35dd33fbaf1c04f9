//! Tests of previews: commands without approval, run on overlays in the complete sandbox.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use tempfile::TempDir;
use tokio::sync::watch;
use unstuck_core::Timestamp;
use unstuck_core::command_policy::ApprovedCommand;
use unstuck_core::redact::Redactor;
use unstuck_repair::environment::RepairEnvironmentVariables;
use unstuck_repair::preview::{Preview, PreviewError, PreviewLimits, PreviewReport, PreviewStore};
use unstuck_repair::project_dir::ProjectRoot;
use unstuck_repair::sandbox::{NetworkAccess, SandboxMode};
use unstuck_run::process::AttemptStopRequest;
use unstuck_run::repair_execution::{
    PreviewJob, PreviewJobError, RepairError, RepairExecutor, RepairJob,
};

use crate::support;

/// A project, a home directory and a state directory.
struct Place {
    folder: TempDir,
    bounds: PreviewLimits,
    network: NetworkAccess,
    timeout: Duration,
}

impl Place {
    fn new() -> Self {
        let place = Self {
            folder: tempfile::tempdir().unwrap(),
            bounds: PreviewLimits::default(),
            network: NetworkAccess::Off,
            timeout: Duration::from_secs(60),
        };
        for name in ["project/sub", "home/.npm/_cacache", "state", "tmp"] {
            fs::create_dir_all(place.path(name)).unwrap();
        }
        fs::write(place.path("project/file"), "old\n").unwrap();
        fs::write(place.path("home/.npm/_cacache/entry"), "cached\n").unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn previews(&self) -> PreviewStore {
        PreviewStore::in_state_dir(&self.path("state"))
    }

    fn environment(&self) -> RepairEnvironmentVariables {
        let owner = [
            ("PATH", "/usr/bin:/bin".into()),
            ("HOME", self.path("home").into_os_string()),
        ];
        let owner = owner.map(|(name, value): (&str, OsString)| (name.into(), value));
        RepairEnvironmentVariables::from_owner(owner, &self.path("project"), &[])
    }

    fn executor(&self) -> RepairExecutor {
        let (state, temporary) = (self.path("state"), self.path("tmp"));
        RepairExecutor::start(&support::program(), &state, &temporary, Redactor::new([])).unwrap()
    }

    async fn tried(&self, command: &str) -> Result<Preview, PreviewJobError> {
        self.tried_in(command, None).await
    }

    async fn tried_in(
        &self,
        command: &str,
        folder: Option<&str>,
    ) -> Result<Preview, PreviewJobError> {
        let root = ProjectRoot::open(&self.path("project")).unwrap();
        let trial = PreviewJob {
            command,
            root: &root,
            folder: &root.open_working_dir(folder).unwrap(),
            environment: self.environment(),
            network: self.network,
            hidden_paths: Vec::new(),
            timeout: self.timeout,
            bounds: self.bounds,
        };
        let (_keep, stop) = watch::channel(AttemptStopRequest::Continue);
        let now = Timestamp::from_seconds(1_794_777_000);
        let mut executor = self.executor();
        executor.preview(&trial, &self.previews(), now, stop).await
    }
}

fn rows(report: &PreviewReport) -> Vec<String> {
    let rows = report.rows.iter();
    rows.map(|row| format!("{} {}", row.change.name(), row.path))
        .collect()
}

#[tokio::test]
async fn preview_leaves_the_project_unchanged_until_it_is_applied() {
    let place = Place::new();
    let line = "echo new > file; echo more > sub/more; echo said; echo wrong >&2; exit 3";
    let preview = place.tried(line).await.unwrap();
    let report = preview.report();
    assert_eq!(rows(report), ["change file", "add sub/more"]);
    assert_eq!(
        (report.execution.exit_code, report.execution.network),
        (3, false)
    );
    assert_eq!(report.execution.output, ["said", "wrong"]);
    assert_eq!(place.read("project/file"), "old\n");
    assert!(!place.path("project/sub/more").exists());
    preview.apply().unwrap();
    assert_eq!(place.read("project/file"), "new\n");
    assert_eq!(place.read("project/sub/more"), "more\n");
}

#[tokio::test]
async fn command_runs_in_the_named_directory() {
    let place = Place::new();
    let preview = place.tried_in("touch here", Some("sub")).await.unwrap();
    assert_eq!(rows(preview.report()), ["add sub/here"]);
    assert_eq!(preview.report().execution.working_dir, "sub");
}

#[tokio::test]
async fn nothing_outside_of_the_project_is_written() {
    let place = Place::new();
    let preview = place
        .tried("echo evil > ~/.npm/_cacache/entry && echo evil > ~/.npm/_cacache/other && cat ~/.npm/_cacache/entry")
        .await
        .unwrap();
    let report = preview.report();
    // It sees what it wrote, as it would in a real run.
    assert_eq!(
        (report.execution.exit_code, &report.execution.output[..]),
        (0, &["evil".to_owned()][..])
    );
    assert!(report.is_empty());
    assert_eq!(place.read("home/.npm/_cacache/entry"), "cached\n");
    assert!(!place.path("home/.npm/_cacache/other").exists());
    assert!(
        !report.execution.discarded_writes.is_empty(),
        "it is told that something was thrown away"
    );
    let outside = place.path("outside");
    let line = format!("echo evil > {}", outside.display());
    place.tried(&line).await.unwrap();
    assert!(!outside.exists());
}

#[tokio::test]
async fn previews_are_hidden_from_the_command() {
    let place = Place::new();
    let kept = place.tried("echo one > file").await.unwrap();
    let id = kept.report().id.clone();
    drop(kept);
    let state = place.path("state").display().to_string();
    let line = format!("ls -A {state}; echo evil > {state}/previews/{id}/upper/file");
    let second = place.tried(&line).await.unwrap();
    assert_ne!(second.report().execution.exit_code, 0);
    place.previews().find(&id).unwrap().apply().unwrap();
    assert_eq!(place.read("project/file"), "one\n");
}

#[tokio::test]
async fn network_is_available_only_on_request() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let line = format!("bash -c 'exec 3<>/dev/tcp/127.0.0.1/{port}'");
    let mut place = Place::new();
    let off = place.tried(&line).await.unwrap();
    assert_ne!(off.report().execution.exit_code, 0);
    place.network = NetworkAccess::On;
    let on = place.tried(&line).await.unwrap();
    assert_eq!(
        (
            on.report().execution.exit_code,
            on.report().execution.network
        ),
        (0, true)
    );
}

#[tokio::test]
async fn changes_that_affect_later_commands_are_not_applied() {
    let place = Place::new();
    fs::create_dir(place.path("project/.git")).unwrap();
    let line =
        "echo '[recovery]' > unstuck.toml; mkdir -p .git/hooks; touch .git/hooks/pre-commit x";
    let preview = place.tried(line).await.unwrap();
    assert_eq!(preview.report().protected, [".git/hooks", "unstuck.toml"]);
    assert_eq!(rows(preview.report()), ["add x"]);
    preview.apply().unwrap();
    assert!(!place.path("project/unstuck.toml").exists());
    assert!(!place.path("project/.git/hooks").exists());
}

/// Files that git's configuration names are left out, and so are links on the way there; their neighbors are not.
#[tokio::test]
async fn changes_of_hooks_in_the_project_are_not_applied() {
    let place = Place::new();
    for name in [".git", "kept/hooks", "node_modules/.bin", "a"] {
        fs::create_dir_all(place.path("project").join(name)).unwrap();
    }
    for name in ["kept/hooks/pre-commit", "node_modules/.bin/merge"] {
        fs::write(place.path("project").join(name), "mine").unwrap();
    }
    let config = "[core]\n\thooksPath = later/hooks\n[include]\n\tpath = ../one\n\tpath = ../two\n\
                  [merge \"x\"]\n\tdriver = node_modules/.bin/merge %A\n";
    fs::write(place.path("project/.git/config"), config).unwrap();
    for (name, hooks) in [("one", "kept/hooks"), ("two", "a/b/c/hooks")] {
        let text = format!("[core]\n\thooksPath = {hooks}\n");
        fs::write(place.path("project").join(name), text).unwrap();
    }
    let line = "mkdir -p evil/hooks; echo evil > evil/hooks/pre-commit; ln -s evil later; mkdir a/b; ln -s ../../evil a/b/c; \
                echo evil > kept/hooks/pre-commit; mv kept moved; echo evil > one; echo evil > node_modules/.bin/merge; echo x > x";
    let preview = place.tried(line).await.unwrap();
    assert_eq!(preview.report().protected, ["a/b", "later"]);
    assert_eq!(rows(preview.report()), ["add evil/", "add x"]);

    let line = "rm -rf node_modules && mkdir node_modules && cp x y node_modules";
    fs::write(place.path("project/x"), "").unwrap();
    fs::write(place.path("project/y"), "").unwrap();
    let preview = place.tried(line).await.unwrap();
    assert_eq!(preview.report().protected, [""; 0]);
    let expected = [
        "delete node_modules/.bin/",
        "add node_modules/x",
        "add node_modules/y",
    ];
    assert_eq!(rows(preview.report()), expected);
}

#[tokio::test]
async fn concurrent_change_of_the_owners_configuration_is_kept() {
    let place = Place::new();
    let (project, written) = (place.path("project"), place.path("project/unstuck.json"));
    let line = "touch started-it; while ! test -e ready; do sleep 0.01; done; echo done";
    let owner = async {
        // The command sees new files below, so they are used as a signal.
        while fs::read_dir(place.path("state/previews")).is_err() {
            tokio::task::yield_now().await;
        }
        fs::write(&written, "{}").unwrap();
        fs::write(project.join("ready"), "").unwrap();
    };
    let (preview, ()) = tokio::join!(place.tried(line), owner);
    preview.unwrap();
    assert_eq!(fs::read_to_string(&written).unwrap(), "{}");
}

#[tokio::test]
async fn endless_writes_are_stopped() {
    let mut place = Place::new();
    place.bounds.bytes = 20_000_000;
    let endless = "while :; do head -c 1000000 /dev/zero >> large; done";
    let refused = place.tried(endless).await;
    let too_much = matches!(
        refused,
        Err(PreviewJobError::Preview(PreviewError::TooMuch(_)))
    );
    assert!(too_much, "{refused:?}");
    let left = fs::read_dir(place.path("state/previews")).unwrap();
    assert_eq!(left.count(), 0);
}

#[tokio::test]
async fn timed_out_preview_shows_the_changes_so_far() {
    let mut place = Place::new();
    place.timeout = Duration::from_millis(1500);
    let preview = place.tried("echo new > file; sleep 60").await.unwrap();
    assert!(preview.report().execution.timed_out);
    assert_eq!(rows(preview.report()), ["change file"]);
}

#[tokio::test]
async fn invalid_proposal_cannot_be_previewed() {
    let place = Place::new();
    for command in ["", "  ", "echo \u{1b}[2J", "echo a\u{202e}b"] {
        let refused = place.tried(command).await;
        assert!(
            matches!(refused, Err(PreviewJobError::Command(_))),
            "{command:?}"
        );
    }
}

#[tokio::test]
async fn unapproved_command_runs_only_in_a_preview() {
    let place = Place::new();
    let root = ProjectRoot::open(&place.path("project")).unwrap();
    let folder = root.open_working_dir(None).unwrap();
    let unseen = ApprovedCommand::for_preview("echo evil > file").unwrap();
    for demand in [
        SandboxMode::Required,
        SandboxMode::BestEffort,
        SandboxMode::Off,
    ] {
        let mut job = RepairJob::new(&unseen, &root, &folder, place.environment());
        job.profile.mode = demand;
        let (_keep, stop) = watch::channel(AttemptStopRequest::Continue);
        let refused = place.executor().run(&job, stop).await;
        assert!(
            matches!(refused, Err(RepairError::Refused { .. })),
            "{demand:?}"
        );
    }
    assert_eq!(place.read("project/file"), "old\n");
}

#[tokio::test]
async fn without_a_sandbox_there_is_no_preview() {
    let place = Place::new();
    let root = ProjectRoot::open(&place.path("project")).unwrap();
    let folder = root.open_working_dir(None).unwrap();
    let approved = ApprovedCommand::by_person("echo evil > file").unwrap();
    let now = Timestamp::from_seconds(1_794_777_000);
    let draft = place
        .previews()
        .prepare(root.path(), place.bounds, now)
        .unwrap();
    let mut job = RepairJob::new(&approved, &root, &folder, place.environment());
    job.profile.mode = SandboxMode::Off;
    job.profile.overlay = Some(unstuck_repair::sandbox::SandboxOverlayDirs {
        lower: draft.project().to_owned(),
        upper: draft.upper(),
        work: draft.work(),
    });
    let (_keep, stop) = watch::channel(AttemptStopRequest::Continue);
    let refused = place.executor().run(&job, stop).await;
    assert!(
        matches!(refused, Err(RepairError::SandboxSetup { .. })),
        "{refused:?}"
    );
    assert_eq!(place.read("project/file"), "old\n");
}

/// Tests that only root can run.
mod root {
    use super::*;

    #[tokio::test]
    async fn preview_of_another_users_project_is_refused() {
        let place = Place::new();
        let (project, nobody) = (place.path("project"), Some(65534));
        std::os::unix::fs::chown(project, nobody, nobody).unwrap();
        let refused = place.tried("touch x").await;
        assert!(
            matches!(refused, Err(PreviewJobError::OtherOwner(65534))),
            "{refused:?}"
        );
    }
}
