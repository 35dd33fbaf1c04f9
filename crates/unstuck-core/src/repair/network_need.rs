//! Network access of commands.

use super::command_effects::{CommandAnalysis, CommandEffect};
use super::project_facts::ProjectFacts;
use super::repair_catalog::RepairCatalog;
use super::repair_knowledge_file::EffectKind;

/// Returns true if a command is known to fetch packages, submodules or LFS files from the network.
pub fn needs_network(command: &str) -> bool {
    let entry =
        CommandAnalysis::analyze(RepairCatalog::built_in(), &ProjectFacts::default(), command);
    entry.effects.iter().any(fetches_from_network)
}

fn fetches_from_network(deed: &CommandEffect) -> bool {
    let installs = [
        EffectKind::Install,
        EffectKind::Lock,
        EffectKind::Upgrade,
        EffectKind::Provide,
    ];
    let is_remote = deed.has_effect(EffectKind::Fetch)
        || (deed.manager.is_some() && deed.has_any_effect(&installs));
    is_remote && !deed.offline && deed.sources.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn installers_need_the_network() {
        for command in [
            "npm install",
            "rm -rf node_modules && npm ci",
            ".venv/bin/pip install -r requirements.txt",
            "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt",
            "uv sync",
            "cargo fetch",
            "go mod download",
            "bundle install",
            "composer install",
            "git submodule update --init",
        ] {
            assert!(needs_network(command), "{command}");
        }
    }

    #[test]
    fn file_commands_do_not_need_the_network() {
        for command in [
            "mkdir -p out/reports",
            "rm -rf node_modules",
            "cargo clean",
            "npm run build",
            "npm ci --offline",
            "npm cache clean --force",
            ".venv/bin/pip install --no-index --find-links wheelhouse -r requirements.txt",
            "python3 -m venv .venv",
            "chmod +x gradlew",
        ] {
            assert!(!needs_network(command), "{command}");
        }
    }
}
