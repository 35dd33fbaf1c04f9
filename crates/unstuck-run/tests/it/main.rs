//! Tests with real supervised processes.
#![expect(clippy::disallowed_methods, reason = "a test makes and looks at files")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod cleanup;
mod ends;
mod guard_files;
mod hostile_trees;
mod limits;
mod output;
mod reaper_death;
mod repair;
mod stdin;
mod support;
mod terminal;
mod trial;
mod tty;
mod worktree;
