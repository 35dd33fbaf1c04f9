//! A proxy in front of LLM APIs in which every call recovers, for any agent, without changing it.

pub mod protocol;
pub mod watch;
