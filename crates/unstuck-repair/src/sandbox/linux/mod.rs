//! The layers of the sandbox on Linux, from the outside to the inside.

mod calls;
mod cgroup;
mod copies;
mod devices;
mod landlock;
mod limits;
mod mask;
mod merge;
mod mounts;
mod namespaces;
mod privileges;
mod seccomp;
mod tree;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::process::{DumpableBehavior, Pid};

pub(super) use calls::inherit_nothing;
pub(super) use cgroup::Cgroup;
pub(super) use copies::Copies;
pub(super) use namespaces::{Entered, become_user, enter};

use super::effective::{Confinement, Effective};
use super::failure::{Failure, While};
use super::profile::{Demand, Profile, Reach};
use super::scratch;
use super::wire::Order;

/// Confines this process and all that it starts, and steps into the folder to work in.
pub(super) fn confine(
    order: &Order,
    entered: Entered,
    project: &OwnedFd,
    folder: &OwnedFd,
) -> Result<Effective, Failure> {
    let profile = &order.profile;
    if profile.overlay.is_some() && !entered.mounts {
        return Err(no_overlay(&no_mounts(order)));
    }
    let mut missing = Vec::new();
    let mut notes = Vec::new();
    if order.unbounded {
        notes.push(
            "nothing bounds the number of its processes: it runs as root, and there is no cgroup"
                .to_owned(),
        );
    }
    let mut writable = if entered.mounts {
        let arranged = mounts::arrange(order, entered.processes)?;
        missing.extend(arranged.missing);
        notes.extend(arranged.notes);
        arranged.writable
    } else {
        missing.push(no_mounts(order));
        unmounted(order)
    };
    writable.extend(devices::writable());
    step_into(order, project, folder)?;
    limits::set(&profile.bounds).to("set the bounds")?;
    privileges::drop_all(profile).to("give up privileges")?;
    let has_landlock = if profile.reach == Reach::Looks {
        missing.push("Landlock is not used, because it looks into other processes".to_owned());
        false
    } else {
        let writable = handles(profile, &writable).to("open what is writable")?;
        let done = landlock::restrict(&writable, profile.reach, profile.network);
        let done = done.to("restrict writing with Landlock")?;
        if !done {
            missing.push("this kernel has no Landlock".to_owned());
        }
        done
    };
    if !seccomp::restrict(profile.network).to("restrict system calls")? {
        missing.push("system calls cannot be restricted on this architecture".to_owned());
    }
    let effective = Effective {
        confinement: match missing.is_empty() {
            true => Confinement::Full,
            false if !entered.mounts && !has_landlock => Confinement::None,
            false => Confinement::Partial,
        },
        missing,
        notes,
    };
    refuse_less(profile.demand, profile.reach, &effective)?;
    Ok(effective)
}

/// Without an overlay the project itself would be changed.
fn no_overlay(why: &str) -> Failure {
    Failure::final_one("lay an overlay over the project", why)
}

fn no_mounts(order: &Order) -> String {
    let why = order.obstacle.as_deref().unwrap_or("nobody asked for them");
    match order.profile.reach {
        Reach::Looks => {
            "it is not kept from files, because it looks into other processes".to_owned()
        }
        Reach::Own | Reach::Signals => format!(
            "user namespaces cannot be used here ({why}), so secrets can be read and modes of other files changed"
        ),
    }
}

/// Where the owner asks for all of the sandbox, less is nothing. An entry that looks into processes cannot have all
/// of it, and the owner wrote it.
fn refuse_less(demand: Demand, reach: Reach, effective: &Effective) -> Result<(), Failure> {
    let is_whole = effective.confinement == Confinement::Full || reach == Reach::Looks;
    match demand {
        Demand::Required if !is_whole => Err(Failure::final_one(
            "confine the command as far as `sandbox = \"required\"` asks",
            effective.missing.join("; "),
        )),
        Demand::Required | Demand::BestEffort | Demand::Off => Ok(()),
    }
}

/// What is writable, by handle. Nothing in the project is reached by a symlink: an agent could have put it there.
fn handles(profile: &Profile, writable: &[PathBuf]) -> io::Result<Vec<OwnedFd>> {
    let root = open_folder(&profile.root)?;
    let open = |path: &PathBuf| match path.strip_prefix(&profile.root) {
        Ok(below) if !below.as_os_str().is_empty() => tree::open_below(&root, below),
        Ok(_) => root.try_clone(),
        Err(_) => tree::open(path),
    };
    // Nothing can be written to what is not there.
    Ok(writable.iter().filter_map(|path| open(path).ok()).collect())
}

/// What is writable where nothing can be mounted.
fn unmounted(order: &Order) -> Vec<PathBuf> {
    let (profile, around) = (&order.profile, &order.surroundings);
    let mut writable: Vec<_> = profile.writable_in_project().collect();
    if writable.is_empty() {
        writable.push(profile.root.clone());
    }
    writable.extend(profile.writable_outside());
    writable.extend(around.narrow.iter().cloned());
    writable.push(around.scratch.join(scratch::TEMPORARY));
    writable
}

/// Steps into the folder that was decided on, and into no other that may have taken its place since.
fn step_into(order: &Order, project: &OwnedFd, folder: &OwnedFd) -> Result<(), Failure> {
    let root = open_folder(&order.profile.root).to("find the project")?;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let relative = match order.folder.as_os_str().is_empty() {
        true => Path::new("."),
        false => &order.folder,
    };
    let found = rustix::fs::openat2(&root, relative, flags, Mode::empty(), resolve);
    let found = found.to(format!("find the folder {}", relative.display()))?;
    // An overlay has numbers of its own; what is below it was compared before it was laid.
    let is_the_same = order.profile.overlay.is_some()
        || (same(&root, project).to("compare the project")?
            && same(&found, folder).to("compare the folder")?);
    if !is_the_same {
        return Err(Failure::final_one(
            format!("work in {}", relative.display()),
            "it is not the folder any more that was decided on",
        ));
    }
    rustix::process::fchdir(&found).to(format!("work in {}", relative.display()))
}

fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

fn same(one: &impl AsFd, other: &impl AsFd) -> io::Result<bool> {
    let [one, other] = [rustix::fs::fstat(one)?, rustix::fs::fstat(other)?];
    Ok((one.st_dev, one.st_ino) == (other.st_dev, other.st_ino))
}

/// Steps into the folder and confines nothing, as the owner asked.
pub(super) fn unconfined(order: &Order, folder: &OwnedFd) -> Result<Effective, Failure> {
    if order.profile.overlay.is_some() {
        return Err(no_overlay("the sandbox is switched off"));
    }
    rustix::process::fchdir(folder).to(format!("work in {}", order.folder.display()))?;
    Ok(Effective::none("it is switched off"))
}

/// Lets nobody look into this process or reach what it has open.
pub(super) fn close_to_others() -> io::Result<()> {
    Ok(rustix::process::set_dumpable_behavior(
        DumpableBehavior::NotDumpable,
    )?)
}

/// How many processes are left beside this one, where it is the first of a namespace. The end of it is theirs; others
/// are the reaper's, in whatever group they are.
pub(super) fn left_behind(_groups: &[Pid]) -> u32 {
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
