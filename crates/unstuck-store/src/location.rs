//! The location of a store.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::error::StoreError;

/// The location of a store: a file.
///
/// ```
/// use unstuck_store::{StoreLocation, StoreError};
///
/// assert!(StoreLocation::parse("/var/lib/unstuck/unstuck.db").is_ok());
/// let refused = StoreLocation::parse("postgres://db.example/unstuck");
/// assert!(matches!(refused, Err(StoreError::Unsupported { .. })));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreLocation(LocationKind);

#[derive(Debug, Clone, PartialEq, Eq)]
enum LocationKind {
    File(PathBuf),
}

impl StoreLocation {
    /// Returns the location of a store file.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self(LocationKind::File(path.into()))
    }

    /// Parses a location as users write it: a file path.
    pub fn parse(text: &str) -> Result<Self, StoreError> {
        if text.trim().is_empty() || text.contains("://") || text.contains('\0') {
            return Err(StoreError::Unsupported {
                location: strip_password(text),
            });
        }
        Ok(Self::file(text))
    }

    /// Returns the path of the store file.
    pub fn path(&self) -> &Path {
        let LocationKind::File(path) = &self.0;
        path
    }
}

/// Returns the location without the part before `@`, which may contain a password.
fn strip_password(text: &str) -> String {
    match (text.split_once("://"), text.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://…@{host}"),
        _ => text.to_owned(),
    }
}

impl fmt::Display for StoreLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path().display().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejected_location_hides_the_password() {
        let error = StoreLocation::parse("postgres://me:hunter2@db.example/x").unwrap_err();
        let said = error.to_string();
        assert!(
            said.contains("postgres://…@db.example/x") && !said.contains("hunter2"),
            "{said}"
        );
    }
}
