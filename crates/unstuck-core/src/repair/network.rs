//! Whether a command needs the network.

use super::book::Book;
use super::data::Work;
use super::deed::{Deed, Entry};
use super::facts::Facts;

/// Whether a command is known to fetch something from the network: packages of a manager, or what git only points to.
pub fn needs_network(command: &str) -> bool {
    let entry = Entry::read(Book::built_in(), &Facts::default(), command);
    entry.deeds.iter().any(fetches)
}

fn fetches(deed: &Deed) -> bool {
    let installs = [Work::Install, Work::Lock, Work::Upgrade, Work::Provide];
    let is_remote = deed.does(Work::Fetch) || (deed.manager.is_some() && deed.does_any(&installs));
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
    fn what_works_on_files_does_not() {
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
