//! The merged view of the command's writes and the original tree, from the marks that an overlay leaves.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{FileType, Stat, fgetxattr};
use rustix::io::{Errno, Result};

use super::nofollow_access;
use super::tree_path::TreePath;

/// Namespaces of the overlay's extended attributes: for unprivileged mounts and for root's.
const XATTR_NAMESPACES: [&str; 2] = ["user", "trusted"];
/// Maximum length of a redirect target.
const MAX_REDIRECT_BYTES: usize = 4096;

/// One directory in both layers, as seen through the overlay.
#[derive(Debug)]
pub(super) struct OverlayDir {
    /// Upper directory, or `None` if the directory was not written to.
    upper: Option<OwnedFd>,
    /// Visible lower directory, or `None` if there is none.
    lower: Option<OwnedFd>,
}

/// A visible entry of a directory.
#[derive(Debug)]
pub(super) struct OverlayEntry<'a> {
    pub(super) parent: &'a OverlayDir,
    pub(super) name: &'a [u8],
    pub(super) data: Stat,
    is_upper: bool,
}

/// An entry of the upper layer.
#[derive(Debug)]
pub(crate) enum UpperLayerEntry {
    /// A whiteout: the name is deleted.
    Whiteout,
    Present(Stat),
}

/// The relation of an upper directory to the lower layer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum UpperDirRelation {
    /// Both are visible.
    Merged,
    /// Only the upper one is visible.
    Opaque,
    /// The directory was moved here: the lower directory of this path is merged with it.
    Moved(Vec<u8>),
}

impl OverlayDir {
    pub(super) fn merged(upper: OwnedFd, lower: OwnedFd) -> Self {
        Self {
            upper: Some(upper),
            lower: Some(lower),
        }
    }

    /// Returns an empty directory.
    pub(super) fn empty() -> Self {
        Self {
            upper: None,
            lower: None,
        }
    }

    /// Returns the lower directory alone.
    pub(super) fn lower_only(&self) -> Result<Self> {
        let again = |lower| nofollow_access::open_dir(lower, b".");
        Ok(Self {
            upper: None,
            lower: self.lower.as_ref().map(again).transpose()?,
        })
    }

    /// Returns the entries written into the directory.
    pub(super) fn written_entries(&self) -> Result<Vec<(Vec<u8>, UpperLayerEntry)>> {
        let Some(upper) = &self.upper else {
            return Ok(Vec::new());
        };
        let mut written = Vec::new();
        for name in nofollow_access::list_names(upper)? {
            if let Some(mark) = read_mark(upper, &name)? {
                written.push((name, mark));
            }
        }
        Ok(written)
    }

    /// Returns the visible names in the directory, sorted.
    pub(super) fn names(&self) -> Result<Vec<Vec<u8>>> {
        let written: BTreeMap<_, _> = self.written_entries()?.into_iter().collect();
        let mut names = match &self.lower {
            Some(lower) => nofollow_access::list_names(lower)?,
            None => Vec::new(),
        };
        names.retain(|name| !written.contains_key(name));
        let is_seen = |(name, mark)| matches!(mark, UpperLayerEntry::Present(_)).then_some(name);
        names.extend(written.into_iter().filter_map(is_seen));
        names.sort_unstable();
        Ok(names)
    }

    /// Returns the visible entry of a name.
    pub(super) fn entry<'a>(&'a self, name: &'a [u8]) -> Result<Option<OverlayEntry<'a>>> {
        let written = match &self.upper {
            Some(upper) => read_mark(upper, name)?,
            None => None,
        };
        let (data, is_upper) = match (written, &self.lower) {
            (Some(UpperLayerEntry::Whiteout), _) | (None, None) => return Ok(None),
            (Some(UpperLayerEntry::Present(data)), _) => (Some(data), true),
            (None, Some(lower)) => (nofollow_access::stat_entry(lower, name)?, false),
        };
        // The socket's listener is gone, and so is the socket.
        let data = data.filter(|data| kind(data) != FileType::Socket);
        Ok(data.map(|data| OverlayEntry {
            parent: self,
            name,
            data,
            is_upper,
        }))
    }

    /// Opens an upper subdirectory.
    pub(super) fn upper_dir(&self, name: &[u8]) -> Option<OwnedFd> {
        let upper = self.upper.as_ref()?;
        nofollow_access::open_dir(upper, name).ok()
    }

    /// Returns the metadata of a name in the lower layer.
    pub(super) fn lower_stat(&self, name: &[u8]) -> Result<Option<Stat>> {
        match &self.lower {
            Some(lower) => nofollow_access::stat_entry(lower, name),
            None => Ok(None),
        }
    }

    /// Returns the relation of an upper subdirectory to the lower layer.
    pub(super) fn lower_layer_relation(&self, name: &[u8]) -> Result<UpperDirRelation> {
        match &self.upper {
            Some(upper) => read_bond(&nofollow_access::open_dir(upper, name)?),
            None => Ok(UpperDirRelation::Merged),
        }
    }

    /// Opens a subdirectory in both layers.
    pub(super) fn child(&self, name: &[u8], root: &OwnedFd) -> Result<Self> {
        let upper = match &self.upper {
            Some(upper) => open_dir_if_exists(upper, name)?,
            None => None,
        };
        let bond = upper
            .as_ref()
            .map_or(Ok(UpperDirRelation::Merged), read_bond)?;
        let lower = match (bond, &self.lower) {
            (UpperDirRelation::Opaque, _) | (UpperDirRelation::Merged, None) => None,
            (UpperDirRelation::Merged, Some(lower)) => open_dir_if_exists(lower, name)?,
            (UpperDirRelation::Moved(to), lower) => match to.strip_prefix(b"/") {
                Some(path) => Some(nofollow_access::open_dir_at(
                    root,
                    &TreePath::from_bytes(path),
                )?),
                None => lower
                    .as_ref()
                    .map(|lower| nofollow_access::open_dir(lower, &to))
                    .transpose()?,
            },
        };
        Ok(Self { upper, lower })
    }

    /// Opens a directory below this one in both layers.
    pub(super) fn descend(self, path: &TreePath, root: &OwnedFd) -> Result<Self> {
        let mut at = self;
        for part in path.parts() {
            at = at.child(part, root)?;
        }
        Ok(at)
    }
}

impl OverlayEntry<'_> {
    pub(super) fn kind(&self) -> FileType {
        kind(&self.data)
    }

    /// Returns the layer's directory that contains the entry.
    fn containing_dir(&self) -> Result<&OwnedFd> {
        let folder = if self.is_upper {
            &self.parent.upper
        } else {
            &self.parent.lower
        };
        folder.as_ref().ok_or(Errno::NOENT)
    }

    /// Opens the file for reading.
    pub(super) fn open(&self) -> Result<std::fs::File> {
        nofollow_access::open_file(self.containing_dir()?, self.name)
    }

    /// Returns the target of the link.
    pub(super) fn target(&self) -> Result<Vec<u8>> {
        let target = rustix::fs::readlinkat(self.containing_dir()?, self.name, Vec::new())?;
        Ok(target.into_bytes())
    }

    /// Opens the directory in both layers.
    pub(super) fn open_dir(&self, root: &OwnedFd) -> Result<OverlayDir> {
        self.parent.child(self.name, root)
    }
}

pub(super) fn kind(data: &Stat) -> FileType {
    FileType::from_raw_mode(data.st_mode)
}

fn open_dir_if_exists(parent: &OwnedFd, name: &[u8]) -> Result<Option<OwnedFd>> {
    match nofollow_access::open_dir(parent, name) {
        Ok(folder) => Ok(Some(folder)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
        Err(error) => Err(error),
    }
}

pub(crate) fn read_mark(upper: &OwnedFd, name: &[u8]) -> Result<Option<UpperLayerEntry>> {
    let Some(data) = nofollow_access::stat_entry(upper, name)? else {
        return Ok(None);
    };
    let gone = match kind(&data) {
        FileType::CharacterDevice => data.st_rdev == 0,
        FileType::RegularFile if data.st_size == 0 => {
            let file = nofollow_access::open_file(upper, name);
            // An unreadable entry was not made by an overlay to hide something.
            match file {
                Ok(file) => read_xattr(&file, "whiteout")?.is_some(),
                Err(Errno::ACCESS) => false,
                Err(error) => return Err(error),
            }
        }
        _ => false,
    };
    Ok(Some(if gone {
        UpperLayerEntry::Whiteout
    } else {
        UpperLayerEntry::Present(data)
    }))
}

pub(crate) fn read_bond(folder: &OwnedFd) -> Result<UpperDirRelation> {
    if read_xattr(folder, "opaque")?.is_some_and(|value| value == b"y") {
        return Ok(UpperDirRelation::Opaque);
    }
    let moved = read_xattr(folder, "redirect")?;
    Ok(moved.map_or(UpperDirRelation::Merged, UpperDirRelation::Moved))
}

/// True if the upper layer has only the metadata of a file, and its content is in the lower one.
pub(super) fn is_metacopy(file: impl AsFd) -> Result<bool> {
    Ok(read_xattr(file, "metacopy")?.is_some())
}

fn read_xattr(of: impl AsFd, name: &str) -> Result<Option<Vec<u8>>> {
    for space in XATTR_NAMESPACES {
        let mut value = vec![0; MAX_REDIRECT_BYTES];
        match fgetxattr(&of, format!("{space}.overlay.{name}"), &mut value[..]) {
            Ok(length) => {
                value.truncate(length);
                return Ok(Some(value));
            }
            Err(Errno::NODATA | Errno::OPNOTSUPP) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}
