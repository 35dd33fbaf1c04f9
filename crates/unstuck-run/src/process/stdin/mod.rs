//! Our standard input, passed to every attempt as if it were the only one.

mod enter_key;
mod stdin_feed;
mod stdin_record;

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;

use rustix::fs::{FileType, Mode, OFlags};

pub(crate) use enter_key::EnterKey;
pub(super) use stdin_feed::{EndOfInput, StdinFeed, StdinFeedStep};
pub(super) use stdin_record::StdinRecord;

use super::error::{ProcessError, ProcessIoContext};
use super::spec::StreamWiring;

/// Largest input that is stored for later attempts: 8 MiB.
pub(super) const MAX_KEPT_BYTES: usize = 8 * 1024 * 1024;

/// The standard input of the attempts of one command.
///
/// ```
/// use unstuck_run::process::{KnownStdinContents, Stdin};
///
/// let stdin = Stdin::from_bytes(b"question".to_vec());
/// assert_eq!(stdin.contents(), KnownStdinContents::Complete(b"question".to_vec()));
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

/// The known contents of a standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KnownStdinContents {
    /// It is empty.
    Nothing,
    /// The complete contents.
    Complete(Vec<u8>),
    /// A user types at a terminal.
    Terminal,
    /// It is too large to be stored.
    TooLarge,
    /// More input may follow.
    Incomplete,
}

impl Stdin {
    /// Uses the standard input of this process.
    pub fn inherited() -> Result<Self, ProcessError> {
        match rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3) {
            Ok(descriptor) => Self::from_descriptor(descriptor),
            Err(_) => Ok(Self::null()),
        }
    }

    /// Uses any descriptor as standard input.
    pub fn from_descriptor(descriptor: OwnedFd) -> Result<Self, ProcessError> {
        StdinSource::from_descriptor(descriptor)
            .map(Self)
            .context("inspect stdin")
    }

    /// Passes a descriptor to the child unchanged: nothing is read from it before, and nothing is stored.
    pub fn handed_over(descriptor: OwnedFd) -> Self {
        Self(StdinSource::Device(descriptor))
    }

    /// Returns an empty input.
    pub fn null() -> Self {
        Self(StdinSource::Null)
    }

    /// Returns an input with known contents.
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(StdinSource::Record(StdinRecord::from_bytes(bytes)))
    }

    /// Returns the contents known so far; a file is read without changing its offset.
    pub fn contents(&self) -> KnownStdinContents {
        match &self.0 {
            StdinSource::Null | StdinSource::Device(_) => KnownStdinContents::Nothing,
            StdinSource::Terminal { .. } => KnownStdinContents::Terminal,
            StdinSource::File { file, start } => match read_file_from(file, *start) {
                Ok(Some(bytes)) => KnownStdinContents::Complete(bytes),
                Ok(None) => KnownStdinContents::TooLarge,
                Err(_) => KnownStdinContents::Nothing,
            },
            StdinSource::Record(record) => record.contents(),
        }
    }

    /// Returns true if a further attempt can get the same input again.
    pub fn is_replayable(&self, wiring: StreamWiring) -> bool {
        match (&self.0, wiring) {
            (StdinSource::Record(record), _) => record.is_complete(),
            // Input typed into a terminal is kept in memory.
            (StdinSource::File { .. }, StreamWiring::Pty) => {
                self.contents() != KnownStdinContents::TooLarge
            }
            _ => true,
        }
    }

    /// Returns true if the user has pressed Enter, alone or after an `r`, since the last call. Only to be called while
    /// no child reads from the terminal.
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

    /// Returns the Enter key of the terminal if the input is one, to be observed while a child runs.
    pub(crate) fn enter_key(&self) -> Option<EnterKey> {
        EnterKey::of_terminal(self.terminal()?)
    }

    /// Returns the terminal if the input is one.
    pub(super) fn terminal(&self) -> Option<BorrowedFd<'_>> {
        match &self.0 {
            StdinSource::Terminal { descriptor, .. } => Some(descriptor.as_fd()),
            _ => None,
        }
    }

    /// Returns a child's standard input, and the feed if it is a pipe.
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
        Ok((inherited.context("pass stdin to the child")?, None))
    }

    /// Returns the record to type into a pseudo-terminal.
    pub(super) fn for_pty(&mut self) -> Result<Option<&mut StdinRecord>, ProcessError> {
        if let StdinSource::File { file, start } = &self.0 {
            let bytes = read_file_from(file, *start).context("read stdin")?;
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

/// Returns true if the descriptor is readable at once.
fn is_readable(descriptor: BorrowedFd<'_>) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut asked = [PollFd::new(&descriptor, PollFlags::IN)];
    poll(&mut asked, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

/// Opens `/dev/null`.
pub(super) fn open_dev_null() -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    Ok(rustix::fs::open("/dev/null", flags, Mode::empty())?)
}

/// Reads a file from an offset, unless it is too large.
fn read_file_from(file: &File, start: u64) -> io::Result<Option<Vec<u8>>> {
    let length = file.metadata()?.len().saturating_sub(start);
    if length > MAX_KEPT_BYTES as u64 {
        return Ok(None);
    }
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    file.read_exact_at(&mut bytes, start)?;
    Ok(Some(bytes))
}
