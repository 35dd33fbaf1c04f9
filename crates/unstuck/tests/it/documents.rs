//! The configurations in documents and help texts are valid.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Place;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns every Markdown file of the documentation, and the README.
fn documents() -> Vec<PathBuf> {
    let mut found = vec![repository().join("README.md")];
    let mut folders = vec![repository().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == "md") {
                found.push(path);
            }
        }
    }
    found
}

/// Returns the TOML blocks of a document that are not marked otherwise.
fn blocks(text: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("```") {
            let block: Vec<_> = lines.by_ref().take_while(|line| *line != "```").collect();
            if line == "```toml" {
                blocks.push(block.join("\n"));
            }
        }
    }
    blocks
}

fn is_configuration(block: &str) -> bool {
    let heads = [
        "[[role]]",
        "[loop]",
        "[agents.",
        "[policy]",
        "[[kinds.",
        "[error_recovery]",
        "[webhooks]",
        "[[webhooks.",
        "[escalations",
        "[gateway]",
    ];
    heads.iter().any(|head| block.contains(head))
}

/// A project with this configuration and the files that its roles name.
fn project(text: &str) -> Place {
    let place = Place::new();
    for line in text.lines() {
        if let Some(name) = line.trim().strip_prefix("prompt_file = ") {
            place.write(name.trim_matches('"'), "Do it");
        }
    }
    // Owner-only settings are in the user's own file.
    if text.contains("[gateway]") || text.contains("_env = ") {
        let folder = place.folder.path().join(".config/unstuck");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("config.toml"), text).unwrap();
    } else {
        drop(place.write("unstuck.toml", text))
    }
    place
}

#[test]
fn every_documented_configuration_is_valid() {
    let mut seen = 0;
    for path in documents() {
        let text = fs::read_to_string(&path).unwrap();
        for block in blocks(&text).iter().filter(|block| is_configuration(block)) {
            let ended = project(block).run(&["config", "check"], "");
            assert_eq!(
                ended.code,
                0,
                "{}:\n{block}\n{}",
                path.display(),
                ended.stderr
            );
            seen += 1;
        }
    }
    assert!(seen >= 7, "{seen} configurations were found");
}

/// Returns the first configuration in `unstuck run --help`.
fn first_one() -> String {
    let help = Place::new().run(&["run", "--help"], "").stdout;
    let (_, after) = help.split_once("Minimal unstuck.toml:\n").unwrap();
    let lines = after
        .lines()
        .take_while(|line| line.is_empty() || line.starts_with(' '));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn first_configuration_of_the_help_runs() {
    let place = project(&first_one());
    let checked = place.run(&["config", "check"], "");
    assert_eq!(checked.code, 0, "{}", checked.stderr);
    assert!(checked.stdout.contains("2 roles"), "{}", checked.stdout);
    // The requested heading is in the prompt, so the output contains it.
    let claude = "#!/bin/sh\nasked=$(cat); echo \"$asked\" >> asked\n\
        case \"$asked\" in *'# Plan'*'a search field'*) text='# Plan\\n1. begin';; *) text=done;; esac\n\
        printf '{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"result\":\"%s\",\"session_id\":\"s1\"}\\n' \"$text\"\n";
    place.tool("claude", claude);
    let ended = place.run(&["run", "--task", "a search field"], "");
    assert_eq!(ended.code, 0, "{}{}", ended.stdout, ended.stderr);
    let asked = fs::read_to_string(place.project().join("asked")).unwrap();
    assert!(asked.contains("1. begin"), "{asked}");
    assert_eq!(asked.matches("a search field").count(), 1, "{asked}");
}
