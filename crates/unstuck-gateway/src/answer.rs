//! What a client gets: all at once, as it comes, or passed through untouched.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use crate::elsewhere::{Page, PageError};
use crate::upstream::Arriving;

/// A body that is made while it is passed on.
pub(crate) type Made = dyn Body<Data = Bytes, Error = PageError> + Send;

/// What a client gets.
pub(crate) enum Answer {
    /// All of it is here.
    Whole(Option<Bytes>),
    /// Made while it is passed on.
    Made(Pin<Box<Made>>),
    /// Passed through untouched.
    Passing(Box<Arriving>),
    /// What somebody else answers who listens at the same address.
    Elsewhere(Page),
}

impl Answer {
    /// A text of our own.
    pub(crate) fn text(text: impl Into<Bytes>) -> Self {
        Self::Whole(Some(text.into()))
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = PageError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, PageError>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Made(made) => made.as_mut().poll_frame(context),
            Self::Passing(arriving) => {
                let frame = Pin::new(arriving).poll_frame(context);
                frame.map_err(PageError::from)
            }
            Self::Elsewhere(page) => page.as_mut().poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_none(),
            Self::Made(_) => false,
            Self::Passing(arriving) => arriving.is_end_stream(),
            Self::Elsewhere(page) => page.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Self::Made(_) => SizeHint::default(),
            Self::Passing(arriving) => arriving.size_hint(),
            Self::Elsewhere(page) => page.size_hint(),
        }
    }
}
