//! The command's view of the file system: everything read-only, the project and tool caches as they are, private
//! temporary directories, and nothing where secrets are.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::sched::CloneFlags;
use rustix::fs::{FileType, Mode};
use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, MountPropagationFlags};

use crate::sandbox::git_dirs::{self, GIT_DIR};
use crate::sandbox::path_lists::SandboxPathLists;
use crate::sandbox::sandbox_profile::SandboxProfile;
use crate::sandbox::scratch_dir;
use crate::sandbox::setup_failure::{SandboxIoContext, SetupFailure};
use crate::sandbox::wire::SandboxRequest;

use super::detached_mount::{MountTree, open_path, open_path_below};
use super::devices;
use super::home_mask;
use super::private_copies::{UPPER_DIR, WORK_DIR};
use super::raw_syscalls::{MountExtent, restrict_mount};

/// Directories whose contents are hidden.
const HIDDEN_DIRS: [&str; 3] = ["/tmp", "/var/tmp", "/run"];

/// Subdirectories of git's directory that are not copied: content-addressed and possibly large.
const SHARED_GIT_DIRS: [&str; 2] = ["objects", "lfs"];

/// A planned mount and its target.
struct PlannedMount {
    at: PathBuf,
    content: MountContent,
}

enum MountContent {
    /// An empty mount that hides the contents.
    Hidden,
    /// A tree that was opened before everything was hidden or made read-only.
    Visible(MountTree),
}

/// The result of the mounts.
#[derive(Debug, Default)]
pub(super) struct MountReport {
    /// Directories that the command may write to.
    pub(super) writable: Vec<PathBuf>,
    /// Missing parts of full confinement.
    pub(super) missing: Vec<String>,
    /// Other remarks.
    pub(super) notes: Vec<String>,
}

/// Sets up the command's file system view in its own mount namespace.
pub(super) fn mount_view(
    order: &SandboxRequest,
    has_processes: bool,
) -> Result<MountReport, SetupFailure> {
    let mut arranged = MountReport::default();
    nix::sched::unshare(CloneFlags::CLONE_NEWNS).isolation_context("create a mount namespace")?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", private).isolation_context("make mounts private")?;
    let processes = has_processes.then(MountTree::procfs).transpose();
    let mut opened = open_writable_in_project(&order.profile, &mut arranged)?;
    opened.extend(mount_private_git(order, &mut arranged)?);
    opened.extend(open_watched_copies(order)?);
    let mut planned = plan_visible(order, &mut arranged)?;
    planned.extend(plan_private_tools(order, &mut arranged));
    planned.extend(plan_hidden(order));
    let devices = devices::open_devices().isolation_context("open the devices")?;
    make_all_read_only().isolation_context("make the file system read-only")?;
    match processes {
        Ok(Some(tree)) => {
            mount_tree_over(tree, Path::new("/proc")).isolation_context("mount /proc")?
        }
        Ok(None) => {}
        Err(error) => arranged.missing.push(format!(
            "processes outside the sandbox are visible ({error})"
        )),
    }
    devices::mount_devices(devices).isolation_context("mount the devices")?;
    mount_all(planned)?;
    for (below, tree) in opened {
        let root = open_path(&order.profile.root).isolation_context("open the project")?;
        let target = open_path_below(&root, &below);
        let mounted = target.and_then(|target| tree.mount_over(&target));
        mounted.isolation_context(format!("mount {}", below.display()))?;
    }
    protect_project_files(order, &mut arranged)?;
    protect_references(order, &mut arranged)?;
    Ok(arranged)
}

/// Mounts a private copy of git's directory, except its content-addressed objects; read-only if no copy is possible.
fn mount_private_git(
    order: &SandboxRequest,
    arranged: &mut MountReport,
) -> Result<Vec<(PathBuf, MountTree)>, SetupFailure> {
    let mut trees = Vec::new();
    let root = open_path(&order.profile.root).isolation_context("open the project")?;
    for copy in order.copies.iter().filter(|copy| copy.is_git) {
        let doing = || format!("create a private copy of {}", copy.path.display());
        let real = open_path_below(&root, &copy.path).isolation_context(doing())?;
        let folder = order.host.scratch.join(&copy.name);
        let [upper, work] = [UPPER_DIR, WORK_DIR].map(|name| folder.join(name));
        match MountTree::overlay_of(&[&real], &upper, &work) {
            Ok(tree) => trees.push((copy.path.clone(), tree)),
            Err(error) => {
                let tree = MountTree::from_handle(&real).and_then(MountTree::read_only);
                trees.push((copy.path.clone(), tree.isolation_context(doing())?));
                arranged.notes.push(format!(
                    "{} is read-only: cannot create a private copy ({error})",
                    copy.path.display()
                ));
                continue;
            }
        }
        for shared in SHARED_GIT_DIRS {
            let path = copy.path.join(shared);
            // A missing entry is created in the copy.
            if let Ok(handle) = open_path_below(&root, &path) {
                let tree =
                    MountTree::from_handle(&handle).and_then(MountTree::without_suid_and_devices);
                trees.push((path, tree.isolation_context(doing())?));
            }
        }
    }
    Ok(trees)
}

/// Plans private copies of tool directories outside the home directory.
fn plan_private_tools(order: &SandboxRequest, arranged: &mut MountReport) -> Vec<PlannedMount> {
    let mut planned = Vec::new();
    for copy in order.copies.iter().filter(|copy| !copy.is_git) {
        let folder = order.host.scratch.join(&copy.name);
        let [upper, work] = [UPPER_DIR, WORK_DIR].map(|name| folder.join(name));
        match MountTree::overlay(&copy.path, &upper, &work) {
            Ok(tree) => {
                planned.push(PlannedMount::visible(&copy.path, tree));
                arranged.writable.push(copy.path.clone());
            }
            Err(error) => arranged.notes.push(format!(
                "{} is read-only: cannot create a private copy ({error})",
                copy.path.display()
            )),
        }
    }
    planned
}

/// Opens the copies of the checked files that decide what the command does, so that later replacements have no effect.
fn open_watched_copies(order: &SandboxRequest) -> Result<Vec<(PathBuf, MountTree)>, SetupFailure> {
    let folder = order.host.scratch.join(scratch_dir::WATCHED_DIR);
    let mut trees = Vec::new();
    if order.profile.overlay.is_some() {
        return Ok(trees);
    }
    for file in &order.watched_files {
        if let Some(copy) = &file.copy {
            let tree = MountTree::from_path(&folder.join(copy)).and_then(MountTree::read_only);
            let tree = tree.isolation_context(format!(
                "mount the checked version of {}",
                file.path.display()
            ))?;
            trees.push((file.path.clone(), tree));
        }
    }
    Ok(trees)
}

/// Opens the paths that stay visible or writable, before anything is hidden.
fn plan_visible(
    order: &SandboxRequest,
    arranged: &mut MountReport,
) -> Result<Vec<PlannedMount>, SetupFailure> {
    let (profile, around) = (&order.profile, &order.host);
    let mut planned = Vec::new();
    let temporary = ["/tmp", "/var/tmp"].map(Path::new).into_iter();
    for temporary in temporary.filter(|folder| folder.is_dir()) {
        let tree = MountTree::from_path(&around.scratch.join(scratch_dir::TMP_DIR))
            .and_then(MountTree::without_suid_and_devices);
        let tree = tree.isolation_context("open the private temporary directory")?;
        planned.push(PlannedMount::visible(temporary, tree));
        arranged.writable.push(temporary.into());
    }
    let visible = around.visible.iter().chain(around.home.as_ref());
    let visible =
        visible.filter(|path| HIDDEN_DIRS.iter().any(|covered| path.starts_with(covered)));
    for path in visible.chain(resolver_config_path().as_ref()) {
        // An unreachable path cannot be needed.
        if let Ok(tree) = MountTree::from_path(path).and_then(MountTree::read_only) {
            planned.push(PlannedMount::visible(path, tree));
        }
    }
    if let Some(home) = around
        .home
        .as_ref()
        .filter(|home| is_home_outside_project(home, profile))
    {
        match build_private_home(order, home) {
            Ok(tree) => {
                planned.push(PlannedMount::visible(home, tree));
                arranged.writable.push(home.clone());
            }
            // For example, a directory with a mount in it cannot be copied.
            Err(error) => {
                let empty = MountTree::empty_tmpfs("700")
                    .isolation_context("create an empty home directory")?;
                planned.push(PlannedMount::visible(home, empty));
                arranged.writable.push(home.clone());
                let needed = needed_home_paths(home, order).into_iter();
                for path in needed.filter(|path| *path != profile.root) {
                    if let Ok(tree) = MountTree::from_path(&path).and_then(MountTree::read_only) {
                        planned.push(PlannedMount::visible(&path, tree));
                    }
                }
                arranged.notes.push(format!(
                    "the required parts of the home directory are read-only: cannot create a private copy ({error})"
                ));
            }
        }
    }
    planned.push(plan_project(profile, arranged)?);
    planned.extend(plan_writable_outside(order, arranged)?);
    Ok(planned)
}

/// Returns the parts of the home directory that the command needs.
fn needed_home_paths(home: &Path, order: &SandboxRequest) -> Vec<PathBuf> {
    let (profile, around) = (&order.profile, &order.host);
    let caches = around.caches.iter().chain(&around.needed_home_paths);
    let tools = around.addable_dirs.iter().map(|(path, _)| path);
    let mut needed: Vec<PathBuf> = caches.chain(tools).cloned().collect();
    needed.push(profile.root.clone());
    needed.extend(profile.writable_outside());
    needed.retain(|path| path.starts_with(home) && path != home);
    needed
}

/// Builds a private copy of the home directory that contains only what the command needs.
fn build_private_home(order: &SandboxRequest, home: &Path) -> io::Result<MountTree> {
    let around = &order.host;
    let scratch = &around.scratch;
    let mut seen = needed_home_paths(home, order);
    // A mount needs an existing mount point, even under a hiding mount.
    let private = around
        .private_caches
        .iter()
        .filter(|path| path.starts_with(home));
    seen.extend(private.cloned());
    let mask = home_mask::create_mask_layer(home, &seen, &scratch.join(scratch_dir::MASK_DIR))?;
    let [upper, work] =
        [scratch_dir::HOME_DIR, scratch_dir::WORK_DIR].map(|name| scratch.join(name));
    let home = open_path(home)?;
    let lower = [&mask, &home];
    // Some file systems cannot serve as the upper layer; memory always can.
    MountTree::overlay_of(&lower, &upper, &work).or_else(|_| MountTree::overlay_in_memory(&lower))
}

/// Plans the mount of the project itself, or of an overlay over it.
fn plan_project(
    profile: &SandboxProfile,
    arranged: &mut MountReport,
) -> Result<PlannedMount, SetupFailure> {
    let tree = match &profile.overlay {
        Some(overlay) => MountTree::overlay(&overlay.lower, &overlay.upper, &overlay.work)
            .isolation_context("mount an overlay over the project")?,
        None => MountTree::from_path(&profile.root)
            .and_then(MountTree::without_suid_and_devices)
            .isolation_context("open the project")?,
    };
    let is_whole = profile.overlay.is_some() || profile.writable_in_project().next().is_none();
    let tree = if is_whole { Ok(tree) } else { tree.read_only() };
    if is_whole {
        arranged.writable.push(profile.root.clone());
    }
    let tree = tree.isolation_context("make the project read-only")?;
    Ok(PlannedMount::visible(&profile.root, tree))
}

/// Opens the writable parts of a partly writable project, before the rest is made read-only.
fn open_writable_in_project(
    profile: &SandboxProfile,
    arranged: &mut MountReport,
) -> Result<Vec<(PathBuf, MountTree)>, SetupFailure> {
    let mut opened = Vec::new();
    if profile.overlay.is_some() {
        // All of the overlay is writable: the real files stay as they are anyway.
        return Ok(opened);
    }
    let root = open_path(&profile.root).isolation_context("open the project")?;
    for path in profile.writable_in_project() {
        let below = path.strip_prefix(&profile.root).unwrap_or(&path);
        match open_or_make(&root, below) {
            Ok(handle) => {
                let tree =
                    MountTree::from_handle(&handle).and_then(MountTree::without_suid_and_devices);
                let tree = tree.isolation_context(format!("make {} writable", below.display()))?;
                opened.push((below.to_owned(), tree));
                arranged.writable.push(path);
            }
            Err(error) => arranged
                .notes
                .push(format!("{} is not writable: {error}", below.display())),
        }
    }
    Ok(opened)
}

/// Opens an entry in the project; a missing one with a directory's name is created.
fn open_or_make(root: &OwnedFd, below: &Path) -> io::Result<OwnedFd> {
    match open_path_below(root, below) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && below.extension().is_none() => {}
        other => return other,
    }
    let folder = match below.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => open_path_below(root, folder)?,
        _ => root.try_clone()?,
    };
    let name = below.file_name().unwrap_or(below.as_os_str());
    rustix::fs::mkdirat(&folder, name, Mode::from_raw_mode(0o777))?;
    open_path_below(root, below)
}

/// Plans the writable paths outside the project.
fn plan_writable_outside(
    order: &SandboxRequest,
    arranged: &mut MountReport,
) -> Result<Vec<PlannedMount>, SetupFailure> {
    let profile = &order.profile;
    let mut planned = Vec::new();
    if profile.overlay.is_some() {
        // All of these are the real ones. A preview must not write to anything real.
        return Ok(planned);
    }
    let outside = profile.writable_outside();
    for path in order.host.caches.iter().cloned().chain(outside) {
        let is_around = profile.root.starts_with(&path);
        let Ok(tree) = MountTree::from_path(&path).and_then(MountTree::without_suid_and_devices)
        else {
            continue;
        };
        if !is_around {
            planned.push(PlannedMount::visible(&path, tree));
            arranged.writable.push(path);
        }
    }
    for path in &order.host.private_caches {
        let empty =
            MountTree::empty_tmpfs("700").isolation_context("create a private directory")?;
        planned.push(PlannedMount::visible(path, empty));
    }
    Ok(planned)
}

/// Plans the hidden paths.
fn plan_hidden(order: &SandboxRequest) -> Vec<PlannedMount> {
    let (profile, around) = (&order.profile, &order.host);
    let own = profile.hidden_paths.iter().chain(&around.secrets);
    // Parents of the project can be hidden, because the project is mounted there again. The project itself cannot.
    let own = own.filter(|path| **path != profile.root);
    // Directories where services of the machine listen.
    let sockets = PathBuf::from("/run");
    [sockets]
        .into_iter()
        .chain(own.cloned())
        .map(|at| PlannedMount {
            at,
            content: MountContent::Hidden,
        })
        .collect()
}

/// True if the home directory is outside the project, so that it can have a private copy.
pub(super) fn is_home_outside_project(home: &Path, profile: &SandboxProfile) -> bool {
    home.parent().is_some() && !home.starts_with(&profile.root)
}

/// Returns the name resolution configuration if it lies in a hidden directory.
fn resolver_config_path() -> Option<PathBuf> {
    let file = fs::canonicalize("/etc/resolv.conf").ok()?;
    file.starts_with("/run").then_some(file)
}

fn make_all_read_only() -> io::Result<()> {
    let flags = MountAttrFlags::MOUNT_ATTR_RDONLY | MountAttrFlags::MOUNT_ATTR_NOSUID;
    restrict_mount(&open_path(Path::new("/"))?, flags, MountExtent::Tree)
}

/// Mounts from the outside to the inside; hiding mounts come before the visible ones in their place.
fn mount_all(mut planned: Vec<PlannedMount>) -> Result<(), SetupFailure> {
    planned.sort_by_key(|one| {
        let is_seen = matches!(one.content, MountContent::Visible(_));
        (one.at.components().count(), is_seen)
    });
    let mut sealed = Vec::new();
    for PlannedMount { at, content: what } in planned {
        let doing = || format!("mount {}", at.display());
        match what {
            MountContent::Hidden => sealed.extend(hide(&at).isolation_context(doing())?),
            MountContent::Visible(tree) => {
                let target = mount_point(&at, &tree).isolation_context(doing())?;
                tree.mount_over(&target).isolation_context(doing())?;
            }
        }
    }
    for at in sealed {
        let target = open_path(&at).isolation_context("open a hidden path")?;
        restrict_mount(&target, MountAttrFlags::MOUNT_ATTR_RDONLY, MountExtent::One)
            .isolation_context("make a hidden path read-only")?;
    }
    Ok(())
}

/// Mounts something empty over a directory or a file, if it exists; returns the path if it still has to be sealed.
fn hide(at: &Path) -> io::Result<Option<PathBuf>> {
    let target = match open_path(at) {
        Ok(target) => target,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    if is_dir(&target)? {
        MountTree::empty_tmpfs("755")?.mount_over(&target)?;
        return Ok(Some(at.to_owned()));
    }
    MountTree::from_path(Path::new("/dev/null"))?.mount_over(&target)?;
    Ok(None)
}

/// True for a missing or unreachable path, which needs no hiding.
fn is_absent(error: &io::Error) -> bool {
    let absent = [Errno::NOENT, Errno::NOTDIR, Errno::ACCESS, Errno::LOOP];
    absent
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// Opens a mount point; its surroundings may have been hidden.
#[expect(
    clippy::disallowed_methods,
    reason = "in this command's mount namespace, everything else is read-only, in memory, or writable by the command"
)]
fn mount_point(at: &Path, tree: &MountTree) -> io::Result<OwnedFd> {
    match open_path(at) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if is_dir(&tree.handle())? {
                fs::create_dir_all(at)?;
            } else {
                at.parent().map_or(Ok(()), fs::create_dir_all)?;
                fs::File::create_new(at)?;
            }
            open_path(at)
        }
        other => other,
    }
}

fn mount_tree_over(tree: MountTree, at: &Path) -> io::Result<()> {
    tree.mount_over(&open_path(at)?)
}

fn is_dir(handle: &impl AsFd) -> io::Result<bool> {
    let stat = rustix::fs::fstat(handle)?;
    Ok(FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
}

/// Makes the project files read-only that decide what runs outside of the sandbox later.
fn protect_project_files(
    order: &SandboxRequest,
    arranged: &mut MountReport,
) -> Result<(), SetupFailure> {
    let profile = &order.profile;
    let lists = &SandboxPathLists::built_in().project;
    let is_private = order.copies.iter().any(|copy| copy.is_git);
    let pointer = (!is_private && profile.overlay.is_none()).then_some(Path::new(GIT_DIR));
    let kept = order
        .protected_paths()
        .chain(&lists.protected_with_mounts)
        .map(PathBuf::as_path);
    for path in kept.chain(pointer) {
        let root = open_path(&profile.root).isolation_context("open the project")?;
        let kept = remount_path(&root, path, MountTree::read_only);
        if !kept.isolation_context(format!("protect {}", path.display()))? {
            arranged.notes.push(format!(
                "{} is not protected: its path contains a symlink, so the command could replace it",
                path.display()
            ));
        }
    }
    Ok(())
}

/// Makes the existing files read-only that git's configuration names, so that nothing else takes their place even for a
/// moment. Links, and what appears, are checked after the run.
fn protect_references(
    order: &SandboxRequest,
    arranged: &mut MountReport,
) -> Result<(), SetupFailure> {
    let root = open_path(&order.profile.root).isolation_context("open the project")?;
    let doing = |path: &Path| format!("protect {}", path.display());
    let referenced = order.git.referenced.iter();
    let existing: Vec<_> = referenced
        .filter(|path| open_path_below(&root, path).is_ok())
        .collect();
    // A mount point can be neither renamed nor removed, but the directories above it can, unless they are mount points
    // themselves.
    let above = existing.iter().flat_map(|path| path.ancestors().skip(1));
    let above: BTreeSet<&Path> = above.filter(|path| !path.as_os_str().is_empty()).collect();
    for path in above {
        remount_path(&root, path, Ok).isolation_context(doing(path))?;
    }
    for path in existing {
        let rebuilt = order.git.rebuilt.iter();
        let rebuilt = rebuilt.filter(|inner| inner.parent() == Some(path));
        let is_missing = |inner: &PathBuf| open_path_below(&root, inner).is_err();
        if rebuilt.clone().any(is_missing) {
            // The directory that is generated has to be created in it.
            remount_path(&root, path, Ok).isolation_context(doing(path))?;
            let names = git_dirs::open_dir_below(&root, path);
            for (name, _) in names.iter().flat_map(git_dirs::list_dir) {
                let inner = path.join(name);
                remount_path(&root, &inner, MountTree::read_only)
                    .isolation_context(doing(&inner))?;
            }
            continue;
        }
        remount_path(&root, path, MountTree::read_only).isolation_context(doing(path))?;
        for inner in rebuilt {
            let mounted = open_path_below(&root, inner)
                .and_then(|target| MountTree::overlay_in_memory(&[&target])?.mount_over(&target));
            if let Err(error) = mounted {
                arranged.notes.push(format!(
                    "{} is read-only: cannot create a private copy ({error})",
                    inner.display()
                ));
            }
        }
    }
    Ok(())
}

/// Mounts a path of the project over itself; returns true on success. Missing paths are checked after the run.
fn remount_path(
    root: &OwnedFd,
    path: &Path,
    how: impl FnOnce(MountTree) -> io::Result<MountTree>,
) -> io::Result<bool> {
    let target = match open_path_below(root, path) {
        Ok(target) => target,
        Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => return Ok(false),
        Err(error) if is_absent(&error) => return Ok(true),
        Err(error) => return Err(error),
    };
    how(MountTree::from_handle(&target)?)?.mount_over(&target)?;
    Ok(true)
}

impl PlannedMount {
    fn visible(at: impl Into<PathBuf>, tree: MountTree) -> Self {
        Self {
            at: at.into(),
            content: MountContent::Visible(tree),
        }
    }
}
