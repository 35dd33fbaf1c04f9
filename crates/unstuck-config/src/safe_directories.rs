//! Checks if others may have written a project's configuration, and the directories that are declared safe.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer};

use crate::value_tree::source::FileFormat;
use crate::value_tree::{Node, SourceId, Value, parse};

/// The permission bit that lets everybody write.
const EVERYBODY_WRITES: u32 = 0o002;
/// The suffix for everything below a directory.
const SUBTREE_SUFFIX: &str = "/*";

/// The directories the owner has declared safe.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct SafeDirectories(Vec<String>);

impl SafeDirectories {
    /// Returns those in the user's own file; empty if it cannot be read, which is reported elsewhere.
    pub(crate) fn from_file(path: &Path, text: &str) -> Self {
        let tree = parse(FileFormat::from_path(path), text, SourceId(0)).unwrap_or_default();
        let list = tree.get("safe_directories").map(|node| &node.value);
        let Some(Value::List(list)) = list else {
            return Self::default();
        };
        let texts = list.iter().filter_map(Node::text);
        let absolute = texts.filter(|text| text.starts_with('/'));
        Self(absolute.map(str::to_owned).collect())
    }

    /// Returns whether the directory of a file is in the list.
    pub(crate) fn contains(&self, file: &Path) -> bool {
        let folder = file.parent().unwrap_or(file);
        let real = folder.canonicalize().unwrap_or(folder.to_owned());
        self.0
            .iter()
            .any(|one| match one.strip_suffix(SUBTREE_SUFFIX) {
                Some(above) => real != resolve_dir(above) && real.starts_with(resolve_dir(above)),
                None => real == resolve_dir(one),
            })
    }
}

fn resolve_dir(folder: &str) -> PathBuf {
    let folder = if folder.is_empty() { "/" } else { folder };
    let path = Path::new(folder);
    path.canonicalize().unwrap_or(path.to_owned())
}

/// Reads the list; relative paths are rejected because they would depend on the working directory.
pub(crate) fn deserialize_list<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Vec<String>, D::Error> {
    struct DirectoryPattern(String);

    impl<'de> Deserialize<'de> for DirectoryPattern {
        fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            let text = String::deserialize(from)?;
            let is_one =
                text.starts_with('/') && !text.trim_end_matches(SUBTREE_SUFFIX).contains('*');
            if !is_one {
                let expected = "an absolute path, optionally ending in `/*`";
                return Err(D::Error::invalid_value(Unexpected::Str(&text), &expected));
            }
            Ok(Self(text))
        }
    }

    let folders = Vec::<DirectoryPattern>::deserialize(from)?;
    Ok(folders.into_iter().map(|folder| folder.0).collect())
}

/// Returns the reason why others may have written a project's file; `None` if they cannot.
///
/// `file` is the metadata of the open handle. As in git, root only trusts its own files and those of the user who
/// called `sudo`. Only the directory of the file is checked, not its parents.
pub(crate) fn foreign_file_reason(
    path: &Path,
    file: &Metadata,
    sudo_user: Option<u32>,
) -> io::Result<Option<String>> {
    let is_ours = |uid: u32| {
        let own = rustix::process::geteuid().as_raw();
        uid == own || uid == 0 || own == 0 && sudo_user == Some(uid)
    };
    let folder = path.parent().filter(|folder| *folder != Path::new(""));
    let folder = folder.unwrap_or(Path::new("."));
    let shown = folder.display();
    let around = std::fs::metadata(folder)?;
    let mode = |data: &Metadata| data.permissions().mode();
    Ok(if !is_ours(file.uid()) {
        Some(format!("the file belongs to another user ({})", file.uid()))
    } else if !is_ours(around.uid()) {
        let owner = around.uid();
        Some(format!("{shown} belongs to another user ({owner})"))
    } else if mode(&around) & EVERYBODY_WRITES != 0 {
        Some(format!("{shown} is writable by everyone"))
    } else if mode(file) & EVERYBODY_WRITES != 0 {
        Some("the file is writable by everyone".to_owned())
    } else {
        None
    })
}
