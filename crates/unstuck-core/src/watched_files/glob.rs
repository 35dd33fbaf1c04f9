//! File name patterns with `*`.

/// Returns true if the end of a path matches a pattern: component by component, `*` is any part of a name, a final `**`
/// everything below.
///
/// ```
/// use unstuck_core::watched_files::path_matches;
///
/// assert!(path_matches("requirements*.txt", "api/requirements-dev.txt"));
/// assert!(path_matches(".yarn/plugins/**", ".yarn/plugins/a/b.cjs"));
/// assert!(!path_matches(".cargo/config", "config"));
/// ```
pub fn path_matches(pattern: &str, path: &str) -> bool {
    let path: Vec<_> = path.split('/').filter(|part| !part.is_empty()).collect();
    if let Some(folder) = pattern.strip_suffix("/**") {
        let folder: Vec<_> = folder.split('/').collect();
        let inner = path.len().saturating_sub(1);
        return (folder.len()..=inner).any(|end| path_ends_with(&folder, &path[..end]));
    }
    let pattern: Vec<_> = pattern.split('/').collect();
    path_ends_with(&pattern, &path)
}

fn path_ends_with(pattern: &[&str], path: &[&str]) -> bool {
    let Some(from) = path.len().checked_sub(pattern.len()) else {
        return false;
    };
    let mut parts = pattern.iter().zip(&path[from..]);
    parts.all(|(pattern, part)| name_matches(pattern, part))
}

/// Returns true if a name matches a pattern.
pub(super) fn name_matches(pattern: &str, name: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(mut rest) = pieces.next().and_then(|first| name.strip_prefix(first)) else {
        return false;
    };
    let Some(last) = pieces.next_back() else {
        // Without a star the names must be equal.
        return rest.is_empty();
    };
    for piece in pieces {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// Returns true if a directory matches a workspace pattern, such as `packages/*` or `apps/**`.
pub fn directory_matches(pattern: &str, folder: &str) -> bool {
    let parts = |path: &str| -> Vec<String> {
        let parts = path.split('/').filter(|part| !matches!(*part, "" | "."));
        parts.map(str::to_owned).collect()
    };
    parts_match(&parts(pattern), &parts(folder))
}

fn parts_match(pattern: &[String], folder: &[String]) -> bool {
    match (pattern.split_first(), folder.split_first()) {
        (None, None) => true,
        (None, Some(_)) => false,
        (Some((first, rest)), _) if first == "**" => {
            parts_match(rest, folder)
                || folder
                    .split_first()
                    .is_some_and(|(_, more)| parts_match(pattern, more))
        }
        (Some(_), None) => false,
        (Some((first, rest)), Some((name, more))) => {
            name_matches(first, name) && parts_match(rest, more)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workspace_directories_match_their_patterns() {
        for (pattern, folder) in [
            ("packages/*", "packages/a"),
            ("./packages/*/", "packages/build"),
            ("apps/**", "apps/a/b"),
            ("**", "a"),
            ("**/web", "a/b/web"),
            ("web", "web"),
            (".", ""),
        ] {
            assert!(directory_matches(pattern, folder), "{pattern} {folder}");
        }
        for (pattern, folder) in [("packages/*", "packages/a/b"), ("web", "a/web"), ("a", "")] {
            assert!(!directory_matches(pattern, folder), "{pattern} {folder}");
        }
    }

    #[test]
    fn star_matches_part_of_one_name() {
        for (pattern, name) in [
            ("Makefile", "Makefile"),
            ("*.mk", "rules.mk"),
            ("docker-compose*", "docker-compose.yml"),
            ("buf.*yaml", "buf.gen.yaml"),
            (".git/hooks/*", ".git/hooks/pre-commit"),
            (".git/hooks/*", "sub/.git/hooks/pre-commit"),
            ("buildSrc/**", "app/buildSrc/src/Main.kt"),
        ] {
            assert!(path_matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("Makefile", "Makefile.bak"),
            ("*.mk", "mk"),
            ("*aa", "a"),
            ("a*a", "a"),
            ("buildSrc/**", "buildSrc"),
            (".git/hooks/*", "hooks/pre-commit"),
        ] {
            assert!(!path_matches(pattern, name), "{pattern} {name}");
        }
    }
}
