//! The init process of a sandbox: confines itself irrevocably and then runs the command.
//!
//! In a PID namespace it is the first process, so that its end ends all others.

use std::ffi::OsString;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::process::Signal;

use super::confinement_report::ConfinementReport;
use super::sandbox_profile::{FileOwnerScope, ProcessAccess, SandboxMode};
use super::setup_failure::{SandboxIoContext, SetupFailure};
use super::signals::SignalWakeup;
use super::step_runner::PrivateDirs;
use super::wire::{self, CommandExit, SandboxLifecycleEvent, SandboxRequest};
use super::{
    EXIT_SETUP_FAILED, parent_socket, pre_start_file_check, program_lookup, scratch_dir,
    step_runner, system,
};

/// Program directories that only root can write to.
const SYSTEM_SEARCH_PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// Runs `unstuck __sandbox-init`.
pub(super) fn main(arguments: &[OsString]) -> i32 {
    let Ok(link) = parent_socket::from_stdin() else {
        return EXIT_SETUP_FAILED;
    };
    match run(&link, system::EnteredNamespaces::from_arguments(arguments)) {
        Ok(end) => end.code(),
        Err(failure) => {
            // If nobody reads the message, the exit code has to be enough.
            let _ = wire::send_event(&link, &failure.to_report());
            EXIT_SETUP_FAILED
        }
    }
}

fn run(link: &UnixStream, entered: system::EnteredNamespaces) -> Result<CommandExit, SetupFailure> {
    let (order, project, folder) = wire::receive_request(link).context("read the request")?;
    rustix::process::setsid().context("detach from the terminal")?;
    parent_socket::die_with_parent(link, Signal::KILL).context("set the parent-death signal")?;
    let mut wakes = SignalWakeup::install().context("install signal handlers")?;
    let effective = match order.profile.mode {
        SandboxMode::Off => system::enter_unconfined(&order, &folder)?,
        SandboxMode::Required | SandboxMode::BestEffort => {
            system::confine_process(&order, entered, &project, &folder)?
        }
    };
    // Dropping privileges clears the parent-death signal.
    parent_socket::die_with_parent(link, Signal::KILL).context("set the parent-death signal")?;
    drop((project, folder));
    // The command must not reach into this process, which holds the socket to unstuck.
    system::disable_inspection().context("protect the init process from inspection")?;
    let private = private_dirs(&order, entered).context("create a private home directory")?;
    Ok(run_repair(link, &order, effective, &private, &mut wakes))
}

/// Returns the directories private to this command.
#[expect(
    clippy::disallowed_methods,
    reason = "the private temporary directory of this command, before the command starts"
)]
fn private_dirs(
    order: &SandboxRequest,
    entered: system::EnteredNamespaces,
) -> io::Result<PrivateDirs> {
    let temporary = if entered.has_mounts() {
        PathBuf::from("/tmp")
    } else {
        order.host.scratch.join(scratch_dir::TMP_DIR)
    };
    let home = match order.host.home {
        Some(_) => None,
        None => {
            let home = temporary.join("home");
            std::fs::create_dir(&home)?;
            Some(home)
        }
    };
    // With elevated privileges, run no program that an agent could have put somewhere.
    let profile = &order.profile;
    let is_mighty = profile.process_scope == ProcessAccess::Inspect
        || profile.file_scope == FileOwnerScope::AnyOwner;
    let search = is_mighty.then_some(SYSTEM_SEARCH_PATH);
    Ok(PrivateDirs {
        temporary,
        home,
        search,
    })
}

fn run_repair(
    link: &UnixStream,
    order: &SandboxRequest,
    effective: ConfinementReport,
    private: &PrivateDirs,
    wakes: &mut SignalWakeup,
) -> CommandExit {
    let tell = |report: &SandboxLifecycleEvent| {
        // A closed socket needs no further reports.
        let _ = wire::send_event(link, report);
    };
    let search = match private.search {
        Some(search) => search.to_owned(),
        None => parent_socket::own_search_path(),
    };
    let programs = match program_lookup::find_programs(&order.steps, &order.profile, &search) {
        Ok(programs) => programs,
        Err(refusal) => {
            let reason = refusal.to_string();
            tell(&SandboxLifecycleEvent::Refused { reason });
            return CommandExit::Exited(EXIT_SETUP_FAILED);
        }
    };
    if let Err(reason) =
        pre_start_file_check::verify_unchanged(order, private.temporary != Path::new("/tmp"))
    {
        tell(&SandboxLifecycleEvent::Refused { reason });
        return CommandExit::Exited(EXIT_SETUP_FAILED);
    }
    tell(&SandboxLifecycleEvent::Ready {
        confinement: effective,
        programs: programs.clone(),
    });
    let mut groups = Vec::new();
    let end = step_runner::run_steps(&order.steps, &programs, private, wakes, &mut groups);
    let end = end.unwrap_or(CommandExit::Exited(EXIT_SETUP_FAILED));
    let left = system::end_leftovers(&groups);
    tell(&SandboxLifecycleEvent::Ended {
        end,
        leftover_count: left,
    });
    end
}
