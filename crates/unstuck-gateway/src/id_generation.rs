//! Generates the ids of calls and runs, and session names for clients that name none.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use unstuck_core::RunId;
use unstuck_core::decision::{RandomDraw, SeededRng};

use crate::system_clock;

/// The name prefix of clients that name no session.
const CLIENT_PREFIX: &str = "client-";

/// Returns a unique call id.
pub(crate) fn new_call_id() -> String {
    format!("{:016x}", random_draw().0)
}

/// Returns a unique run id.
pub(crate) fn new_run_id() -> RunId {
    RunId::random(random_draw())
}

fn random_draw() -> RandomDraw {
    static START: LazyLock<u64> = LazyLock::new(|| {
        let mut seed = [0; 8];
        match getrandom::fill(&mut seed) {
            Ok(()) => u64::from_le_bytes(seed),
            // Names need only differ.
            Err(_) => system_clock::timestamp_now().millis().cast_unsigned(),
        }
    });
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    SeededRng::seeded(START.wrapping_add(number)).next_draw()
}

/// Returns the session name of a client that names none: the same key and program give the same session.
pub(crate) fn client_session_name(key: &[u8], program: Option<&str>) -> String {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    let program = program
        .and_then(|text| text.split(['/', ' ']).next())
        .unwrap_or_default();
    program.hash(&mut hasher);
    format!("{CLIENT_PREFIX}{:08x}", hasher.finish() as u32)
}

/// Returns true if a name was generated for a client.
pub(crate) fn is_client_session_name(name: &str) -> bool {
    name.starts_with(CLIENT_PREFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_ids_are_unique_and_client_names_are_stable() {
        assert_ne!(new_call_id(), new_call_id());
        assert_eq!(
            client_session_name(b"k", Some("claude-cli/1.0")),
            client_session_name(b"k", Some("claude-cli/2.0 (x)"))
        );
        assert_ne!(
            client_session_name(b"k", Some("a/1")),
            client_session_name(b"l", Some("a/1"))
        );
    }
}
