//! A fault-injecting LLM API and a scripted agent for tests, the demo and benchmarks.
//!
//! [`FaultServer`] is a real HTTP server on the loopback interface. It speaks Anthropic Messages, OpenAI Responses,
//! OpenAI Chat Completions and Gemini, and answers each request with the next [`ScriptStep`] of its [`Script`]: a
//! proper answer, or a failure in the format of that provider. [`agent`] is a small agent CLI that talks to such a
//! server and never retries. A script may also have a seeded random [`FaultMix`], a [`ResponsePace`], the [`KeyLimits`]
//! of each key, a [`Capacity`] and a faulty [`TlsScript`]; [`catalog`] lists all faults, [`examples`] example scripts.
//! [`FaultServer::requests`] returns the received requests, [`FaultServer::stats`] the statistics.
//!
//! ```
//! use unstuck_faults::{FaultServer, Script};
//!
//! let script: Script = r#"
//!     [[step]]
//!     rate_limit = { retry_after = 1 }
//!
//!     [[step]]
//!     answer = { text = "The tests pass." }
//! "#
//! .parse()?;
//! let server = FaultServer::start(script)?;
//! let ask = || unstuck_faults::agent::main(["-p", "Fix the tests", "--api", &server.url()]);
//! assert_eq!((ask(), ask()), (1, 0));
//! assert_eq!(server.requests().len(), 2);
//! # Ok::<(), unstuck_faults::FaultsError>(())
//! ```

pub mod agent;
pub mod catalog;
mod cli;
mod clock;
mod error;
pub mod examples;
mod protocol;
mod randomness;
mod script;
mod server;

pub use cli::serve;
pub use error::FaultsError;
pub use protocol::{Protocol, RetryAfterFormat};
pub use script::{
    AnswerSpec, Capacity, CapacityPhase, CertificateFault, CutMode, FaultMix, HandshakeFault,
    KeyLimits, Latency, Passthrough, Reply, RequestCondition, RequestRange, ResetPoint,
    ResponsePace, Script, ScriptStep, StepRepeat, StreamErrorKind, TlsScript, ToolCall,
    ToolFailure, UsageLimit, WeightedFault,
};
pub use server::{FaultServer, RequestRecord, ServerOptions, ServerStats};
