//! A fault-injecting LLM API and a scripted agent for tests, the demo and benchmarks.
//!
//! [`FaultServer`] is a real HTTP server on the loopback interface. It speaks Anthropic Messages, OpenAI
//! Responses, OpenAI Chat Completions and Gemini, and answers each request with the next [`ScriptStep`] of its
//! [`Script`]: a proper answer, or a failure in the shape in which that provider signals it. [`agent`] is a
//! small agent CLI that talks to such a server and never tries anything twice. A script may also hold a seeded random
//! [`FaultMix`], a [`ResponsePace`], the [`KeyLimits`] of each key, a [`Capacity`] and bad [`TlsScript`]; [`catalog`] has all faults, [`examples`] ready
//! scripts. [`FaultServer::requests`] tells what came in, [`FaultServer::stats`] what was counted.
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
