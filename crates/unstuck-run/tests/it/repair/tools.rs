//! Tests with real tools that repair real projects in the sandbox. Each tool that may be missing has a module of its
//! own, so that `./check` can exclude it; tests that need a package registry are in `registry`.

use std::time::Duration;

use unstuck_run::process::ChildExitStatus;

use super::support::Place;

async fn works(place: &Place, line: &str) -> String {
    let ran = place.run(line).await;
    assert_eq!(ran.status, ChildExitStatus::Exited(0), "{line}: {ran:#?}");
    assert_eq!(ran.confinement.summary(), "full");
    ran.stdout
}

fn place() -> Place {
    let mut place = Place::new();
    place.timeout = Duration::from_secs(300);
    place
}

mod npm {
    use super::*;

    #[tokio::test]
    async fn npm_builds_and_cleans_its_cache() {
        let place = place();
        place.write("project/package.json", r#"{"name":"a","version":"1.0.0","scripts":{"generate":"node -e \"require('fs').writeFileSync('made','x')\""}}"#);
        works(&place, "npm run generate").await;
        assert!(place.path("project/made").exists());
        assert!(
            !place.path("home/.npm").exists(),
            "what was not there is not made"
        );
        place.write("home/.npm/_cacache/old", "");
        works(&place, "npm cache clean --force").await;
        assert!(!place.path("home/.npm/_cacache/old").exists());
    }
}

mod python {
    use super::*;

    #[tokio::test]
    async fn python_creates_an_environment() {
        let place = place();
        works(&place, "rm -rf .venv && python3 -m venv .venv").await;
        works(&place, "python3 -m compileall -q .venv/lib").await;
    }
}

mod cargo {
    use super::*;

    #[tokio::test]
    async fn cargo_builds_and_cleans() {
        let place = place();
        super::crate_that_prints(&place, "\"built\"", "");
        works(&place, "cargo build --offline").await;
        assert_eq!(works(&place, "target/debug/a").await, "built\n");
        works(&place, "cargo clean").await;
        assert!(!place.path("project/target/debug").exists());
    }
}

fn crate_that_prints(place: &Place, what: &str, dependency: &str) {
    let package =
        "[workspace]\n\n[package]\nname = \"a\"\nversion = \"0.1.0\"\nedition = \"2021\"\n";
    place.write(
        "project/Cargo.toml",
        &format!("{package}[dependencies]\n{dependency}\n"),
    );
    place.write(
        "project/src/main.rs",
        &format!("fn main() {{ println!(\"{{}}\", {what}); }}\n"),
    );
}

/// Tests that install packages from the registries on the network.
mod registry {
    use super::*;

    #[tokio::test]
    async fn npm_installs() {
        let place = place();
        place.write("project/package.json", r#"{"name":"a","version":"1.0.0"}"#);
        works(&place, "npm install is-odd").await;
        assert!(
            place
                .path("project/node_modules/is-odd/package.json")
                .exists()
        );
        works(&place, "rm -rf node_modules && npm ci").await;
        assert_eq!(
            works(&place, "node -p 'require(\"is-odd\")(3)'").await,
            "true\n"
        );
    }

    #[tokio::test]
    async fn pip_installs_into_an_environment() {
        let place = place();
        works(&place, "python3 -m venv .venv").await;
        works(&place, ".venv/bin/pip install -q six").await;
        let line = ".venv/bin/python -c 'import six; print(six.PY3)'";
        assert_eq!(works(&place, line).await, "True\n");
    }

    #[tokio::test]
    async fn cargo_fetches() {
        let place = place();
        let print = "itoa::Buffer::new().format(42)";
        super::crate_that_prints(&place, print, "itoa = \"1\"");
        works(&place, "cargo build").await;
        assert_eq!(works(&place, "target/debug/a").await, "42\n");
    }
}

mod java {
    use super::*;

    #[tokio::test]
    async fn javac_compiles() {
        let place = place();
        place.write("project/src/Main.java", "public class Main { public static void main(String[] a) { System.out.println(\"java\"); } }\n");
        works(&place, "rm -rf out && javac -d out src/Main.java").await;
        assert_eq!(works(&place, "java -cp out Main").await, "java\n");
    }
}

mod go {
    use super::*;

    #[tokio::test]
    async fn go_builds() {
        let place = place();
        place.write("project/go.mod", "module a\n\ngo 1.18\n");
        place.write(
            "project/main.go",
            "package main\n\nfunc main() { println(\"go\") }\n",
        );
        works(&place, "go build -o a .").await;
        assert!(place.path("project/a").exists());
    }
}

#[tokio::test]
async fn git_works_in_the_repository_and_keeps_its_settings() {
    let place = place();
    works(&place, "git init -q .").await;
    let line = "git -c user.name=a -c user.email=a@b.c commit -q --allow-empty -m first && git status --short && git log --oneline | wc -l";
    assert_eq!(works(&place, line).await.trim(), "1");
    let before = place.read("project/.git/config");
    let ran = place.run("true; git config core.fsmonitor ./evil").await;
    assert_eq!(Place::planted(&ran), [".git/config"]);
    assert_eq!(place.read("project/.git/config"), before);
    works(
        &place,
        "touch a && git stash -u -q && git checkout -q -b other && git clean -fdq",
    )
    .await;
}

#[tokio::test]
async fn only_git_fetches_submodules_and_nothing_else_changes_its_settings() {
    let place = place();
    let line = "git init -q lib && git -C lib -c user.name=a -c user.email=a@b.c commit -q --allow-empty -m first && \
                git init -q . && git -c protocol.file.allow=always submodule add -q ./lib sub && rm -rf sub .git/modules && \
                mkdir sub && git config --remove-section submodule.sub";
    place.shell(line);
    let fetch = "git -c protocol.file.allow=always submodule update --init --recursive";
    let ran = place.run(&format!("true; {fetch}")).await;
    assert_ne!(Place::planted(&ran), Vec::<String>::new(), "{ran:#?}");
    assert!(!place.path("project/sub/.git").exists());
    works(&place, fetch).await;
    assert!(place.path("project/sub/.git").exists());
    assert!(
        place
            .read("project/.git/config")
            .unwrap()
            .contains("[submodule \"sub\"]")
    );
}
