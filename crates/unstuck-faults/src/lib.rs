//! A fault-injecting LLM API and a scripted agent for tests, the demo and benchmarks.
