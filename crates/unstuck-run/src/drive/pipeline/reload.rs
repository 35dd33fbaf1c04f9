//! A configuration that was changed while the loop ran is taken over between two iterations, or refused.

use std::rc::Rc;

use unstuck_core::Event;
use unstuck_core::decision::AskWhy;
use unstuck_core::event::{ConfigRejected, ConfigReloaded, EscalationKind, RecoveryEscalated};
use unstuck_core::pipeline::changes;
use unstuck_core::question::Circumstances;

use super::Conductor;
use crate::drive::asking::Asking;
use crate::drive::error::RunError;
use crate::drive::journal::Journal;

impl Conductor<'_> {
    /// Takes over what was changed; what cannot be read is refused, and the loop goes on as it was.
    pub(super) async fn reload(&self, journal: &Journal<'_>) -> Result<(), RunError> {
        let before = self.plan();
        let path = before.config_path.as_ref();
        let path = path
            .map(|path| path.display().to_string())
            .unwrap_or_default();
        let mut question = None;
        let event = match (self.reload)() {
            Err(error) => ConfigRejected { path, error }.into(),
            Ok(mut now) => {
                now.command.clone_from(&before.command);
                now.task.clone_from(&before.task);
                if now == *before {
                    return Ok(());
                }
                let (then, described) = (
                    before.described(self.knowledge.version),
                    now.described(self.knowledge.version),
                );
                let told = changes(&then, &described).into_iter().flat_map(|change| {
                    let who = change.role.unwrap_or_else(|| "all roles".to_owned());
                    let what = change.what.into_iter();
                    what.map(move |what| format!("{who}: {what}"))
                });
                let event = ConfigReloaded {
                    path,
                    changes: told.collect(),
                    pipeline: Some(Box::new(described)),
                };
                if now.untrusted != before.untrusted && !now.untrusted.is_empty() {
                    question = Some(self.about_trust(journal, &now.untrusted));
                }
                self.plan.replace(Rc::new(now));
                event.into()
            }
        };
        let question = question.map(Event::from);
        let events = [event].into_iter().chain(question).collect();
        self.write(journal, events).await?;
        Ok(())
    }

    /// The project allows more than before, and nobody has trusted that: it does not count until somebody does.
    fn about_trust(&self, journal: &Journal<'_>, wider: &[String]) -> Box<RecoveryEscalated> {
        let reason = format!(
            "the project's [recovery] was widened while it ran, which does not count until `unstuck trust`: {}",
            wider.join("; ")
        );
        let question = EscalationKind::RecoveryApprovalRequired;
        let asking = Asking::about(question, AskWhy::Trust, reason);
        let id = format!("{}-t{}", journal.run(), self.clock.at().millis());
        self.question(id, asking, &Circumstances::default(), None)
    }
}
