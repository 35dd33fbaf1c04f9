//! What the gateway must know of the APIs that it stands in front of. Pure: bytes in, facts or bytes out.
//!
//! The bytes go through unchanged; this looks at them in passing. [`RequestFacts`] is what must be known of a request, [`FrameSplitter`]
//! cuts a streamed answer where its format does, and [`ResponseReader`] tells of each frame whether a user would see something of
//! it, and of the whole what it said and whether its end has come. The `with_…` functions change one thing of a request and
//! no other byte. [`ErrorDetails`] is what the gateway itself has to say, in the words of the client's API. Nothing here fails:
//! what cannot be read is passed on as it is.
//!
//! ```
//! use unstuck_gateway::protocol::{
//!     RequestFacts, Endpoint, FrameKind, FrameSplitter, Protocol, ResponseReader, ErrorDetails, error_event, with_model,
//! };
//!
//! // ApiLoopKind a client asks …
//! let endpoint = Endpoint::from_request(Protocol::OpenAi, "POST", "/chat/completions");
//! let body = br#"{"model": "small", "stream": true, "messages": [{"role": "user", "content": "Hi"}]}"#;
//! let asked = RequestFacts::read(endpoint, "/chat/completions", body);
//! assert!(asked.stream && asked.model.as_deref() == Some("small"));
//!
//! // … goes to another model if it must …
//! let changed = with_model(endpoint, "/chat/completions", body, "large").body.ok_or("no object")?;
//! assert!(changed.starts_with(br#"{"model": "large", "stream": true"#));
//!
//! // … and what comes back, in whatever pieces, is read while it passes.
//! let mut frames = FrameSplitter::new(endpoint, "text/event-stream");
//! let mut reading = ResponseReader::new(endpoint);
//! frames.push("data: {\"choices\":[{\"delta\":{\"content\":\"Hello".into());
//! assert!(frames.next().is_none());
//! frames.push("\"}}]}\n\n".into());
//! let frame = frames.next().ok_or("no frame")?;
//! assert_eq!(reading.frame(&frame), FrameKind::MessageContent);
//! assert_eq!(reading.said().text_bytes, 5);
//!
//! // If it breaks off now, the client must not take it for whole.
//! assert!(!reading.is_complete());
//! let trouble = ErrorDetails {
//!     status: 502,
//!     code: "network_error",
//!     message: "The connection to the upstream broke.",
//!     retry_after: None,
//!     reset_at: None,
//! };
//! let last = error_event(&reading, &trouble);
//! assert_eq!(reading.frame(&last), FrameKind::Error);
//! # Ok::<(), &str>(())
//! ```

mod endpoint;
mod error_body;
mod frames;
mod hash;
mod json;
mod request;
mod response;
mod rewrite;
mod sse_event;

pub use endpoint::{Endpoint, Protocol};
pub use error_body::{ErrorDetails, error_body, error_event, keep_alive, stop_status};
pub use frames::FrameSplitter;
pub use request::{LastTurn, RequestFacts, ToolCall};
pub use response::{FinishReason, FrameKind, JsonState, ResponseReader, ResponseSummary};
pub use rewrite::{RewrittenRequest, with_error_context, with_max_output, with_model, with_note};
