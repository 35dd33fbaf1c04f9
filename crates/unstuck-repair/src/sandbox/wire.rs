//! The protocol between unstuck and the two sandbox processes: first a request with two handles, then events.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use unstuck_core::command_policy::DirectOrShell;

use super::confinement_report::ConfinementReport;
use super::git_dirs::ProjectRepositories;
use super::path_lists::{OutsideProjectEntryRule, protected_paths};
use super::sandbox_profile::SandboxProfile;

/// Maximum message length; a longer one is an error.
const MAX_MESSAGE_BYTES: usize = 4 * 1024 * 1024;
/// Length of the size prefix of each message.
const PREFIX_BYTES: usize = 4;
/// Number of handles sent: the project and the working directory.
const HANDLE_COUNT: usize = 2;

/// Prevents SIGPIPE, and descriptor inheritance where the system supports it atomically.
#[cfg(target_os = "linux")]
const SEND_FLAGS: SendFlags = SendFlags::NOSIGNAL;
#[cfg(target_os = "linux")]
const RECEIVE_FLAGS: RecvFlags = RecvFlags::CMSG_CLOEXEC;
#[cfg(not(target_os = "linux"))]
const SEND_FLAGS: SendFlags = SendFlags::empty();
#[cfg(not(target_os = "linux"))]
const RECEIVE_FLAGS: RecvFlags = RecvFlags::empty();

/// The command to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxCommand {
    /// Argument vectors, run without a shell until one fails.
    #[serde(alias = "words")]
    Argv(Vec<Vec<String>>),
    /// A line for `/bin/sh`.
    Shell(String),
}

impl SandboxCommand {
    /// Parses a command: into argument vectors where a shell would do the very same.
    pub fn from_command(command: &str) -> Self {
        match DirectOrShell::for_text(command) {
            DirectOrShell::Direct(commands) => Self::Argv(commands),
            DirectOrShell::Shell(line) => Self::Shell(line),
        }
    }
}

/// The user to run a command as, if it is another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunAs {
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
}

/// The paths outside the project that are writable, visible or hidden for the command.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SandboxHostPaths {
    /// Home directory, if there is a usable one.
    pub home: Option<PathBuf>,
    /// Writable paths outside the project, if they exist.
    pub caches: Vec<PathBuf>,
    /// Writable paths where nothing can be masked.
    #[serde(alias = "narrow")]
    pub narrowed_caches: Vec<PathBuf>,
    /// Private parts of the caches, because they would run outside of the sandbox later.
    #[serde(alias = "private")]
    pub private_caches: Vec<PathBuf>,
    /// Existing tool directories to which files may be added: a private copy of each is changed.
    #[serde(alias = "adding")]
    pub addable_dirs: Vec<(PathBuf, OutsideProjectEntryRule)>,
    /// The visible parts of the home directory; the rest is hidden.
    #[serde(alias = "needed")]
    pub needed_home_paths: Vec<PathBuf>,
    /// Hidden paths, if they exist.
    pub secrets: Vec<PathBuf>,
    /// Paths that stay visible even if everything around them is hidden: program directories.
    pub visible: Vec<PathBuf>,
    /// A private directory for temporary files; see [`ScratchDir`](super::ScratchDir).
    pub scratch: PathBuf,
}

/// A request to a sandbox. The handles of the project and of the working directory are sent with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxRequest {
    /// Confinement profile.
    pub profile: SandboxProfile,
    /// Surroundings of the project.
    #[serde(alias = "surroundings")]
    pub host: SandboxHostPaths,
    /// Why namespaces are not used. A machine may refuse them, or allow them and then refuse operations inside.
    #[serde(alias = "obstacle")]
    pub namespace_obstacle: Option<String>,
    /// If set, the number of processes is not limited.
    #[serde(alias = "unbounded")]
    pub has_no_process_limit: bool,
    /// User to run as.
    pub run_as: Option<RunAs>,
    /// Working directory, relative to the project.
    pub folder: PathBuf,
    /// Command to run.
    pub steps: SandboxCommand,
    /// Git repositories in the project before the run.
    pub git: ProjectRepositories,
    /// Checked files that decide what the command does.
    #[serde(alias = "checked")]
    pub watched_files: Vec<SandboxWatchedFile>,
    /// Directories of which the command gets a private copy; filled in by the outer process.
    #[serde(default)]
    pub copies: Vec<SandboxDirectoryCopy>,
}

/// A file that decides what a command does, as it was checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxWatchedFile {
    /// Path relative to the root of the project.
    pub path: PathBuf,
    /// SHA-256 of the contents in hexadecimal.
    pub sha256: String,
    /// Name of a copy of the checked contents in the private directory, which replaces the file where mounts are
    /// available. `None` for a file that the command itself has to write.
    pub copy: Option<String>,
}

/// A directory of which the command gets a private copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxDirectoryCopy {
    /// Path of the directory; relative to the project for git's own.
    #[serde(alias = "at")]
    pub path: PathBuf,
    /// Name of the subdirectory of the private directory that receives the writes.
    pub name: String,
    /// If set, this is git's directory of the project.
    pub is_git: bool,
}

impl SandboxRequest {
    /// Returns the project paths that the command may neither change nor create, besides those in git directories.
    pub fn protected_paths(&self) -> impl Iterator<Item = &'static PathBuf> {
        protected_paths().iter()
    }
}

/// The way a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandExit {
    /// It returned this exit code.
    Exited(i32),
    /// This signal terminated it.
    Signaled(i32),
}

impl CommandExit {
    /// Returns the exit code that a shell would show.
    pub fn code(self) -> i32 {
        match self {
            Self::Exited(code) => code,
            Self::Signaled(signal) => 128 + signal,
        }
    }
}

/// An event reported by a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxLifecycleEvent {
    /// The sandbox is set up, and the command starts now.
    Ready {
        /// Achieved confinement.
        #[serde(alias = "effective")]
        confinement: ConfinementReport,
        /// Resolved programs of plain commands.
        programs: Vec<PathBuf>,
    },
    /// The setup failed; nothing of the command ran.
    #[serde(alias = "set_up")]
    SetupFailed {
        /// Operation that failed.
        #[serde(alias = "doing")]
        operation: String,
        /// Error of the operation.
        error: String,
        /// If set, a retry without namespaces may work.
        without_namespaces: bool,
    },
    /// The command is refused, for example because its program is inside the project and not named by the owner.
    Refused {
        /// Reason.
        reason: String,
    },
    /// The command ended.
    Ended {
        /// The exit of the command.
        end: CommandExit,
        /// Number of processes it left behind; all were killed.
        #[serde(alias = "left")]
        leftover_count: u32,
    },
    /// All processes have ended and everything is cleaned up.
    Cleared {
        /// Removed files that unstuck or git would have obeyed.
        #[serde(alias = "planted")]
        removed_injections: Vec<PathBuf>,
        /// Some of the discarded writes to the home directory.
        #[serde(alias = "discarded")]
        discarded_writes: Vec<PathBuf>,
        /// Changes that another process made in git's directory meanwhile, so that the command's changes there are not
        /// kept.
        #[serde(alias = "overtaken")]
        conflicting_git_changes: Vec<PathBuf>,
    },
}

/// Sends a request and its handles.
pub fn send_request(
    stream: &UnixStream,
    order: &SandboxRequest,
    project: &impl AsFd,
    folder: &impl AsFd,
) -> io::Result<()> {
    let bytes = encode(order)?;
    let handles = [project.as_fd(), folder.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(HANDLE_COUNT))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(&handles)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let first = [IoSlice::new(&bytes)];
    let sent = rustix::net::sendmsg(stream, &first, &mut control, SEND_FLAGS)?;
    let mut stream = stream;
    stream.write_all(&bytes[sent..])
}

/// Receives a request with the handles of the project and of the working directory.
pub(super) fn receive_request(
    stream: &UnixStream,
) -> io::Result<(SandboxRequest, OwnedFd, OwnedFd)> {
    let mut prefix = [0; PREFIX_BYTES];
    let mut handles = Vec::new();
    let got = receive_with_handles(stream, &mut prefix, &mut handles)?;
    let mut rest = stream;
    rest.read_exact(&mut prefix[got..])?;
    let mut body = vec![0; message_length(prefix)?];
    rest.read_exact(&mut body)?;
    let [project, folder] =
        <[OwnedFd; HANDLE_COUNT]>::try_from(handles).map_err(|_| io::ErrorKind::InvalidData)?;
    Ok((serde_json::from_slice(&body)?, project, folder))
}

fn receive_with_handles(
    stream: &UnixStream,
    prefix: &mut [u8],
    handles: &mut Vec<OwnedFd>,
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(HANDLE_COUNT))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut first = [IoSliceMut::new(prefix)];
    let got = rustix::io::retry_on_intr(|| {
        rustix::net::recvmsg(stream, &mut first, &mut control, RECEIVE_FLAGS)
    })?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            handles.extend(descriptors);
        }
    }
    #[cfg(not(target_os = "linux"))]
    for handle in handles {
        rustix::io::fcntl_setfd(handle, rustix::io::FdFlags::CLOEXEC)?;
    }
    Ok(got.bytes)
}

/// Sends an event.
pub(super) fn send_event(
    mut stream: &UnixStream,
    report: &SandboxLifecycleEvent,
) -> io::Result<()> {
    stream.write_all(&encode(report)?)
}

/// Removes the first event from the buffer, once it is complete.
pub fn take_event<M: DeserializeOwned>(bytes: &mut Vec<u8>) -> io::Result<Option<M>> {
    let Some(prefix) = bytes.first_chunk::<PREFIX_BYTES>() else {
        return Ok(None);
    };
    let end = PREFIX_BYTES + message_length(*prefix)?;
    if bytes.len() < end {
        return Ok(None);
    }
    let message = serde_json::from_slice(&bytes[PREFIX_BYTES..end])?;
    bytes.drain(..end);
    Ok(Some(message))
}

fn encode(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; PREFIX_BYTES];
    serde_json::to_writer(&mut bytes, message)?;
    let length = bytes.len() - PREFIX_BYTES;
    if length > MAX_MESSAGE_BYTES {
        return Err(message_too_long());
    }
    let length = u32::try_from(length).map_err(|_| message_too_long())?;
    bytes[..PREFIX_BYTES].copy_from_slice(&length.to_le_bytes());
    Ok(bytes)
}

fn message_length(prefix: [u8; PREFIX_BYTES]) -> io::Result<usize> {
    let length = u32::from_le_bytes(prefix) as usize;
    if length > MAX_MESSAGE_BYTES {
        return Err(message_too_long());
    }
    Ok(length)
}

fn message_too_long() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "message too long")
}
