//! The file of `--output`: it gets the accepted answer atomically, or nothing if no attempt succeeds.
//!
//! Agents may write next to it or replace it. So its path is resolved before anything runs ([`resolve_target`]), no
//! link is followed afterwards, and the answer is written to a new file that is renamed to it.

use std::fs::{File, Permissions};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::{Errno, retry_on_intr};
use unstuck_files::{DirHandle, EntryKind, FileError};

/// Longest time for which a FIFO or device may block before the answer is given up.
const WRITE_TIMEOUT: Timespec = Timespec {
    tv_sec: 30,
    tv_nsec: 0,
};

/// Flags to open a FIFO or device for writing without waiting for a reader.
const WRITE_FLAGS: OFlags = OFlags::WRONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// The file for the agent's answer in one attempt: a draft next to its target until the attempt is accepted.
#[derive(Debug)]
pub(super) struct AgentAnswerFile {
    target: AnswerTarget,
    file: File,
    /// The first error: an incomplete answer is never accepted.
    error: Option<io::Error>,
}

/// The destination of an answer.
#[derive(Debug)]
enum AnswerTarget {
    /// A regular file; the answer is written under another name in its directory until it is accepted.
    File {
        folder: DirHandle,
        name: PathBuf,
        draft: PathBuf,
    },
    /// A FIFO that has a reader.
    Fifo { folder: DirHandle, name: PathBuf },
    /// A device, which is written to and cannot be replaced.
    Device(PathBuf),
}

/// Resolves the path of an output file before the run, so that links changed later have no effect.
pub fn resolve_target(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    if is_system_path(&path) {
        return Ok(path);
    }
    let real = match path.canonicalize() {
        Ok(real) => real,
        Err(_) => match (path.parent(), path.file_name()) {
            (Some(folder), Some(name)) => folder.canonicalize()?.join(name),
            _ => path.clone(),
        },
    };
    // A link may lead to a device.
    Ok(if is_system_path(&real) { path } else { real })
}

/// Returns true if a path is one of the system's own files, where agents cannot create anything.
fn is_system_path(path: &Path) -> bool {
    let is_device = path.starts_with("/dev") && !path.starts_with("/dev/shm");
    is_device || path.starts_with("/proc")
}

impl AnswerTarget {
    fn open(path: &Path) -> Result<Self, FileError> {
        if is_system_path(path) {
            return Ok(Self::Device(path.to_owned()));
        }
        let folder = DirHandle::open_resolved(path.parent().unwrap_or(Path::new("/")))?;
        let name = PathBuf::from(path.file_name().unwrap_or_default());
        Ok(match folder.kind(&name) {
            Some(EntryKind::Other) => Self::Fifo { folder, name },
            _ => Self::File {
                folder,
                name,
                draft: PathBuf::new(),
            },
        })
    }
}

impl AgentAnswerFile {
    /// Creates an empty draft for a file whose path was resolved before.
    pub(super) fn begin(target: &Path) -> io::Result<Self> {
        let mut target = AnswerTarget::open(target)?;
        let file = match &mut target {
            AnswerTarget::File {
                folder,
                name,
                draft,
            } => {
                let (file, beside) = folder.create_temporary()?;
                *draft = beside;
                if let Some(bits) = folder.permission_bits(name) {
                    file.set_permissions(Permissions::from_mode(bits))?;
                }
                file
            }
            AnswerTarget::Fifo { .. } | AnswerTarget::Device(_) => {
                let place = DirHandle::open(&std::env::temp_dir())?;
                let (file, name) = place.create_temporary()?;
                // The draft is needed by this process only.
                place.remove_file(&name)?;
                file
            }
        };
        Ok(Self {
            target,
            file,
            error: None,
        })
    }

    /// Appends output of the attempt.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.error.is_none() {
            self.error = self.file.write_all(bytes).err();
        }
    }

    /// Replaces everything written so far with a text.
    fn replace(&mut self, text: &str) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(text.as_bytes())
    }

    /// Publishes the answer; `text` is the answer if it is not the whole output.
    pub(super) fn accept(mut self, text: Option<&str>) -> io::Result<()> {
        match (text, self.error.take()) {
            (Some(text), _) => self.replace(text)?,
            (None, Some(error)) => return Err(error),
            (None, None) => {}
        }
        let mut to = match &self.target {
            AnswerTarget::File {
                folder,
                name,
                draft,
            } => {
                self.file.sync_all()?;
                return Ok(folder.rename(draft, name)?);
            }
            AnswerTarget::Fifo { folder, name } => {
                let flags = WRITE_FLAGS | OFlags::NOFOLLOW;
                let file = File::from(openat(folder, name, flags, Mode::empty())?);
                // The FIFO may have been replaced by a file that is also linked elsewhere.
                if !file.metadata()?.file_type().is_fifo() {
                    return Err(io::Error::other("replaced by another file"));
                }
                file
            }
            AnswerTarget::Device(path) => {
                File::from(openat(CWD, path, WRITE_FLAGS, Mode::empty())?)
            }
        };
        self.file.seek(SeekFrom::Start(0))?;
        io::copy(&mut self.file, &mut TimeoutWriter(&mut to)).map(drop)
    }
}

impl Drop for AgentAnswerFile {
    fn drop(&mut self) {
        if let AnswerTarget::File { folder, draft, .. } = &self.target {
            // It is already gone if the answer was accepted.
            let _ = folder.remove_file(draft);
        }
    }
}

/// A writer for a file that may accept data slowly, with a timeout.
struct TimeoutWriter<'f>(&'f mut File);

impl Write for TimeoutWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.0.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    let mut events = [PollFd::new(self.0, PollFlags::OUT)];
                    if retry_on_intr(|| poll(&mut events, Some(&WRITE_TIMEOUT)))? == 0 {
                        return Err(Errno::TIMEDOUT.into());
                    }
                }
                written => return written,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Writes a file atomically: readers see either the new content or the old. Its path must be resolved already.
pub fn write_atomically(target: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = AgentAnswerFile::begin(target)?;
    file.push(bytes);
    file.accept(None)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test makes and looks at files")]
mod tests {
    use std::fs;

    use super::*;

    fn target() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().canonicalize().unwrap().join("answer.md");
        (folder, target)
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
        names.collect()
    }

    #[test]
    fn rejected_answer_leaves_the_file_unchanged() {
        let (folder, target) = target();
        fs::write(&target, "before").unwrap();
        let mut file = AgentAnswerFile::begin(&target).unwrap();
        file.push(b"rejected");
        drop(file);
        assert_eq!(fs::read_to_string(&target).unwrap(), "before");
        assert_eq!(names(folder.path()), ["answer.md"]);
    }

    #[test]
    fn accepted_answer_is_the_whole_output_or_the_extracted_text() {
        let (folder, target) = target();
        let mut file = AgentAnswerFile::begin(&target).unwrap();
        file.push(b"caf\xe9");
        file.accept(None).unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"caf\xe9");
        let mut file = AgentAnswerFile::begin(&target).unwrap();
        file.push(b"{\"result\":\"the long answer\"}");
        file.accept(Some("short")).unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "short");
        assert_eq!(names(folder.path()), ["answer.md"]);
    }

    #[test]
    fn link_that_exists_before_the_run_is_kept() {
        let (folder, target) = target();
        fs::write(&target, "before").unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let resolved = resolve_target(&link).unwrap();
        let mut file = AgentAnswerFile::begin(&resolved).unwrap();
        file.push(b"after");
        file.accept(None).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&target).unwrap(), "after");
    }

    /// H1: a link that an agent creates during the run is replaced, and its target is kept.
    #[test]
    fn link_created_during_the_run_is_not_followed() {
        let (folder, target) = target();
        let outside = folder.path().join("outside");
        fs::write(&outside, "private").unwrap();
        let resolved = resolve_target(&target).unwrap();
        std::os::unix::fs::symlink(&outside, &target).unwrap();
        let mut file = AgentAnswerFile::begin(&resolved).unwrap();
        file.push(b"answer");
        file.accept(None).unwrap();
        assert_eq!(fs::read_to_string(&outside).unwrap(), "private");
        assert_eq!(fs::read_to_string(&target).unwrap(), "answer");
        assert!(!fs::symlink_metadata(&target).unwrap().is_symlink());
    }

    /// H1: a parent directory that became a link is not followed.
    #[test]
    fn directory_replaced_by_a_link_is_not_followed() {
        let (folder, _) = target();
        let (own, outside) = (folder.path().join("own"), folder.path().join("outside"));
        fs::create_dir(&own).unwrap();
        fs::create_dir(&outside).unwrap();
        let resolved = resolve_target(&own.join("answer.md")).unwrap();
        fs::remove_dir(&own).unwrap();
        std::os::unix::fs::symlink(&outside, &own).unwrap();
        assert!(AgentAnswerFile::begin(&resolved).is_err());
        assert!(names(&outside).is_empty());
    }

    /// H1: a FIFO without a reader is an error, not a wait.
    #[test]
    fn fifo_without_a_reader_is_an_error() {
        let (_folder, target) = target();
        rustix::fs::mknodat(CWD, &target, rustix::fs::FileType::Fifo, Mode::RWXU, 0).unwrap();
        assert!(write_atomically(&target, b"answer").is_err());
    }

    #[test]
    fn full_device_is_an_error() {
        let mut file = AgentAnswerFile::begin(Path::new("/dev/full")).unwrap();
        file.push(b"lost");
        assert!(file.accept(None).is_err());
    }
}
