//! File access in directories that others may write to: below a handle, never through a link, always with a size limit.
//!
//! ```
//! use std::path::Path;
//! use unstuck_files::DirHandle;
//!
//! let temporary = tempfile::tempdir()?;
//! let project = DirHandle::open(temporary.path())?;
//! let runs = project.create_dirs(Path::new(".unstuck/runs"))?;
//! runs.replace(Path::new("state.json"), b"{}\n")?;
//! assert_eq!(runs.read(Path::new("state.json"), 100)?, b"{}\n");
//! std::os::unix::fs::symlink("/etc/hostname", temporary.path().join("link"))?;
//! assert!(project.read(Path::new("link"), 100).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod dir_handle;
mod error;
pub mod safe_open;
mod trusted_program;
mod user_named_file;

pub use dir_handle::{DirEntry, DirHandle, EntryKind};
pub use error::{FileError, FileErrorKind};
pub use trusted_program::{TrustedProgram, program_on_path, trusted_search_path};
pub use user_named_file::{open_named, read_named, read_named_text};
