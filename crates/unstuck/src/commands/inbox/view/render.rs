//! Renders the inbox view into lines that fit the screen.

use std::path::Path;

use anstyle::Style;
use unstuck_core::Timestamp;
use unstuck_core::command_policy::sanitize;
use unstuck_store::EscalationRow;

use super::super::details::{facts, title};
use super::super::text_list::{headline, kind_label};
use super::shown_escalation::{InputMode, ShownEscalation};
use super::view_state::{BulkAbort, InboxView};
use crate::clock::format_age;
use crate::output::{BOLD, DIM, TerminalSize, YELLOW};
use crate::text_columns::{pad, truncate, truncate_start, width, wrap_words};

/// Rows outside the body: title, blank line, notice, keys.
const CHROME_ROWS: usize = 4;
/// Column where the effect of an answer begins.
const EFFECT_COLUMN: usize = 14;
const SELECTED: Style = Style::new().invert();

const HELP: [&str; 19] = [
    "List",
    "  ↑ ↓ or j k    move; also PgUp, PgDn, Home, End",
    "  Enter         open the request",
    "  X             abort all requests of the selected request's project",
    "  q or Esc      quit; requests stay pending",
    "",
    "Request",
    "  a  approve    approve the proposed action and continue",
    "  r  reject     continue without the proposed action",
    "  d  resolve    retry; you fixed the cause manually",
    "  t  retry      retry with your message",
    "  e  escalate   retry with a stronger model",
    "  s  skip       skip this step and continue",
    "  x  abort      abort the run",
    "  p  preview    show what a repair would change",
    "  n  note       add a note to your answer",
    "  q or Esc      back to the list",
    "",
    "Only applicable answers are offered, each with its effect.",
];

/// Renders the whole screen.
pub(super) fn screen(view: &InboxView, size: TerminalSize, now: Timestamp) -> Vec<String> {
    let page = ScreenLayout { size, now };
    let (title, middle, keys) = match &view.opened {
        _ if view.shows_help => page.help(),
        Some(opened) => page.escalation(opened),
        None => page.list(view),
    };
    let told = match (&view.opened, &view.store_error) {
        _ if view.bulk.is_some() => bulk_abort_prompt(view, size.columns),
        (Some(opened), _) if input_prompt(opened, size.columns).is_some() => {
            input_prompt(opened, size.columns).unwrap_or_default()
        }
        (_, Some(why)) if view.notice.is_empty() => {
            let why = format!("list may be outdated: {}", sanitize(why));
            format!("{YELLOW}{}{YELLOW:#}", truncate(&why, size.columns))
        }
        _ => format!("{YELLOW}{}{YELLOW:#}", truncate(&view.notice, size.columns)),
    };
    let mut lines = vec![title, String::new()];
    lines.extend(middle);
    lines.resize(size.rows.saturating_sub(2), String::new());
    lines.push(told);
    lines.push(keys);
    lines.truncate(size.rows);
    lines
}

/// Returns the maximum scroll offset.
pub(super) fn max_scroll(view: &InboxView, size: TerminalSize, now: Timestamp) -> usize {
    let page = ScreenLayout { size, now };
    let opened = view.opened.as_ref();
    let long = opened.map_or(0, |opened| page.body(opened).len());
    long.saturating_sub(page.body_rows())
}

struct ScreenLayout {
    size: TerminalSize,
    now: Timestamp,
}

type ScreenParts = (String, Vec<String>, String);

impl ScreenLayout {
    /// Returns the number of rows of the body.
    fn body_rows(&self) -> usize {
        self.size.rows.saturating_sub(CHROME_ROWS)
    }

    fn help(&self) -> ScreenParts {
        let columns = self.size.columns;
        let middle = HELP.iter().map(|line| truncate(line, columns));
        let middle = middle.take(self.body_rows()).collect();
        let title = truncate("unstuck inbox: keys", columns);
        (
            format!("{BOLD}{title}{BOLD:#}"),
            middle,
            join_keys(&["any key to close"], columns),
        )
    }

    fn list(&self, view: &InboxView) -> ScreenParts {
        let columns = self.size.columns;
        let title = match view.open_escalations.len() {
            0 => "unstuck inbox: no pending requests".to_owned(),
            1 => "unstuck inbox: 1 pending request".to_owned(),
            many => format!("unstuck inbox: {many} pending requests"),
        };
        let room = self.body_rows().max(1);
        let first = view.selected / room * room;
        let waiting = view
            .open_escalations
            .iter()
            .enumerate()
            .skip(first)
            .take(room);
        let middle = waiting.map(|(at, one)| self.row(one, at == view.selected));
        let title = format!("{BOLD}{}{BOLD:#}", truncate(&title, columns));
        let all = ["↑↓ move", "Enter open", "X abort all", "? help", "q quit"];
        let keys = join_keys(&all, columns);
        (title, middle.collect(), keys)
    }

    /// Renders an escalation on one line.
    fn row(&self, question: &EscalationRow, selected: bool) -> String {
        let asked = &question.request;
        let mark = if selected { ">" } else { " " };
        let line = format!(
            "{mark} {}  {}  {}  {}",
            pad(&format_age(question.at, self.now), 10),
            pad(&project_name(question), 16),
            pad(kind_label(asked.escalation_kind), 8),
            headline(question)
        );
        if selected {
            format!("{SELECTED}{}{SELECTED:#}", pad(&line, self.size.columns))
        } else {
            truncate(&line, self.size.columns)
        }
    }

    fn escalation(&self, opened: &ShownEscalation) -> ScreenParts {
        let columns = self.size.columns;
        let title = title(&opened.question, self.now);
        // Styled text cannot be truncated.
        let title = if width(&title) > columns {
            truncate(&anstream::adapter::strip_str(&title).to_string(), columns)
        } else {
            title
        };
        let body = self.body(opened);
        let more = body.len().saturating_sub(opened.scroll + self.body_rows());
        let mut middle: Vec<_> = body
            .into_iter()
            .skip(opened.scroll)
            .take(self.body_rows())
            .collect();
        if let Some(last) = middle.last_mut().filter(|_| more > 0) {
            *last = format!(
                "{DIM}{}{DIM:#}",
                truncate(&format!("↓ {} more lines", more + 1), columns)
            );
        }
        (title, middle, self.key_line(opened))
    }

    fn key_line(&self, opened: &ShownEscalation) -> String {
        let columns = self.size.columns;
        match &opened.input {
            InputMode::Note(..) => join_keys(&["Enter send", "Esc cancel"], columns),
            InputMode::Confirm(answer) => {
                let yes = format!("y {answer}");
                join_keys(&[&yes, "any other key to cancel"], columns)
            }
            InputMode::Previewing { .. } => join_keys(&["Esc cancel"], columns),
            InputMode::Preview(_) => join_keys(&["↑↓ scroll", "any other key to close"], columns),
            _ if opened.settled => join_keys(&["q back"], columns),
            InputMode::Answer | InputMode::Submitting(_) => {
                let answers = opened.choices.iter();
                let answers = answers.map(|one| format!("{} {}", one.answer.key(), one.answer));
                let preview = match (opened.can_preview(), opened.needs_network()) {
                    (_, true) => Some("p/P preview".to_owned()),
                    (true, false) => Some("p preview".to_owned()),
                    (false, false) => None,
                };
                let all: Vec<_> = answers
                    .chain(preview)
                    .chain(["q back".to_owned()])
                    .collect();
                let all: Vec<_> = all.iter().map(String::as_str).collect();
                join_keys(&all, columns)
            }
        }
    }

    /// Renders the details of an escalation and the effect of each answer, or its preview.
    fn body(&self, opened: &ShownEscalation) -> Vec<String> {
        let columns = self.size.columns;
        if let InputMode::Preview(lines) = &opened.input {
            let lines = lines.iter().flat_map(|line| wrap_words(line, columns));
            return lines.collect();
        }
        let mut body = facts(&opened.question, self.now, columns);
        if opened.settled {
            return body;
        }
        body.push(String::new());
        for choice in &opened.choices {
            let answer = choice.answer;
            body.extend(self.answer_lines(answer.key(), answer.name(), &sanitize(&choice.effect)));
        }
        if opened.can_preview() {
            let does = if opened.needs_network() {
                "run the command on a copy without network access (it probably needs it)"
            } else {
                "show what the command would change: run it on a copy without network access"
            };
            body.extend(self.answer_lines('p', "preview", does));
        }
        if opened.needs_network() {
            let does = "run it on a copy with network access; its network effects are real";
            body.extend(self.answer_lines('P', "preview", does));
        }
        let note = if opened.note.is_empty() {
            "add a note to your answer".to_owned()
        } else {
            sanitize(&opened.note)
        };
        body.extend(self.answer_lines('n', "note", &note));
        body
    }

    /// Renders a key and its effect.
    fn answer_lines(&self, key: char, name: &str, does: &str) -> Vec<String> {
        let room = self.size.columns.saturating_sub(EFFECT_COLUMN);
        let lines = wrap_words(does, room).into_iter().enumerate();
        lines
            .map(|(at, line)| match at {
                0 => format!("{BOLD}{key}{BOLD:#}  {name:<11}{line}"),
                _ => format!("{:EFFECT_COLUMN$}{line}", ""),
            })
            .collect()
    }
}

/// Returns the prompt of the current input mode.
fn input_prompt(opened: &ShownEscalation, columns: usize) -> Option<String> {
    let text = match &opened.input {
        InputMode::Answer | InputMode::Preview(_) => return None,
        InputMode::Note(answer, words) => {
            let name = answer.map_or("note", |answer| answer.name());
            let before = format!("{name}: ");
            let room = columns.saturating_sub(width(&before) + 1);
            return Some(format!(
                "{BOLD}{before}{BOLD:#}{}▏",
                truncate_start(&sanitize(words), room)
            ));
        }
        InputMode::Confirm(answer) => {
            let does = opened.choices.iter().find(|one| one.answer == *answer);
            let does = does.map_or_else(String::new, |one| sanitize(&one.effect));
            format!("{answer}: {does}. Are you sure? [y/N]")
        }
        InputMode::Submitting(answer) => format!("{answer} …"),
        InputMode::Previewing { network } => {
            let network = if *network { "with" } else { "without" };
            format!("previewing on a copy of the project {network} network; Esc cancels …")
        }
    };
    Some(format!("{YELLOW}{}{YELLOW:#}", truncate(&text, columns)))
}

/// Returns the prompt for aborting all requests of a project.
fn bulk_abort_prompt(view: &InboxView, columns: usize) -> String {
    let text = match &view.bulk {
        None => String::new(),
        Some(BulkAbort::Confirm(questions)) => {
            let project = questions.first().map(project_name).unwrap_or_default();
            let all = match questions.len() {
                1 => "the only request".to_owned(),
                count => format!("all {count} requests"),
            };
            format!("abort {all} of {project} and end their runs? [y/N]")
        }
        Some(BulkAbort::Submitting(count)) => format!("aborting {count} …"),
    };
    format!("{YELLOW}{}{YELLOW:#}", truncate(&text, columns))
}

/// Renders the keys of the last line, spaced to fit.
fn join_keys(all: &[&str], columns: usize) -> String {
    let wide = all.join("  ");
    let line = if width(&wide) <= columns {
        wide
    } else {
        all.join(" ")
    };
    format!("{DIM}{}{DIM:#}", truncate(&line, columns))
}

/// Returns the name of the project directory.
fn project_name(question: &EscalationRow) -> String {
    let folder = Path::new(&question.project).file_name();
    let name = folder.map(|name| name.to_string_lossy().into_owned());
    sanitize(&name.unwrap_or_else(|| question.project.clone()))
}
