//! Signal handling: the first stop request is graceful, the second kills; others are forwarded to the child.

use anyhow::Result;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use unstuck_run::process::{
    AttemptStopRequest, ChildSignalSender, IgnoredSignals, StopRequestUnixSignal,
};

/// Signals that are forwarded to the child.
const FORWARDED: [SignalKind; 2] = [SignalKind::user_defined1(), SignalKind::user_defined2()];

/// Signals that request a stop.
const STOP_SIGNALS: [(SignalKind, StopRequestUnixSignal); 3] = [
    (SignalKind::interrupt(), StopRequestUnixSignal::Interrupt),
    (SignalKind::terminate(), StopRequestUnixSignal::Terminate),
    (SignalKind::hangup(), StopRequestUnixSignal::HangUp),
];

/// Listens for signals as long as the runtime lives.
///
/// An ignored signal stays ignored: `nohup` and background jobs of `sh` rely on it.
pub(crate) fn listen(
    stop: watch::Sender<AttemptStopRequest>,
    child: Option<ChildSignalSender>,
) -> Result<()> {
    let ignored = IgnoredSignals::now();
    let is_heard = |kind: SignalKind| !ignored.contains(kind.as_raw_value());
    let stop = std::sync::Arc::new(stop);
    for (kind, cause) in STOP_SIGNALS.into_iter().filter(|(kind, _)| is_heard(*kind)) {
        tokio::spawn(stop_on(signal(kind)?, cause, std::sync::Arc::clone(&stop)));
    }
    for kind in FORWARDED.into_iter().filter(|kind| is_heard(*kind)) {
        let Some(child) = child.clone() else {
            continue;
        };
        tokio::spawn(forward(signal(kind)?, kind.as_raw_value(), child));
    }
    // If every signal is ignored, the receiver waits forever.
    tokio::spawn(async move {
        std::future::pending::<()>().await;
        drop(stop);
    });
    Ok(())
}

async fn stop_on(
    mut signal: Signal,
    cause: StopRequestUnixSignal,
    stop: std::sync::Arc<watch::Sender<AttemptStopRequest>>,
) {
    while signal.recv().await.is_some() {
        stop.send_modify(|stop| *stop = stop.escalate_stop(cause));
    }
}

async fn forward(mut signal: Signal, number: i32, child: ChildSignalSender) {
    while signal.recv().await.is_some() {
        child.signal(number);
    }
}
