//! Resolves the programs of plain commands, once and outside of the project.

use std::path::{Path, PathBuf};

use super::sandbox_profile::SandboxProfile;
use super::wire::SandboxCommand;

/// A program that must not be run.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ProgramRefusal {
    /// The search path led into the project.
    #[error("`{name}` resolves to {}, inside the project; to allow this program, name it by its path", path.display())]
    InProject { name: String, path: PathBuf },
}

/// Resolves the programs of plain commands to paths; a name that is not found stays a name.
pub(super) fn find_programs(
    steps: &SandboxCommand,
    profile: &SandboxProfile,
    search: &str,
) -> Result<Vec<PathBuf>, ProgramRefusal> {
    let commands = match steps {
        SandboxCommand::Argv(commands) => commands.as_slice(),
        SandboxCommand::Shell(_) => return Ok(vec!["/bin/sh".into()]),
    };
    let programs = commands.iter().filter_map(|words| words.first());
    programs
        .map(|name| {
            // The owner named this very file, which an earlier command may still have to create.
            if name.contains('/') {
                return Ok(PathBuf::from(name));
            }
            let Some(path) = find_program(name, search) else {
                return Ok(PathBuf::from(name));
            };
            if is_inside_project(&path, &profile.root) {
                Err(ProgramRefusal::InProject {
                    name: name.clone(),
                    path,
                })
            } else {
                Ok(path)
            }
        })
        .collect()
}

fn find_program(name: &str, search: &str) -> Option<PathBuf> {
    let folders = search.split(':').filter(|folder| folder.starts_with('/'));
    folders
        .map(|folder| Path::new(folder).join(name))
        .find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

/// True if a path is inside the project after resolving symlinks: a directory outside may hold one into the project.
fn is_inside_project(path: &Path, root: &Path) -> bool {
    let real = path.canonicalize();
    path.starts_with(root) || real.is_ok_and(|real| real.starts_with(root))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test makes files")]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn program(path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn words(words: &[&str]) -> SandboxCommand {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        SandboxCommand::Argv(vec![words])
    }

    #[test]
    fn programs_inside_the_project_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("project");
        let tools = folder.path().join("tools");
        program(&tools.join("npm"));
        program(&root.join("bin/npx"));
        symlink(root.join("bin/npx"), tools.join("npx")).unwrap();
        let profile = SandboxProfile::strict(&root);
        let search = format!("::relative:{}", tools.display());
        let found = find_programs(&words(&["npm", "ci"]), &profile, &search);
        assert_eq!(found, Ok(vec![tools.join("npm")]));
        assert!(find_programs(&words(&["npx"]), &profile, &search).is_err());
        let inside = format!("{}:{}", root.join("bin").display(), tools.display());
        assert!(find_programs(&words(&["npx"]), &profile, &inside).is_err());
    }

    #[test]
    fn a_program_path_named_by_the_owner_is_allowed() {
        let profile = SandboxProfile::strict("/project");
        let named = find_programs(&words(&[".venv/bin/pip"]), &profile, "/usr/bin");
        assert_eq!(named, Ok(vec![PathBuf::from(".venv/bin/pip")]));
    }
}
