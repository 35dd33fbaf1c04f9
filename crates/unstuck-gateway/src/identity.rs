//! Names for calls, and for clients that do not say which session they belong to.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use unstuck_core::RunId;
use unstuck_core::decision::{Dice, Draw};

use crate::clock;

/// What the names begin with of clients that name no session.
const CLIENT: &str = "client-";

/// A name for a call that no other has.
pub(crate) fn call() -> String {
    format!("{:016x}", draw().0)
}

/// An id for a run that no other has.
pub(crate) fn run() -> RunId {
    RunId::drawn(draw())
}

fn draw() -> Draw {
    static START: LazyLock<u64> = LazyLock::new(|| {
        let mut seed = [0; 8];
        match getrandom::fill(&mut seed) {
            Ok(()) => u64::from_le_bytes(seed),
            // Names need only differ.
            Err(_) => clock::at().millis().cast_unsigned(),
        }
    });
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    Dice::seeded(START.wrapping_add(number)).roll()
}

/// A name for the session of a client that names none: the same key and program are the same session.
pub(crate) fn of_client(key: &[u8], program: Option<&str>) -> String {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    let program = program
        .and_then(|text| text.split(['/', ' ']).next())
        .unwrap_or_default();
    program.hash(&mut hasher);
    format!("{CLIENT}{:08x}", hasher.finish() as u32)
}

/// Whether a name is one that was made for a client.
pub(crate) fn is_of_client(name: &str) -> bool {
    name.starts_with(CLIENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_differ_and_a_client_stays_the_same() {
        assert_ne!(call(), call());
        assert_eq!(
            of_client(b"k", Some("claude-cli/1.0")),
            of_client(b"k", Some("claude-cli/2.0 (x)"))
        );
        assert_ne!(of_client(b"k", Some("a/1")), of_client(b"l", Some("a/1")));
    }
}
