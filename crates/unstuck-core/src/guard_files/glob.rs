//! Names of files with `*` in them.

/// Whether the end of a path fits a pattern: part by part, `*` is any part of a name, `**` at the end everything below.
///
/// ```
/// use unstuck_core::guard_files::fits;
///
/// assert!(fits("requirements*.txt", "api/requirements-dev.txt"));
/// assert!(fits(".yarn/plugins/**", ".yarn/plugins/a/b.cjs"));
/// assert!(!fits(".cargo/config", "config"));
/// ```
pub fn fits(pattern: &str, path: &str) -> bool {
    let path: Vec<_> = path.split('/').filter(|part| !part.is_empty()).collect();
    if let Some(folder) = pattern.strip_suffix("/**") {
        let folder: Vec<_> = folder.split('/').collect();
        let inner = path.len().saturating_sub(1);
        return (folder.len()..=inner).any(|end| ends_with(&folder, &path[..end]));
    }
    let pattern: Vec<_> = pattern.split('/').collect();
    ends_with(&pattern, &path)
}

fn ends_with(pattern: &[&str], path: &[&str]) -> bool {
    let Some(from) = path.len().checked_sub(pattern.len()) else {
        return false;
    };
    let mut parts = pattern.iter().zip(&path[from..]);
    parts.all(|(pattern, part)| name_fits(pattern, part))
}

/// Whether one name fits a pattern.
pub(super) fn name_fits(pattern: &str, name: &str) -> bool {
    let mut pieces = pattern.split('*');
    let Some(mut rest) = pieces.next().and_then(|first| name.strip_prefix(first)) else {
        return false;
    };
    let Some(last) = pieces.next_back() else {
        // Without a star the name must be it.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_parts_of_one_name() {
        for (pattern, name) in [
            ("Makefile", "Makefile"),
            ("*.mk", "rules.mk"),
            ("docker-compose*", "docker-compose.yml"),
            ("buf.*yaml", "buf.gen.yaml"),
            (".git/hooks/*", ".git/hooks/pre-commit"),
            (".git/hooks/*", "sub/.git/hooks/pre-commit"),
            ("buildSrc/**", "app/buildSrc/src/Main.kt"),
        ] {
            assert!(fits(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("Makefile", "Makefile.bak"),
            ("*.mk", "mk"),
            ("*aa", "a"),
            ("a*a", "a"),
            ("buildSrc/**", "buildSrc"),
            (".git/hooks/*", "hooks/pre-commit"),
        ] {
            assert!(!fits(pattern, name), "{pattern} {name}");
        }
    }
}
