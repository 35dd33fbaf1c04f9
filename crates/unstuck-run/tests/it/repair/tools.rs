//! Real tools repair real projects in the sandbox. Those that are not installed, or need a network that is not there,
//! are skipped.

use std::process::Command;
use std::time::Duration;

use unstuck_repair::sandbox::Demand;
use unstuck_run::process::Status;

use super::support::Place;

#[expect(clippy::print_stdout, reason = "whoever runs the tests wants to know")]
fn skipped(why: &str) {
    println!("skipped: {why}");
}

/// Whether a program is there.
fn has(program: &str) -> bool {
    #[expect(clippy::disallowed_methods, reason = "a test looks at the machine")]
    let output = Command::new(program).arg("--version").output();
    let is_there = output.is_ok_and(|output| output.status.success());
    if !is_there {
        skipped(&format!("there is no {program} here"));
    }
    is_there
}

async fn works(place: &Place, line: &str) -> String {
    let ran = place.run(line).await;
    assert_eq!(ran.status, Status::Exited(0), "{line}: {ran:#?}");
    assert_eq!(ran.sandbox.line(), "full");
    ran.stdout
}

fn place() -> Place {
    let mut place = Place::new();
    place.timeout = Duration::from_secs(300);
    place
}

/// Installs from a registry; where it cannot be reached nothing is shown either way.
async fn fetches(place: &Place, line: &str) -> bool {
    let ran = place.run(line).await;
    let text = format!("{}{}", ran.stdout, ran.stderr);
    let is_offline = [
        "ENOTFOUND",
        "ECONNREFUSED",
        "EAI_AGAIN",
        "resolve host",
        "Name or service not known",
        "Failed to establish",
    ];
    if is_offline.iter().any(|word| text.contains(word)) {
        skipped("no registry can be reached");
        return false;
    }
    assert_eq!(ran.status, Status::Exited(0), "{line}: {ran:#?}");
    true
}

#[tokio::test]
async fn npm_installs_and_builds() {
    if !has("npm") {
        return;
    }
    let place = place();
    place.write("project/package.json", r#"{"name":"a","version":"1.0.0","scripts":{"generate":"node -e \"require('fs').writeFileSync('made','x')\""}}"#);
    works(&place, "npm run generate").await;
    assert!(place.path("project/made").exists());
    if fetches(&place, "npm install is-odd").await {
        assert!(
            place
                .path("project/node_modules/is-odd/package.json")
                .exists()
        );
        assert!(fetches(&place, "rm -rf node_modules && npm ci").await);
        assert_eq!(
            works(&place, "node -p 'require(\"is-odd\")(3)'").await,
            "true\n"
        );
    }
    assert!(
        !place.path("home/.npm").exists(),
        "what was not there is not made"
    );
    place.write("home/.npm/_cacache/old", "");
    works(&place, "npm cache clean --force").await;
    assert!(!place.path("home/.npm/_cacache/old").exists());
}

#[tokio::test]
async fn python_makes_an_environment_and_pip_installs_into_it() {
    if !has("python3") {
        return;
    }
    let place = place();
    works(&place, "rm -rf .venv && python3 -m venv .venv").await;
    if fetches(&place, ".venv/bin/pip install -q six").await {
        let line = ".venv/bin/python -c 'import six; print(six.PY3)'";
        assert_eq!(works(&place, line).await, "True\n");
    }
    works(&place, "python3 -m compileall -q .venv/lib").await;
}

#[tokio::test]
async fn cargo_builds() {
    if !has("cargo") {
        return;
    }
    let place = place();
    place.write(
        "project/Cargo.toml",
        "[workspace]\n\n[package]\nname = \"a\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
    );
    place.write(
        "project/src/main.rs",
        "fn main() { println!(\"built\"); }\n",
    );
    works(&place, "cargo build --offline").await;
    assert_eq!(works(&place, "target/debug/a").await, "built\n");
    place.write(
        "project/src/main.rs",
        "fn main() { println!(\"{}\", itoa::Buffer::new().format(42)); }\n",
    );
    let manifest = place.read("project/Cargo.toml").unwrap();
    place.write(
        "project/Cargo.toml",
        &format!("{manifest}[dependencies]\nitoa = \"1\"\n"),
    );
    if fetches(&place, "cargo build").await {
        assert_eq!(works(&place, "target/debug/a").await, "42\n");
    }
    works(&place, "cargo clean").await;
    assert!(!place.path("project/target/debug").exists());
}

#[tokio::test]
async fn javac_compiles() {
    if !has("javac") {
        return;
    }
    let place = place();
    place.write("project/src/Main.java", "public class Main { public static void main(String[] a) { System.out.println(\"java\"); } }\n");
    works(&place, "rm -rf out && javac -d out src/Main.java").await;
    assert_eq!(works(&place, "java -cp out Main").await, "java\n");
}

#[tokio::test]
async fn git_works_in_the_repository_and_keeps_its_settings() {
    if !has("git") {
        return;
    }
    let place = place();
    works(&place, "git init -q .").await;
    let line = "git -c user.name=a -c user.email=a@b.c commit -q --allow-empty -m first && git status --short && git log --oneline | wc -l";
    assert_eq!(works(&place, line).await.trim(), "1");
    let before = place.read("project/.git/config");
    assert_ne!(
        place
            .run("true; git config core.fsmonitor ./evil")
            .await
            .status,
        Status::Exited(0)
    );
    assert_eq!(place.read("project/.git/config"), before);
    works(
        &place,
        "touch a && git stash -u -q && git checkout -q -b other && git clean -fdq",
    )
    .await;
}

#[tokio::test]
async fn git_alone_fetches_submodules_and_nothing_else_may_change_its_settings() {
    if !has("git") {
        return;
    }
    let place = place();
    let line = "git init -q lib && git -C lib -c user.name=a -c user.email=a@b.c commit -q --allow-empty -m first && \
                git init -q . && git -c protocol.file.allow=always submodule add -q ./lib sub && rm -rf sub .git/modules && \
                mkdir sub && git config --remove-section submodule.sub";
    let set_up = place
        .run_as(line, |profile| profile.demand = Demand::Off)
        .await;
    assert_eq!(
        set_up.as_ref().unwrap().status,
        Status::Exited(0),
        "{set_up:#?}"
    );
    let fetch = "git -c protocol.file.allow=always submodule update --init --recursive";
    let ran = place.run(&format!("true; {fetch}")).await;
    assert_ne!(ran.status, Status::Exited(0), "{ran:#?}");
    works(&place, fetch).await;
    assert!(place.path("project/sub/.git").exists());
    assert!(
        place
            .read("project/.git/config")
            .unwrap()
            .contains("[submodule \"sub\"]")
    );
}

#[tokio::test]
async fn go_builds() {
    if !has_go() {
        return;
    }
    let place = place();
    place.write("project/go.mod", "module a\n\ngo 1.18\n");
    place.write(
        "project/main.go",
        "package main\n\nfunc main() { println(\"go\") }\n",
    );
    works(&place, "go build -o a .").await;
    assert!(place.path("project/a").exists());
}

fn has_go() -> bool {
    #[expect(clippy::disallowed_methods, reason = "a test looks at the machine")]
    let is_there = Command::new("go")
        .arg("version")
        .output()
        .is_ok_and(|output| output.status.success());
    if !is_there {
        skipped("there is no go here");
    }
    is_there
}
