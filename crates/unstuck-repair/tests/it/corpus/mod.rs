//! Tests that need the corpora stored beside the repository.

mod environment;
mod scenarios;
