//! Hostile environments stored outside the repository; without them the `corpus` tests are not run.

use std::collections::HashMap;
use std::path::Path;

use serde::Deserialize;
use unstuck_repair::environment::RepairEnvironmentVariables;

const ROOT: &str = "/srv/repo";

/// An environment with the variables that must be removed.
#[derive(Deserialize)]
struct Case {
    id: String,
    #[serde(default)]
    env: HashMap<String, String>,
    #[serde(default)]
    expect_env_absent: Vec<String>,
    #[serde(default)]
    expect_path_clean: bool,
}

#[test]
fn hostile_environments_of_the_corpus_are_cleaned() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    let text = std::fs::read_to_string(folder.join("commands.dev.jsonl")).unwrap();
    let cases = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let mut seen = 0;
    for case in cases.filter(|case: &Case| !case.env.is_empty()) {
        let owner = case.env.iter();
        let owner = owner.map(|(name, value)| (name.into(), value.replace("{REPO}", ROOT).into()));
        let environment = RepairEnvironmentVariables::from_owner(owner, Path::new(ROOT), &[]);
        for name in &case.expect_env_absent {
            assert_eq!(environment.get(name), None, "{}: {name}", case.id);
        }
        let search = environment.get("PATH").unwrap();
        let is_clean = |folder: &Path| folder.is_absolute() && !folder.starts_with(ROOT);
        let is_clean = std::env::split_paths(search).all(|folder| is_clean(&folder));
        assert!(
            is_clean || !case.expect_path_clean,
            "{}: {search:?}",
            case.id
        );
        seen += 1;
    }
    assert!(seen > 0, "the corpus has no environment any more");
}
