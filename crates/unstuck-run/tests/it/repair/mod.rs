//! Repairs, run for real and tried from the inside.

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
