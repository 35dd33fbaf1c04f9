//! Splits the bytes of a stream into frames, exactly where its format ends one.

mod json_array;
mod sse;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

use super::endpoint::LlmApiEndpoint;
use json_array::ArrayScanner;
use sse::SseScanner;

/// Splits a stream into frames: the events of an event stream, or the elements of a JSON array, each with all bytes
/// that belong to it. All frames and the [remainder](Self::remainder), concatenated, are the bytes that were pushed.
#[derive(Debug)]
pub struct FrameSplitter {
    format: FrameFormat,
    ready: VecDeque<Bytes>,
    /// The beginning of an incomplete frame.
    begun: BytesMut,
}

#[derive(Debug)]
enum FrameFormat {
    Sse(SseScanner),
    Array(ArrayScanner),
    /// Not inspected: each chunk is a frame.
    Chunks,
}

impl FrameSplitter {
    /// Creates a splitter for a content type. Gemini streams a JSON array where no event stream was requested.
    pub fn new(endpoint: LlmApiEndpoint, content_type: &str) -> Self {
        let content_type = content_type.trim_start().to_ascii_lowercase();
        let json = content_type.starts_with("application/json");
        let format = match endpoint {
            LlmApiEndpoint::Other => FrameFormat::Chunks,
            LlmApiEndpoint::Generate if json => FrameFormat::Array(ArrayScanner::default()),
            _ => FrameFormat::Sse(SseScanner::default()),
        };
        Self {
            format,
            ready: VecDeque::new(),
            begun: BytesMut::new(),
        }
    }

    /// Adds received bytes.
    pub fn push(&mut self, mut chunk: Bytes) {
        while let Some(end) = self.format.end_in(&chunk) {
            let end_of_frame = chunk.split_to(end.min(chunk.len()));
            let frame = if self.begun.is_empty() {
                end_of_frame
            } else {
                self.begun.extend_from_slice(&end_of_frame);
                self.begun.split().freeze()
            };
            self.ready.push_back(frame);
        }
        self.begun.extend_from_slice(&chunk);
    }

    /// Returns the incomplete frame. At the end of a stream any content here is a truncated frame, or one whose last
    /// blank line is missing.
    pub fn remainder(&self) -> &[u8] {
        &self.begun
    }
}

impl Iterator for FrameSplitter {
    type Item = Bytes;

    /// Returns the next complete frame.
    fn next(&mut self) -> Option<Bytes> {
        self.ready.pop_front()
    }
}

impl FrameFormat {
    /// Returns the position in the chunk where the current frame ends. Earlier bytes are scanned only once.
    fn end_in(&mut self, chunk: &[u8]) -> Option<usize> {
        match self {
            Self::Sse(sse) => sse.end_in(chunk),
            Self::Array(array) => array.end_in(chunk),
            Self::Chunks => (!chunk.is_empty()).then_some(chunk.len()),
        }
    }
}
