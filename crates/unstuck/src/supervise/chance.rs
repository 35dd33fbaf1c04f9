//! The one place that draws random numbers.

use unstuck_core::decision::Draw;

/// A random number of the system.
pub(crate) fn draw() -> Draw {
    // Without a source of chance waits are not spread, and nothing else is lost.
    Draw(getrandom::u64().unwrap_or(1 << 63))
}
