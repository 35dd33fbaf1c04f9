//! Tests of repairs that run for real, seen from inside the sandbox.

mod attacks;
mod command;
mod folder;
mod ordinary_user;
mod probes;
mod processes;
mod profile;
mod support;
mod survivors;
mod tools;
