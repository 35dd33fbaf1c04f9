//! The program that serves tests in other languages.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use serde_json::Value;
use tempfile::TempDir;

fn serve(folder: &Path, script: &str) -> Child {
    std::fs::write(folder.join("script.toml"), script).unwrap();
    #[expect(
        clippy::disallowed_methods,
        reason = "the test needs the running process"
    )]
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin("unstuck-faults"));
    command
        .current_dir(folder)
        .args([
            "serve",
            "--script",
            "script.toml",
            "--port-file",
            "port",
            "--log",
            "log.jsonl",
        ])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn ask(port: &str) -> i32 {
    let url = format!("http://127.0.0.1:{port}");
    unstuck_faults::scripted_agent::main(["-p", "Fix the tests", "--api", &url])
}

#[test]
fn a_script_is_served_and_every_request_logged() {
    let folder = TempDir::new().unwrap();
    let script = "[[step]]\noverloaded = {}\n[[step]]\nanswer = { text = \"Done\" }\n";
    let mut server = serve(folder.path(), script);
    let mut announced = String::new();
    let mut stderr = BufReader::new(server.stderr.take().unwrap());
    stderr.read_line(&mut announced).unwrap();
    let port = announced.trim().rsplit(':').next().unwrap().to_owned();
    assert_eq!((ask(&port), ask(&port)), (1, 0));
    assert_eq!(
        std::fs::read_to_string(folder.path().join("port")).unwrap(),
        port
    );
    server.kill().unwrap();
    server.wait().unwrap();
    let log = std::fs::read_to_string(folder.path().join("log.jsonl")).unwrap();
    let replies: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["reply"].clone())
        .collect();
    assert_eq!(replies, ["overloaded", "answer"]);
}

#[test]
fn an_unreadable_script_ends_the_program_with_the_reason() {
    let folder = TempDir::new().unwrap();
    let ended = serve(folder.path(), "[[step]]\nnonsense = 1\n")
        .wait_with_output()
        .unwrap();
    assert_eq!(ended.status.code(), Some(2));
    let stderr = String::from_utf8(ended.stderr).unwrap();
    assert!(stderr.contains("nonsense"), "{stderr}");
}
