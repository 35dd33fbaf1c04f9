//! Tests of entries that inspect or signal processes of the machine.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use unstuck_repair::sandbox::ConfinementLevel;
use unstuck_run::process::ChildExitStatus;

use super::support::Place;

/// A process of the machine that is killed with its test.
struct Server(Child);

impl Server {
    fn start(line: &str) -> Self {
        #[expect(clippy::disallowed_methods, reason = "it must be ended from elsewhere")]
        let child = Command::new("sh")
            .args(["-c", line])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn();
        Self(child.unwrap())
    }

    fn is_over(&mut self) -> bool {
        self.0.try_wait().unwrap().is_some()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn leftover_server_is_ended_by_its_pid_file() {
    let place = Place::new();
    let mut server = Server::start("exec sleep 1000");
    place.write("project/server.pid", &server.0.id().to_string());
    let line = "kill \"$(cat server.pid)\" && rm -f server.pid && sleep 0.1";
    let ran = place.run(line).await;
    assert_eq!(ran.status, ChildExitStatus::Exited(0), "{ran:#?}");
    assert_eq!(ran.confinement.level, ConfinementLevel::Full);
    assert!(server.is_over());
    assert!(!place.path("project/server.pid").exists());
}

#[tokio::test]
async fn stale_pid_file_is_distinguished_from_a_live_one() {
    let place = Place::new();
    let line = "kill -0 \"$(cat run/app.pid)\" 2>/dev/null || rm -f run/app.pid";
    let server = Server::start("exec sleep 1000");
    place.write("project/run/app.pid", &server.0.id().to_string());
    place.run(line).await;
    assert!(place.path("project/run/app.pid").exists());
    drop(server);
    place.run(line).await;
    assert!(!place.path("project/run/app.pid").exists());
}

#[tokio::test]
async fn process_entry_cannot_write_anywhere_else() {
    let place = Place::new();
    place.write("home/.ssh/id", "hunter2");
    let outside = place.path("outside/file");
    let line = format!(
        "kill -0 $$; echo x > {}; cat ~/.ssh/id; echo over",
        outside.display()
    );
    let ran = place.run(&line).await;
    assert_eq!(ran.stdout, "over\n", "{ran:#?}");
    assert!(!outside.exists());
}

#[tokio::test]
async fn process_entry_sees_only_process_ids() {
    let place = Place::new();
    let own = std::process::id();
    for what in [
        "environ",
        "root/etc/hostname",
        "fd/0",
        "cwd/Cargo.toml",
        "mem",
        "maps",
    ] {
        let line = format!("kill -0 $$; head -c1 /proc/{own}/{what} && echo done");
        let ran = place.run(&line).await;
        assert!(!ran.stdout.contains("done"), "{what}: {ran:#?}");
    }
}

#[tokio::test]
async fn process_that_holds_a_port_is_found_and_ended() {
    let place = Place::new();
    let port = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let mut server = Server::start(&format!(
        "exec python3 -m http.server {port} --bind 127.0.0.1 2>/dev/null"
    ));
    let is_up = || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok();
    crate::support::eventually("the server is up", is_up).await;
    let ran = place.run(&format!("fuser -k {port}/tcp")).await;
    assert_eq!(ran.status, ChildExitStatus::Exited(0), "{ran:#?}");
    // The kernel does not permit process inspection from a complete sandbox, and the missing feature is reported.
    // Only root has its mounts then.
    assert_ne!(ran.confinement.level, ConfinementLevel::Full);
    assert!(
        ran.confinement
            .summary()
            .contains("inspects other processes")
    );
    crate::support::eventually("the server is gone", || server.is_over()).await;
}
