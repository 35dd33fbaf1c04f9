//! What the supervisor and its reaper say to each other, and how it lies in the bytes.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::host::Status;

/// A longer message is a mistake; the system takes no command line of this size anyway.
pub(crate) const LONGEST: usize = 32 * 1024 * 1024;
/// The bytes before each message that tell its length.
pub(crate) const PREFIX: usize = 4;

/// Text of the system, which is nearly always UTF-8 and must not be changed when it is not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Raw {
    Text(String),
    Bytes(Vec<u8>),
}

impl From<&OsStr> for Raw {
    fn from(text: &OsStr) -> Self {
        match text.to_str() {
            Some(text) => Self::Text(text.to_owned()),
            None => Self::Bytes(text.as_bytes().to_vec()),
        }
    }
}

impl From<&Path> for Raw {
    fn from(path: &Path) -> Self {
        Self::from(path.as_os_str())
    }
}

impl From<Raw> for OsString {
    fn from(raw: Raw) -> Self {
        match raw {
            Raw::Text(text) => text.into(),
            Raw::Bytes(bytes) => Self::from_vec(bytes),
        }
    }
}

impl From<Raw> for PathBuf {
    fn from(raw: Raw) -> Self {
        OsString::from(raw).into()
    }
}

/// How the child becomes the leader of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Leadership {
    /// The reaper makes it one.
    #[serde(rename = "Given")]
    Given,
    /// The reaper makes it one and joins the group, so that it hears of an interrupt at the terminal.
    #[serde(rename = "Joined")]
    Joined,
    /// It makes itself one.
    #[serde(rename = "Taken")]
    Taken,
}

/// A child to start; its three streams come with the message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) program: Raw,
    pub(crate) arguments: Vec<Raw>,
    pub(crate) folder: Option<Raw>,
    /// Whether it gets the variables of the reaper.
    #[serde(rename = "inherits")]
    pub(crate) inherits: bool,
    #[serde(rename = "set")]
    pub(crate) set: Vec<(Raw, Raw)>,
    #[serde(rename = "remove")]
    pub(crate) remove: Vec<Raw>,
    pub(crate) leadership: Leadership,
    pub(crate) exit_record: Option<Raw>,
}

/// What the supervisor asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Request {
    Start(Order),
    Signal(i32),
    End { grace_ms: u64 },
}

/// What the reaper tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Report {
    #[serde(rename = "Gathered")]
    Gathered {
        cgroup: Raw,
    },
    Started {
        pid: u32,
    },
    #[serde(rename = "Refused")]
    Refused(Status),
    Stopped {
        signal: i32,
    },
    /// The group got an interrupt, whatever the child makes of it.
    Interrupted,
    Ended {
        status: Status,
        left: u32,
        survivors: u32,
    },
}

/// A message with its length before it.
pub(crate) fn encode(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; PREFIX];
    serde_json::to_writer(&mut bytes, message)?;
    let length = u32::try_from(bytes.len() - PREFIX).map_err(|_| too_long())?;
    bytes[..PREFIX].copy_from_slice(&length.to_le_bytes());
    Ok(bytes)
}

/// The length that a prefix announces.
pub(crate) fn length(prefix: [u8; PREFIX]) -> io::Result<usize> {
    let length = u32::from_le_bytes(prefix) as usize;
    if length > LONGEST {
        return Err(too_long());
    }
    Ok(length)
}

/// Takes the first message off the front, once all of it has come.
pub(crate) fn take<M: DeserializeOwned>(bytes: &mut Vec<u8>) -> io::Result<Option<M>> {
    let Some(prefix) = bytes.first_chunk::<PREFIX>() else {
        return Ok(None);
    };
    let end = PREFIX + length(*prefix)?;
    if bytes.len() < end {
        return Ok(None);
    }
    let message = serde_json::from_slice(&bytes[PREFIX..end])?;
    bytes.drain(..end);
    Ok(Some(message))
}

fn too_long() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the message is too long")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_is_not_utf8_comes_through_unchanged() {
        let odd = OsString::from_vec(vec![b'a', 0xff, b'b']);
        let bytes = serde_json::to_vec(&Raw::from(odd.as_os_str())).unwrap();
        let back: Raw = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(OsString::from(back), odd);
    }

    #[test]
    fn a_message_that_comes_byte_by_byte_is_read_once_and_whole() {
        let report = Report::Started { pid: 7 };
        let bytes = encode(&report).unwrap();
        let mut come = Vec::new();
        for byte in &bytes[..bytes.len() - 1] {
            come.push(*byte);
            assert_eq!(take::<Report>(&mut come).unwrap(), None);
        }
        come.push(bytes[bytes.len() - 1]);
        assert_eq!(take::<Report>(&mut come).unwrap(), Some(report));
        assert!(come.is_empty());
    }

    #[test]
    fn an_absurd_length_is_refused() {
        let mut bytes = vec![0xff; 8];
        assert!(take::<Report>(&mut bytes).is_err());
    }
}
