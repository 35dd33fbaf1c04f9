//! The outer process of a sandbox: leaves the machine's namespaces, starts the init process, outlives it, and cleans
//! up. No part of the command ever runs in it.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, Signal, WaitOptions};

use super::config_injection::ProtectedFilesRecord;
use super::git_dirs::AllowedGitDirChanges;
use super::sandbox_profile::SandboxMode;
use super::setup_failure::{SandboxIoContext, SetupFailure};
use super::signals::SignalWakeup;
use super::wire::{self, SandboxLifecycleEvent, SandboxRequest};
use super::{EXIT_SETUP_FAILED, INIT_ARG, discarded_writes, parent_socket, scratch_dir, system};

/// Runs `unstuck __sandbox`.
pub(super) fn main() -> i32 {
    let Ok(link) = parent_socket::from_stdin() else {
        return EXIT_SETUP_FAILED;
    };
    match run(&link) {
        Ok(code) => code,
        Err(failure) => {
            // If nobody reads the message, the exit code has to be enough.
            let _ = wire::send_event(&link, &failure.to_report());
            EXIT_SETUP_FAILED
        }
    }
}

fn run(link: &UnixStream) -> Result<i32, SetupFailure> {
    let (mut order, project, folder) = wire::receive_request(link).context("read the request")?;
    parent_socket::die_with_parent(link, Signal::TERM).context("set the parent-death signal")?;
    system::close_descriptors_on_exec().context("close inherited file descriptors")?;
    let mut wakes = SignalWakeup::install().context("install signal handlers")?;
    if order.profile.root.parent().is_none() {
        return Err(SetupFailure::permanent(
            "confine a command to the project",
            "the project is the root directory",
        ));
    }
    let home = discarded_writes::open_discarded_writes(&order);
    let entered = enter_namespaces(&mut order)?;
    let copies = system::PrivateCopies::prepare(&mut order, entered, &project);
    let copies = copies.context("prepare private copies")?;
    // Whatever appears on an overlay is not in the project.
    let before = (order.profile.overlay.is_none()).then(|| {
        let git = order.git.clone();
        ProtectedFilesRecord::record(
            &project,
            order.protected_paths(),
            git,
            copies.is_git_private(),
        )
    });
    if let Some(reason) = before.as_ref().and_then(ProtectedFilesRecord::refusal) {
        return Err(SetupFailure::permanent("protect the project", reason));
    }
    let code = {
        let cgroup = limit_processes(&mut order);
        // Changing the user clears the parent-death signal.
        parent_socket::die_with_parent(link, Signal::TERM)
            .context("set the parent-death signal")?;
        let inner = InitProcess::start(entered, cgroup.as_ref())?;
        inner.send_request(&order, &project, &folder)?;
        inner.forward_until_exit(link, &mut wakes)
    };
    let effects = AllowedGitDirChanges::from_steps(&order.steps);
    let is_private = copies.is_git_private();
    let mut merged = copies.merge(&order, effects);
    let restored = before.map(|before| before.restore(&project, effects, is_private));
    merged
        .removed_injections
        .extend(restored.into_iter().flatten());
    let discarded = home.map(|home| home.list()).unwrap_or_default();
    let is_added = |path: &PathBuf| {
        merged
            .added
            .iter()
            .any(|added| added.starts_with(path) || path.starts_with(added))
    };
    let cleared = SandboxLifecycleEvent::Cleared {
        discarded_writes: discarded
            .into_iter()
            .filter(|path| !is_added(path))
            .collect(),
        removed_injections: merged.removed_injections,
        conflicting_git_changes: merged.conflicting_changes,
    };
    if wire::send_event(link, &cleared).is_err() {
        // Nothing else would remove it. Leftovers are in a temporary directory, which the system cleans up.
        let _ = scratch_dir::remove_dir(&order.host.scratch);
    }
    Ok(code)
}

/// Enters the available namespaces; obstacles are recorded in the request.
fn enter_namespaces(order: &mut SandboxRequest) -> Result<system::EnteredNamespaces, SetupFailure> {
    let profile = &order.profile;
    if let Some(user) = order.run_as {
        system::become_user(user).context("switch to the owner of the project")?;
    }
    let wants = profile.mode != SandboxMode::Off && order.namespace_obstacle.is_none();
    Ok(match wants.then(|| system::enter_namespaces(profile)) {
        Some(Ok(entered)) => entered,
        Some(Err(error)) => {
            order.namespace_obstacle = Some(error.to_string());
            system::EnteredNamespaces::NOTHING
        }
        None => system::EnteredNamespaces::NOTHING,
    })
}

/// Creates a process limit for root, whom the usual one does not bind; if impossible, that is recorded.
fn limit_processes(order: &mut SandboxRequest) -> Option<system::Cgroup> {
    if !rustix::process::getuid().is_root() || order.profile.mode == SandboxMode::Off {
        return None;
    }
    let cgroup = system::Cgroup::create(order.profile.limits.processes);
    if cgroup.is_none() {
        order.has_no_process_limit = true;
    }
    cgroup
}

/// The running init process.
struct InitProcess {
    pid: Pid,
    reports: UnixStream,
}

impl InitProcess {
    /// Starts the process; it does nothing before it has its request.
    fn start(
        entered: system::EnteredNamespaces,
        cgroup: Option<&system::Cgroup>,
    ) -> Result<Self, SetupFailure> {
        let (reports, theirs) = UnixStream::pair().context("create a socket pair")?;
        let input = Stdio::from(OwnedFd::from(theirs));
        let child = new_command(parent_socket::own_program().as_os_str())
            .arg(INIT_ARG)
            .args(entered.arguments())
            .stdin(input)
            .spawn()
            .context("start the sandbox init process")?;
        let pid = Pid::from_child(&child);
        if let Some(cgroup) = cgroup {
            cgroup
                .add_process(pid)
                .context("limit the number of processes")?;
        }
        Ok(Self { pid, reports })
    }

    fn send_request(
        &self,
        order: &SandboxRequest,
        project: &OwnedFd,
        folder: &OwnedFd,
    ) -> Result<(), SetupFailure> {
        wire::send_request(&self.reports, order, project, folder)
            .context("send the request to the sandbox init process")?;
        let nonblocking = self.reports.set_nonblocking(true);
        nonblocking.context("monitor the sandbox init process")
    }

    /// Forwards reports until the init process has ended, and returns its exit code.
    fn forward_until_exit(&self, link: &UnixStream, wakes: &mut SignalWakeup) -> i32 {
        let parent = rustix::process::getppid();
        let mut is_open = true;
        let mut is_orphan = false;
        loop {
            is_orphan = is_orphan || self.wait_for_event(link, wakes, is_open);
            wakes.drain();
            is_open = is_open && self.forward_reports(link);
            is_orphan = is_orphan || rustix::process::getppid() != parent;
            if is_orphan {
                self.signal(Signal::KILL);
            } else if wakes.take_end_request() {
                self.signal(Signal::TERM);
            }
            if let Some(code) = self.try_wait() {
                self.forward_reports(link);
                return code;
            }
        }
    }

    /// Sleeps until an event; returns true if nobody waits for the command any more.
    fn wait_for_event(&self, link: &UnixStream, wakes: &SignalWakeup, is_open: bool) -> bool {
        let mut events = vec![
            PollFd::new(wakes.stream(), PollFlags::IN),
            PollFd::new(link, PollFlags::HUP),
        ];
        if is_open {
            events.push(PollFd::new(&self.reports, PollFlags::IN));
        }
        // Interrupted by a signal: treated as a wake-up.
        let _ = rustix::event::poll(&mut events, None);
        events[1].revents().contains(PollFlags::HUP)
    }

    fn signal(&self, signal: Signal) {
        // The process may have just ended.
        let _ = rustix::process::kill_process(self.pid, signal);
    }

    fn try_wait(&self) -> Option<i32> {
        let waited = rustix::process::waitpid(Some(self.pid), WaitOptions::NOHANG);
        let (_, status) = waited.ok().flatten()?;
        let signal = status.terminating_signal().map(|signal| 128 + signal);
        status.exit_status().or(signal)
    }

    /// Forwards pending reports; returns true if more may come.
    fn forward_reports(&self, link: &UnixStream) -> bool {
        let mut bytes = [0; 4096];
        loop {
            match (&self.reports).read(&mut bytes) {
                Ok(0) => return false,
                // If nobody reads any more, the end is near anyway.
                Ok(got) => drop(io::Write::write_all(&mut &*link, &bytes[..got])),
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
            }
        }
    }
}

fn new_command(program: &OsStr) -> Command {
    #[expect(
        clippy::disallowed_methods,
        reason = "starts the init process of a sandbox"
    )]
    Command::new(program)
}
