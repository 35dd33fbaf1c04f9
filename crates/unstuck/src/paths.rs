//! Folders: which project one belongs to, and how one is shown.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The root folder of the project that a folder belongs to.
pub(crate) fn project_of(folder: &Path) -> PathBuf {
    let is_root =
        |folder: &Path| unstuck_config::has_project_file(folder) || folder.join(".git").exists();
    let home = crate::environment::home();
    let folders = unstuck_config::project_dirs(folder, home.as_deref());
    let root = folders.iter().find(|folder| is_root(folder));
    root.copied().unwrap_or(folder).to_owned()
}

/// The project that the current folder belongs to, as runs name it.
pub(crate) fn current_project() -> String {
    let here = std::env::current_dir().unwrap_or_default();
    project_of(&here).display().to_string()
}

/// The project that a person means by a folder, as runs name it.
pub(crate) fn project_at(folder: &Path) -> Result<String> {
    let project = match folder.canonicalize() {
        Ok(found) => project_of(&found),
        // A project that was deleted still has its history.
        Err(error) if folder.is_absolute() && error.kind() == ErrorKind::NotFound => {
            folder.to_owned()
        }
        Err(error) => {
            return Err(error)
                .with_context(|| format!("cannot find the folder {}", folder.display()));
        }
    };
    Ok(project.display().to_string())
}

/// A path as people write it.
pub(crate) fn abbreviate_home(path: &str) -> String {
    let home = crate::environment::home();
    let rest = home.and_then(|home| Path::new(path).strip_prefix(home).ok().map(Path::to_owned));
    match rest {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) => format!("~/{}", rest.display()),
        None => path.to_owned(),
    }
}
