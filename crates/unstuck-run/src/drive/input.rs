//! What comes on standard input, kept so that a run can be taken up again: whole, or not at all.
#![expect(
    clippy::disallowed_methods,
    reason = "files in the state folder, out of the agents' reach"
)]

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use unstuck_core::RunId;
use unstuck_core::redact::Redactor;

/// The standard input of one run, out of the agents' reach.
pub(super) struct Input {
    folder: PathBuf,
    run: RunId,
    state: State,
}

/// What is known about the input; each is a file, so that it is known after a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing has come.
    Nothing,
    /// Something has come, and more may.
    Part,
    /// All of it is kept.
    Whole,
    /// It holds a secret, and is not kept.
    Secret,
    /// It is larger than what is kept.
    TooLarge,
}

impl State {
    const fn ending(self) -> &'static str {
        match self {
            Self::Nothing | Self::Whole => "input",
            Self::Part => "input-part",
            Self::Secret => "input-secret",
            Self::TooLarge => "input-large",
        }
    }
}

impl Input {
    pub(super) fn of(folder: &Path, run: &RunId) -> Self {
        let mut input = Self {
            folder: folder.to_owned(),
            run: run.clone(),
            state: State::Nothing,
        };
        let there = |state: &State| input.path(*state).exists();
        let states = [State::TooLarge, State::Whole, State::Secret, State::Part];
        input.state = states.into_iter().find(there).unwrap_or(State::Nothing);
        input
    }

    fn path(&self, state: State) -> PathBuf {
        self.folder.join(format!("{}.{}", self.run, state.ending()))
    }

    /// Takes note of what has come so far.
    pub(super) fn came(&mut self, bytes: &[u8], complete: bool, redactor: &Redactor) {
        let now = match (complete, bytes.is_empty()) {
            (false, true) => return,
            (false, false) => State::Part,
            (true, _) if *redactor.redact_bytes(bytes) == *bytes => State::Whole,
            (true, _) => State::Secret,
        };
        if matches!(self.state, State::Whole | State::Secret | State::TooLarge) || self.state == now
        {
            return;
        }
        let kept = if now == State::Whole { bytes } else { &[] };
        // Without it the run cannot be taken up again, and goes on all the same.
        if fs::create_dir_all(&self.folder)
            .and_then(|()| private(&self.path(now), kept))
            .is_ok()
        {
            self.state = now;
        }
    }

    /// Takes note that it is larger than what is kept.
    pub(super) fn is_too_large(&mut self) {
        let path = self.path(State::TooLarge);
        // Without it the run is refused for another reason.
        if self.state != State::TooLarge
            && fs::create_dir_all(&self.folder)
                .and_then(|()| private(&path, &[]))
                .is_ok()
        {
            self.state = State::TooLarge;
        }
    }

    /// The input of a run that is taken up again; nothing if none had come, or why it cannot be had.
    pub(super) fn again(&self) -> Result<Option<Vec<u8>>, &'static str> {
        match self.state {
            State::Nothing => Ok(None),
            State::Part => Err("its standard input had not come to its end"),
            State::Secret => Err("its standard input holds a secret, which is not stored"),
            State::TooLarge => Err("its standard input was larger than the 8 MiB that are kept"),
            State::Whole => match fs::read(self.path(State::Whole)) {
                Ok(bytes) => Ok(Some(bytes)),
                Err(_) => Err("its standard input cannot be read any more"),
            },
        }
    }

    /// Removes what was kept.
    pub(super) fn forget(&self) {
        for state in [State::Whole, State::Part, State::Secret, State::TooLarge] {
            // Most of them were never there.
            let _ = fs::remove_file(self.path(state));
        }
    }
}

fn private(path: &Path, bytes: &[u8]) -> io::Result<()> {
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
        let mut input = Input::of(folder.path(), &run);
        input.came(&bytes[..bytes.len().min(1)], false, &redactor);
        input.came(bytes, complete, &redactor);
        Input::of(folder.path(), &run).again()
    }

    #[test]
    fn an_input_that_is_too_large_is_told_as_that() {
        let folder = tempfile::tempdir().unwrap();
        let run = RunId::new("k3v9x0m2qa");
        let redactor = Redactor::new([]);
        let mut input = Input::of(folder.path(), &run);
        input.came(b"the beginning", false, &redactor);
        input.is_too_large();
        let again = Input::of(folder.path(), &run).again();
        assert!(again.unwrap_err().contains("larger than the 8 MiB"));
        input.forget();
        assert_eq!(Input::of(folder.path(), &run).again(), Ok(None));
    }

    #[test]
    fn an_input_is_kept_whole_or_not_at_all() {
        assert_eq!(again(b"the task", true), Ok(Some(b"the task".to_vec())));
        assert!(again(b"the ta", false).is_err());
        assert_eq!(again(b"", false), Ok(None));
        let secret = again(b"log in with hunter2-hunter2", true);
        assert!(secret.unwrap_err().contains("secret"));
    }
}
