//! The processes that are measured: an upstream, and who stands in front of it. Each ends with its value.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::resources;
use crate::starting::{beside, command};

/// The word by which the benchmark starts itself as a forwarder.
pub(crate) const FORWARDER: &str = "__forward";

/// A process that listens, and ends with this value.
pub(crate) struct Listening {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Listening {
    /// The seconds of processor time that it has used.
    pub(crate) fn cpu(&self) -> Result<f64> {
        resources::cpu_of(self.child.id())
    }

    /// The memory that is its own, in MB.
    pub(crate) fn memory(&self) -> f64 {
        resources::own_memory(self.child.id())
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts processes in a folder of their own.
pub(crate) struct Stage {
    folder: tempfile::TempDir,
}

impl Stage {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self {
            folder: tempfile::tempdir()?,
        })
    }

    /// An upstream that plays a script.
    pub(crate) fn upstream(&self, script: &str) -> Result<Listening> {
        let file = self.file("script.toml");
        fs::write(&file, script)?;
        let mut line = command(&program()?);
        line.args(["faults", "serve"]).arg(&file);
        self.listening(line.args(["--listen", "127.0.0.1:0"]))
    }

    /// The gateway as a user starts it, with all that it records.
    pub(crate) fn gateway(&self, upstreams: &[SocketAddr], more: &[&str]) -> Result<Listening> {
        let mut line = command(&program()?);
        line.args(["serve", "--listen", "127.0.0.1:0", "--quiet"])
            .args(more)
            .env("XDG_STATE_HOME", self.folder.path())
            .env("XDG_CONFIG_HOME", self.folder.path())
            .current_dir(self.folder.path());
        for upstream in upstreams {
            line.args(["--upstream", &format!("openai=http://{upstream}/v1")]);
        }
        self.listening(&mut line)
    }

    /// The dashboard as a user starts it, on a store that is there.
    pub(crate) fn dashboard(&self, store: &Path) -> Result<Listening> {
        let store = store.display().to_string();
        self.gateway(&[], &["--store", &store])
    }

    /// The forwarder that does nothing but forward.
    pub(crate) fn forwarder(&self, upstream: SocketAddr) -> Result<Listening> {
        let file = self.file("port");
        let mut line = command(&std::env::current_exe()?);
        line.args([FORWARDER, &upstream.to_string()]).arg(&file);
        Self::started(&mut line, &file)
    }

    /// nginx in front of an upstream, where it is installed.
    pub(crate) fn nginx(&self, upstream: SocketAddr) -> Result<Option<Listening>> {
        let places = ["/usr/sbin/nginx", "/usr/local/sbin/nginx", "/usr/bin/nginx"];
        let Some(program) = places.iter().map(Path::new).find(|path| path.exists()) else {
            return Ok(None);
        };
        // nginx tells nobody which port it got.
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
        let file = self.file("nginx.conf");
        fs::write(&file, config)?;
        let child = command(program)
            .arg("-c")
            .arg(&file)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let listening = Listening {
            child,
            address: SocketAddr::from(([127, 0, 0, 1], port)),
        };
        patiently(|| {
            std::net::TcpStream::connect(listening.address)
                .ok()
                .map(|_| ())
        })
        .context("nginx does not listen")?;
        Ok(Some(listening))
    }

    fn listening(&self, command: &mut Command) -> Result<Listening> {
        let file = self.file("port");
        command.arg("--port-file").arg(&file);
        Self::started(command, &file)
    }

    fn started(command: &mut Command, port_file: &Path) -> Result<Listening> {
        let child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let mut listening = Listening {
            child,
            address: SocketAddr::from(([127, 0, 0, 1], 0)),
        };
        let port = patiently(|| fs::read_to_string(port_file).ok()?.trim().parse().ok());
        let Some(port) = port else {
            bail!("{command:?} does not listen");
        };
        fs::remove_file(port_file)?;
        listening.address.set_port(port);
        Ok(listening)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// The program of the same build.
fn program() -> Result<PathBuf> {
    beside("unstuck").context("the program is not built")
}

/// Looks for something again and again, for ten seconds.
fn patiently<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    for _ in 0..500 {
        if let Some(found) = look() {
            return Some(found);
        }
        #[expect(clippy::disallowed_methods, reason = "another process has to come up")]
        std::thread::sleep(Duration::from_millis(20));
    }
    None
}
