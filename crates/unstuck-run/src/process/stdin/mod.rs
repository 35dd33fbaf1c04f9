//! Our standard input, passed on to every attempt as if it were the only one.

mod feed;
mod record;

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;

use rustix::fs::{FileType, Mode, OFlags};

pub(super) use feed::{AtEnd, Feed, Step};
pub(super) use record::Record;

use super::error::{ProcessError, While};
use super::spec::Wiring;

/// How much of an input is kept for later attempts: 8 MiB.
pub(super) const KEPT: usize = 8 * 1024 * 1024;

/// The standard input of the attempts of one command.
///
/// ```
/// use unstuck_run::process::{Recorded, Stdin};
///
/// let stdin = Stdin::from_bytes(b"question".to_vec());
/// assert_eq!(stdin.recorded(), Recorded::All(b"question".to_vec()));
/// ```
#[derive(Debug)]
pub struct Stdin(Source);

#[derive(Debug)]
enum Source {
    Null,
    Terminal { descriptor: OwnedFd, relay: Record },
    File { file: File, start: u64 },
    Device(OwnedFd),
    Record(Record),
}

/// What is known of the bytes of a standard input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recorded {
    /// There are none.
    Nothing,
    /// All of them.
    All(Vec<u8>),
    /// A person types them.
    Terminal,
    /// More than is kept.
    TooLarge,
    /// More may come.
    NotYetAtEnd,
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
        Source::of(descriptor)
            .map(Self)
            .to("look at the standard input")
    }

    /// A descriptor that the child gets as it is: nothing is read from it before, and nothing kept.
    pub fn handed_over(descriptor: OwnedFd) -> Self {
        Self(Source::Device(descriptor))
    }

    /// An empty input.
    pub fn null() -> Self {
        Self(Source::Null)
    }

    /// An input that is known already.
    pub fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(Source::Record(Record::known(bytes)))
    }

    /// What is known of its bytes by now; a file is read without moving in it.
    pub fn recorded(&self) -> Recorded {
        match &self.0 {
            Source::Null | Source::Device(_) => Recorded::Nothing,
            Source::Terminal { .. } => Recorded::Terminal,
            Source::File { file, start } => match read_from(file, *start) {
                Ok(Some(bytes)) => Recorded::All(bytes),
                Ok(None) => Recorded::TooLarge,
                Err(_) => Recorded::Nothing,
            },
            Source::Record(record) => record.recorded(),
        }
    }

    /// Returns whether a further attempt can get the same input again.
    pub fn is_replayable(&self, wiring: Wiring) -> bool {
        match (&self.0, wiring) {
            (Source::Record(record), _) => record.is_whole(),
            // What is typed into a terminal is kept in memory.
            (Source::File { .. }, Wiring::Pty) => self.recorded() != Recorded::TooLarge,
            _ => true,
        }
    }

    /// Whether a person at the terminal has pressed Enter, with nothing or an `r` before it, since this was asked last.
    /// Only to be asked while no child reads from it.
    pub(crate) fn is_asked_to_go_on(&self) -> bool {
        let Some(terminal) = self.terminal() else {
            return false;
        };
        if !super::terminal::is_in_foreground(terminal) || !is_readable(terminal) {
            return false;
        }
        let mut typed = [0; 256];
        let length = rustix::io::read(terminal, &mut typed).unwrap_or(0);
        matches!(typed[..length].trim_ascii(), b"" | b"r" | b"R") && length > 0
    }

    /// The terminal that it is, if it is one.
    pub(super) fn terminal(&self) -> Option<BorrowedFd<'_>> {
        match &self.0 {
            Source::Terminal { descriptor, .. } => Some(descriptor.as_fd()),
            _ => None,
        }
    }

    /// What a child gets as its standard input, and what has to be fed into a pipe if it is one.
    pub(super) fn for_pipes(&mut self) -> Result<(OwnedFd, Option<Feed<'_>>), ProcessError> {
        let inherited = match &mut self.0 {
            Source::Null => null(),
            Source::Terminal { descriptor, .. } | Source::Device(descriptor) => {
                descriptor.try_clone()
            }
            Source::File { file, start } => file
                .seek(SeekFrom::Start(*start))
                .and_then(|_| file.try_clone())
                .map(OwnedFd::from),
            Source::Record(record) => return Feed::through_pipe(record),
        };
        Ok((inherited.to("pass on the standard input")?, None))
    }

    /// What has to be typed into a pseudo-terminal.
    pub(super) fn for_pty(&mut self) -> Result<Option<&mut Record>, ProcessError> {
        if let Source::File { file, start } = &self.0 {
            let bytes = read_from(file, *start).to("read the standard input")?;
            let record = Record::known(bytes.ok_or(ProcessError::StdinSpent)?);
            self.0 = Source::Record(record);
        }
        match &mut self.0 {
            Source::Terminal { relay, .. } => Ok(Some(relay)),
            Source::Record(record) => Ok(Some(record)),
            Source::Null | Source::Device(_) | Source::File { .. } => Ok(None),
        }
    }
}

impl Source {
    fn of(descriptor: OwnedFd) -> io::Result<Self> {
        if rustix::termios::isatty(&descriptor) {
            let relay = Record::passing(descriptor.try_clone()?);
            return Ok(Self::Terminal { descriptor, relay });
        }
        let stat = rustix::fs::fstat(&descriptor)?;
        Ok(match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {
                let mut file = File::from(descriptor);
                let start = file.stream_position()?;
                Self::File { file, start }
            }
            FileType::Fifo | FileType::Socket => Self::Record(Record::live(descriptor)),
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
pub(super) fn null() -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    Ok(rustix::fs::open("/dev/null", flags, Mode::empty())?)
}

/// All of a file from an offset on, unless it is too large.
fn read_from(file: &File, start: u64) -> io::Result<Option<Vec<u8>>> {
    let length = file.metadata()?.len().saturating_sub(start);
    if length > KEPT as u64 {
        return Ok(None);
    }
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    file.read_exact_at(&mut bytes, start)?;
    Ok(Some(bytes))
}
