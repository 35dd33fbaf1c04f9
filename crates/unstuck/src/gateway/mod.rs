//! The gateway between agents and their LLM APIs as used by the commands: a private one for the agents of a run, and a
//! shared one.

mod attachment;
mod counting_recorder;
mod event_rendering;
mod knowledge;
mod private_gateway;
mod settings;
mod store_follower;
mod upstreams;

pub(crate) use counting_recorder::CountingRecorder;
pub(crate) use event_rendering::{notice_line, session_label};
pub(crate) use knowledge::GatewayKnowledge;
pub(crate) use private_gateway::{PrivateGateway, PrivateGatewayMode};
pub(crate) use settings::gateway_settings;
pub(crate) use store_follower::{follow_decisions, follow_spending};
pub(crate) use upstreams::{from_config, from_flag};

use std::io::Write;
use std::sync::Arc;

use unstuck_gateway::{NotificationBuilderFn, StoreRecorder, StoreRecorderOptions};
use unstuck_run::runner::{NotificationBuilder, current_owner};
use unstuck_store::Store;

use crate::notifications::ConfiguredNotifier;
use crate::redacted_stderr::RedactedStderr;

/// Creates the recorder of a gateway, which also sends notifications of escalations; it runs on the caller's runtime.
pub(crate) fn store_recorder(
    store: Store,
    project: String,
    notifying: Option<ConfiguredNotifier>,
) -> Arc<StoreRecorder> {
    let announce = |hooks: ConfiguredNotifier| -> Box<NotificationBuilderFn> {
        Box::new(move |run, events, at| hooks.notifications_for(run, events, at))
    };
    let options = StoreRecorderOptions {
        build_messages: notifying.map(announce),
        project,
        knowledge: env!("CARGO_PKG_VERSION").to_owned(),
        owner: Some(current_owner()),
        warn: Box::new(|why| {
            // If standard error is closed, nothing is left to try.
            let _ = writeln!(RedactedStderr::auto(), "unstuck: warning: {why}");
        }),
    };
    Arc::new(StoreRecorder::start(store, options))
}
