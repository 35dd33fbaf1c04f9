//! Where a store is.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::error::StoreError;

/// Where a store is: a file.
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
    /// The store in a file.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self(LocationKind::File(path.into()))
    }

    /// Reads a location as people write it: the path of a file.
    pub fn parse(text: &str) -> Result<Self, StoreError> {
        if text.trim().is_empty() || text.contains("://") || text.contains('\0') {
            return Err(StoreError::Unsupported {
                location: strip_password(text),
            });
        }
        Ok(Self::file(text))
    }

    /// The file that holds the store.
    pub fn path(&self) -> &Path {
        let LocationKind::File(path) = &self.0;
        path
    }
}

/// The location without what stands before the `@`, which may hold a password.
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
    fn a_password_in_a_refused_location_is_not_repeated() {
        let error = StoreLocation::parse("postgres://me:hunter2@db.example/x").unwrap_err();
        let said = error.to_string();
        assert!(
            said.contains("postgres://…@db.example/x") && !said.contains("hunter2"),
            "{said}"
        );
    }
}
