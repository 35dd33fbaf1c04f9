//! What signals to unstuck mean: the first interrupt stops gently, the second at once, others go to the child.

use anyhow::Result;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use unstuck_run::process::{Remote, Stop};

/// Signals that are the child's to handle.
const PASSED_ON: [SignalKind; 2] = [SignalKind::user_defined1(), SignalKind::user_defined2()];

/// Listens for signals for as long as the runtime lives.
pub(crate) fn listen(stop: watch::Sender<Stop>, child: Option<Remote>) -> Result<()> {
    let ends = [
        signal(SignalKind::interrupt())?,
        signal(SignalKind::terminate())?,
        signal(SignalKind::hangup())?,
    ];
    let stop = std::sync::Arc::new(stop);
    for end in ends {
        tokio::spawn(stop_at(end, std::sync::Arc::clone(&stop)));
    }
    for kind in PASSED_ON {
        let Some(child) = child.clone() else {
            continue;
        };
        tokio::spawn(pass_on(signal(kind)?, kind.as_raw_value(), child));
    }
    Ok(())
}

async fn stop_at(mut signal: Signal, stop: std::sync::Arc<watch::Sender<Stop>>) {
    while signal.recv().await.is_some() {
        stop.send_modify(|stop| {
            *stop = match stop {
                Stop::No => Stop::Gently,
                Stop::Gently | Stop::AtOnce => Stop::AtOnce,
            };
        });
    }
}

async fn pass_on(mut signal: Signal, number: i32, child: Remote) {
    while signal.recv().await.is_some() {
        child.signal(number);
    }
}
