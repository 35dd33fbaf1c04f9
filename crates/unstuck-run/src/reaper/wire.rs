//! The messages between the supervisor and its reaper, and their encoding.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::os_processes::ChildExitStatus;

/// Largest message; the system accepts no command line of this size anyway.
pub(crate) const MAX_MESSAGE_BYTES: usize = 32 * 1024 * 1024;
/// Size of the length prefix of each message.
pub(crate) const PREFIX_BYTES: usize = 4;

/// A string of the system, which is nearly always UTF-8 and must be preserved if it is not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum OsText {
    Text(String),
    Bytes(Vec<u8>),
}

impl From<&OsStr> for OsText {
    fn from(text: &OsStr) -> Self {
        match text.to_str() {
            Some(text) => Self::Text(text.to_owned()),
            None => Self::Bytes(text.as_bytes().to_vec()),
        }
    }
}

impl From<&Path> for OsText {
    fn from(path: &Path) -> Self {
        Self::from(path.as_os_str())
    }
}

impl From<OsText> for OsString {
    fn from(raw: OsText) -> Self {
        match raw {
            OsText::Text(text) => text.into(),
            OsText::Bytes(bytes) => Self::from_vec(bytes),
        }
    }
}

impl From<OsText> for PathBuf {
    fn from(raw: OsText) -> Self {
        OsString::from(raw).into()
    }
}

/// The way in which the child becomes the leader of a process group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ProcessGroupSetup {
    /// The reaper makes it the leader.
    #[serde(alias = "Given")]
    Reaper,
    /// The reaper makes it the leader and joins the group, so that it receives interrupts at the terminal.
    #[serde(alias = "Joined")]
    ReaperJoining,
    /// The child makes itself the leader.
    #[serde(alias = "Taken")]
    Child,
}

/// The request to start a child; its three streams come with the message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ChildStartRequest {
    pub(crate) program: OsText,
    /// The name under which the program is run; by default its path.
    #[serde(default)]
    pub(crate) arg0: Option<OsText>,
    pub(crate) arguments: Vec<OsText>,
    pub(crate) folder: Option<OsText>,
    /// True if it inherits the variables of the reaper.
    #[serde(alias = "inherits")]
    pub(crate) inherits_env: bool,
    #[serde(alias = "set")]
    pub(crate) env: Vec<(OsText, OsText)>,
    #[serde(alias = "remove")]
    pub(crate) env_remove: Vec<OsText>,
    pub(crate) leadership: ProcessGroupSetup,
    pub(crate) exit_record: Option<OsText>,
}

/// A request of the supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ReaperRequest {
    Start(ChildStartRequest),
    Signal(i32),
    End { grace_ms: u64 },
}

/// A report of the reaper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ReaperReport {
    #[serde(alias = "Gathered")]
    MovedToCgroup {
        cgroup: OsText,
    },
    Started {
        pid: u32,
    },
    #[serde(alias = "Refused")]
    SpawnFailed(ChildExitStatus),
    Stopped {
        signal: i32,
    },
    /// The group received an interrupt, even if the child ignores it.
    Interrupted,
    Ended {
        status: ChildExitStatus,
        left: u32,
        survivors: u32,
    },
}

/// Encodes a message with its length prefix.
pub(crate) fn encode(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; PREFIX_BYTES];
    serde_json::to_writer(&mut bytes, message)?;
    let length = u32::try_from(bytes.len() - PREFIX_BYTES).map_err(|_| message_too_long())?;
    bytes[..PREFIX_BYTES].copy_from_slice(&length.to_le_bytes());
    Ok(bytes)
}

/// Returns the length in a prefix.
pub(crate) fn message_length(prefix: [u8; PREFIX_BYTES]) -> io::Result<usize> {
    let length = u32::from_le_bytes(prefix) as usize;
    if length > MAX_MESSAGE_BYTES {
        return Err(message_too_long());
    }
    Ok(length)
}

/// Takes the first message off the buffer if it is complete.
pub(crate) fn take_message<M: DeserializeOwned>(bytes: &mut Vec<u8>) -> io::Result<Option<M>> {
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

fn message_too_long() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "message too long")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn non_utf8_text_is_preserved() {
        let odd = OsString::from_vec(vec![b'a', 0xff, b'b']);
        let bytes = serde_json::to_vec(&OsText::from(odd.as_os_str())).unwrap();
        let back: OsText = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(OsString::from(back), odd);
    }

    #[test]
    fn message_received_byte_by_byte_is_read_once() {
        let report = ReaperReport::Started { pid: 7 };
        let bytes = encode(&report).unwrap();
        let mut come = Vec::new();
        for byte in &bytes[..bytes.len() - 1] {
            come.push(*byte);
            assert_eq!(take_message::<ReaperReport>(&mut come).unwrap(), None);
        }
        come.push(bytes[bytes.len() - 1]);
        assert_eq!(
            take_message::<ReaperReport>(&mut come).unwrap(),
            Some(report)
        );
        assert!(come.is_empty());
    }

    #[test]
    fn absurd_length_is_refused() {
        let mut bytes = vec![0xff; 8];
        assert!(take_message::<ReaperReport>(&mut bytes).is_err());
    }
}
