//! Compares what a command left with what lies below, by content.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

use rustix::fs::{FileType, Stat};
use rustix::io::Errno;

use super::bounds::Bounds;
use super::change::{
    After, Change, Changes, How, Kind, Permitted, Print, Rewritten, Thing, Touched, Unit,
    permissions,
};
use super::content;
use super::error::PreviewError;
use super::handle;
use super::layers::{self, Bond, Item, Layers, Mark};
use super::path::TreePath;
use super::units::refine;
use crate::sandbox::{GitFolders, git};

type Result<T> = std::result::Result<T, PreviewError>;

/// What is compared.
#[derive(Debug)]
pub(super) struct Compared<'a> {
    /// The root of the project.
    pub(super) lower: &'a OwnedFd,
    /// What the command wrote.
    pub(super) upper: &'a OwnedFd,
    /// What no repair may make or change; what was made there all the same is told and left out.
    pub(super) guarded: &'a [TreePath],
    pub(super) bounds: Bounds,
}

/// All that differs.
pub(super) fn compare(what: &Compared<'_>) -> Result<Changes> {
    let root = TreePath::default();
    let again = |folder: &OwnedFd| handle::folder(folder, b".");
    let failed = |error| unreadable(&root, error);
    let upper = again(what.upper).map_err(failed)?;
    let here = Layers::merged(upper, again(what.lower).map_err(failed)?);
    let mut walk = Walk {
        what,
        found: Changes::default(),
        rewritten: BTreeMap::new(),
        entries: 0,
        bytes: 0,
    };
    walk.permissions_of_root(&root)?;
    walk.merged(&root, &here, 0)?;
    let rewritten = walk.rewritten.into_iter();
    let rewritten = rewritten.map(|(folder, files)| Rewritten { folder, files });
    walk.found.rewritten = rewritten.collect();
    Ok(refine(walk.found))
}

pub(super) fn unreadable(path: &TreePath, error: Errno) -> PreviewError {
    PreviewError::Unreadable {
        path: path.shown(),
        source: error.into(),
    }
}

struct Walk<'a> {
    what: &'a Compared<'a>,
    found: Changes,
    /// Files that were written again as they were, by their folder.
    rewritten: BTreeMap<TreePath, u64>,
    entries: u64,
    bytes: u64,
}

impl Walk<'_> {
    fn permissions_of_root(&mut self, root: &TreePath) -> Result<()> {
        let data = |folder| rustix::fs::fstat(folder).map_err(|error| unreadable(root, error));
        let (before, after) = (data(self.what.lower)?, data(self.what.upper)?);
        self.permissions(root, &before, &after)
    }

    /// A folder that was there and stays: only what was written into it can differ.
    fn merged(&mut self, path: &TreePath, here: &Layers, depth: usize) -> Result<()> {
        self.deeper(path, depth)?;
        let failed = |error| unreadable(path, error);
        for (name, mark) in here.written().map_err(failed)? {
            let at = path.join(&name);
            if self.what.guarded.contains(&at) {
                self.found.refused.push(at);
                continue;
            }
            let below = here.below(&name).map_err(failed)?;
            if self.is_gits(&at, here, &name, &mark, below.is_some()) {
                self.found.refused.push(at);
                continue;
            }
            if let (Mark::Here(data), Some(below)) = (&mark, &below)
                && [data, below].map(Kind::of) == [Some(Kind::Folder); 2]
                && here.bond(&name).map_err(failed)? == Bond::Merged
            {
                self.permissions(&at, below, data)?;
                let inner = here.child(&name, self.what.lower).map_err(failed)?;
                self.merged(&at, &inner, depth + 1)?;
                continue;
            }
            self.unit(&at, here, &name, depth)?;
        }
        Ok(())
    }

    /// Whether git would obey what was made here: a new repository, wherever it lies in what is new, or what of one that
    /// was there no repair may change.
    fn is_gits(
        &self,
        at: &TreePath,
        here: &Layers,
        name: &[u8],
        mark: &Mark,
        was_there: bool,
    ) -> bool {
        let mut inside = at
            .parts()
            .skip_while(|part| !part.eq_ignore_ascii_case(b".git"));
        let kind = match mark {
            Mark::Gone => None,
            Mark::Here(data) => Some(layers::kind(data)),
        };
        if inside.next().is_some() {
            return match inside.next() {
                // What was there is looked into.
                None => !was_there || kind != Some(FileType::Directory),
                Some(first) => {
                    let first = std::ffi::OsStr::from_bytes(first);
                    !git::is_writable(first) || kind == Some(FileType::Symlink)
                }
            };
        }
        if was_there || kind != Some(FileType::Directory) {
            return false;
        }
        here.upper_folder(name).is_some_and(|folder| {
            let found = GitFolders::look(&folder);
            git::is_repository(&git::list(&folder)) || !found.found.is_empty()
        })
    }

    fn permissions(&mut self, path: &TreePath, before: &Stat, after: &Stat) -> Result<()> {
        let bits = (permissions(before), permissions(after));
        if bits.0 == bits.1 {
            return Ok(());
        }
        let permitted = Permitted {
            before: bits.0,
            after: bits.1,
        };
        self.found.permitted.push((path.clone(), permitted));
        self.found.changes.push(Change {
            path: path.clone(),
            before: Some(thing(path, before)?),
            after: Some(thing(path, after)?),
        });
        Ok(())
    }

    /// A path that is put in place as one, if anything of it differs.
    fn unit(&mut self, at: &TreePath, here: &Layers, name: &[u8], depth: usize) -> Result<()> {
        let failed = |error| unreadable(at, error);
        let (changes, touched) = (self.found.changes.len(), self.found.touched.len());
        let base = here.base().map_err(failed)?;
        let before = base.item(name).map_err(failed)?;
        let after = here.item(name).map_err(failed)?;
        self.tree(at, before.as_ref(), after.as_ref(), depth)?;
        let how = match (before.is_some(), after.is_some()) {
            (false, false) => None,
            (false, true) => Some(How::Put),
            (true, true) => Some(How::Exchange),
            (true, false) => Some(How::Take),
        };
        match how.filter(|_| self.found.changes.len() > changes) {
            Some(how) => self.found.units.push(Unit {
                path: at.clone(),
                how,
                touched: touched..self.found.touched.len(),
            }),
            None => self.found.touched.truncate(touched),
        }
        Ok(())
    }

    /// Two trees, entry by entry.
    fn tree(
        &mut self,
        at: &TreePath,
        before: Option<&Item<'_>>,
        after: Option<&Item<'_>>,
        depth: usize,
    ) -> Result<()> {
        self.deeper(at, depth)?;
        let was = before.map(|item| described(at, item)).transpose()?;
        let mut will_be = after.map(|item| described(at, item)).transpose()?;
        if was.is_none() && will_be.is_none() {
            return Ok(());
        }
        if let (Some(after), Some(will_be)) = (after, &mut will_be)
            && will_be.kind == Kind::File
        {
            will_be.content = self.new_content(at, before, after)?;
        }
        let is_same = match (&was, &will_be) {
            (Some(was), Some(will_be)) => was == will_be,
            _ => false,
        };
        self.found.touched.push(Touched {
            path: at.clone(),
            before: before.map(|item| Print::of(&item.data)),
            after: match (&will_be, is_same) {
                (_, true) => After::Same,
                (Some(thing), false) => After::Other(thing.clone()),
                (None, false) => After::Gone,
            },
        });
        let is_folder = |thing: &Option<Thing>| {
            thing
                .as_ref()
                .is_some_and(|thing| thing.kind == Kind::Folder)
        };
        let folders = (is_folder(&was), is_folder(&will_be));
        match is_same {
            true if was.as_ref().is_some_and(|was| was.kind == Kind::File) => self.note_same(at),
            true => {}
            false => self.found.changes.push(Change {
                path: at.clone(),
                before: was,
                after: will_be,
            }),
        }
        let before = before.filter(|_| folders.0);
        let after = after.filter(|_| folders.1);
        self.inside(at, before, after, depth)
    }

    /// What is inside of two folders, or of one that takes the place of something else.
    fn inside(
        &mut self,
        at: &TreePath,
        before: Option<&Item<'_>>,
        after: Option<&Item<'_>>,
        depth: usize,
    ) -> Result<()> {
        let failed = |error| unreadable(at, error);
        let entered = |item: Option<&Item<'_>>| match item {
            Some(item) => item.enter(self.what.lower).map_err(failed),
            None => Ok(Layers::empty()),
        };
        let (before, after) = (entered(before)?, entered(after)?);
        let mut names: BTreeSet<_> = before.names().map_err(failed)?.into_iter().collect();
        names.extend(after.names().map_err(failed)?);
        for name in &names {
            let was = before.item(name).map_err(failed)?;
            let will_be = after.item(name).map_err(failed)?;
            self.tree(&at.join(name), was.as_ref(), will_be.as_ref(), depth + 1)?;
        }
        Ok(())
    }

    /// The hash of what a file holds, unless it holds what was there before.
    fn new_content(
        &mut self,
        at: &TreePath,
        before: Option<&Item<'_>>,
        after: &Item<'_>,
    ) -> Result<Option<String>> {
        let failed = |source| PreviewError::Unreadable {
            path: at.shown(),
            source,
        };
        let is_like = |before: &&Item<'_>| {
            before.kind() == FileType::RegularFile && before.data.st_size == after.data.st_size
        };
        if let Some(before) = before.filter(is_like) {
            let before = before.open().map_err(|error| failed(error.into()))?;
            let after = self.written(at, after)?;
            if content::is_same(before, after).map_err(failed)? {
                return Ok(None);
            }
        }
        let file = self.written(at, after)?;
        content::hash(file).map(Some).map_err(failed)
    }

    /// A file that the command left, to be read.
    fn written(&mut self, at: &TreePath, item: &Item<'_>) -> Result<File> {
        self.bytes += item.data.st_size.unsigned_abs();
        self.what.bounds.allow_bytes(self.bytes)?;
        let file = item.open().map_err(|error| unreadable(at, error))?;
        match layers::is_hollow(&file).map_err(|error| unreadable(at, error))? {
            false => Ok(file),
            true => Err(PreviewError::Unknown {
                path: at.shown(),
                what: "a file of which only the description was written",
            }),
        }
    }

    fn note_same(&mut self, at: &TreePath) {
        let folder = at.split().map(|(folder, _)| folder).unwrap_or_default();
        *self.rewritten.entry(folder).or_default() += 1;
    }

    /// Counts an entry, against trees without an end.
    fn deeper(&mut self, at: &TreePath, depth: usize) -> Result<()> {
        self.entries += 1;
        self.what.bounds.allow_depth(at, depth)?;
        self.what.bounds.allow_entries(self.entries)
    }
}

/// All that counts of an item.
fn described(at: &TreePath, item: &Item<'_>) -> Result<Thing> {
    let mut thing = thing(at, &item.data)?;
    if thing.kind == Kind::Link {
        let target = item.target().map_err(|error| unreadable(at, error))?;
        thing.target = Some(TreePath::from_bytes(&target));
    }
    Ok(thing)
}

fn thing(at: &TreePath, data: &Stat) -> Result<Thing> {
    let kind = Kind::of(data).ok_or_else(|| PreviewError::Unknown {
        path: at.shown(),
        what: "a device",
    })?;
    Ok(Thing {
        kind,
        mode: permissions(data),
        size: match kind {
            Kind::File => data.st_size.unsigned_abs(),
            _ => 0,
        },
        target: None,
        content: None,
    })
}
