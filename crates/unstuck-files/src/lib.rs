//! Files in folders that others may write: opened below a handle, never through a link, never without a bound.
//!
//! ```
//! use std::path::ValuePath;
//! use unstuck_files::DirHandle;
//!
//! let place = tempfile::tempdir()?;
//! let project = DirHandle::open(place.path())?;
//! let runs = project.create_dirs(ValuePath::new(".unstuck/runs"))?;
//! runs.replace(ValuePath::new("state.json"), b"{}\n")?;
//! assert_eq!(runs.read(ValuePath::new("state.json"), 100)?, b"{}\n");
//! std::os::unix::fs::symlink("/etc/hostname", place.path().join("link"))?;
//! assert!(project.read(ValuePath::new("link"), 100).is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod dir_handle;
mod error;
mod named_file;
pub mod safe_open;

pub use dir_handle::{DirEntry, DirHandle, EntryKind};
pub use error::{FileError, FileProblem};
pub use named_file::{open_named, read_named, read_named_text};
