//! The wrapper for agents in SECURITY.md.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// Tries to reach a socket, to change what git executes, and to see the variables of the session.
const AGENT: &str = r#"#!/bin/sh
python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])' "$1" 2>/dev/null && echo reached
echo x 2>/dev/null >> .git/config && echo changed-config
echo x 2>/dev/null > .git/hooks/post-checkout && echo changed-hooks
echo x 2>/dev/null > "$HOME/left"; echo "${DBUS_SESSION_BUS_ADDRESS}${SSH_AUTH_SOCK}${XDG_RUNTIME_DIR}${DOCKER_HOST}"
touch made && echo ended
"#;

fn wrapper() -> String {
    let page = include_str!("../../../../SECURITY.md");
    let (_, after) = page.split_once("```sh\n").unwrap();
    after.split_once("```").unwrap().0.to_owned()
}

/// Creates a directory below /run, where the sockets of a session are.
fn runtime_dir() -> Option<TempDir> {
    let named = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let named = named.filter(|path| path.starts_with("/run"));
    let mut places = named.into_iter().chain([PathBuf::from("/run")]);
    places.find_map(|place| tempfile::tempdir_in(place).ok())
}

fn run(wrapper: &Path, home: &Path, project: &Path, socket: &Path) -> String {
    let ended = Command::new("sh")
        .arg(wrapper)
        .arg(socket)
        .current_dir(project)
        .env("HOME", home)
        .envs(
            [
                "DBUS_SESSION_BUS_ADDRESS",
                "SSH_AUTH_SOCK",
                "XDG_RUNTIME_DIR",
                "DOCKER_HOST",
            ]
            .map(|name| (name, socket)),
        )
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(ended.status.success(), "{told}");
    String::from_utf8(ended.stdout).unwrap()
}

fn check_wrapper() {
    let Some(sockets) = runtime_dir() else {
        panic!("no writable directory below /run");
    };
    let socket = sockets.path().join("socket");
    let _listener = UnixListener::bind(&socket).unwrap();
    // Not below /tmp, which the wrapper replaces.
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let [home, project] = ["home", "project"].map(|name| place.path().join(name));
    for folder in [".config/opencode", ".local/share/opencode"] {
        std::fs::create_dir_all(home.join(folder)).unwrap();
    }
    std::fs::create_dir_all(project.join(".git/hooks")).unwrap();
    std::fs::write(project.join(".git/config"), "").unwrap();
    let agent = place.path().join("agent");
    std::fs::write(&agent, AGENT).unwrap();
    std::fs::set_permissions(&agent, std::fs::Permissions::from_mode(0o755)).unwrap();
    let script = place.path().join("opencode");
    let real = format!("real={}", agent.display());
    let text = wrapper().replace("real=/usr/local/bin/opencode", &real);
    assert!(text.contains(&real));
    std::fs::write(&script, &text).unwrap();
    let told = run(&script, &home, &project, &socket);
    assert_eq!(told, "\nended\n");
    assert!(project.join("made").exists() && !home.join("left").exists());
    // Without these options, the agent reaches the socket and changes the files.
    let open = text
        .replace("--tmpfs /run", "")
        .replace("--ro-bind-try \"$git", "--bind \"$git");
    std::fs::write(&script, open).unwrap();
    let told = run(&script, &home, &project, &socket);
    assert_eq!(told, "reached\nchanged-config\nchanged-hooks\n\nended\n");
}

mod tools {
    mod bwrap {
        #[test]
        fn wrapped_agent_reaches_no_socket_and_changes_nothing_that_git_executes() {
            super::super::check_wrapper();
        }
    }
}
