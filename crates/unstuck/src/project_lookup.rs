//! Directories: finding the project of a directory, and display of paths.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Returns the project root of a directory.
pub(crate) fn project_of(folder: &Path) -> PathBuf {
    let is_root =
        |folder: &Path| unstuck_config::has_project_file(folder) || folder.join(".git").exists();
    let home = crate::environment_variables::home();
    let folders = unstuck_config::project_dirs(folder, home.as_deref());
    let root = folders.iter().find(|folder| is_root(folder));
    root.copied().unwrap_or(folder).to_owned()
}

/// Returns the project of the current directory, as recorded in runs.
pub(crate) fn current_project() -> String {
    let here = std::env::current_dir().unwrap_or_default();
    project_of(&here).display().to_string()
}

/// Returns the project of the given directory, as recorded in runs.
pub(crate) fn project_at(folder: &Path) -> Result<String> {
    let project = match folder.canonicalize() {
        Ok(found) => project_of(&found),
        // A deleted project still has its history.
        Err(error) if folder.is_absolute() && error.kind() == ErrorKind::NotFound => {
            folder.to_owned()
        }
        Err(error) => {
            return Err(error)
                .with_context(|| format!("cannot find directory {}", folder.display()));
        }
    };
    Ok(project.display().to_string())
}

/// Abbreviates the home directory to `~`.
pub(crate) fn abbreviate_home(path: &str) -> String {
    let home = crate::environment_variables::home();
    let rest = home.and_then(|home| Path::new(path).strip_prefix(home).ok().map(Path::to_owned));
    match rest {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) => format!("~/{}", rest.display()),
        None => path.to_owned(),
    }
}
