//! One connection below HTTP: the bytes received, and the faults that replace an answer.

use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use super::lock;

/// Maximum length of a kept request head.
const HEAD_BYTES: usize = 256 * 1024;

/// A fault that replaces the answer on a connection.
#[derive(Debug, Clone)]
pub(super) enum RawConnectionFault {
    /// Closes the connection.
    Close,
    /// Resets the connection.
    Reset,
    /// Sends these bytes and closes the connection.
    Bytes(Bytes),
}

/// The state shared between a connection and its requests.
#[derive(Debug)]
pub(super) struct RawConnection {
    takeover: Mutex<Option<RawConnectionFault>>,
    head: Option<Mutex<RequestHead>>,
}

/// The head of the current request, byte for byte.
#[derive(Debug, Default)]
struct RequestHead {
    bytes: Vec<u8>,
    is_whole: bool,
}

/// Error: the script ends the connection (with HTTP/2 the stream), so the request gets no answer.
#[derive(Debug, thiserror::Error)]
#[error("ended by the script")]
pub(super) struct ConnectionEndedByScript;

impl RawConnection {
    pub(super) fn new(keeps_head: bool) -> Self {
        Self {
            takeover: Mutex::new(None),
            head: keeps_head.then(Mutex::default),
        }
    }

    /// Sets what happens once HTTP has released the connection.
    pub(super) fn take_over(&self, takeover: RawConnectionFault) {
        *lock(&self.takeover) = Some(takeover);
    }

    fn takeover(&self) -> Option<RawConnectionFault> {
        lock(&self.takeover).take()
    }

    /// Returns the head of the request as received, including its end, or `None` if it was not kept.
    pub(super) fn head(&self) -> Option<Vec<u8>> {
        let mut head = lock(self.head.as_ref()?);
        let taken = std::mem::take(&mut *head);
        taken.is_whole.then_some(taken.bytes)
    }

    fn record_bytes(&self, bytes: &[u8]) {
        let Some(head) = &self.head else { return };
        let mut head = lock(head);
        if head.is_whole || head.bytes.len() > HEAD_BYTES {
            return;
        }
        let before = head.bytes.len().saturating_sub(3);
        head.bytes.extend_from_slice(bytes);
        if let Some(at) = memchr::memmem::find(&head.bytes[before..], b"\r\n\r\n") {
            head.bytes.truncate(before + at);
            head.is_whole = true;
        }
    }

    /// Ends the connection as the last request asked for.
    pub(super) async fn finish<W: ResettableStream>(&self, mut wire: W) {
        // A client that is gone already misses nothing.
        match self.takeover() {
            Some(RawConnectionFault::Reset) => wire.reset(),
            Some(RawConnectionFault::Bytes(bytes)) => {
                let _ = wire.write_all(&bytes).await;
                let _ = wire.shutdown().await;
            }
            Some(RawConnectionFault::Close) | None => {
                let _ = wire.shutdown().await;
            }
        }
    }
}

/// A connection that can be reset.
pub(super) trait ResettableStream: AsyncRead + AsyncWrite + Unpin + Send + 'static {
    /// Ends the connection with a RST.
    fn reset(self);
}

impl ResettableStream for TcpStream {
    fn reset(self) {
        // Without linger, closing sends a RST; if that cannot be set, the connection just closes.
        let _ = self.set_zero_linger();
    }
}

impl ResettableStream for TlsStream<TcpStream> {
    fn reset(self) {
        self.into_inner().0.reset();
    }
}

/// A connection that records its request heads.
#[derive(Debug)]
pub(super) struct HeadRecordingStream<W> {
    pub(super) wire: W,
    pub(super) connection: std::sync::Arc<RawConnection>,
}

impl<W: ResettableStream> AsyncRead for HeadRecordingStream<W> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = into.filled().len();
        let read = Pin::new(&mut self.wire).poll_read(context, into);
        if read.is_ready() {
            self.connection.record_bytes(&into.filled()[before..]);
        }
        read
    }
}

impl<W: ResettableStream> AsyncWrite for HeadRecordingStream<W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.wire).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.wire).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.wire.is_write_vectored()
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.wire).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.wire).poll_shutdown(context)
    }
}
