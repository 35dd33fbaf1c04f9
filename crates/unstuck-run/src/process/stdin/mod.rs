//! Our standard input, passed on to every attempt as if it were the only one.

mod stdin_feed;
mod stdin_record;

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;

use rustix::fs::{FileType, Mode, OFlags};

pub(super) use stdin_feed::{EndSignal, FeedStep, StdinFeed};
pub(super) use stdin_record::StdinRecord;

use super::error::{ProcessError, ProcessIoContext};
use super::spec::StreamWiring;

/// How much of an input is kept for later attempts: 8 MiB.
pub(super) const MAX_KEPT_BYTES: usize = 8 * 1024 * 1024;

/// The standard input of the attempts of one command.
///
/// ```
/// use unstuck_run::process::{StdinContents, Stdin};
///
/// let stdin = Stdin::from_bytes(b"question".to_vec());
/// assert_eq!(stdin.recorded(), StdinContents::Complete(b"question".to_vec()));
/// ```
#[derive(Debug)]
pub struct Stdin(StdinSource);

#[derive(Debug)]
enum StdinSource {
    Null,
    Terminal {
        descriptor: OwnedFd,
        relay: StdinRecord,
    },
    File {
        file: File,
        start: u64,
    },
    Device(OwnedFd),
    Record(StdinRecord),
}

/// What is known of the bytes of a standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StdinContents {
    /// There are none.
    Nothing,
    /// All of them.
    Complete(Vec<u8>),
    /// A person types them.
    Terminal,
    /// More than is kept.
    TooLarge,
    /// More may come.
    Incomplete,
}

impl Stdin {
    /// The standard input of this process.
    pub fn inherited() -> Result<Self, ProcessError> {
        match rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3) {
            Ok(descriptor) => Self::from_descriptor(descriptor),
            Err(_) => Ok(Self::null()),
        }
    }

    /// Any descriptor as standard input.
    pub fn from_descriptor(descriptor: OwnedFd) -> Result<Self, ProcessError> {
        StdinSource::from_descriptor(descriptor)
            .map(Self)
            .context("look at the standard input")
    }

    /// A descriptor that the child gets as it is: nothing is read from it before, and nothing kept.
    pub fn passed_through(descriptor: OwnedFd) -> Self {
        Self(StdinSource::Device(descriptor))
    }

    /// An empty input.
    pub fn null() -> Self {
        Self(StdinSource::Null)
    }

    /// An input that is known already.
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(StdinSource::Record(StdinRecord::from_bytes(bytes)))
    }

    /// What is known of its bytes by now; a file is read without moving in it.
    pub fn contents(&self) -> StdinContents {
        match &self.0 {
            StdinSource::Null | StdinSource::Device(_) => StdinContents::Nothing,
            StdinSource::Terminal { .. } => StdinContents::Terminal,
            StdinSource::File { file, start } => match read_file_from(file, *start) {
                Ok(Some(bytes)) => StdinContents::Complete(bytes),
                Ok(None) => StdinContents::TooLarge,
                Err(_) => StdinContents::Nothing,
            },
            StdinSource::Record(record) => record.contents(),
        }
    }

    /// Returns whether a further attempt can get the same input again.
    pub fn is_replayable(&self, wiring: StreamWiring) -> bool {
        match (&self.0, wiring) {
            (StdinSource::Record(record), _) => record.is_complete(),
            // What is typed into a terminal is kept in memory.
            (StdinSource::File { .. }, StreamWiring::Pty) => {
                self.contents() != StdinContents::TooLarge
            }
            _ => true,
        }
    }

    /// Whether a person at the terminal has pressed Enter, with nothing or an `r` before it, since this was asked last.
    /// Only to be asked while no child reads from it.
    pub(crate) fn has_enter_been_pressed(&self) -> bool {
        let Some(terminal) = self.terminal() else {
            return false;
        };
        if !super::user_terminal::is_in_foreground(terminal) || !is_readable(terminal) {
            return false;
        }
        let mut typed = [0; 256];
        let length = rustix::io::read(terminal, &mut typed).unwrap_or(0);
        matches!(typed[..length].trim_ascii(), b"" | b"r" | b"R") && length > 0
    }

    /// The terminal that it is, if it is one.
    pub(super) fn terminal(&self) -> Option<BorrowedFd<'_>> {
        match &self.0 {
            StdinSource::Terminal { descriptor, .. } => Some(descriptor.as_fd()),
            _ => None,
        }
    }

    /// What a child gets as its standard input, and what has to be fed into a pipe if it is one.
    pub(super) fn for_pipes(&mut self) -> Result<(OwnedFd, Option<StdinFeed<'_>>), ProcessError> {
        let inherited = match &mut self.0 {
            StdinSource::Null => open_dev_null(),
            StdinSource::Terminal { descriptor, .. } | StdinSource::Device(descriptor) => {
                descriptor.try_clone()
            }
            StdinSource::File { file, start } => file
                .seek(SeekFrom::Start(*start))
                .and_then(|_| file.try_clone())
                .map(OwnedFd::from),
            StdinSource::Record(record) => return StdinFeed::through_pipe(record),
        };
        Ok((inherited.context("pass on the standard input")?, None))
    }

    /// What has to be typed into a pseudo-terminal.
    pub(super) fn for_pty(&mut self) -> Result<Option<&mut StdinRecord>, ProcessError> {
        if let StdinSource::File { file, start } = &self.0 {
            let bytes = read_file_from(file, *start).context("read the standard input")?;
            let record = StdinRecord::from_bytes(bytes.ok_or(ProcessError::StdinNotReplayable)?);
            self.0 = StdinSource::Record(record);
        }
        match &mut self.0 {
            StdinSource::Terminal { relay, .. } => Ok(Some(relay)),
            StdinSource::Record(record) => Ok(Some(record)),
            StdinSource::Null | StdinSource::Device(_) | StdinSource::File { .. } => Ok(None),
        }
    }
}

impl StdinSource {
    fn from_descriptor(descriptor: OwnedFd) -> io::Result<Self> {
        if rustix::termios::isatty(&descriptor) {
            let relay = StdinRecord::unrecorded(descriptor.try_clone()?);
            return Ok(Self::Terminal { descriptor, relay });
        }
        let stat = rustix::fs::fstat(&descriptor)?;
        Ok(match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {
                let mut file = File::from(descriptor);
                let start = file.stream_position()?;
                Self::File { file, start }
            }
            FileType::Fifo | FileType::Socket => Self::Record(StdinRecord::recording(descriptor)),
            FileType::CharacterDevice if stat.st_rdev == rustix::fs::makedev(1, 3) => Self::Null,
            _ => Self::Device(descriptor),
        })
    }
}

/// Whether something can be read at once.
fn is_readable(descriptor: BorrowedFd<'_>) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut asked = [PollFd::new(&descriptor, PollFlags::IN)];
    poll(&mut asked, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

/// An open `/dev/null`.
pub(super) fn open_dev_null() -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    Ok(rustix::fs::open("/dev/null", flags, Mode::empty())?)
}

/// All of a file from an offset on, unless it is too large.
fn read_file_from(file: &File, start: u64) -> io::Result<Option<Vec<u8>>> {
    let length = file.metadata()?.len().saturating_sub(start);
    if length > MAX_KEPT_BYTES as u64 {
        return Ok(None);
    }
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    file.read_exact_at(&mut bytes, start)?;
    Ok(Some(bytes))
}
