//! A fault-injecting LLM API and a scripted agent for tests, the demo and benchmarks.
//!
//! [`FaultServer`] is a real HTTP server on the loopback interface. It speaks Anthropic Messages, OpenAI Responses,
//! OpenAI Chat Completions and Gemini, and answers each request with the next [`FaultScriptStep`] of its [`FaultScript`]: a
//! proper answer, or a failure in the format of that provider. [`scripted_agent`] is a small agent CLI that talks to such a
//! server and never retries. A script may also have a seeded random [`FaultMix`], a [`ResponsePace`], the [`FaultServerKeyLimits`]
//! of each key, a [`ServerCapacity`] and a faulty [`TlsFaultOptions`]; [`reply_catalog`] lists all faults, [`examples`] example scripts.
//! [`FaultServer::requests`] returns the received requests, [`FaultServer::stats`] the statistics.
//!
//! ```
//! use unstuck_faults::{FaultServer, FaultScript};
//!
//! let script: FaultScript = r#"
//!     [[step]]
//!     rate_limit = { retry_after = 1 }
//!
//!     [[step]]
//!     answer = { text = "The tests pass." }
//! "#
//! .parse()?;
//! let server = FaultServer::start(script)?;
//! let ask = || unstuck_faults::scripted_agent::main(["-p", "Fix the tests", "--api", &server.url()]);
//! assert_eq!((ask(), ask()), (1, 0));
//! assert_eq!(server.requests().len(), 2);
//! # Ok::<(), unstuck_faults::FaultServerError>(())
//! ```

mod clock;
mod error;
pub mod examples;
mod foreground_server;
mod protocol;
mod randomness;
pub mod reply_catalog;
mod script;
pub mod scripted_agent;
mod server;

pub use error::FaultServerError;
pub use foreground_server::serve;
pub use protocol::{Protocol, RetryAfterFormat};
pub use script::{
    AuxiliaryAnswerMode, CertificateFault, ConnectionResetPoint, FaultMix, FaultScript,
    FaultScriptAnswer, FaultScriptReply, FaultScriptStep, FaultScriptStepRepeat,
    FaultServerCapacityPhase, FaultServerKeyLimits, FaultStreamCutMode, LatencyDistribution,
    RequestCondition, RequestNumberRange, ResponsePace, ScriptedToolFailure, ServerCapacity,
    StreamedApiErrorKind, TlsFaultOptions, TlsHandshakeFault, ToolCall, UsageLimit, WeightedFault,
};
pub use server::{FaultServer, FaultServerOptions, FaultServerRequestRecord, FaultServerStats};
