//! What comes and goes, line by line, for whoever is no person at a terminal.

use std::io::Write;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;
use unstuck_core::Timestamp;
use unstuck_core::guard::show;
use unstuck_core::question::Answer;
use unstuck_store::{Question, QuestionFilter, Standing};

use super::list::gist;
use super::told::Told;
use crate::answering::{self, Which};
use crate::columns::cut;
use crate::messages::Messages;
use crate::output::{Output, YELLOW};
use crate::place::homely;
use crate::session::Session;
use crate::{clock, runtime};

/// How often is looked.
const LOOK: Duration = Duration::from_millis(400);
/// How much of a question is told on its line.
const LONGEST: usize = 160;

/// One thing that happened, as a JSON line.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Happened<'a> {
    #[serde(rename = "asked")]
    Asked(Box<Told<'a>>),
    Settled(Settled<'a>),
}

#[derive(Serialize)]
struct Settled<'a> {
    id: &'a str,
    run: &'a str,
    /// What was answered; none where its run went on without an answer.
    answer: Option<&'static str>,
    by: Option<String>,
    who: Option<String>,
    note: Option<String>,
    at: Timestamp,
}

/// Tells what waits, then what comes and goes.
pub(super) fn run(json: bool, session: &Session<'_>, out: &mut Output) -> Result<()> {
    let mut known = answering::open(&QuestionFilter::default(), session)?;
    tell(&[], &known, json, session, out)?;
    let mut in_trouble = false;
    loop {
        runtime::block_on(async {
            tokio::time::sleep(LOOK).await;
            Ok(())
        })?;
        match answering::open(&QuestionFilter::default(), session) {
            Ok(waiting) => {
                tell(&known, &waiting, json, session, out)?;
                known = waiting;
                in_trouble = false;
            }
            // A store that is busy now can be read later.
            Err(why) if !in_trouble => {
                writeln!(Messages::auto(), "{YELLOW}{why:#}{YELLOW:#}; trying again")?;
                in_trouble = true;
            }
            Err(_) => {}
        }
    }
}

/// Tells what has come and what has gone.
fn tell(
    known: &[Question],
    waiting: &[Question],
    json: bool,
    session: &Session<'_>,
    out: &mut Output,
) -> Result<()> {
    for question in waiting.iter().rev().filter(|one| !is_among(known, one)) {
        match json {
            true => out.json_line(&Happened::Asked(Box::new(Told::of(question, session))))?,
            false => writeln!(out, "{}", line(question))?,
        }
    }
    let is_gone = |one: &&Question| waiting.iter().all(|other| other.asked.id != one.asked.id);
    for question in known.iter().filter(is_gone) {
        settled(question, json, session, out)?;
    }
    out.flush()?;
    Ok(())
}

/// Whether the very same is asked there.
fn is_among(known: &[Question], question: &Question) -> bool {
    known.iter().any(|one| one.asked == question.asked)
}

fn line(question: &Question) -> String {
    let asked = &question.asked;
    let line = format!(
        "{}  asked    {}  {}  {}  {}",
        clock::shown(question.at),
        asked.id,
        asked.question.name(),
        show(&homely(&question.project)),
        gist(question)
    );
    cut(&line, LONGEST)
}

fn settled(question: &Question, json: bool, session: &Session<'_>, out: &mut Output) -> Result<()> {
    let filter = QuestionFilter {
        run: Some(question.run.clone()),
        prefix: Some(question.asked.id.clone()),
        standing: Standing::Any,
        ..QuestionFilter::default()
    };
    let found = answering::open(&filter, session)?;
    let mut found = found.iter().filter(|one| one.asked.id == question.asked.id);
    let answered = found.next().and_then(|one| one.answered.clone());
    let at = answered
        .as_ref()
        .map_or_else(|| clock::now().at, |one| one.at);
    let said = answered.and_then(|one| one.answer);
    if !json {
        let fate = fate(&question.asked.id, session);
        writeln!(out, "{}  settled  {fate}", clock::shown(at))?;
        return Ok(());
    }
    let answer = said.as_ref().and_then(|said| said.answer());
    let by = said.as_ref().map(|said| said.by.clone());
    let note = said.as_ref().map(|said| said.note.clone());
    out.json_line(&Happened::Settled(Settled {
        id: &question.asked.id,
        run: question.run.as_str(),
        answer: answer.map(Answer::name),
        by,
        who: said.and_then(|said| said.who),
        note: note.filter(|note| !note.is_empty()),
        at,
    }))
}

/// Who settled a question, how and when.
pub(super) fn fate(id: &str, session: &Session<'_>) -> String {
    match answering::find(Which::Id(id), Answer::Resolve, session) {
        Ok(_) => format!("{id} waits again"),
        Err(why) => why.to_string(),
    }
}
