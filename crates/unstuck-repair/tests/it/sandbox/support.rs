//! Runs commands in a sandbox without the rest of unstuck.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;
use unstuck_repair::sandbox::wire::{
    self, CommandExit, SandboxCommand, SandboxLifecycleEvent, SandboxRequest,
};
use unstuck_repair::sandbox::{
    ConfinementReport, ProjectRepositories, SANDBOX_ARG, SandboxProfile, ScratchDir, host_paths,
};

/// A project with a home directory beside it, in a temporary directory.
pub(crate) struct Place {
    pub(crate) folder: TempDir,
    pub(crate) profile: SandboxProfile,
    pub(crate) obstacle: Option<String>,
}

impl Place {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap();
        for name in ["project", "home", "outside"] {
            std::fs::create_dir(path.join(name)).unwrap();
        }
        let profile = SandboxProfile::strict(path.join("project"));
        Self {
            folder,
            profile,
            obstacle: None,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    /// Writes a file and creates its parent directories.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(crate) fn environment(&self) -> Vec<(OsString, OsString)> {
        let path = std::env::var_os("PATH").unwrap();
        vec![
            ("HOME".into(), self.path("home").into()),
            ("PATH".into(), path),
            ("LC_ALL".into(), "C".into()),
        ]
    }

    pub(crate) fn shell(&self, line: &str) -> Tried {
        self.run(SandboxCommand::Shell(line.to_owned()))
    }

    pub(crate) fn run(&self, steps: SandboxCommand) -> Tried {
        let scratch = ScratchDir::create(Path::new("/tmp"), None).unwrap();
        let environment = self.environment();
        let project = File::open(&self.profile.root).unwrap();
        let order = SandboxRequest {
            profile: self.profile.clone(),
            host: host_paths(&environment, scratch.path(), None),
            namespace_obstacle: self.obstacle.clone(),
            has_no_process_limit: false,
            run_as: None,
            folder: PathBuf::new(),
            steps,
            git: ProjectRepositories::find_with_references(&project, &self.profile.root, None),
            watched_files: Vec::new(),
            copies: Vec::new(),
        };
        let (ours, theirs) = UnixStream::pair().unwrap();
        #[expect(
            clippy::disallowed_methods,
            reason = "it is tried without anything around it"
        )]
        let child = Command::new(env!("CARGO_BIN_EXE_unstuck-sandbox"))
            .arg(SANDBOX_ARG)
            .env_clear()
            .envs(environment)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        wire::send_request(&ours, &order, &project, &project).unwrap();
        let output = child.wait_with_output().unwrap();
        let mut bytes = Vec::new();
        (&ours).read_to_end(&mut bytes).unwrap();
        let mut reports = Vec::new();
        while let Some(report) = wire::take_event(&mut bytes).unwrap() {
            reports.push(report);
        }
        Tried {
            reports,
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        }
    }
}

/// The result of a command.
#[derive(Debug)]
pub(crate) struct Tried {
    pub(crate) reports: Vec<SandboxLifecycleEvent>,
    pub(crate) stdout: String,
}

impl Tried {
    pub(crate) fn end(&self) -> Option<CommandExit> {
        self.reports.iter().find_map(|report| match report {
            SandboxLifecycleEvent::Ended { end, .. } => Some(*end),
            _ => None,
        })
    }

    pub(crate) fn effective(&self) -> Option<&ConfinementReport> {
        self.reports.iter().find_map(|report| match report {
            SandboxLifecycleEvent::Ready {
                confinement: effective,
                ..
            } => Some(effective),
            _ => None,
        })
    }
}
