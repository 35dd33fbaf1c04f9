//! What the gateway must know of the APIs that it stands in front of. Pure: bytes in, facts or bytes out.
//!
//! The bytes go through unchanged; this looks at them in passing. [`Asked`] is what must be known of a request, [`Frames`]
//! cuts a streamed answer where its format does, and [`Reading`] tells of each frame whether a user would see something of
//! it, and of the whole what it said and whether its end has come. The `with_…` functions change one thing of a request and
//! no other byte. [`Trouble`] is what the gateway itself has to say, in the words of the client's API. Nothing here fails:
//! what cannot be read is passed on as it is.
//!
//! ```
//! use unstuck_gateway::protocol::{
//!     Asked, Endpoint, Frame, Frames, Protocol, Reading, Trouble, error_event, with_model,
//! };
//!
//! // What a client asks …
//! let endpoint = Endpoint::of(Protocol::OpenAi, "POST", "/chat/completions");
//! let body = br#"{"model": "small", "stream": true, "messages": [{"role": "user", "content": "Hi"}]}"#;
//! let asked = Asked::read(endpoint, "/chat/completions", body);
//! assert!(asked.stream && asked.model.as_deref() == Some("small"));
//!
//! // … goes to another model if it must …
//! let changed = with_model(endpoint, "/chat/completions", body, "large").body.ok_or("no object")?;
//! assert!(changed.starts_with(br#"{"model": "large", "stream": true"#));
//!
//! // … and what comes back, in whatever pieces, is read while it passes.
//! let mut frames = Frames::new(endpoint, "text/event-stream");
//! let mut reading = Reading::new(endpoint);
//! frames.push("data: {\"choices\":[{\"delta\":{\"content\":\"Hello".into());
//! assert!(frames.next().is_none());
//! frames.push("\"}}]}\n\n".into());
//! let frame = frames.next().ok_or("no frame")?;
//! assert_eq!(reading.frame(&frame), Frame::Content);
//! assert_eq!(reading.said().text_bytes, 5);
//!
//! // If it breaks off now, the client must not take it for whole.
//! assert!(!reading.is_complete());
//! let trouble = Trouble {
//!     status: 502,
//!     code: "network_error",
//!     message: "The connection to the upstream broke.",
//!     retry_after: None,
//!     reset_at: None,
//! };
//! let last = error_event(&reading, &trouble);
//! assert_eq!(reading.frame(&last), Frame::Error);
//! # Ok::<(), &str>(())
//! ```

mod asked;
mod change;
mod endpoint;
mod event;
mod frames;
mod hash;
mod json;
mod reading;
mod trouble;

pub use asked::{Asked, LastTurn, ToolCall};
pub use change::{Changed, with_error_context, with_max_output, with_model, with_note};
pub use endpoint::{Endpoint, Protocol};
pub use frames::Frames;
pub use reading::{Finish, Frame, JsonState, Reading, Said};
pub use trouble::{Trouble, error_body, error_event, keep_alive, stop_status};
