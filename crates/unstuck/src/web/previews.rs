//! Previews of proposed commands, run on a copy by a separate process.

use anyhow::{Context, Result};
use unstuck_repair::preview::{PreviewReport, RowChange};
use unstuck_web::commands::CommandError;
use unstuck_web::model::{PreviewedFile, RepairPreview};

use super::{Doer, answers};
use crate::child_process;
use crate::config;
use crate::error_report::refusal;

/// Previews the command proposed by an escalation.
pub(super) async fn preview(
    doer: &Doer,
    id: String,
    network: bool,
) -> Result<RepairPreview, CommandError> {
    doer.0.refuse_agents()?;
    let question = answers::find_escalation(doer, &id).await?;
    if question.request.repair.is_none() {
        return Err(CommandError::Conflict(format!("{id} proposes no command")));
    }
    let Ok(_place) = doer.0.previews.try_acquire() else {
        return Err(CommandError::Unavailable(
            "other previews are being made; try again when they are done".to_owned(),
        ));
    };
    doer.run_blocking(move |desk| {
        let session = desk.session();
        let project = question.project.as_ref();
        let config = config::load_in(project, session.sources())?;
        if config.value("recovery.preview") == Some(false.into()) {
            return Err(refusal(
                "there is no preview: `preview = false` stands in [recovery] of the project",
                "look at the command itself",
            ));
        }
        let tried = child_process::run_preview_json(&id, project, network, &session);
        let tried = tried.context("the preview could not be started")?;
        match serde_json::from_slice::<PreviewReport>(&tried.stdout) {
            Ok(report) => Ok(preview_response(report)),
            Err(_) => {
                let said = String::from_utf8_lossy(&tried.stderr);
                let said = said.lines().next().unwrap_or_default();
                Err(refusal(
                    format!(
                        "there is no preview: {}",
                        said.trim_start_matches("error: ")
                    ),
                    "look at the command itself",
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
            RowChange::Add => "added",
            RowChange::Delete => "removed",
            RowChange::Change | RowChange::Mixed => "changed",
        }
        .to_owned(),
        diff: diff(&row.path),
    });
    let refused = report
        .protected
        .iter()
        .map(|path| format!("{path} is never applied: unstuck or git would obey it"));
    let unsettled = report.changed_during_run.iter();
    let unsettled = unsettled.map(|path| format!("{path} was changed by others meanwhile"));
    let network = "Only files are tried out; what it would do elsewhere is not known.".to_owned();
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
