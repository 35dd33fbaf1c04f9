//! The one place that draws random numbers.

use unstuck_core::decision::RandomDraw;

/// A random number of the system.
pub(crate) fn random_draw() -> RandomDraw {
    // Without a source of chance waits are not spread, and nothing else is lost.
    RandomDraw(getrandom::u64().unwrap_or(1 << 63))
}
