//! A sandbox, tried from the inside.

mod basics;
mod support;
