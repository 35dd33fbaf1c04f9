//! The index of a work tree's files, so that only files that may have changed are read again.

use std::collections::BTreeMap;

use rustix::fs::{FileType, Stat};

/// The first word of the file; it identifies the format.
const FORMAT_VERSION: &str = "unstuck-worktree-1";
/// Age, in nanoseconds, at which a file's modification time becomes reliable.
const SETTLE_TIME: i128 = 100_000_000;
/// The same for file systems that count whole seconds.
const COARSE_SETTLE_TIME: i128 = 2_000_000_000;

/// Files by their paths.
pub(super) type FileIndexEntries = BTreeMap<Vec<u8>, FileIndexEntry>;

/// The type of a file in git.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GitFileMode {
    File,
    Executable,
    Link,
}

/// A file and its blob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FileIndexEntry {
    pub(super) mode: GitFileMode,
    pub(super) blob: String,
    pub(super) fingerprint: StatFingerprint,
}

/// The metadata of a file; while it is unchanged, so is the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct StatFingerprint {
    size: u64,
    inode: u64,
    modified: i128,
    changed: i128,
}

impl StatFingerprint {
    /// Returns the size of the file in bytes.
    pub(super) fn size(&self) -> u64 {
        self.size
    }
}

/// The files of the newest tree.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FileIndex {
    pub(super) tree: String,
    pub(super) entries: FileIndexEntries,
}

impl GitFileMode {
    /// Returns the type of a file in git; `None` if git does not store it.
    pub(super) fn from_stat(data: &Stat) -> Option<Self> {
        match FileType::from_raw_mode(data.st_mode) {
            FileType::Symlink => Some(Self::Link),
            FileType::RegularFile if data.st_mode & 0o100 != 0 => Some(Self::Executable),
            FileType::RegularFile => Some(Self::File),
            _ => None,
        }
    }

    /// Returns the mode as git writes it.
    pub(super) const fn octal(self) -> &'static str {
        match self {
            Self::File => "100644",
            Self::Executable => "100755",
            Self::Link => "120000",
        }
    }

    pub(super) fn parse(octal: &str) -> Option<Self> {
        let all = [Self::File, Self::Executable, Self::Link];
        all.into_iter().find(|mode| mode.octal() == octal)
    }
}

impl StatFingerprint {
    pub(super) fn from_stat(data: &Stat) -> Self {
        let nanos = |seconds: i128, nanos: i128| seconds * 1_000_000_000 + nanos;
        Self {
            size: data.st_size.unsigned_abs(),
            inode: data.st_ino,
            modified: nanos(data.st_mtime.into(), data.st_mtime_nsec.into()),
            changed: nanos(data.st_ctime.into(), data.st_ctime_nsec.into()),
        }
    }

    /// Returns the fingerprint, unless the file could change again without a visible difference: then one that never
    /// matches.
    pub(super) fn unless_racy(self, looked: Self) -> Self {
        let newest = self.modified.max(self.changed);
        let whole = newest % 1_000_000_000 == 0;
        let margin = if whole {
            COARSE_SETTLE_TIME
        } else {
            SETTLE_TIME
        };
        if newest + margin < looked.modified {
            self
        } else {
            Self::default()
        }
    }
}

impl FileIndex {
    /// Parses an index; `None` if it is incomplete.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut lines = bytes.strip_suffix(b"\0")?.split(|byte| *byte == 0);
        let head = std::str::from_utf8(lines.next()?).ok()?;
        let mut words = head.split(' ');
        let (form, tree, count) = (words.next()?, words.next()?, words.next()?);
        let entries: Option<FileIndexEntries> = lines.map(read_entry).collect();
        let entries = entries.filter(|entries| entries.len().to_string() == count)?;
        (form == FORMAT_VERSION).then(|| Self {
            tree: tree.to_owned(),
            entries,
        })
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes =
            format!("{FORMAT_VERSION} {} {}\0", self.tree, self.entries.len()).into_bytes();
        for (path, entry) in &self.entries {
            let (mode, blob, seen) = (entry.mode.octal(), &entry.blob, entry.fingerprint);
            let (size, inode) = (seen.size, seen.inode);
            let (modified, changed) = (seen.modified, seen.changed);
            let facts = format!("{mode} {blob} {size} {inode} {modified} {changed} ");
            bytes.extend_from_slice(facts.as_bytes());
            bytes.extend_from_slice(path);
            bytes.push(0);
        }
        bytes
    }
}

fn read_entry(line: &[u8]) -> Option<(Vec<u8>, FileIndexEntry)> {
    let mut words = line.splitn(7, |byte| *byte == b' ');
    let mut word = || std::str::from_utf8(words.next()?).ok();
    let entry = FileIndexEntry {
        mode: GitFileMode::parse(word()?)?,
        blob: word()?.to_owned(),
        fingerprint: StatFingerprint {
            size: word()?.parse().ok()?,
            inode: word()?.parse().ok()?,
            modified: word()?.parse().ok()?,
            changed: word()?.parse().ok()?,
        },
    };
    Some((words.next()?.to_vec(), entry))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> FileIndex {
        let entry = |mode| FileIndexEntry {
            mode,
            blob: "b10b".into(),
            fingerprint: StatFingerprint {
                size: 7,
                inode: 9,
                modified: 1_794_777_000_000_000_001,
                changed: 3,
            },
        };
        FileIndex {
            tree: "7ree".into(),
            entries: FileIndexEntries::from([
                (b"a b\n".to_vec(), entry(GitFileMode::Executable)),
                (b"\xff".to_vec(), entry(GitFileMode::Link)),
            ]),
        }
    }

    #[test]
    fn index_round_trips_and_a_truncated_one_is_rejected() {
        let (record, bytes) = (record(), record().to_bytes());
        let read = FileIndex::parse(&bytes).unwrap();
        assert_eq!((read.tree, read.entries), (record.tree, record.entries));
        for cut in 0..bytes.len() {
            assert!(FileIndex::parse(&bytes[..cut]).is_none(), "{cut}");
        }
    }

    #[test]
    fn freshly_written_file_is_not_trusted() {
        let at = |modified| StatFingerprint {
            modified,
            ..StatFingerprint::default()
        };
        let looked = at(10_000_000_005);
        assert_eq!(
            at(9_999_999_999).unless_racy(looked),
            StatFingerprint::default()
        );
        assert_eq!(at(9_000_000_001).unless_racy(looked), at(9_000_000_001));
        assert_eq!(
            at(9_000_000_000).unless_racy(looked),
            StatFingerprint::default()
        );
    }
}
