//! What is said between unstuck and the two processes of a sandbox: first an order with two handles, then reports.

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
use unstuck_core::command_policy::ExecutionPlan;

use super::confinement::ConfinementReport;
use super::git_dirs::GitDirs;
use super::path_lists::{AdditionRule, protected_paths};
use super::sandbox_profile::SandboxProfile;

/// A longer message is a mistake.
const MAX_MESSAGE_BYTES: usize = 4 * 1024 * 1024;
/// The bytes before each message that tell its length.
const PREFIX_BYTES: usize = 4;
/// The project and the folder to work in.
const HANDLE_COUNT: usize = 2;

/// No signal if nobody listens, and no program inherits the handles, where the system can promise that at once.
#[cfg(target_os = "linux")]
const SEND_FLAGS: SendFlags = SendFlags::NOSIGNAL;
#[cfg(target_os = "linux")]
const RECEIVE_FLAGS: RecvFlags = RecvFlags::CMSG_CLOEXEC;
#[cfg(not(target_os = "linux"))]
const SEND_FLAGS: SendFlags = SendFlags::empty();
#[cfg(not(target_os = "linux"))]
const RECEIVE_FLAGS: RecvFlags = RecvFlags::empty();

/// What to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandSteps {
    /// Commands word by word, without a shell, until one fails.
    #[serde(rename = "words")]
    Argv(Vec<Vec<String>>),
    /// A line for `/bin/sh`.
    Shell(String),
}

impl CommandSteps {
    /// How a command runs: word by word where a shell would do the very same.
    pub fn from_command(command: &str) -> Self {
        match ExecutionPlan::for_text(command) {
            ExecutionPlan::Direct(commands) => Self::Argv(commands),
            ExecutionPlan::Shell(line) => Self::Shell(line),
        }
    }
}

/// The user that a command runs as, where that is another one than ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunAs {
    /// The number of the user.
    pub uid: u32,
    /// The number of the user's group.
    pub gid: u32,
}

/// What lies around the project on this machine.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HostPaths {
    /// The home folder, if there is one that can be used.
    pub home: Option<PathBuf>,
    /// What is writable beside the project, where it exists.
    pub caches: Vec<PathBuf>,
    /// The same where nothing can be covered.
    #[serde(rename = "narrow")]
    pub narrowed_caches: Vec<PathBuf>,
    /// What of the caches is private, because it would run outside of the sandbox later.
    #[serde(rename = "private")]
    pub private_caches: Vec<PathBuf>,
    /// Folders of tools to which something may be added, where they exist: a private copy of each is changed.
    #[serde(rename = "adding")]
    pub addable_dirs: Vec<(PathBuf, AdditionRule)>,
    /// What of the home folder is seen; nothing else of it is.
    #[serde(rename = "needed")]
    pub needed_home_paths: Vec<PathBuf>,
    /// What is not seen, where it exists.
    pub secrets: Vec<PathBuf>,
    /// What must stay visible even where everything around it is hidden: the folders of programs.
    pub visible: Vec<PathBuf>,
    /// A private folder of ours, for what is temporary; see [`ScratchDir`](super::ScratchDir).
    pub scratch: PathBuf,
}

/// Everything that a sandbox is told. The handles of the project and of the folder to work in go along with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxRequest {
    /// How far it is confined.
    pub profile: SandboxProfile,
    /// What lies around the project.
    #[serde(rename = "surroundings")]
    pub host: HostPaths,
    /// Why namespaces are not used. A machine may refuse them, or promise them and then refuse what is needed in them.
    #[serde(rename = "obstacle")]
    pub namespace_obstacle: Option<String>,
    /// Whether nothing bounds the number of processes.
    #[serde(rename = "unbounded")]
    pub has_no_process_limit: bool,
    /// The user that it runs as.
    pub run_as: Option<RunAs>,
    /// The folder to work in, relative to the project.
    pub folder: PathBuf,
    /// What to run.
    pub steps: CommandSteps,
    /// Where repositories of git are in the project before it runs.
    pub git: GitDirs,
    /// Files that decide what the command does, as they were checked.
    #[serde(rename = "checked")]
    pub watched_files: Vec<CheckedWatchedFile>,
    /// Folders of which the command gets a private copy; the outer process fills this in.
    #[serde(default)]
    pub copies: Vec<PrivateCopy>,
}

/// A file that decides what a command does, as it was checked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckedWatchedFile {
    /// Its path from the root of the project.
    pub path: PathBuf,
    /// The SHA-256 of its contents, in hexadecimal digits.
    pub sha256: String,
    /// The name of a copy of the checked contents in the private folder, which takes the place of the file where
    /// mounts can be used. None for a file that the command itself has to write.
    pub copy: Option<String>,
}

/// A folder of which the command gets a private copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrivateCopy {
    /// The folder; relative to the project for git's own.
    #[serde(rename = "at")]
    pub path: PathBuf,
    /// The name of the folder in the private one that takes what is written.
    pub name: String,
    /// Whether it is git's folder of the project.
    pub is_git: bool,
}

impl SandboxRequest {
    /// What of the project the command may neither change nor make, beside what is in git's folders.
    pub fn protected_paths(&self) -> impl Iterator<Item = &'static PathBuf> {
        protected_paths().iter()
    }
}

/// How the command itself ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandExit {
    /// It returned this exit code.
    Exited(i32),
    /// This signal ended it.
    Signaled(i32),
}

impl CommandExit {
    /// The exit code that a shell would show for it.
    pub fn code(self) -> i32 {
        match self {
            Self::Exited(code) => code,
            Self::Signaled(signal) => 128 + signal,
        }
    }
}

/// What a sandbox tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxEvent {
    /// It stands, the command starts now.
    Ready {
        /// What it confines.
        #[serde(rename = "effective")]
        confinement: ConfinementReport,
        /// The programs of plain commands, as they were found.
        programs: Vec<PathBuf>,
    },
    /// It could not be set up; nothing of the command ran.
    #[serde(rename = "set_up")]
    SetupFailed {
        /// What was tried.
        #[serde(rename = "doing")]
        operation: String,
        /// Why it did not work.
        error: String,
        /// Whether it may work without namespaces.
        without_namespaces: bool,
    },
    /// The command is not run for a reason of its own, such as a program inside of the project that nobody named.
    Refused {
        /// The reason.
        reason: String,
    },
    /// The command ended.
    Ended {
        /// How.
        end: CommandExit,
        /// How many processes it left behind; all were ended.
        #[serde(rename = "left")]
        leftover_count: u32,
    },
    /// Everything has ended and is cleared up.
    Cleared {
        /// Files that appeared where unstuck or git would obey them; they were removed.
        #[serde(rename = "planted")]
        removed_injections: Vec<PathBuf>,
        /// What was written to the home folder and thrown away, a few of it.
        #[serde(rename = "discarded")]
        discarded_writes: Vec<PathBuf>,
        /// What somebody else changed in git's folder meanwhile, so that what the command changed of it is not kept.
        #[serde(rename = "overtaken")]
        conflicting_git_changes: Vec<PathBuf>,
    },
}

/// Sends an order and its handles.
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

/// An order that was sent, with the handles of the project and of the folder to work in.
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

/// Sends a report.
pub(super) fn send_event(mut stream: &UnixStream, report: &SandboxEvent) -> io::Result<()> {
    stream.write_all(&encode(report)?)
}

/// Takes the first report off the front, once all of it has come.
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
    io::Error::new(io::ErrorKind::InvalidData, "the message is too long")
}
