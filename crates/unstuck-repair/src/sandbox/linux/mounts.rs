//! What the command sees of the file system: everything read-only, the project and the caches of tools as they are, a
//! private place for what is temporary, and nothing where secrets are.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::sched::CloneFlags;
use rustix::fs::{FileType, Mode};
use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, MountPropagationFlags};

use crate::sandbox::failure::{Failure, While};
use crate::sandbox::git::NAME;
use crate::sandbox::lists::Lists;
use crate::sandbox::profile::Profile;
use crate::sandbox::scratch;
use crate::sandbox::wire::Order;

use super::calls::{Extent, restrict};
use super::copies::{UPPER, WORK};
use super::devices;
use super::mask;
use super::tree::{Tree, open, open_below};

/// Where nothing of the machine is seen.
const COVERED: [&str; 3] = ["/tmp", "/var/tmp", "/run"];

/// What of git's folder is not copied: it is named by its contents, and may be large.
const SHARED: [&str; 2] = ["objects", "lfs"];

/// What is to be mounted where.
struct Planned {
    at: PathBuf,
    what: What,
}

enum What {
    /// Nothing is seen there.
    Hidden,
    /// A piece of the file system that was taken before all was hidden or made read-only.
    Seen(Tree),
}

/// What came of it.
#[derive(Debug, Default)]
pub(super) struct Arranged {
    /// Folders that the command may write to.
    pub(super) writable: Vec<PathBuf>,
    /// What could not be done and is missing for a whole sandbox.
    pub(super) missing: Vec<String>,
    /// What else is worth knowing.
    pub(super) notes: Vec<String>,
}

/// Arranges what the command sees, in mounts of its own.
pub(super) fn arrange(order: &Order, has_processes: bool) -> Result<Arranged, Failure> {
    let mut arranged = Arranged::default();
    nix::sched::unshare(CloneFlags::CLONE_NEWNS).to_isolate("leave the mounts of the machine")?;
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    rustix::mount::mount_change("/", private).to_isolate("keep our mounts to ourselves")?;
    let processes = has_processes.then(Tree::processes).transpose();
    let mut opened = opened(&order.profile, &mut arranged)?;
    opened.extend(private_git(order, &mut arranged)?);
    opened.extend(checked(order)?);
    let mut planned = seen(order, &mut arranged)?;
    planned.extend(private_tools(order, &mut arranged));
    planned.extend(hidden(order));
    let devices = devices::take().to_isolate("take the devices along")?;
    make_all_read_only().to_isolate("make the file system read-only")?;
    match processes {
        Ok(Some(tree)) => over(tree, Path::new("/proc")).to_isolate("show its own processes")?,
        Ok(None) => {}
        Err(error) => arranged.missing.push(format!(
            "the processes of the machine stay visible ({error})"
        )),
    }
    devices::arrange(devices).to_isolate("arrange the devices")?;
    mount_all(planned)?;
    for (below, tree) in opened {
        let root = open(&order.profile.root).to_isolate("find the project")?;
        let target = open_below(&root, &below);
        let mounted = target.and_then(|target| tree.mount_over(&target));
        mounted.to_isolate(format!("arrange {}", below.display()))?;
    }
    keep(order, &mut arranged)?;
    Ok(arranged)
}

/// A private copy of git's folder, but for its objects, which are named by their contents; read-only where there can be
/// no copy.
fn private_git(order: &Order, arranged: &mut Arranged) -> Result<Vec<(PathBuf, Tree)>, Failure> {
    let mut trees = Vec::new();
    let root = open(&order.profile.root).to_isolate("find the project")?;
    for copy in order.copies.iter().filter(|copy| copy.is_git) {
        let doing = || format!("make a private copy of {}", copy.at.display());
        let real = open_below(&root, &copy.at).to_isolate(doing())?;
        let folder = order.surroundings.scratch.join(&copy.name);
        let [upper, work] = [UPPER, WORK].map(|name| folder.join(name));
        match Tree::overlay_of(&[&real], &upper, &work) {
            Ok(tree) => trees.push((copy.at.clone(), tree)),
            Err(error) => {
                let tree = Tree::of(&real).and_then(Tree::read_only);
                trees.push((copy.at.clone(), tree.to_isolate(doing())?));
                arranged.notes.push(format!(
                    "{} is read-only, a private copy was not possible ({error})",
                    copy.at.display()
                ));
                continue;
            }
        }
        for shared in SHARED {
            let path = copy.at.join(shared);
            // What is not there is made in the copy.
            if let Ok(handle) = open_below(&root, &path) {
                let tree = Tree::of(&handle).and_then(Tree::plain);
                trees.push((path, tree.to_isolate(doing())?));
            }
        }
    }
    Ok(trees)
}

/// Private copies of folders of tools that do not lie in the home folder.
fn private_tools(order: &Order, arranged: &mut Arranged) -> Vec<Planned> {
    let mut planned = Vec::new();
    for copy in order.copies.iter().filter(|copy| !copy.is_git) {
        let folder = order.surroundings.scratch.join(&copy.name);
        let [upper, work] = [UPPER, WORK].map(|name| folder.join(name));
        match Tree::overlay(&copy.at, &upper, &work) {
            Ok(tree) => {
                planned.push(Planned::seen(&copy.at, tree));
                arranged.writable.push(copy.at.clone());
            }
            Err(error) => arranged.notes.push(format!(
                "{} is read-only, a private copy was not possible ({error})",
                copy.at.display()
            )),
        }
    }
    planned
}

/// The files that decide what the command does, as they were checked: whoever exchanges them now changes nothing.
fn checked(order: &Order) -> Result<Vec<(PathBuf, Tree)>, Failure> {
    let folder = order.surroundings.scratch.join(scratch::CHECKED);
    let mut trees = Vec::new();
    if order.profile.overlay.is_some() {
        return Ok(trees);
    }
    for file in &order.checked {
        if let Some(copy) = &file.copy {
            let tree = Tree::at(&folder.join(copy)).and_then(Tree::read_only);
            let tree = tree.to_isolate(format!("show {} as checked", file.path.display()))?;
            trees.push((file.path.clone(), tree));
        }
    }
    Ok(trees)
}

/// What stays visible or writable, taken before anything is hidden.
fn seen(order: &Order, arranged: &mut Arranged) -> Result<Vec<Planned>, Failure> {
    let (profile, around) = (&order.profile, &order.surroundings);
    let mut planned = Vec::new();
    let temporary = ["/tmp", "/var/tmp"].map(Path::new).into_iter();
    for temporary in temporary.filter(|folder| folder.is_dir()) {
        let tree = Tree::at(&around.scratch.join(scratch::TEMPORARY)).and_then(Tree::plain);
        let tree = tree.to_isolate("take the private temporary folder")?;
        planned.push(Planned::seen(temporary, tree));
        arranged.writable.push(temporary.into());
    }
    let visible = around.visible.iter().chain(around.home.as_ref());
    let visible = visible.filter(|path| COVERED.iter().any(|covered| path.starts_with(covered)));
    for path in visible.chain(name_service().as_ref()) {
        // What cannot be reached now cannot be needed.
        if let Ok(tree) = Tree::at(path).and_then(Tree::read_only) {
            planned.push(Planned::seen(path, tree));
        }
    }
    if let Some(home) = around.home.as_ref().filter(|home| is_apart(home, profile)) {
        match private_home(order, home) {
            Ok(tree) => {
                planned.push(Planned::seen(home, tree));
                arranged.writable.push(home.clone());
            }
            // A folder in which something is mounted cannot be copied, for example.
            Err(error) => {
                let empty = Tree::empty("700").to_isolate("make an empty home folder")?;
                planned.push(Planned::seen(home, empty));
                arranged.writable.push(home.clone());
                let needed = needed_of(home, order).into_iter();
                for path in needed.filter(|path| *path != profile.root) {
                    if let Ok(tree) = Tree::at(&path).and_then(Tree::read_only) {
                        planned.push(Planned::seen(&path, tree));
                    }
                }
                arranged.notes.push(format!(
                    "what is needed of the home folder is read-only, a private copy was not possible ({error})"
                ));
            }
        }
    }
    planned.push(project(profile, arranged)?);
    planned.extend(granted(order, arranged)?);
    Ok(planned)
}

/// What the command needs of the home folder.
fn needed_of(home: &Path, order: &Order) -> Vec<PathBuf> {
    let (profile, around) = (&order.profile, &order.surroundings);
    let caches = around.caches.iter().chain(&around.needed);
    let tools = around.adding.iter().map(|(path, _)| path);
    let mut needed: Vec<PathBuf> = caches.chain(tools).cloned().collect();
    needed.push(profile.root.clone());
    needed.extend(profile.writable_outside());
    needed.retain(|path| path.starts_with(home) && path != home);
    needed
}

/// A private copy of the home folder, with what the command needs of it and nothing else.
fn private_home(order: &Order, home: &Path) -> io::Result<Tree> {
    let around = &order.surroundings;
    let scratch = &around.scratch;
    let mut seen = needed_of(home, order);
    // What is hidden by a mount needs a place where it is mounted.
    let private = around.private.iter().filter(|path| path.starts_with(home));
    seen.extend(private.cloned());
    let mask = mask::make(home, &seen, &scratch.join(scratch::MASK))?;
    let [upper, work] = [scratch::HOME, scratch::WORK].map(|name| scratch.join(name));
    let home = open(home)?;
    let lower = [&mask, &home];
    // Some file systems cannot take changes; memory always can.
    Tree::overlay_of(&lower, &upper, &work).or_else(|_| Tree::overlay_in_memory(&lower))
}

/// The project itself, or an overlay over it.
fn project(profile: &Profile, arranged: &mut Arranged) -> Result<Planned, Failure> {
    let tree = match &profile.overlay {
        Some(overlay) => Tree::overlay(&overlay.lower, &overlay.upper, &overlay.work)
            .to_isolate("lay an overlay over the project")?,
        None => Tree::at(&profile.root)
            .and_then(Tree::plain)
            .to_isolate("take the project")?,
    };
    let is_whole = profile.overlay.is_some() || profile.writable_in_project().next().is_none();
    let tree = match is_whole {
        true => Ok(tree),
        false => tree.read_only(),
    };
    if is_whole {
        arranged.writable.push(profile.root.clone());
    }
    let tree = tree.to_isolate("make the project read-only")?;
    Ok(Planned::seen(&profile.root, tree))
}

/// What is writable in the project where only some of it is, taken before the rest is made read-only.
fn opened(profile: &Profile, arranged: &mut Arranged) -> Result<Vec<(PathBuf, Tree)>, Failure> {
    let mut opened = Vec::new();
    if profile.overlay.is_some() {
        // All of the overlay is writable: what is real stays as it is anyway.
        return Ok(opened);
    }
    let root = open(&profile.root).to_isolate("find the project")?;
    for path in profile.writable_in_project() {
        let below = path.strip_prefix(&profile.root).unwrap_or(&path);
        match open_or_make(&root, below) {
            Ok(handle) => {
                let tree = Tree::of(&handle).and_then(Tree::plain);
                let tree = tree.to_isolate(format!("make {} writable", below.display()))?;
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

/// Something in the project; where it is not there and has the name of a folder, it is made.
fn open_or_make(root: &OwnedFd, below: &Path) -> io::Result<OwnedFd> {
    match open_below(root, below) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && below.extension().is_none() => {}
        other => return other,
    }
    let folder = match below.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => open_below(root, folder)?,
        _ => root.try_clone()?,
    };
    let name = below.file_name().unwrap_or(below.as_os_str());
    rustix::fs::mkdirat(&folder, name, Mode::from_raw_mode(0o777))?;
    open_below(root, below)
}

/// What is writable beside the project.
fn granted(order: &Order, arranged: &mut Arranged) -> Result<Vec<Planned>, Failure> {
    let profile = &order.profile;
    let mut planned = Vec::new();
    if profile.overlay.is_some() {
        // All of these are the real ones. Nothing real may be written to where all is meant to be a trial.
        return Ok(planned);
    }
    let outside = profile.writable_outside();
    for path in order.surroundings.caches.iter().cloned().chain(outside) {
        let is_around = profile.root.starts_with(&path);
        let Ok(tree) = Tree::at(&path).and_then(Tree::plain) else {
            continue;
        };
        if !is_around {
            planned.push(Planned::seen(&path, tree));
            arranged.writable.push(path);
        }
    }
    for path in &order.surroundings.private {
        let empty = Tree::empty("700").to_isolate("make a private folder")?;
        planned.push(Planned::seen(path, empty));
    }
    Ok(planned)
}

/// What is not seen.
fn hidden(order: &Order) -> Vec<Planned> {
    let (profile, around) = (&order.profile, &order.surroundings);
    let own = profile.own.iter().chain(&around.secrets);
    // What lies around the project can be hidden, for the project is mounted there again. It itself cannot.
    let own = own.filter(|path| **path != profile.root);
    // Where services of the machine listen.
    let sockets = PathBuf::from("/run");
    [sockets]
        .into_iter()
        .chain(own.cloned())
        .map(|at| Planned {
            at,
            what: What::Hidden,
        })
        .collect()
}

/// Whether the home folder is beside the project, so that it can have a private copy.
pub(super) fn is_apart(home: &Path, profile: &Profile) -> bool {
    home.parent().is_some() && !home.starts_with(&profile.root)
}

/// The file that tells the name servers, if it lies where all is hidden.
fn name_service() -> Option<PathBuf> {
    let file = fs::canonicalize("/etc/resolv.conf").ok()?;
    file.starts_with("/run").then_some(file)
}

fn make_all_read_only() -> io::Result<()> {
    let flags = MountAttrFlags::MOUNT_ATTR_RDONLY | MountAttrFlags::MOUNT_ATTR_NOSUID;
    restrict(&open(Path::new("/"))?, flags, Extent::Tree)
}

/// Mounts from the outside to the inside; what hides comes before what is seen in its place.
fn mount_all(mut planned: Vec<Planned>) -> Result<(), Failure> {
    planned.sort_by_key(|one| {
        let is_seen = matches!(one.what, What::Seen(_));
        (one.at.components().count(), is_seen)
    });
    let mut sealed = Vec::new();
    for Planned { at, what } in planned {
        let doing = || format!("arrange {}", at.display());
        match what {
            What::Hidden => sealed.extend(hide(&at).to_isolate(doing())?),
            What::Seen(tree) => {
                let target = mount_point(&at, &tree).to_isolate(doing())?;
                tree.mount_over(&target).to_isolate(doing())?;
            }
        }
    }
    for at in sealed {
        let target = open(&at).to_isolate("find what was hidden")?;
        restrict(&target, MountAttrFlags::MOUNT_ATTR_RDONLY, Extent::One)
            .to_isolate("seal what was hidden")?;
    }
    Ok(())
}

/// Puts something empty over a folder or a file, if it is there; returns where something has yet to be sealed.
fn hide(at: &Path) -> io::Result<Option<PathBuf>> {
    let target = match open(at) {
        Ok(target) => target,
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(error),
    };
    if is_folder(&target)? {
        Tree::empty("755")?.mount_over(&target)?;
        return Ok(Some(at.to_owned()));
    }
    Tree::at(Path::new("/dev/null"))?.mount_over(&target)?;
    Ok(None)
}

/// What is not there, or out of reach, needs no hiding.
fn is_absent(error: &io::Error) -> bool {
    let absent = [Errno::NOENT, Errno::NOTDIR, Errno::ACCESS, Errno::LOOP];
    absent
        .iter()
        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

/// Where a piece goes; what lay around it may have been hidden.
fn mount_point(at: &Path, tree: &Tree) -> io::Result<OwnedFd> {
    match open(at) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if is_folder(&tree.handle())? {
                fs::create_dir_all(at)?;
            } else {
                at.parent().map_or(Ok(()), fs::create_dir_all)?;
                fs::File::create_new(at)?;
            }
            open(at)
        }
        other => other,
    }
}

fn over(tree: Tree, at: &Path) -> io::Result<()> {
    tree.mount_over(&open(at)?)
}

fn is_folder(handle: &impl AsFd) -> io::Result<bool> {
    let stat = rustix::fs::fstat(handle)?;
    Ok(FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
}

/// Makes read-only what of the project decides what runs outside of the sandbox later.
fn keep(order: &Order, arranged: &mut Arranged) -> Result<(), Failure> {
    let profile = &order.profile;
    let lists = &Lists::built_in().project;
    let is_private = order.copies.iter().any(|copy| copy.is_git);
    let pointer = (!is_private && profile.overlay.is_none()).then_some(Path::new(NAME));
    let kept = order.kept().chain(&lists.views).map(PathBuf::as_path);
    for path in kept.chain(pointer) {
        let root = open(&profile.root).to_isolate("find the project")?;
        let kept = fix(&root, path, Tree::read_only);
        if !kept.to_isolate(format!("keep {}", path.display()))? {
            arranged.notes.push(format!(
                "{} is reached by a symlink and could be replaced",
                path.display()
            ));
        }
    }
    Ok(())
}

/// Mounts something of the project over itself; whether that was possible. What is not there is looked after later.
fn fix(
    root: &OwnedFd,
    path: &Path,
    how: impl FnOnce(Tree) -> io::Result<Tree>,
) -> io::Result<bool> {
    let target = match open_below(root, path) {
        Ok(target) => target,
        Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => return Ok(false),
        Err(error) if is_absent(&error) => return Ok(true),
        Err(error) => return Err(error),
    };
    how(Tree::of(&target)?)?.mount_over(&target)?;
    Ok(true)
}

impl Planned {
    fn seen(at: impl Into<PathBuf>, tree: Tree) -> Self {
        Self {
            at: at.into(),
            what: What::Seen(tree),
        }
    }
}
