//! Shows on standard error that a preview is running, for how long, and how to cancel it.

use std::future::Future;
use std::io::Write;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval_at};
use unstuck_core::duration::HumanDuration;
use unstuck_repair::sandbox::NetworkAccess;

use crate::output::DIM;
use crate::redacted_stderr::{self, RedactedStderr};

/// Delay before progress is shown.
const QUIET_PERIOD: Duration = Duration::from_secs(1);

/// Waits for a preview. After a delay, shows the elapsed seconds on a terminal, or a single line elsewhere.
pub(super) async fn with_progress<T>(
    network: NetworkAccess,
    limit: Duration,
    preview: impl Future<Output = T>,
) -> T {
    let network = match network {
        NetworkAccess::On => "with network",
        NetworkAccess::Off => "without network",
    };
    let what = format!(
        "running on an overlay {network}, timeout {}; press Ctrl-C to cancel",
        HumanDuration(limit)
    );
    let is_terminal = redacted_stderr::is_terminal();
    let mut stderr = RedactedStderr::auto();
    let begun = Instant::now();
    let mut seconds = interval_at(begun + QUIET_PERIOD, Duration::from_secs(1));
    seconds.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut is_told = false;
    let mut preview = std::pin::pin!(preview);
    loop {
        // A failure to write progress does not fail the preview.
        tokio::select! {
            result = &mut preview => {
                if is_terminal && is_told {
                    let _ = write!(stderr, "\r\x1b[K");
                    let _ = stderr.flush();
                }
                return result;
            }
            _ = seconds.tick(), if is_terminal || !is_told => {
                is_told = true;
                let passed = HumanDuration(Duration::from_secs(begun.elapsed().as_secs()));
                let _ = if is_terminal { write!(stderr, "\r\x1b[K{DIM}{what} … {passed}{DIM:#}") } else { writeln!(stderr, "{what}") };
                let _ = stderr.flush();
            }
        }
    }
}
