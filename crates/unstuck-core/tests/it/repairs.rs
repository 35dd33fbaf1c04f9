//! The samples of the repair files, each against the whole catalog.

use unstuck_core::repair::RepairCatalog;

/// S3-45, S3-46: the package manager comes from the lockfile, and every sample gets the repair that matches it.
#[test]
fn every_sample_gets_its_repair_and_no_other() {
    let book = RepairCatalog::built_in();
    let wrong: Vec<_> = book
        .files()
        .iter()
        .flat_map(|file| file.samples().map(move |sample| (file, sample)))
        .filter_map(|(file, sample)| Some(format!("{}: {}", file.title, sample.problem(book)?)))
        .collect();
    assert!(
        wrong.is_empty(),
        "{} samples are not repaired as they should be:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
