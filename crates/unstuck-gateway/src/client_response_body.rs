//! Response bodies for clients: complete, generated, or passed through.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};

use crate::non_llm_request_handler::{BodyError, NonLlmHandlerBody};
use crate::upstream::UpstreamResponseBody;

/// A body that is generated while it is sent.
pub(crate) type GeneratedBody = dyn Body<Data = Bytes, Error = BodyError> + Send;

/// A response body for a client.
pub(crate) enum ResponseBody {
    /// A complete body.
    Whole(Option<Bytes>),
    /// A body generated while it is sent.
    Generated(Pin<Box<GeneratedBody>>),
    /// A body passed through unchanged.
    Passthrough(Box<UpstreamResponseBody>),
    /// A body of the fallback handler at the same address.
    Fallback(NonLlmHandlerBody),
}

impl ResponseBody {
    /// Returns a text of the gateway itself.
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
