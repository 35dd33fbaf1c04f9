//! The measured processes: an upstream and the servers in front of it. Each ends on drop.
#![expect(
    clippy::disallowed_methods,
    reason = "the benchmark's own temporary directory"
)]

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::resources;
use crate::startup::{program_command, sibling_program};

/// The argument that starts the benchmark as a forwarder.
pub(crate) const FORWARDER: &str = "__forward";

/// A listening process that is killed on drop.
pub(crate) struct ListeningProcess {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl ListeningProcess {
    /// Returns the CPU seconds used.
    pub(crate) fn cpu(&self) -> Result<f64> {
        resources::cpu_of(self.child.id())
    }

    /// Returns the private memory in MB.
    pub(crate) fn memory(&self) -> f64 {
        resources::own_memory(self.child.id())
    }
}

impl Drop for ListeningProcess {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts processes in a private directory.
pub(crate) struct ProcessFixture {
    folder: tempfile::TempDir,
}

impl ProcessFixture {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self {
            folder: tempfile::tempdir()?,
        })
    }

    /// Starts an upstream that plays a script.
    pub(crate) fn start_upstream(&self, script: &str) -> Result<ListeningProcess> {
        let file = self.file_path("script.toml");
        fs::write(&file, script)?;
        let mut line = program_command(&program_path()?);
        line.args(["faults", "serve"]).arg(&file);
        self.start_listening(line.args(["--listen", "127.0.0.1:0"]))
    }

    /// Starts the gateway like a user, with all its recording.
    pub(crate) fn start_gateway(
        &self,
        upstreams: &[SocketAddr],
        more: &[&str],
    ) -> Result<ListeningProcess> {
        let mut line = program_command(&program_path()?);
        line.args(["serve", "--listen", "127.0.0.1:0", "--quiet"])
            .args(more)
            .env("XDG_STATE_HOME", self.folder.path())
            .env("XDG_CONFIG_HOME", self.folder.path())
            .current_dir(self.folder.path());
        for upstream in upstreams {
            line.args(["--upstream", &format!("openai=http://{upstream}/v1")]);
        }
        self.start_listening(&mut line)
    }

    /// Starts the dashboard like a user, on an existing store.
    pub(crate) fn start_dashboard(&self, store: &Path) -> Result<ListeningProcess> {
        let store = store.display().to_string();
        self.start_gateway(&[], &["--store", &store])
    }

    /// Starts the plain forwarder.
    pub(crate) fn start_forwarder(&self, upstream: SocketAddr) -> Result<ListeningProcess> {
        let file = self.file_path("port");
        let mut line = program_command(&std::env::current_exe()?);
        line.args([FORWARDER, &upstream.to_string()]).arg(&file);
        Self::wait_for_port(&mut line, &file)
    }

    /// Starts nginx in front of an upstream, if it is installed.
    pub(crate) fn start_nginx(&self, upstream: SocketAddr) -> Result<Option<ListeningProcess>> {
        let places = ["/usr/sbin/nginx", "/usr/local/sbin/nginx", "/usr/bin/nginx"];
        let Some(program) = places.iter().map(Path::new).find(|path| path.exists()) else {
            return Ok(None);
        };
        // nginx does not report its port.
        let port = std::net::TcpListener::bind(("127.0.0.1", 0))?
            .local_addr()?
            .port();
        let folder = self.folder.path();
        let config = format!(
            "daemon off; worker_processes 1; pid {0}/nginx.pid; error_log {0}/nginx.log;\n\
             events {{ worker_connections 4096; }}\n\
             http {{ access_log off; client_body_temp_path {0}/b; proxy_temp_path {0}/p; fastcgi_temp_path {0}/f; uwsgi_temp_path {0}/u; scgi_temp_path {0}/s;\n\
             upstream up {{ server {upstream}; keepalive 256; }}\n\
             server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://up; proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_buffering off; }} }} }}\n",
            folder.display()
        );
        let file = self.file_path("nginx.conf");
        fs::write(&file, config)?;
        let child = program_command(program)
            .arg("-c")
            .arg(&file)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let listening = ListeningProcess {
            child,
            address: SocketAddr::from(([127, 0, 0, 1], port)),
        };
        poll_until(|| {
            std::net::TcpStream::connect(listening.address)
                .ok()
                .map(|_| ())
        })
        .context("nginx is not listening")?;
        Ok(Some(listening))
    }

    fn start_listening(&self, command: &mut Command) -> Result<ListeningProcess> {
        let file = self.file_path("port");
        command.arg("--port-file").arg(&file);
        Self::wait_for_port(command, &file)
    }

    fn wait_for_port(command: &mut Command, port_file: &Path) -> Result<ListeningProcess> {
        let child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let mut listening = ListeningProcess {
            child,
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
        };
        let port = poll_until(|| fs::read_to_string(port_file).ok()?.trim().parse().ok());
        let Some(port) = port else {
            bail!("{command:?} is not listening");
        };
        fs::remove_file(port_file)?;
        listening.address.set_port(port);
        Ok(listening)
    }

    fn file_path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Returns the path of the program from the same build.
fn program_path() -> Result<PathBuf> {
    sibling_program("unstuck").context("unstuck is not built")
}

/// Polls for a result for ten seconds.
fn poll_until<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    for _ in 0..500 {
        if let Some(found) = look() {
            return Some(found);
        }
        #[expect(
            clippy::disallowed_methods,
            reason = "waits for another process to start"
        )]
        std::thread::sleep(Duration::from_millis(20));
    }
    None
}
