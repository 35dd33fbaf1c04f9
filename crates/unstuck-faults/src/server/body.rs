//! The bodies of answers: whole, cut in the middle, or silent.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::Sleep;

/// How long what was written has to get out before the connection breaks.
const BEFORE_CUT: Duration = Duration::from_millis(20);

/// What comes after the last piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// The proper end.
    Complete,
    /// The connection breaks.
    Cut,
    /// Nothing, for ever.
    Silence,
}

/// A body that is sent piece by piece.
#[derive(Debug)]
pub(super) struct Pieces {
    pieces: VecDeque<Bytes>,
    end: End,
    cut: Pin<Box<Sleep>>,
}

impl Pieces {
    pub(super) fn new(pieces: impl IntoIterator<Item = impl Into<Bytes>>, end: End) -> Self {
        Self {
            pieces: pieces.into_iter().map(Into::into).collect(),
            end,
            cut: Box::pin(tokio::time::sleep(Duration::ZERO)),
        }
    }

    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<Option<std::io::Error>> {
        match self.end {
            End::Complete => Poll::Ready(None),
            End::Cut => self.cut.as_mut().poll(context).map(|()| Some(cut())),
            End::Silence => Poll::Pending,
        }
    }
}

fn cut() -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::ConnectionAborted, "cut by the script")
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        if let Some(piece) = self.pieces.pop_front() {
            if self.pieces.is_empty() {
                let deadline = tokio::time::Instant::now() + BEFORE_CUT;
                self.cut.as_mut().reset(deadline);
            }
            return Poll::Ready(Some(Ok(Frame::data(piece))));
        }
        self.poll_end(context).map(|error| error.map(Err))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty() && self.end == End::Complete
    }

    fn size_hint(&self) -> SizeHint {
        let length = self.pieces.iter().map(Bytes::len).sum::<usize>();
        match (self.end, u64::try_from(length)) {
            (End::Complete, Ok(length)) if self.pieces.len() <= 1 => SizeHint::with_exact(length),
            _ => SizeHint::default(),
        }
    }
}
