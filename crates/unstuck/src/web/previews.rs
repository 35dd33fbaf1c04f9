//! What a proposed command would change, tried out on a copy by a process of its own.

use anyhow::{Context, Result};
use unstuck_repair::preview::{Report, What};
use unstuck_web::deeds::DeedError;
use unstuck_web::model::{Preview, PreviewedFile};

use super::{Doer, answers};
use crate::config;
use crate::report::refused;
use crate::started;

/// Tries out what a question proposes.
pub(super) async fn preview(doer: &Doer, id: String, network: bool) -> Result<Preview, DeedError> {
    doer.0.only_for_people()?;
    let question = answers::find(doer, &id).await?;
    if question.asked.repair.is_none() {
        return Err(DeedError::Conflict(format!("{id} proposes no command")));
    }
    let Ok(_place) = doer.0.previews.try_acquire() else {
        return Err(DeedError::Unavailable(
            "other previews are being made; try again when they are done".to_owned(),
        ));
    };
    doer.beside(move |desk| {
        let session = desk.session();
        let project = question.project.as_ref();
        let config = config::load_in(project, session.sources())?;
        if config.value("recovery.preview") == Some(false.into()) {
            return Err(refused(
                "there is no preview: `preview = false` stands in [recovery] of the project",
                "look at the command itself",
            ));
        }
        let tried = started::preview_told(&id, project, network, &session);
        let tried = tried.context("the preview could not be started")?;
        match serde_json::from_slice::<Report>(&tried.stdout) {
            Ok(report) => Ok(shown(report)),
            Err(_) => {
                let said = String::from_utf8_lossy(&tried.stderr);
                let said = said.lines().next().unwrap_or_default();
                Err(refused(
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

fn shown(report: Report) -> Preview {
    let diff = |path: &str| {
        let text = report.texts.iter().find(|text| text.path == path);
        text.map_or_else(String::new, |text| text.lines.join("\n"))
    };
    let files = report.rows.iter().map(|row| PreviewedFile {
        path: row.path.clone(),
        change: match row.what {
            What::Add => "added",
            What::Delete => "removed",
            What::Change | What::Mixed => "changed",
        }
        .to_owned(),
        diff: diff(&row.path),
    });
    let refused = report
        .refused
        .iter()
        .map(|path| format!("{path} is never applied: unstuck or git would obey it"));
    let unsettled = report.unsettled.iter();
    let unsettled = unsettled.map(|path| format!("{path} was changed by others meanwhile"));
    let network = "Only files are tried out; what it would do elsewhere is not known.".to_owned();
    Preview {
        network: report.ran.network,
        files: files.collect(),
        more: report.more_rows > 0 || report.more_texts > 0,
        notes: refused.chain(unsettled).chain([network]).collect(),
        exit_code: (!report.ran.timed_out).then_some(report.ran.exit_code),
        output: report.ran.output.join("\n"),
        command: report.ran.command,
    }
}
