//! What a client gets: all at once, as it comes, or passed through untouched.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use crate::fallback::{BodyError, FallbackBody};
use crate::upstream::UpstreamBody;

/// A body that is made while it is passed on.
pub(crate) type GeneratedBody = dyn Body<Data = Bytes, Error = BodyError> + Send;

/// What a client gets.
pub(crate) enum ResponseBody {
    /// All of it is here.
    Whole(Option<Bytes>),
    /// Made while it is passed on.
    Generated(Pin<Box<GeneratedBody>>),
    /// Passed through untouched.
    Passthrough(Box<UpstreamBody>),
    /// What somebody else answers who listens at the same address.
    Fallback(FallbackBody),
}

impl ResponseBody {
    /// A text of our own.
    pub(crate) fn text(text: impl Into<Bytes>) -> Self {
        Self::Whole(Some(text.into()))
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Generated(made) => made.as_mut().poll_frame(context),
            Self::Passthrough(arriving) => {
                let frame = Pin::new(arriving).poll_frame(context);
                frame.map_err(BodyError::from)
            }
            Self::Fallback(page) => page.as_mut().poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_none(),
            Self::Generated(_) => false,
            Self::Passthrough(arriving) => arriving.is_end_stream(),
            Self::Fallback(page) => page.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Self::Generated(_) => SizeHint::default(),
            Self::Passthrough(arriving) => arriving.size_hint(),
            Self::Fallback(page) => page.size_hint(),
        }
    }
}
