//! The stored standard input of a run for its resume: complete, or not at all.
#![expect(
    clippy::disallowed_methods,
    reason = "files in the state directory, which agents cannot access"
)]

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use unstuck_core::RunId;
use unstuck_core::redact::Redactor;

/// The standard input of one run, out of the agents' reach.
pub(super) struct StoredStdin {
    folder: PathBuf,
    run: RunId,
    state: StdinState,
}

/// The state of the input; each state is a file, so that it is known after a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StdinState {
    /// No input was read.
    Nothing,
    /// Some input was read, and more may follow.
    Partial,
    /// The complete input is stored.
    Complete,
    /// The input contains a secret and is not stored.
    Secret,
    /// The input is too large to be stored.
    TooLarge,
}

impl StdinState {
    const fn file_extension(self) -> &'static str {
        match self {
            Self::Nothing | Self::Complete => "input",
            Self::Partial => "input-part",
            Self::Secret => "input-secret",
            Self::TooLarge => "input-large",
        }
    }
}

impl StoredStdin {
    pub(super) fn new(folder: &Path, run: &RunId) -> Self {
        let mut input = Self {
            folder: folder.to_owned(),
            run: run.clone(),
            state: StdinState::Nothing,
        };
        let there = |state: &StdinState| input.path(*state).exists();
        let states = [
            StdinState::TooLarge,
            StdinState::Complete,
            StdinState::Secret,
            StdinState::Partial,
        ];
        input.state = states
            .into_iter()
            .find(there)
            .unwrap_or(StdinState::Nothing);
        input
    }

    fn path(&self, state: StdinState) -> PathBuf {
        self.folder
            .join(format!("{}.{}", self.run, state.file_extension()))
    }

    /// Records the input so far.
    pub(super) fn record(&mut self, bytes: &[u8], complete: bool, redactor: &Redactor) {
        let now = match (complete, bytes.is_empty()) {
            (false, true) => return,
            (false, false) => StdinState::Partial,
            (true, _) if *redactor.redact_bytes(bytes) == *bytes => StdinState::Complete,
            (true, _) => StdinState::Secret,
        };
        if matches!(
            self.state,
            StdinState::Complete | StdinState::Secret | StdinState::TooLarge
        ) || self.state == now
        {
            return;
        }
        let kept = if now == StdinState::Complete {
            bytes
        } else {
            &[]
        };
        // Without it the run cannot be resumed, but it continues.
        if fs::create_dir_all(&self.folder)
            .and_then(|()| write_private_file(&self.path(now), kept))
            .is_ok()
        {
            self.state = now;
        }
    }

    /// Records that the input is too large to be stored.
    pub(super) fn mark_too_large(&mut self) {
        let path = self.path(StdinState::TooLarge);
        // Without it the resume is refused for another reason.
        if self.state != StdinState::TooLarge
            && fs::create_dir_all(&self.folder)
                .and_then(|()| write_private_file(&path, &[]))
                .is_ok()
        {
            self.state = StdinState::TooLarge;
        }
    }

    /// Returns the input of a resumed run, `None` if there was none, or the reason why it is missing.
    pub(super) fn restore(&self) -> Result<Option<Vec<u8>>, &'static str> {
        match self.state {
            StdinState::Nothing => Ok(None),
            StdinState::Partial => Err("stdin was not fully read, so it cannot be replayed"),
            StdinState::Secret => Err("stdin contains a secret, which is not stored"),
            StdinState::TooLarge => Err("stdin exceeded the storage limit of 8 MiB"),
            StdinState::Complete => match fs::read(self.path(StdinState::Complete)) {
                Ok(bytes) => Ok(Some(bytes)),
                Err(_) => Err("the stored stdin can no longer be read"),
            },
        }
    }

    /// Deletes the stored input.
    pub(super) fn delete(&self) {
        for state in [
            StdinState::Complete,
            StdinState::Partial,
            StdinState::Secret,
            StdinState::TooLarge,
        ] {
            // Most of these files never existed.
            let _ = fs::remove_file(self.path(state));
        }
    }
}

fn write_private_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = path.with_extension("new");
    let mut open = fs::OpenOptions::new();
    open.write(true).create(true).truncate(true).mode(0o600);
    open.open(&beside)?.write_all(bytes)?;
    fs::rename(beside, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn again(bytes: &[u8], complete: bool) -> Result<Option<Vec<u8>>, &'static str> {
        let folder = tempfile::tempdir().unwrap();
        let run = RunId::new("k3v9x0m2qa");
        let redactor = Redactor::new(["hunter2-hunter2".to_owned()]);
        let mut input = StoredStdin::new(folder.path(), &run);
        input.record(&bytes[..bytes.len().min(1)], false, &redactor);
        input.record(bytes, complete, &redactor);
        StoredStdin::new(folder.path(), &run).restore()
    }

    #[test]
    fn too_large_input_is_reported_as_too_large() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunId::new("k3v9x0m2qa");
        let redactor = Redactor::new([]);
        let mut input = StoredStdin::new(folder.path(), &run);
        input.record(b"the beginning", false, &redactor);
        input.mark_too_large();
        let again = StoredStdin::new(folder.path(), &run).restore();
        assert!(again.unwrap_err().contains("limit of 8 MiB"));
        input.delete();
        assert_eq!(StoredStdin::new(folder.path(), &run).restore(), Ok(None));
    }

    #[test]
    fn input_is_stored_completely_or_not_at_all() {
        assert_eq!(again(b"the task", true), Ok(Some(b"the task".to_vec())));
        assert!(again(b"the ta", false).is_err());
        assert_eq!(again(b"", false), Ok(None));
        let secret = again(b"log in with hunter2-hunter2", true);
        assert!(secret.unwrap_err().contains("secret"));
    }
}
