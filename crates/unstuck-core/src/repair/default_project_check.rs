//! The default check of a project that has none configured.

use std::sync::LazyLock;

use serde::Deserialize;

use super::project_facts::ProjectFacts;
use super::project_facts_request::ProjectInspectionScope;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct DefaultChecks {
    check: Vec<DefaultCheck>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DefaultCheck {
    run: Vec<String>,
    has: Vec<String>,
    #[serde(default)]
    script: Option<(String, String)>,
}

static CHECKS: LazyLock<DefaultChecks> =
    LazyLock::new(|| toml::from_str(include_str!("../../data/checks.toml")).unwrap_or_default());

/// Returns the probes that [`default_check`] needs: also files in directories that are not listed, such as the
/// interpreter of a virtual environment.
pub fn default_check_probes() -> ProjectInspectionScope {
    let files = CHECKS.check.iter().flat_map(|check| &check.has);
    let plain = files.filter(|name| !name.contains('*'));
    ProjectInspectionScope {
        paths: plain.cloned().collect(),
        ..ProjectInspectionScope::default()
    }
}

/// Returns the command that checks whether a project is healthy, derived from its files; none if they do not tell.
pub fn default_check(facts: &ProjectFacts) -> Option<Vec<String>> {
    let fits = |check: &&DefaultCheck| {
        let named = check.script.as_ref().is_none_or(|(runner, name)| {
            let scripts = facts.scripts.get(runner);
            scripts.is_some_and(|scripts| scripts.contains_key(name))
        });
        named && facts.has_any("", &check.has)
    };
    CHECKS
        .check
        .iter()
        .find(fits)
        .map(|check| check.run.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(files: &[&str], script: Option<(&str, &str)>) -> ProjectFacts {
        let mut facts = ProjectFacts {
            listed: files.iter().map(|file| (*file).to_owned()).collect(),
            ..ProjectFacts::default()
        };
        if let Some((runner, name)) = script {
            let scripts = [(name.to_owned(), String::new())].into();
            facts.scripts.insert(runner.to_owned(), scripts);
        }
        facts
    }

    #[test]
    fn lockfile_selects_the_test_runner() {
        let test = Some(("package.json", "test"));
        let run = |files: &[&str]| default_check(&facts(files, test)).unwrap().join(" ");
        assert_eq!(run(&["package.json", "package-lock.json"]), "npm test");
        assert_eq!(run(&["package.json", "pnpm-lock.yaml"]), "pnpm test");
        assert_eq!(run(&["package.json", "bun.lockb"]), "bun run test");
    }

    #[test]
    fn every_deciding_file_is_probed() {
        let asked = default_check_probes().paths;
        assert!(asked.contains(".venv/bin/python") && asked.contains("Cargo.toml"));
        assert!(asked.iter().all(|path| !path.contains('*')));
    }

    #[test]
    fn missing_script_is_not_run() {
        assert_eq!(default_check(&facts(&["package.json"], None)), None);
        let both = facts(&["package.json", "Cargo.toml"], None);
        assert_eq!(default_check(&both).unwrap()[0], "cargo");
        assert!(!CHECKS.check.is_empty());
    }
}
