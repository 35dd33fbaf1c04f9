//! Searches the files of a project for names.

use std::collections::{BTreeMap, BTreeSet};

use super::project_listing::ProjectListing;

/// Maximum bytes read of an ordinary file.
const MAX_FILE_BYTES: u64 = 128 << 10;
/// Maximum bytes read of a lockfile.
const MAX_LOCKFILE_BYTES: u64 = 4 << 20;
/// Maximum bytes read in total.
const MAX_TOTAL_BYTES: usize = 24 << 20;
/// Maximum number of names to search for.
const MAX_NAMES: usize = 80;

/// Returns for each name the files that contain it, ignoring case and word separators.
pub(super) fn files_containing(
    tree: &ProjectListing,
    names: &BTreeSet<String>,
) -> BTreeMap<String, BTreeSet<String>> {
    let wanted = names.iter().filter(|name| name.len() > 1).take(MAX_NAMES);
    let wanted: Vec<(&String, String)> = wanted.map(|name| (name, normalize(name))).collect();
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, _) in &wanted {
        found.insert((*name).clone(), BTreeSet::new());
    }
    let mut left = MAX_TOTAL_BYTES;
    let ours = |file: &&&str| file.starts_with("unstuck.");
    for file in tree.files().iter().filter(|file| !ours(file)) {
        if wanted.is_empty() || left == 0 {
            break;
        }
        let is_lock = file.contains("lock") || file.ends_with(".sum");
        let Some(text) = tree.read_text(
            file,
            if is_lock {
                MAX_LOCKFILE_BYTES
            } else {
                MAX_FILE_BYTES
            },
        ) else {
            continue;
        };
        left = left.saturating_sub(text.len());
        let text = normalize(&text);
        for (name, plain) in &wanted {
            if contains_word(&text, plain)
                && let Some(files) = found.get_mut(*name)
            {
                files.insert((*file).to_owned());
            }
        }
    }
    found
}

fn normalize(text: &str) -> String {
    text.to_ascii_lowercase().replace('_', "-")
}

fn contains_word(text: &str, word: &str) -> bool {
    let is_inner = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
    text.match_indices(word).any(|(at, _)| {
        let before = at.checked_sub(1).and_then(|at| text.as_bytes().get(at));
        let after = text.as_bytes().get(at + word.len());
        !before.is_some_and(is_inner) && !after.is_some_and(is_inner)
    })
}
