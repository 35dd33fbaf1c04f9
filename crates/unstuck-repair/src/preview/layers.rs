//! A folder as a command left it: what it wrote, over what lies below, by the marks that an overlay leaves.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{FileType, Stat, fgetxattr};
use rustix::io::{Errno, Result};

use super::handle;
use super::path::TreePath;

/// Where overlays keep their marks: those of ordinary users, and those of root.
const NAMESPACES: [&str; 2] = ["user", "trusted"];
/// The longest target of a redirection that is read.
const LONGEST: usize = 4096;

/// One folder of both layers, as it is seen through an overlay.
#[derive(Debug)]
pub(super) struct Layers {
    /// What was written; none for a folder that was not touched.
    upper: Option<OwnedFd>,
    /// What is seen of what lies below; none where nothing is.
    lower: Option<OwnedFd>,
}

/// Something that is seen in a folder.
#[derive(Debug)]
pub(super) struct Item<'a> {
    pub(super) parent: &'a Layers,
    pub(super) name: &'a [u8],
    pub(super) data: Stat,
    is_upper: bool,
}

/// What the upper layer says about a name.
#[derive(Debug)]
pub(crate) enum Mark {
    /// Nothing is to be seen there.
    Gone,
    Here(Stat),
}

/// How an upper folder stands to what lies below.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Bond {
    /// Both are seen.
    Merged,
    /// Only it is seen.
    Opaque,
    /// It was moved here: the folder of this path is seen with it.
    Moved(Vec<u8>),
}

impl Layers {
    pub(super) fn merged(upper: OwnedFd, lower: OwnedFd) -> Self {
        Self {
            upper: Some(upper),
            lower: Some(lower),
        }
    }

    /// A folder with nothing in it.
    pub(super) fn empty() -> Self {
        Self {
            upper: None,
            lower: None,
        }
    }

    /// What lies below, as if nothing had been written.
    pub(super) fn base(&self) -> Result<Self> {
        let again = |lower| handle::folder(lower, b".");
        Ok(Self {
            upper: None,
            lower: self.lower.as_ref().map(again).transpose()?,
        })
    }

    /// What was written into the folder.
    pub(super) fn written(&self) -> Result<Vec<(Vec<u8>, Mark)>> {
        let Some(upper) = &self.upper else {
            return Ok(Vec::new());
        };
        let mut written = Vec::new();
        for name in handle::names(upper)? {
            if let Some(mark) = mark(upper, &name)? {
                written.push((name, mark));
            }
        }
        Ok(written)
    }

    /// The names that are seen in the folder, in order.
    pub(super) fn names(&self) -> Result<Vec<Vec<u8>>> {
        let written: BTreeMap<_, _> = self.written()?.into_iter().collect();
        let mut names = match &self.lower {
            Some(lower) => handle::names(lower)?,
            None => Vec::new(),
        };
        names.retain(|name| !written.contains_key(name));
        let is_seen = |(name, mark)| matches!(mark, Mark::Here(_)).then_some(name);
        names.extend(written.into_iter().filter_map(is_seen));
        names.sort_unstable();
        Ok(names)
    }

    /// What is seen at a name.
    pub(super) fn item<'a>(&'a self, name: &'a [u8]) -> Result<Option<Item<'a>>> {
        let written = match &self.upper {
            Some(upper) => mark(upper, name)?,
            None => None,
        };
        let (data, is_upper) = match (written, &self.lower) {
            (Some(Mark::Gone), _) | (None, None) => return Ok(None),
            (Some(Mark::Here(data)), _) => (Some(data), true),
            (None, Some(lower)) => (handle::look(lower, name)?, false),
        };
        // What listened at a socket is gone, so is the socket.
        let data = data.filter(|data| kind(data) != FileType::Socket);
        Ok(data.map(|data| Item {
            parent: self,
            name,
            data,
            is_upper,
        }))
    }

    /// A folder that was written.
    pub(super) fn upper_folder(&self, name: &[u8]) -> Option<OwnedFd> {
        let upper = self.upper.as_ref()?;
        handle::folder(upper, name).ok()
    }

    /// What lies below at a name, whatever was written.
    pub(super) fn below(&self, name: &[u8]) -> Result<Option<Stat>> {
        match &self.lower {
            Some(lower) => handle::look(lower, name),
            None => Ok(None),
        }
    }

    /// How a folder that was written stands to what lies below.
    pub(super) fn bond(&self, name: &[u8]) -> Result<Bond> {
        match &self.upper {
            Some(upper) => bond(&handle::folder(upper, name)?),
            None => Ok(Bond::Merged),
        }
    }

    /// A folder in this one, as it is seen.
    pub(super) fn child(&self, name: &[u8], root: &OwnedFd) -> Result<Self> {
        let upper = match &self.upper {
            Some(upper) => folder_or_none(upper, name)?,
            None => None,
        };
        let bond = upper.as_ref().map_or(Ok(Bond::Merged), bond)?;
        let lower = match (bond, &self.lower) {
            (Bond::Opaque, _) | (Bond::Merged, None) => None,
            (Bond::Merged, Some(lower)) => folder_or_none(lower, name)?,
            (Bond::Moved(to), lower) => match to.strip_prefix(b"/") {
                Some(path) => Some(handle::folder_at(root, &TreePath::from_bytes(path))?),
                None => lower
                    .as_ref()
                    .map(|lower| handle::folder(lower, &to))
                    .transpose()?,
            },
        };
        Ok(Self { upper, lower })
    }

    /// A folder below this one, as it is seen.
    pub(super) fn at(self, path: &TreePath, root: &OwnedFd) -> Result<Self> {
        let mut at = self;
        for part in path.parts() {
            at = at.child(part, root)?;
        }
        Ok(at)
    }
}

impl Item<'_> {
    pub(super) fn kind(&self) -> FileType {
        kind(&self.data)
    }

    /// The folder in which it really lies.
    fn folder(&self) -> Result<&OwnedFd> {
        let folder = match self.is_upper {
            true => &self.parent.upper,
            false => &self.parent.lower,
        };
        folder.as_ref().ok_or(Errno::NOENT)
    }

    /// The file, to be read.
    pub(super) fn open(&self) -> Result<std::fs::File> {
        handle::file(self.folder()?, self.name)
    }

    /// Where the link points to.
    pub(super) fn target(&self) -> Result<Vec<u8>> {
        let target = rustix::fs::readlinkat(self.folder()?, self.name, Vec::new())?;
        Ok(target.into_bytes())
    }

    /// The folder, as it is seen.
    pub(super) fn enter(&self, root: &OwnedFd) -> Result<Layers> {
        self.parent.child(self.name, root)
    }
}

pub(super) fn kind(data: &Stat) -> FileType {
    FileType::from_raw_mode(data.st_mode)
}

fn folder_or_none(parent: &OwnedFd, name: &[u8]) -> Result<Option<OwnedFd>> {
    match handle::folder(parent, name) {
        Ok(folder) => Ok(Some(folder)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
        Err(error) => Err(error),
    }
}

pub(crate) fn mark(upper: &OwnedFd, name: &[u8]) -> Result<Option<Mark>> {
    let Some(data) = handle::look(upper, name)? else {
        return Ok(None);
    };
    let gone = match kind(&data) {
        FileType::CharacterDevice => data.st_rdev == 0,
        FileType::RegularFile if data.st_size == 0 => {
            let file = handle::file(upper, name);
            // One that may not even be read was not made by an overlay to hide something.
            match file {
                Ok(file) => attribute(&file, "whiteout")?.is_some(),
                Err(Errno::ACCESS) => false,
                Err(error) => return Err(error),
            }
        }
        _ => false,
    };
    Ok(Some(if gone { Mark::Gone } else { Mark::Here(data) }))
}

pub(crate) fn bond(folder: &OwnedFd) -> Result<Bond> {
    if attribute(folder, "opaque")?.is_some_and(|value| value == b"y") {
        return Ok(Bond::Opaque);
    }
    let moved = attribute(folder, "redirect")?;
    Ok(moved.map_or(Bond::Merged, Bond::Moved))
}

/// Whether the contents of a file lie below although its description was written.
pub(super) fn is_hollow(file: impl AsFd) -> Result<bool> {
    Ok(attribute(file, "metacopy")?.is_some())
}

fn attribute(of: impl AsFd, name: &str) -> Result<Option<Vec<u8>>> {
    for space in NAMESPACES {
        let mut value = vec![0; LONGEST];
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
