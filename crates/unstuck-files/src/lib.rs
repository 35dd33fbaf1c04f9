//! Files in folders that others may write: opened below a handle, never through a link, never without a bound.
//!
//! ```
//! use std::path::Path;
//! use unstuck_files::DirHandle;
//!
//! let place = tempfile::tempdir()?;
//! let project = DirHandle::open(place.path())?;
//! let runs = project.create_dirs(Path::new(".unstuck/runs"))?;
//! runs.replace(Path::new("state.json"), b"{}\n")?;
//! assert_eq!(runs.read(Path::new("state.json"), 100)?, b"{}\n");
//! std::os::unix::fs::symlink("/etc/hostname", place.path().join("link"))?;
//! assert!(project.read(Path::new("link"), 100).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod dir;
mod error;
mod named;
pub mod safe_open;

pub use dir::{DirHandle, Entry, EntryKind};
pub use error::{FileError, FileProblem};
pub use named::{open_named, read_named, read_named_text};
