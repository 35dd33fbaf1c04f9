//! Real processes under supervision.

mod cleanup;
mod ends;
mod limits;
mod output;
mod reaper_death;
mod stdin;
mod support;
mod terminal;
mod tty;
