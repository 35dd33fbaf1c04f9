//! The copies of a run's files in its project, for users and other programs: written if possible, never read.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use unstuck_core::RunId;
use unstuck_files::{DirHandle, FileError, FileErrorKind};

use super::{PROJECT_DIR, project_copy_dir};

/// The copies of a run's files, in a directory of the project.
#[derive(Debug)]
pub(super) struct RunRecordCopies {
    path: PathBuf,
    /// The handle; `None` if the directory could not be created.
    folder: Option<DirHandle>,
    /// The files to which lines are appended, if this process has created them.
    lines: BTreeMap<&'static str, File>,
    /// True if a write has failed: then nothing more is written.
    is_given_up: bool,
    /// The error, until it is reported.
    failure: Option<FileError>,
}

impl RunRecordCopies {
    /// Opens the directory; creates it if necessary.
    pub(super) fn open(project: &Path, run: &RunId) -> Self {
        let mut copies = Self {
            path: project_copy_dir(project, run),
            folder: None,
            lines: BTreeMap::new(),
            is_given_up: false,
            failure: None,
        };
        match open_project_run_dir(project, run).map_err(|error| error.with_base_dir(project)) {
            Ok(folder) => copies.folder = Some(folder),
            Err(error) => copies.give_up(error),
        }
        copies
    }

    fn give_up(&mut self, error: FileError) {
        self.is_given_up = true;
        self.lines.clear();
        self.failure.get_or_insert(error.with_base_dir(&self.path));
    }

    /// Takes the error of a failed write; only once.
    pub(super) fn take_failure(&mut self) -> Option<FileError> {
        self.failure.take()
    }

    /// Writes a file, unless a write has failed before.
    pub(super) fn write<T>(
        &mut self,
        write: impl FnOnce(&DirHandle) -> Result<T, FileError>,
    ) -> Option<T> {
        let folder = self.folder.as_ref().filter(|_| !self.is_given_up)?;
        match write(folder) {
            Ok(done) => Some(done),
            Err(error) => {
                self.give_up(error);
                None
            }
        }
    }

    /// Appends lines to a file. `whole` returns its complete contents with these lines.
    ///
    /// Only a file created by this process is appended to: an existing one may be a hard link to a file elsewhere,
    /// which cannot be detected reliably while another process creates and removes such links.
    pub(super) fn append(
        &mut self,
        name: &'static str,
        lines: &[u8],
        whole: impl FnOnce() -> Result<Vec<u8>, FileError>,
    ) {
        let Some(mut file) = self.lines.remove(name) else {
            let begun = self.write(|folder| {
                let mut file = folder.create(Path::new(name))?;
                let written = file.write_all(&whole()?);
                written.map_err(|error| write_error(name, error))?;
                Ok(file)
            });
            self.lines.extend(begun.map(|file| (name, file)));
            return;
        };
        match file.write_all(lines) {
            Ok(()) => drop(self.lines.insert(name, file)),
            Err(error) => self.give_up(write_error(name, error)),
        }
    }

    /// Opens a subdirectory and returns its path, creating it if necessary; also if copies were given up.
    pub(super) fn open_subdir(&self, below: &Path) -> Option<(DirHandle, PathBuf)> {
        let folder = self.folder.as_ref()?.create_dirs(below).ok()?;
        Some((folder, self.path.join(below)))
    }
}

fn write_error(name: &str, error: io::Error) -> FileError {
    FileError {
        path: name.into(),
        problem: FileErrorKind::System(error),
    }
}

fn open_project_run_dir(project: &Path, run: &RunId) -> Result<DirHandle, FileError> {
    let ours = DirHandle::open(project)?.create_dirs(Path::new(PROJECT_DIR))?;
    write_gitignore(&ours)?;
    ours.create_dirs(&Path::new("runs").join(run.as_str()))
}

/// Excludes the directory from version control without changing a file of the project.
fn write_gitignore(ours: &DirHandle) -> Result<(), FileError> {
    match ours.create_new(Path::new(".gitignore"), b"*\n") {
        Err(FileError {
            problem: FileErrorKind::System(error),
            ..
        }) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        done => done,
    }
}
