//! A project, a home directory and an outside directory, with an executor that repairs the project.

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;
use tokio::sync::watch;
use unstuck_core::command_policy::ApprovedCommand;
use unstuck_core::redact::Redactor;
use unstuck_repair::environment::RepairEnvironmentVariables;
use unstuck_repair::project_dir::{ProjectRoot, RepairWorkingDir};
use unstuck_repair::sandbox::SandboxProfile;
use unstuck_repair::watched_files::WatchedFile;
use unstuck_run::process::AttemptStopRequest;
use unstuck_run::repair_execution::{
    RepairError, RepairExecutionResult, RepairExecutor, RepairJob,
};

use crate::support::program;

/// The directories of a test. They are outside of the temporary directory, where everything else would be hidden
/// anyway.
pub(crate) struct Place {
    path: PathBuf,
    _folder: Option<TempDir>,
    pub(crate) keep: Vec<String>,
    pub(crate) timeout: Duration,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self::below(Path::new(env!("CARGO_TARGET_TMPDIR")))
    }

    pub(crate) fn below(parent: &Path) -> Self {
        // An ordinary user has no write access to the build directory of the tests.
        let parent = match tempfile::tempdir_in(parent) {
            Ok(_) => parent,
            Err(_) => Path::new("/var/tmp"),
        };
        let folder = tempfile::tempdir_in(parent).unwrap();
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(folder.path(), open).unwrap();
        for name in ["project", "home", "outside", "state"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        let path = folder.path().canonicalize().unwrap();
        Self {
            _folder: Some(folder),
            ..Self::at(path)
        }
    }

    /// Returns the place at an existing directory.
    pub(crate) fn at(path: PathBuf) -> Self {
        Self {
            path,
            _folder: None,
            keep: Vec::new(),
            timeout: Duration::from_secs(60),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a file and its parent directories.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn make_executable(&self, name: &str) {
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(self.path(name), mode).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.path(name)).ok()
    }

    pub(crate) fn root(&self) -> ProjectRoot {
        ProjectRoot::open(&self.path("project")).unwrap()
    }

    pub(crate) fn environment(&self) -> RepairEnvironmentVariables {
        let home = self.path("home").into_os_string();
        let is_ours = |name: &OsString| name == "HOME" || name == "CARGO_HOME";
        let owner = std::env::vars_os().filter(|(name, _)| !is_ours(name));
        let owner = owner.chain([(OsString::from("HOME"), home)]);
        RepairEnvironmentVariables::from_owner(owner, &self.path("project"), &self.keep)
    }

    pub(crate) fn executor(&self) -> RepairExecutor {
        let state = self.path("state");
        let redactor = Redactor::new(["s3cret-value".to_owned()]);
        RepairExecutor::start(&program(), &state, &std::env::temp_dir(), redactor).unwrap()
    }

    /// Runs a line with the usual profile.
    pub(crate) async fn run(&self, line: &str) -> RepairExecutionResult {
        self.run_as(line, |_| {}).await.unwrap()
    }

    /// Runs a line with a changed profile.
    pub(crate) async fn run_as(
        &self,
        line: &str,
        change: impl FnOnce(&mut SandboxProfile),
    ) -> Result<RepairExecutionResult, RepairError> {
        let root = self.root();
        let folder = root.open_working_dir(None).unwrap();
        self.run_in(line, &root, &folder, change).await
    }

    pub(crate) async fn run_in(
        &self,
        line: &str,
        root: &ProjectRoot,
        folder: &RepairWorkingDir,
        change: impl FnOnce(&mut SandboxProfile),
    ) -> Result<RepairExecutionResult, RepairError> {
        let (_keep, stop) = watch::channel(AttemptStopRequest::Continue);
        let approved = ApprovedCommand::by_person(line).unwrap();
        let mut job = RepairJob::new(&approved, root, folder, self.environment());
        job.timeout = self.timeout;
        change(&mut job.profile);
        self.executor().run(&job, stop).await
    }
}

impl Place {
    /// Runs a line with watched files that were checked before, with a changed profile.
    pub(crate) async fn run_checked(
        &self,
        line: &str,
        checked: Vec<WatchedFile>,
        change: impl FnOnce(&mut SandboxProfile),
    ) -> Result<RepairExecutionResult, RepairError> {
        let (_keep, stop) = watch::channel(AttemptStopRequest::Continue);
        let approved = ApprovedCommand::by_person(line).unwrap();
        let root = self.root();
        let folder = root.open_working_dir(None).unwrap();
        let mut job = RepairJob::new(&approved, &root, &folder, self.environment());
        job.timeout = self.timeout;
        job.watched_files = checked;
        change(&mut job.profile);
        self.executor().run(&job, stop).await
    }

    /// Runs git in the project as its owner would, in a repository with one commit.
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        #[expect(
            clippy::disallowed_methods,
            reason = "the owner of the project runs git"
        )]
        let output = std::process::Command::new("git")
            .args(arguments)
            .current_dir(self.path("project"))
            .env("HOME", self.path("home"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .envs([
                ("GIT_AUTHOR_NAME", "me"),
                ("GIT_AUTHOR_EMAIL", "me@example.com"),
            ])
            .envs([
                ("GIT_COMMITTER_NAME", "me"),
                ("GIT_COMMITTER_EMAIL", "me@example.com"),
            ])
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs a line in the project as its owner would.
    pub(crate) fn shell(&self, line: &str) {
        #[expect(clippy::disallowed_methods, reason = "the owner sets the project up")]
        let mut command = std::process::Command::new("sh");
        command.args(["-c", line]).env("HOME", self.path("home"));
        let status = command.current_dir(self.path("project")).status();
        assert!(status.unwrap().success(), "{line}");
    }

    pub(crate) fn repository(&self) {
        self.git(&["init", "-q", "-b", "main"]);
        self.write("project/file", "text\n");
        self.write("home/.gitconfig", "[user]\n\tname = me\n\temail = me@example.com\n[protocol \"file\"]\n\tallow = always\n");
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "-m", "first"]);
    }

    pub(crate) fn planted(ran: &RepairExecutionResult) -> Vec<String> {
        let planted = ran.removed_injections.iter();
        planted.map(|path| path.display().to_string()).collect()
    }
}

pub(crate) fn is_root() -> bool {
    rustix::process::getuid().is_root()
}
