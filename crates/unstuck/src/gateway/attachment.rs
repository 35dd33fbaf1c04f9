//! An attempt of an agent whose calls go through a private gateway.

use std::sync::Arc;

use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::TryRecvError;
use unstuck_core::decision::CallWait;
use unstuck_core::event::{AttemptUsage, BudgetReached, LastApiCall};
use unstuck_core::loop_detection::{LoopKind, LoopSignal};
use unstuck_core::{Diagnosis, Timestamp};
use unstuck_gateway::loop_detection::ApiLoopKind;
use unstuck_gateway::{CallUsage, GatewaySession, GatewaySessionEvent};
use unstuck_run::runner::GatewayAttachment;

use super::event_rendering::notice_line;
use crate::clock;

/// An attempt whose calls go through the gateway.
pub(super) struct PrivateGatewayAttachment {
    pub(super) command: Vec<String>,
    pub(super) variables: Vec<(String, String)>,
    pub(super) session: Arc<GatewaySession>,
    /// Usage of its session before the attempt.
    pub(super) usage_before: CallUsage,
    pub(super) notices: Receiver<GatewaySessionEvent>,
    /// If set, the attempt is ended when the agent is stuck in a loop.
    pub(super) ends_on_loop: bool,
    /// If set, exceeding a gateway budget creates an escalation.
    pub(super) asks_about_budgets: bool,
    /// Keeps the attempt active as long as it is held.
    #[expect(dead_code, reason = "held for its Drop implementation")]
    pub(super) active_marker: Arc<()>,
}

impl GatewayAttachment for PrivateGatewayAttachment {
    fn command(&self) -> &[String] {
        &self.command
    }

    fn variables(&self) -> &[(String, String)] {
        &self.variables
    }

    fn drain_messages(&mut self) -> Vec<String> {
        let name = self.session.name();
        let mut lines = Vec::new();
        loop {
            match self.notices.try_recv() {
                Ok(notice) if notice.session == name => lines.push(notice_line(&notice.kind)),
                // Missed notices are only informative; the results are read separately.
                Ok(_) | Err(TryRecvError::Lagged(_)) => {}
                Err(TryRecvError::Empty | TryRecvError::Closed) => return lines,
            }
        }
    }

    fn held_call(&self) -> Option<CallWait> {
        self.session.next_call_wait(clock::now().at)
    }

    fn retry_held_calls(&self) {
        self.session.retry_held_calls(clock::now().at);
    }

    fn loop_signal(&self) -> Option<LoopSignal> {
        // Many parallel subagents can be a legitimate way of working.
        let sign = self.session.loop_signal();
        let sign =
            sign.filter(|sign| self.ends_on_loop && sign.kind != ApiLoopKind::ConversationStorm)?;
        Some(LoopSignal {
            kind: LoopKind::Looping,
            times: sign.count,
            repeated: sign.sentence.trim_end_matches('.').to_owned(),
            result: String::new(),
        })
    }

    fn usage(&self) -> AttemptUsage {
        let used = self.session.usage().since(self.usage_before);
        AttemptUsage {
            cost_usd: used.cost_usd,
            tokens: used.tokens,
            ..AttemptUsage::default()
        }
    }

    fn newest_failure(&self) -> Option<Diagnosis> {
        self.session.last_failure().as_deref().cloned()
    }

    fn last_success(&self) -> Option<Timestamp> {
        self.session.last_success()
    }

    fn failing_since(&self) -> Option<Timestamp> {
        self.session.failing_since()
    }

    fn conversation(&self) -> Option<String> {
        self.session.conversation()
    }

    fn last_call(&self) -> Option<LastApiCall> {
        self.session.last_call()
    }

    fn budget_reached(&self) -> Option<BudgetReached> {
        let reached = self.session.budget_reached();
        reached.filter(|one| self.asks_about_budgets || one.scope.is_shared_by_run())
    }
}

/// An attempt whose agent calls its API directly, as the gateway could not be started.
pub(super) struct UnattachedAttempt {
    pub(super) command: Vec<String>,
    pub(super) reason: Option<String>,
}

impl GatewayAttachment for UnattachedAttempt {
    fn command(&self) -> &[String] {
        &self.command
    }

    fn variables(&self) -> &[(String, String)] {
        &[]
    }

    fn drain_messages(&mut self) -> Vec<String> {
        let told =
            |why| format!("no gateway for this agent: {why}; the agent calls its API directly");
        self.reason.take().map(told).into_iter().collect()
    }

    fn held_call(&self) -> Option<CallWait> {
        None
    }

    fn retry_held_calls(&self) {}

    fn loop_signal(&self) -> Option<LoopSignal> {
        None
    }

    fn usage(&self) -> AttemptUsage {
        AttemptUsage::default()
    }

    fn newest_failure(&self) -> Option<Diagnosis> {
        None
    }

    fn last_success(&self) -> Option<Timestamp> {
        None
    }

    fn failing_since(&self) -> Option<Timestamp> {
        None
    }

    fn conversation(&self) -> Option<String> {
        None
    }

    fn last_call(&self) -> Option<LastApiCall> {
        None
    }

    fn budget_reached(&self) -> Option<BudgetReached> {
        None
    }
}
