//! Tests of a sandbox from the inside.

mod basics;
mod owner;
mod support;
