//! Whether this machine has a network at all, asked on behalf of all calls at once.

use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;
use unstuck_core::Timestamp;
use unstuck_network::NetworkProbe;

use crate::clock;

/// What was found out is believed for so long.
const FRESH: Duration = Duration::from_secs(1);

/// Tells whether there is no network; names are resolved once for all who ask at the same time.
#[derive(Debug)]
pub(crate) struct Offline {
    probe: NetworkProbe,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    /// Whether it was gone, and when that was found out.
    newest: Option<(Instant, bool)>,
    /// When it was last seen to be back.
    back: Option<Timestamp>,
}

impl Offline {
    /// Asks the probe.
    pub(crate) fn new(probe: NetworkProbe) -> Self {
        Self {
            probe,
            seen: Mutex::default(),
        }
    }

    /// Whether there is no network at all.
    pub(crate) async fn is_offline(&self) -> bool {
        let mut seen = self.seen.lock().await;
        if let Some((at, is_offline)) = seen.newest
            && at.elapsed() < FRESH
        {
            return is_offline;
        }
        let is_offline = self.probe.is_offline().await;
        let was_offline = seen.newest.is_some_and(|(_, was)| was);
        if was_offline && !is_offline {
            seen.back = Some(clock::at());
        }
        seen.newest = Some((Instant::now(), is_offline));
        is_offline
    }

    /// When the network was last seen to be back; the same for all who waited for it.
    pub(crate) async fn back_at(&self) -> Option<Timestamp> {
        self.seen.lock().await.back
    }
}
