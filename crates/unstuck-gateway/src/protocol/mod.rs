//! The protocols of LLM APIs. Pure: bytes in, facts or bytes out.
//!
//! The bytes are forwarded unchanged and only inspected in passing. [`RequestFacts`] describes a request,
//! [`FrameSplitter`] splits a streamed response where its format does, and [`ResponseReader`] tells for each frame if
//! it has content visible to a user, and summarizes the response and its completeness. The `with_…` functions change
//! one part of a request and no other byte. [`ErrorDetails`] is the gateway's own error in the format of the client's
//! API. Nothing here fails: unreadable data is passed on as it is.
//!
//! ```
//! use unstuck_gateway::protocol::{
//!     ErrorDetails, FrameKind, FrameSplitter, LlmApiEndpoint, Protocol, RequestFacts, ResponseReader, error_event,
//!     with_model,
//! };
//!
//! // A client sends a request …
//! let endpoint = LlmApiEndpoint::from_request(Protocol::OpenAi, "POST", "/chat/completions");
//! let body = br#"{"model": "small", "stream": true, "messages": [{"role": "user", "content": "Hi"}]}"#;
//! let asked = RequestFacts::read(endpoint, "/chat/completions", body);
//! assert!(asked.stream && asked.model.as_deref() == Some("small"));
//!
//! // … it is changed to another model if necessary …
//! let changed = with_model(endpoint, "/chat/completions", body, "large").body.ok_or("no object")?;
//! assert!(changed.starts_with(br#"{"model": "large", "stream": true"#));
//!
//! // … and the response is read in passing, whatever its pieces.
//! let mut frames = FrameSplitter::new(endpoint, "text/event-stream");
//! let mut reading = ResponseReader::new(endpoint);
//! frames.push("data: {\"choices\":[{\"delta\":{\"content\":\"Hello".into());
//! assert!(frames.next().is_none());
//! frames.push("\"}}]}\n\n".into());
//! let frame = frames.next().ok_or("no frame")?;
//! assert_eq!(reading.read_frame(&frame), FrameKind::Content);
//! assert_eq!(reading.summary().text_bytes, 5);
//!
//! // If it breaks off now, the client must not take it as complete.
//! assert!(!reading.is_complete());
//! let trouble = ErrorDetails {
//!     status: 502,
//!     code: "network_error",
//!     message: "The connection to the upstream broke.",
//!     retry_after: None,
//!     reset_at: None,
//! };
//! let last = error_event(&reading, &trouble);
//! assert_eq!(reading.read_frame(&last), FrameKind::Error);
//! # Ok::<(), &str>(())
//! ```

mod endpoint;
mod error_body;
mod frames;
mod json;
mod request;
mod response;
mod rewrite;
mod sse_event;
mod text_hash;

pub use endpoint::{LlmApiEndpoint, Protocol};
pub use error_body::{ErrorDetails, error_body, error_event, keep_alive, stop_status};
pub use frames::FrameSplitter;
pub use request::{LastTurn, RequestFacts, ToolCall};
pub use response::{FinishReason, FrameKind, JsonValidity, ResponseReader, ResponseSummary};
pub use rewrite::{RewrittenRequest, with_error_context, with_max_output, with_model, with_note};
