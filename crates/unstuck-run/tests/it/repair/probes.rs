//! Probes of the sandbox: attacks must fail, and operations that repairs need must succeed.

use std::cell::RefCell;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::Path;

use unstuck_repair::sandbox::{
    ConfinementLevel, NetworkAccess, ProcessAccess, SandboxMode, SandboxProfile,
};
use unstuck_run::process::ChildExitStatus;

use super::support::{Place, is_root};

/// Runs a line that prints `done` if a forbidden operation succeeded.
async fn refused(place: &Place, line: &str) {
    let ran = place.run(&format!("({line}) && echo done")).await;
    assert_eq!(ran.confinement.summary(), "full");
    assert!(!ran.stdout.contains("done"), "{line}: {ran:#?}");
}

/// The same for an operation that does succeed without the sandbox, which proves that the sandbox stops it.
async fn stopped(set_up: impl Fn(&Place), line: impl Fn(&Place) -> String) {
    let place = Place::new();
    set_up(&place);
    refused(&place, &line(&place)).await;
    let control = Place::new();
    set_up(&control);
    let line = format!("({}) && echo done", line(&control));
    let off = |profile: &mut SandboxProfile| profile.mode = SandboxMode::Off;
    let ran = control.run_as(&line, off).await.unwrap();
    assert!(ran.stdout.contains("done"), "{line}: {ran:#?}");
}

fn outside(place: &Place, name: &str) -> String {
    place.path("outside").join(name).display().to_string()
}

#[tokio::test]
async fn project_and_caches_are_writable() {
    let place = Place::new();
    place.write("home/.npm/_cacache/old", "");
    let line = "echo a > file && echo b > ~/.npm/_cacache/new && rm ~/.npm/_cacache/old && echo c > \"$TMPDIR/t\"";
    let ran = place.run(line).await;
    assert_eq!(ran.status, ChildExitStatus::Exited(0), "{ran:#?}");
    assert_eq!(ran.confinement.level, ConfinementLevel::Full);
    assert_eq!(place.read("project/file").as_deref(), Some("a\n"));
    assert_eq!(place.read("home/.npm/_cacache/new").as_deref(), Some("b\n"));
    assert!(!place.path("home/.npm/_cacache/old").exists());
}

#[tokio::test]
async fn nothing_outside_is_writable() {
    let set_up = |place: &Place| drop(place.write("outside/kept", "kept"));
    for line in [
        "echo x > OUTSIDE/new",
        "echo x > OUTSIDE/kept",
        "rm OUTSIDE/kept",
        "mv OUTSIDE/kept moved",
        "touch new && mv new OUTSIDE/new",
        "ln OUTSIDE/kept linked && echo x > linked",
        "ln -s OUTSIDE link && echo x > link/new",
        "truncate -s 0 OUTSIDE/kept",
        "mkdir OUTSIDE/folder",
    ] {
        stopped(set_up, |place| line.replace("OUTSIDE", &outside(place, ""))).await;
    }
    let place = Place::new();
    set_up(&place);
    refused(&place, "echo x > /etc/unstuck-was-here").await;
    refused(&place, "echo x > /usr/bin/unstuck-was-here").await;
    refused(&place, &format!("echo x > {}", outside(&place, "kept"))).await;
    assert_eq!(place.read("outside/kept").as_deref(), Some("kept"));
    assert_eq!(std::fs::read_dir(place.path("outside")).unwrap().count(), 1);
}

#[tokio::test]
async fn modes_owners_and_times_outside_cannot_be_changed() {
    let set_up = |place: &Place| drop(place.write("outside/kept", ""));
    for line in [
        "chmod 777",
        "chmod -R 700",
        "touch -d 2001-01-01",
        "chgrp 65534",
    ] {
        stopped(set_up, |place| format!("{line} {}", outside(place, "kept"))).await;
    }
    if is_root() {
        stopped(set_up, |place| {
            format!("chown 12345 {}", outside(place, "kept"))
        })
        .await;
    }
    let place = Place::new();
    set_up(&place);
    let kept = place.path("outside/kept");
    let before = std::fs::metadata(&kept).unwrap();
    refused(&place, &format!("chmod 777 {}", kept.display())).await;
    refused(
        &place,
        &format!("setfattr -n user.x -v y {}", kept.display()),
    )
    .await;
    let after = std::fs::metadata(&kept).unwrap();
    let facts = |of: &std::fs::Metadata| (of.mode(), of.uid(), of.gid(), of.mtime(), of.ctime());
    assert_eq!(facts(&before), facts(&after));
}

/// Tests that only root can run.
mod root {
    use super::*;

    /// Privileges of root over other users' files work in the project, but only if no program of the project is
    /// involved.
    #[tokio::test]
    async fn root_can_change_owners_of_project_files() {
        let place = Place::new();
        let file = place.write("project/cache/file", "");
        let owner = || std::fs::metadata(&file).unwrap().uid();
        let ran = place
            .run("chown -R 12345 cache && chmod -R go-rwx cache")
            .await;
        assert_eq!(ran.status, ChildExitStatus::Exited(0), "{ran:#?}");
        assert_eq!(ran.confinement.level, ConfinementLevel::Full);
        assert_eq!(owner(), 12345);
        refused(&place, "echo go && cat cache/file").await;
        let ran = place.run("rm -rf cache").await;
        assert_eq!(ran.status, ChildExitStatus::Exited(0), "{ran:#?}");
        assert!(!place.path("project/cache").exists());
    }
}

#[tokio::test]
async fn nothing_can_be_mounted() {
    let place = Place::new();
    for line in [
        "mount -o remount,rw /",
        "mount -o remount,bind,rw /",
        "mkdir -p m && mount -t tmpfs none m",
        "umount /run",
        "umount -l /proc",
        "unshare -Urm mount -t tmpfs none /mnt",
        "unshare -U true",
        "chroot / true",
        "nsenter -t 1 -m true",
    ] {
        refused(&place, line).await;
    }
}

#[tokio::test]
async fn no_kernel_setting_can_be_changed() {
    let place = Place::new();
    // Writes the existing value, so that nothing is harmed if this works after all.
    for setting in [
        "/proc/sys/kernel/core_pattern",
        "/proc/sys/vm/swappiness",
        "/proc/sys/kernel/hostname",
    ] {
        let line = format!("value=$(cat {setting}) && echo \"$value\" > {setting}");
        refused(&place, &line).await;
    }
    refused(&place, "hostname unstuck-was-here").await;
}

#[tokio::test]
async fn no_device_can_be_created_or_opened() {
    let place = Place::new();
    refused(&place, "mknod zero c 1 5").await;
    refused(&place, "mknod disk b 7 0").await;
    let ran = place
        .run("ls /dev; find . /tmp /dev -type b; head -c4 /dev/zero | wc -c; echo x > /dev/null")
        .await;
    let expected =
        "fd\nfull\nnull\nptmx\npts\nrandom\nshm\nstderr\nstdin\nstdout\nurandom\nzero\n4\n";
    assert_eq!(ran.stdout, expected, "{ran:#?}");
}

#[tokio::test]
async fn no_setuid_program_can_be_left_behind() {
    let place = Place::new();
    place.write("project/program", "");
    refused(&place, "chmod u+s program && test -u program").await;
    refused(&place, "chmod 4755 program && test -u program").await;
    refused(&place, "install -m 4755 program other && test -u other").await;
    let mode = place
        .path("project/program")
        .metadata()
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o4000, 0);
}

#[tokio::test]
async fn no_privilege_is_left() {
    let place = Place::new();
    let ran = place
        .run("grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status; ulimit -c; tty")
        .await;
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert!(
            ran.stdout.contains(&format!("{set}:\t0000000000000000")),
            "{ran:#?}"
        );
    }
    assert!(ran.stdout.contains("NoNewPrivs:\t1") && ran.stdout.contains("Seccomp:\t2"));
    assert!(ran.stdout.contains("\n0\nnot a tty"), "{ran:#?}");
}

/// Starts a server of the machine that a command may or may not reach.
fn server() -> (std::net::TcpListener, u16) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

#[tokio::test]
async fn network_is_available_only_if_enabled() {
    let place = Place::new();
    let (_listener, port) = server();
    let line = format!(
        "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 5)' && echo done"
    );
    let on = place.run(&line).await;
    assert!(on.stdout.contains("done"), "{on:#?}");
    let off = place
        .run_as(&line, |profile| profile.network = NetworkAccess::Off)
        .await;
    let off = off.unwrap();
    assert!(!off.stdout.contains("done"), "{off:#?}");
    assert_eq!(off.confinement.level, ConfinementLevel::Full);
    let line = "python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM)' && echo done; ls /sys/class/net";
    let off = place
        .run_as(line, |profile| profile.network = NetworkAccess::Off)
        .await;
    assert!(!off.unwrap().stdout.contains("done"));
}

#[tokio::test]
async fn processes_of_the_machine_cannot_be_seen_or_signaled() {
    let place = Place::new();
    let other = std::process::id();
    let line = format!("ls -d /proc/[0-9]* | wc -l; cat /proc/{other}/cmdline && echo done; true");
    let own = |profile: &mut SandboxProfile| profile.process_scope = ProcessAccess::Own;
    let ran = place.run_as(&line, own).await.unwrap();
    let seen: u32 = ran.stdout.lines().next().unwrap().parse().unwrap();
    assert!(seen < 10, "{ran:#?}");
    refused(
        &place,
        &format!("python3 -c 'import os; os.kill({other}, 0)'"),
    )
    .await;
    // The first process of the sandbox is ours, and cannot be harmed either.
    let line = "python3 -c 'import os; os.kill(1, 9)'; sleep 0.1; exit 4";
    assert_eq!(place.run(line).await.status, ChildExitStatus::Exited(4));
}

#[tokio::test]
async fn services_of_the_machine_cannot_be_reached_by_socket() {
    let number = std::process::id();
    let temporary = std::env::temp_dir().join(format!("service-{number}"));
    for folder in ["outside", "home", "project", temporary.to_str().unwrap()] {
        let name = Path::new(folder).join("socket");
        let listeners = RefCell::new(Vec::new());
        let set_up = |place: &Place| {
            let socket = place.path("").join(&name);
            std::fs::create_dir_all(socket.parent().unwrap()).unwrap();
            let _ = std::fs::remove_file(&socket);
            listeners
                .borrow_mut()
                .push(UnixListener::bind(&socket).unwrap());
            let open = std::fs::Permissions::from_mode(0o777);
            std::fs::set_permissions(&socket, open).unwrap();
        };
        stopped(set_up, |place| {
            let socket = place.path("").join(&name);
            let connect = "import socket; socket.socket(socket.AF_UNIX).connect";
            format!("python3 -c '{connect}(\"{}\")'", socket.display())
        })
        .await;
    }
    let _ = std::fs::remove_dir_all(temporary);
    let place = Place::new();
    // An unconnected one could be connected to anything later.
    let pair = "import socket; socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)";
    refused(&place, &format!("python3 -c '{pair}'")).await;
    let pair = "import socket; socket.socketpair(); print(\"pair\")";
    let ran = place.run(&format!("ls -A /run; python3 -c '{pair}'")).await;
    assert_eq!(ran.stdout, "pair\n", "{ran:#?}");
}

#[tokio::test]
async fn secrets_cannot_be_read() {
    let place = Place::new();
    let secrets = [
        "home/.ssh/id_ed25519",
        "home/.aws/credentials",
        "home/.gnupg/private-keys-v1.d/key",
        "home/.config/gh/hosts.yml",
        "home/.docker/config.json",
        "home/.kube/config",
        "home/.netrc",
        "home/.git-credentials",
        "home/.config/gcloud/credentials.db",
        "home/.claude/.credentials.json",
        "home/.claude.json",
        "home/.codex/auth.json",
        "home/.cargo/credentials.toml",
        "home/.bash_history",
        "state/unstuck.db",
    ];
    for secret in secrets {
        place.write(secret, "hunter2");
    }
    place.write("home/.cargo/registry/index/x", "index");
    place.write("home/.gitconfig", "[user]\nname = me\n");
    for secret in secrets {
        let set_up = |place: &Place| drop(place.write(secret, "hunter2"));
        let read = |place: &Place| format!("grep hunter2 {}", place.path(secret).display());
        stopped(set_up, read).await;
    }
    let ran = place.run("grep -r hunter2 ~ .. 2>/dev/null; ls -A ~/.ssh; cat ~/.gitconfig ~/.cargo/registry/index/x").await;
    assert_eq!(ran.stdout, "[user]\nname = me\nindex", "{ran:#?}");
    for secret in secrets {
        assert_eq!(place.read(secret).as_deref(), Some("hunter2"), "{secret}");
    }
    if is_root() {
        refused(&place, "test -s /etc/shadow").await;
    }
}

#[tokio::test]
async fn writes_to_the_home_directory_are_private_and_reported() {
    let place = Place::new();
    place.write("home/.gitconfig", "mine");
    let line = "echo evil >> ~/.gitconfig && mkdir -p ~/.local/bin && echo evil > ~/.local/bin/ls && cat ~/.gitconfig";
    let ran = place.run(line).await;
    assert_eq!(ran.stdout, "mineevil\n", "{ran:#?}");
    assert_eq!(place.read("home/.gitconfig").as_deref(), Some("mine"));
    assert!(!place.path("home/.local").exists());
    let expected = [
        place.path("home/.gitconfig"),
        place.path("home/.local/bin/ls"),
    ];
    assert_eq!(ran.discarded_writes, expected);
}

#[tokio::test]
async fn cache_can_be_removed_but_executable_entries_are_private() {
    let place = Place::new();
    place.write("home/.npm/_cacache/old", "");
    let line = "rm -rf ~/.npm/_cacache && mkdir ~/.npm/_cacache && echo new > ~/.npm/_cacache/new && \
                mkdir ~/.npm/_npx/tool && echo evil > ~/.npm/_npx/tool/x && cat ~/.npm/_npx/tool/x";
    let ran = place.run(line).await;
    assert_eq!(
        (&ran.status, ran.stdout.as_str()),
        (&ChildExitStatus::Exited(0), "evil\n"),
        "{ran:#?}"
    );
    assert_eq!(
        place.read("home/.npm/_cacache/new").as_deref(),
        Some("new\n")
    );
    assert!(!place.path("home/.npm/_cacache/old").exists());
    assert!(!place.path("home/.npm/_npx/tool").exists());
}

#[tokio::test]
async fn files_that_affect_later_commands_are_not_changed() {
    let place = Place::new();
    let kept = [
        "unstuck.toml",
        ".git/hooks/pre-commit",
        ".git/config",
        ".unstuck/runs/1/state.json",
    ];
    for name in kept {
        place.write(&format!("project/{name}"), "kept");
    }
    place.write("project/.git/HEAD", "ref: refs/heads/main\n");
    for line in [
        "echo x > unstuck.toml",
        "rm unstuck.toml",
        "mv unstuck.toml other",
        "echo x > new && mv new unstuck.toml",
        "mv .git other && mkdir .git",
        "echo x > .unstuck/runs/1/state.json",
    ] {
        refused(&place, line).await;
    }
    // Git's directory is a private copy, of which this is discarded.
    for line in [
        "echo x > .git/config",
        "echo x > .git/hooks/post-checkout",
        "rm -rf .git/hooks",
        "mv .git/hooks/pre-commit .git/old",
        "rm -rf .git/config .git/hooks && mkdir .git/hooks && echo x > .git/hooks/pre-commit",
    ] {
        let ran = place.run(line).await;
        assert_eq!(ran.confinement.summary(), "full");
        assert!(!ran.removed_injections.is_empty(), "{line}: {ran:#?}");
        let mut names = std::fs::read_dir(place.path("project/.git/hooks")).unwrap();
        assert_eq!(
            names.next().unwrap().unwrap().file_name(),
            "pre-commit",
            "{line}"
        );
        assert!(names.next().is_none(), "{line}");
    }
    for name in kept {
        assert_eq!(
            place.read(&format!("project/{name}")).as_deref(),
            Some("kept"),
            "{name}"
        );
    }
    let ran = place
        .run("echo x > .git/index.new && mv .git/index.new .git/index && cat .git/index")
        .await;
    assert_eq!(ran.stdout, "x\n", "{ran:#?}");
}

#[tokio::test]
async fn files_that_would_affect_later_commands_are_not_created() {
    let place = Place::new();
    place.write("project/.git/HEAD", "ref: refs/heads/main\n");
    let line = "echo '{}' > unstuck.json; mkdir -p .git/hooks; echo x > .git/hooks/pre-commit; echo y > .git/config; echo z > file";
    let ran = place.run(line).await;
    let names: Vec<_> = ran
        .removed_injections
        .iter()
        .map(|path| path.to_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [".git/config", ".git/hooks", "unstuck.json"],
        "{ran:#?}"
    );
    for name in names {
        assert!(!place.path("project").join(name).exists(), "{name}");
    }
    assert!(place.path("project/file").exists());
}
