//! The layers of the sandbox on Linux, from the outside to the inside.

mod capabilities;
mod detached_mount;
mod devices;
mod home_mask;
mod landlock;
mod merge_allowed_writes;
mod mounts;
mod namespaces;
mod private_copies;
mod process_count_cgroup;
mod raw_syscalls;
mod resource_limits;
mod seccomp;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::process::{DumpableBehavior, Pid};

pub(super) use namespaces::{EnteredNamespaces, become_user, enter_namespaces};
pub(super) use private_copies::PrivateCopies;
pub(super) use process_count_cgroup::Cgroup;
pub(super) use raw_syscalls::close_descriptors_on_exec;

use super::confinement_report::{ConfinementLevel, ConfinementReport};
use super::sandbox_profile::{ProcessAccess, SandboxMode, SandboxProfile};
use super::scratch_dir;
use super::setup_failure::{SandboxIoContext, SetupFailure};
use super::wire::SandboxRequest;

/// Confines this process and its descendants, and changes to the working directory.
pub(super) fn confine_process(
    order: &SandboxRequest,
    entered: EnteredNamespaces,
    project: &OwnedFd,
    folder: &OwnedFd,
) -> Result<ConfinementReport, SetupFailure> {
    let profile = &order.profile;
    if profile.overlay.is_some() && !entered.has_mount_namespace {
        return Err(no_overlay_failure(&no_mounts_reason(order)));
    }
    let mut missing = Vec::new();
    let mut notes = Vec::new();
    if order.has_no_process_limit {
        notes.push(
            "the number of processes is not limited: it runs as root, and no cgroup is available"
                .to_owned(),
        );
    }
    let mut writable = if entered.has_mount_namespace {
        let arranged = mounts::mount_view(order, entered.has_pid_namespace)?;
        missing.extend(arranged.missing);
        notes.extend(arranged.notes);
        arranged.writable
    } else {
        missing.push(no_mounts_reason(order));
        writable_without_mounts(order)
    };
    writable.extend(devices::writable_devices());
    change_dir(order, project, folder)?;
    resource_limits::set_limits(&profile.limits).context("set resource limits")?;
    capabilities::drop_capabilities(profile).context("drop privileges")?;
    let has_landlock = if profile.process_scope == ProcessAccess::Inspect {
        missing
            .push("Landlock is not used because the command inspects other processes".to_owned());
        false
    } else {
        let writable = open_writable(profile, &writable).context("open the writable paths")?;
        let done = landlock::restrict(&writable, profile.process_scope, profile.network);
        let done = done.context("restrict writes with Landlock")?;
        if !done {
            missing.push("this kernel has no Landlock".to_owned());
        }
        done
    };
    if !seccomp::install_filter(profile.network).context("restrict system calls")? {
        missing.push("system calls cannot be restricted on this architecture".to_owned());
    }
    let effective = ConfinementReport {
        level: match missing.is_empty() {
            true => ConfinementLevel::Full,
            false if !entered.has_mount_namespace && !has_landlock => ConfinementLevel::None,
            false => ConfinementLevel::Partial,
        },
        missing,
        notes,
    };
    require_complete(profile.mode, profile.process_scope, &effective)?;
    Ok(effective)
}

/// Fails because without an overlay the project itself would be changed.
fn no_overlay_failure(why: &str) -> SetupFailure {
    SetupFailure::permanent("mount an overlay over the project", why)
}

fn no_mounts_reason(order: &SandboxRequest) -> String {
    let why = order
        .namespace_obstacle
        .as_deref()
        .unwrap_or("not requested");
    match order.profile.process_scope {
        ProcessAccess::Inspect => {
            "file access is not restricted because the command inspects other processes".to_owned()
        }
        ProcessAccess::Own | ProcessAccess::Signals => format!(
            "user namespaces are not available ({why}): the command can read secrets and change modes of other files"
        ),
    }
}

/// Fails if the owner requires full confinement and parts of it are missing. An entry that inspects processes cannot
/// have all of it, and the owner wrote it.
fn require_complete(
    demand: SandboxMode,
    reach: ProcessAccess,
    effective: &ConfinementReport,
) -> Result<(), SetupFailure> {
    let is_whole = effective.level == ConfinementLevel::Full || reach == ProcessAccess::Inspect;
    match demand {
        SandboxMode::Required if !is_whole => Err(SetupFailure::permanent(
            "enforce `sandbox = \"required\"`",
            effective.missing.join("; "),
        )),
        SandboxMode::Required | SandboxMode::BestEffort | SandboxMode::Off => Ok(()),
    }
}

/// Opens the writable paths. Nothing in the project is reached by a symlink: an agent could have put it there.
fn open_writable(profile: &SandboxProfile, writable: &[PathBuf]) -> io::Result<Vec<OwnedFd>> {
    let root = open_dir(&profile.root)?;
    let open = |path: &PathBuf| match path.strip_prefix(&profile.root) {
        Ok(below) if !below.as_os_str().is_empty() => detached_mount::open_path_below(&root, below),
        Ok(_) => root.try_clone(),
        Err(_) => detached_mount::open_path(path),
    };
    // A missing path cannot be written to.
    Ok(writable.iter().filter_map(|path| open(path).ok()).collect())
}

/// Returns the writable paths if nothing can be mounted.
fn writable_without_mounts(order: &SandboxRequest) -> Vec<PathBuf> {
    let (profile, around) = (&order.profile, &order.host);
    let mut writable: Vec<_> = profile.writable_in_project().collect();
    if writable.is_empty() {
        writable.push(profile.root.clone());
    }
    writable.extend(profile.writable_outside());
    writable.extend(around.narrowed_caches.iter().cloned());
    writable.push(around.scratch.join(scratch_dir::TMP_DIR));
    writable
}

/// Changes to the approved directory, and to no other that may have replaced it since.
fn change_dir(
    order: &SandboxRequest,
    project: &OwnedFd,
    folder: &OwnedFd,
) -> Result<(), SetupFailure> {
    let root = open_dir(&order.profile.root).context("open the project")?;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let relative = if order.folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        &order.folder
    };
    let found = rustix::fs::openat2(&root, relative, flags, Mode::empty(), resolve);
    let found = found.context(format!("open the directory {}", relative.display()))?;
    // An overlay has its own inode numbers; the directory below it was compared before it was mounted.
    let is_the_same = order.profile.overlay.is_some()
        || (is_same_dir(&root, project).context("compare the project")?
            && is_same_dir(&found, folder).context("compare the working directory")?);
    if !is_the_same {
        return Err(SetupFailure::permanent(
            format!("change to the directory {}", relative.display()),
            "the directory was replaced after it was checked",
        ));
    }
    rustix::process::fchdir(&found)
        .context(format!("change to the directory {}", relative.display()))
}

fn open_dir(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

fn is_same_dir(one: &impl AsFd, other: &impl AsFd) -> io::Result<bool> {
    let [one, other] = [rustix::fs::fstat(one)?, rustix::fs::fstat(other)?];
    Ok((one.st_dev, one.st_ino) == (other.st_dev, other.st_ino))
}

/// Changes the directory without confinement, as the owner requested.
pub(super) fn enter_unconfined(
    order: &SandboxRequest,
    folder: &OwnedFd,
) -> Result<ConfinementReport, SetupFailure> {
    if order.profile.overlay.is_some() {
        return Err(no_overlay_failure("the sandbox is disabled"));
    }
    rustix::process::fchdir(folder).context(format!(
        "change to the directory {}",
        order.folder.display()
    ))?;
    Ok(ConfinementReport::none("disabled by configuration"))
}

/// Prevents other processes from inspecting this one or its open files.
pub(super) fn disable_inspection() -> io::Result<()> {
    Ok(rustix::process::set_dumpable_behavior(
        DumpableBehavior::NotDumpable,
    )?)
}

/// Returns the number of remaining processes in the PID namespace, which end with it; without one, the reaper ends them
/// in whatever group they are.
#[expect(clippy::disallowed_methods, reason = "lists the processes in /proc")]
pub(super) fn end_leftovers(_groups: &[Pid]) -> u32 {
    if std::process::id() != 1 {
        return 0;
    }
    let names = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_other = |name: std::ffi::OsString| {
        name.to_str()
            .and_then(|name| name.parse().ok())
            .is_some_and(|pid: u32| pid != 1)
    };
    let others = names.filter(|name| is_other(name.file_name()));
    u32::try_from(others.count()).unwrap_or(u32::MAX)
}
