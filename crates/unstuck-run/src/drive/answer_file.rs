//! The file of `--output`: it gets the accepted answer, all of it at once, and nothing if no attempt succeeds.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// The answer of one attempt, kept beside the file that it is for until the attempt is accepted.
#[derive(Debug)]
pub(super) struct AnswerFile {
    target: PathBuf,
    draft: PathBuf,
    file: File,
    /// The first error: an answer with a gap is never accepted.
    error: Option<io::Error>,
}

impl AnswerFile {
    /// Begins an empty draft; `id` tells it apart from those of other runs.
    pub(super) fn begin(target: &Path, id: &str) -> io::Result<Self> {
        // What a link names is replaced, not the link.
        let target = fs::canonicalize(target).unwrap_or_else(|_| target.to_owned());
        let draft = draft_of(&target, id);
        let mut open = OpenOptions::new();
        let open = open.read(true).write(true).create(true).truncate(true);
        let file = open.open(&draft)?;
        if let Some(present) = fs::metadata(&target).ok().filter(fs::Metadata::is_file) {
            file.set_permissions(present.permissions())?;
        }
        Ok(Self {
            target,
            draft,
            file,
            error: None,
        })
    }

    /// Adds what the attempt wrote.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.error.is_none() {
            self.error = self.file.write_all(bytes).err();
        }
    }

    /// Takes this text instead of what was written so far.
    fn replace(&mut self, text: &str) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(text.as_bytes())
    }

    /// Puts the answer in place; `text` is the answer where it is not all of the output.
    pub(super) fn accept(mut self, text: Option<&str>) -> io::Result<()> {
        match (text, self.error.take()) {
            (Some(text), _) => self.replace(text)?,
            (None, Some(error)) => return Err(error),
            (None, None) => {}
        }
        if is_device(&self.target) {
            self.file.seek(SeekFrom::Start(0))?;
            let mut target = OpenOptions::new().write(true).open(&self.target)?;
            return io::copy(&mut self.file, &mut target).map(drop);
        }
        self.file.sync_all()?;
        fs::rename(&self.draft, &self.target)
    }
}

/// Writes a file at once: whoever reads it sees all of it or what was there before.
pub fn write_whole(target: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = AnswerFile::begin(target, &std::process::id().to_string())?;
    file.push(bytes);
    file.accept(None)
}

impl Drop for AnswerFile {
    fn drop(&mut self) {
        // It is gone already if the answer was accepted.
        let _ = fs::remove_file(&self.draft);
    }
}

/// The draft is where it can be renamed from: in the same folder, unless that is one of devices.
fn draft_of(target: &Path, id: &str) -> PathBuf {
    let name = target.file_name().unwrap_or_default();
    let name = format!(".{}.{id}.unstuck", name.to_string_lossy());
    match target.parent() {
        Some(folder) if !is_device(target) => folder.join(name),
        _ => std::env::temp_dir().join(name),
    }
}

/// Whether it is a pipe, a device or the like, which is written to and cannot be replaced.
fn is_device(target: &Path) -> bool {
    fs::metadata(target).is_ok_and(|present| !present.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("answer.md");
        (folder, target)
    }

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
        names.collect()
    }

    #[test]
    fn a_rejected_answer_leaves_the_file_as_it_was() {
        let (folder, target) = target();
        fs::write(&target, "before").unwrap();
        let mut file = AnswerFile::begin(&target, "a").unwrap();
        file.push(b"rejected");
        drop(file);
        assert_eq!(fs::read_to_string(&target).unwrap(), "before");
        assert_eq!(names(folder.path()), ["answer.md"]);
    }

    #[test]
    fn an_accepted_answer_is_all_that_was_written_or_the_text_that_was_found_in_it() {
        let (folder, target) = target();
        let mut file = AnswerFile::begin(&target, "a").unwrap();
        file.push(b"caf\xe9");
        file.accept(None).unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"caf\xe9");
        let mut file = AnswerFile::begin(&target, "b").unwrap();
        file.push(b"{\"result\":\"the long answer\"}");
        file.accept(Some("short")).unwrap();
        assert_eq!(fs::read_to_string(&target).unwrap(), "short");
        assert_eq!(names(folder.path()), ["answer.md"]);
    }

    #[test]
    fn a_link_stays_a_link() {
        let (folder, target) = target();
        fs::write(&target, "before").unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let mut file = AnswerFile::begin(&link, "a").unwrap();
        file.push(b"after");
        file.accept(None).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&target).unwrap(), "after");
    }

    #[test]
    fn a_full_device_is_an_error() {
        let mut file = AnswerFile::begin(Path::new("/dev/full"), "a").unwrap();
        file.push(b"lost");
        assert!(file.accept(None).is_err());
    }
}
