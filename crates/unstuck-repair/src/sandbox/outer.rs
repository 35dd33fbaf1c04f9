//! The outer process of a sandbox: it leaves the namespaces of the machine, starts the inner process, outlives it, and
//! clears up what is left. Nothing of the command ever runs in it.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, Signal, WaitOptions};

use super::failure::{Failure, While};
use super::git::GitEffects;
use super::planted::Before;
use super::profile::Demand;
use super::wakes::Wakes;
use super::wire::{self, Order, Report};
use super::{INIT, SET_UP_FAILED, discarded, link, scratch, system};

/// Is the whole of `unstuck __sandbox`.
pub(super) fn main() -> i32 {
    let Ok(link) = link::from_stdin() else {
        return SET_UP_FAILED;
    };
    match run(&link) {
        Ok(code) => code,
        Err(failure) => {
            // If nobody listens, our exit code has to be enough.
            let _ = wire::report(&link, &failure.report());
            SET_UP_FAILED
        }
    }
}

fn run(link: &UnixStream) -> Result<i32, Failure> {
    let (mut order, project, folder) = wire::receive(link).to("read the order")?;
    link::die_with_parent(link, Signal::TERM).to("tie our life to unstuck's")?;
    system::inherit_nothing().to("close what is open")?;
    let mut wakes = Wakes::listen().to("listen to signals")?;
    if order.profile.root.parent().is_none() {
        return Err(Failure::final_one(
            "confine a command to the project",
            "the project is the whole file system",
        ));
    }
    let home = discarded::look(&order);
    let entered = leave(&mut order)?;
    let copies = system::Copies::prepare(&mut order, entered, &project);
    let copies = copies.to("prepare private copies")?;
    // Whatever appears on an overlay is not in the project.
    let before = (order.profile.overlay.is_none()).then(|| {
        let git = order.git.clone();
        Before::look(&project, order.kept(), git, copies.is_git_private())
    });
    let code = {
        let cgroup = bound(&mut order);
        // Whoever becomes another user is not tied to the parent any more.
        link::die_with_parent(link, Signal::TERM).to("tie our life to unstuck's")?;
        let inner = Inner::start(entered, cgroup.as_ref())?;
        inner.order(&order, &project, &folder)?;
        inner.watch(link, &mut wakes)
    };
    let effects = GitEffects::of(&order.steps);
    let is_private = copies.is_git_private();
    let mut merged = copies.merge(&order, effects);
    let restored = before.map(|before| before.restore(&project, effects, is_private));
    merged.planted.extend(restored.into_iter().flatten());
    let discarded = home.map(|home| home.list()).unwrap_or_default();
    let is_added = |path: &PathBuf| {
        merged
            .added
            .iter()
            .any(|added| added.starts_with(path) || path.starts_with(added))
    };
    let cleared = Report::Cleared {
        discarded: discarded
            .into_iter()
            .filter(|path| !is_added(path))
            .collect(),
        planted: merged.planted,
        overtaken: merged.overtaken,
    };
    if wire::report(link, &cleared).is_err() {
        // Nobody else will. What cannot be removed is in a folder for temporary files, where the system clears up.
        let _ = scratch::remove(&order.surroundings.scratch);
    }
    Ok(code)
}

/// Leaves what can be left; what stands in the way is noted in the order.
fn leave(order: &mut Order) -> Result<system::Entered, Failure> {
    let profile = &order.profile;
    if let Some(user) = order.run_as {
        system::become_user(user).to("become the user that the project belongs to")?;
    }
    let wants = profile.demand != Demand::Off && order.obstacle.is_none();
    Ok(match wants.then(|| system::enter(profile)) {
        Some(Ok(entered)) => entered,
        Some(Err(error)) => {
            order.obstacle = Some(error.to_string());
            system::Entered::NOTHING
        }
        None => system::Entered::NOTHING,
    })
}

/// A bound on processes for root, whom the usual one does not bind; where it is not possible, that is noted.
fn bound(order: &mut Order) -> Option<system::Cgroup> {
    if !rustix::process::getuid().is_root() || order.profile.demand == Demand::Off {
        return None;
    }
    let cgroup = system::Cgroup::make(order.profile.bounds.processes);
    if cgroup.is_none() {
        order.unbounded = true;
    }
    cgroup
}

/// The inner process while it lives.
struct Inner {
    pid: Pid,
    reports: UnixStream,
}

impl Inner {
    /// Starts it; it does nothing before it has its order.
    fn start(entered: system::Entered, cgroup: Option<&system::Cgroup>) -> Result<Self, Failure> {
        let (reports, theirs) = UnixStream::pair().to("make a connection")?;
        let input = Stdio::from(OwnedFd::from(theirs));
        let child = command(link::own_program().as_os_str())
            .arg(INIT)
            .args(entered.arguments())
            .stdin(input)
            .spawn()
            .to("start the inner process")?;
        let pid = Pid::from_child(&child);
        if let Some(cgroup) = cgroup {
            cgroup.take(pid).to("bound the number of processes")?;
        }
        Ok(Self { pid, reports })
    }

    fn order(&self, order: &Order, project: &OwnedFd, folder: &OwnedFd) -> Result<(), Failure> {
        wire::send(&self.reports, order, project, folder).to("pass the order on")?;
        let nonblocking = self.reports.set_nonblocking(true);
        nonblocking.to("watch the inner process")
    }

    /// Passes reports on until the inner process has ended; its exit code.
    fn watch(&self, link: &UnixStream, wakes: &mut Wakes) -> i32 {
        let parent = rustix::process::getppid();
        let mut is_open = true;
        let mut is_orphan = false;
        loop {
            is_orphan = is_orphan || self.wait(link, wakes, is_open);
            wakes.clear();
            is_open = is_open && self.pass_on(link);
            is_orphan = is_orphan || rustix::process::getppid() != parent;
            if is_orphan {
                self.signal(Signal::KILL);
            } else if wakes.take_asked() {
                self.signal(Signal::TERM);
            }
            if let Some(code) = self.ended() {
                self.pass_on(link);
                return code;
            }
        }
    }

    /// Sleeps until something happens; whether nobody is left who waits for the command.
    fn wait(&self, link: &UnixStream, wakes: &Wakes, is_open: bool) -> bool {
        let mut events = vec![
            PollFd::new(wakes.stream(), PollFlags::IN),
            PollFd::new(link, PollFlags::HUP),
        ];
        if is_open {
            events.push(PollFd::new(&self.reports, PollFlags::IN));
        }
        // Interrupted by a signal: as good as a wake-up.
        let _ = rustix::event::poll(&mut events, None);
        events[1].revents().contains(PollFlags::HUP)
    }

    fn signal(&self, signal: Signal) {
        // It has just ended where that is not possible.
        let _ = rustix::process::kill_process(self.pid, signal);
    }

    fn ended(&self) -> Option<i32> {
        let waited = rustix::process::waitpid(Some(self.pid), WaitOptions::NOHANG);
        let (_, status) = waited.ok().flatten()?;
        let signal = status.terminating_signal().map(|signal| 128 + signal);
        status.exit_status().or(signal)
    }

    /// Passes on what has come; whether more may come.
    fn pass_on(&self, link: &UnixStream) -> bool {
        let mut bytes = [0; 4096];
        loop {
            match (&self.reports).read(&mut bytes) {
                Ok(0) => return false,
                // If nobody listens any more, the end is near anyway.
                Ok(got) => drop(io::Write::write_all(&mut &*link, &bytes[..got])),
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
            }
        }
    }
}

fn command(program: &OsStr) -> Command {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is the place that starts the inner process of a sandbox"
    )]
    Command::new(program)
}
