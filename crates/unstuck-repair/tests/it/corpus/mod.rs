//! Tests that need the corpora kept beside the repository.

mod environment;
mod scenarios;
