//! Single place that draws random numbers.

use unstuck_core::decision::RandomDraw;

/// Returns a random number from the operating system.
pub(crate) fn random_draw() -> RandomDraw {
    // Without a source of randomness, delays only lack jitter.
    RandomDraw(getrandom::u64().unwrap_or(1 << 63))
}
