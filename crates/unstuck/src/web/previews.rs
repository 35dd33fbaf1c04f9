//! Previews of proposed commands, run on a copy by a separate process.

use std::sync::Arc;

use anyhow::{Context, Result};
use unstuck_repair::preview::{PreviewFileChangeKind, PreviewReport};
use unstuck_web::commands::WebCommandError;
use unstuck_web::model::{PreviewedFile, RepairPreview};

use super::{Doer, answers};
use crate::config;
use crate::error_report::refusal;
use crate::unstuck_subprocess::PreviewProcess;

/// Cancels a preview whose client has gone away.
struct CancelOnDrop(Arc<PreviewProcess>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Previews the command proposed by an escalation; dropping the future cancels it.
pub(super) async fn preview(
    doer: &Doer,
    id: String,
    network: bool,
) -> Result<RepairPreview, WebCommandError> {
    doer.0.refuse_agents()?;
    let question = answers::find_escalation(doer, &id).await?;
    if question.request.repair.is_none() {
        return Err(WebCommandError::Conflict(format!(
            "request {id} has no command to preview"
        )));
    }
    let Ok(_place) = doer.0.previews.try_acquire() else {
        return Err(WebCommandError::Unavailable(
            "too many previews are running; retry later".to_owned(),
        ));
    };
    let process = Arc::new(PreviewProcess::default());
    let _canceling = CancelOnDrop(Arc::clone(&process));
    doer.run_blocking(move |desk| {
        let session = desk.session();
        let project = question.project.as_ref();
        let config = config::load_in(project, session.sources())?;
        if config.value("recovery.preview") == Some(false.into()) {
            return Err(refusal(
                "previews are disabled: `preview = false` in [recovery] of the project",
                "review the command itself",
            ));
        }
        let tried = process.run(&id, project, network, &session);
        let tried = tried.context("cannot start the preview")?;
        match serde_json::from_slice::<PreviewReport>(&tried.stdout) {
            Ok(report) => Ok(preview_response(report)),
            Err(_) => {
                let said = String::from_utf8_lossy(&tried.stderr);
                let said = said.lines().next().unwrap_or_default();
                Err(refusal(
                    format!("preview failed: {}", said.trim_start_matches("error: ")),
                    "review the command itself",
                ))
            }
        }
    })
    .await
}

fn preview_response(report: PreviewReport) -> RepairPreview {
    let diff = |path: &str| {
        let text = report.texts.iter().find(|text| text.path == path);
        text.map_or_else(String::new, |text| text.lines.join("\n"))
    };
    let files = report.rows.iter().map(|row| PreviewedFile {
        path: row.path.clone(),
        change: match row.change {
            PreviewFileChangeKind::Add => "added",
            PreviewFileChangeKind::Delete => "removed",
            PreviewFileChangeKind::Change | PreviewFileChangeKind::Mixed => "changed",
        }
        .to_owned(),
        diff: diff(&row.path),
    });
    let refused = report
        .protected
        .iter()
        .map(|path| format!("{path} is never applied: git or unstuck would execute or obey it"));
    let unsettled = report.changed_during_run.iter();
    let unsettled =
        unsettled.map(|path| format!("{path} was changed by another process in the meantime"));
    let network = "The preview covers files only; other effects are unknown.".to_owned();
    RepairPreview {
        network: report.execution.network,
        files: files.collect(),
        more: report.more_rows > 0 || report.more_texts > 0,
        notes: refused.chain(unsettled).chain([network]).collect(),
        exit_code: (!report.execution.timed_out).then_some(report.execution.exit_code),
        output: report.execution.output.join("\n"),
        command: report.execution.command,
    }
}
