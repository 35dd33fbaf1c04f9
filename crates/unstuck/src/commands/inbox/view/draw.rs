//! Draws what the person sees into lines, each of which fits.

use std::path::Path;

use anstyle::Style;
use unstuck_core::Timestamp;
use unstuck_core::guard::show;
use unstuck_store::Question;

use super::super::list::{gist, word};
use super::super::whole::{facts, title};
use super::opened::{Asks, Opened};
use super::state::{Bulk, View};
use crate::clock::ago;
use crate::columns::{cut, padded, tail, width, wrapped};
use crate::output::{BOLD, DIM, Size, YELLOW};

/// What is not the middle: a title, a blank, what was told last, the keys.
const AROUND: usize = 4;
/// Where what an answer does begins.
const DOES: usize = 14;
const SELECTED: Style = Style::new().invert();

const HELP: [&str; 19] = [
    "In the list",
    "  ↑ ↓ or j k    move; PgUp, PgDn, Home, End too",
    "  Enter         opens a question",
    "  X             aborts all requests of the selected one's project",
    "  q or Esc      leaves; what waits goes on waiting",
    "",
    "In a question",
    "  a  approve    does what is proposed",
    "  r  reject     does not do it, and goes on",
    "  d  resolve    you have seen to it by hand: tries again",
    "  t  retry      tries again with your words",
    "  e  escalate   tries again with a stronger model",
    "  s  skip       leaves this part out",
    "  x  abort      ends the run",
    "  p  preview    shows what a repair would change",
    "  n  note       a line that goes with your answer",
    "  q or Esc      back to the list",
    "",
    "Only answers that make sense are offered, each with what it will do.",
];

/// The whole screen.
pub(super) fn screen(view: &View, size: Size, now: Timestamp) -> Vec<String> {
    let page = Page { size, now };
    let (title, middle, keys) = match &view.opened {
        _ if view.helps => page.help(),
        Some(opened) => page.question(opened),
        None => page.list(view),
    };
    let told = match (&view.opened, &view.trouble) {
        _ if view.bulk.is_some() => bulk(view, size.columns),
        (Some(opened), _) if asking(opened, size.columns).is_some() => {
            asking(opened, size.columns).unwrap_or_default()
        }
        (_, Some(why)) if view.notice.is_empty() => {
            let why = format!("the list may be old: {}", show(why));
            format!("{YELLOW}{}{YELLOW:#}", cut(&why, size.columns))
        }
        _ => format!("{YELLOW}{}{YELLOW:#}", cut(&view.notice, size.columns)),
    };
    let mut lines = vec![title, String::new()];
    lines.extend(middle);
    lines.resize(size.rows.saturating_sub(2), String::new());
    lines.push(told);
    lines.push(keys);
    lines.truncate(size.rows);
    lines
}

/// How far can be scrolled.
pub(super) fn most_scroll(view: &View, size: Size, now: Timestamp) -> usize {
    let page = Page { size, now };
    let opened = view.opened.as_ref();
    let long = opened.map_or(0, |opened| page.body(opened).len());
    long.saturating_sub(page.room())
}

struct Page {
    size: Size,
    now: Timestamp,
}

type Drawn = (String, Vec<String>, String);

impl Page {
    /// How many lines there are for what is in the middle.
    fn room(&self) -> usize {
        self.size.rows.saturating_sub(AROUND)
    }

    fn help(&self) -> Drawn {
        let columns = self.size.columns;
        let middle = HELP.iter().map(|line| cut(line, columns));
        let middle = middle.take(self.room()).collect();
        let title = cut("unstuck inbox: the keys", columns);
        (
            format!("{BOLD}{title}{BOLD:#}"),
            middle,
            keys(&["any key goes back"], columns),
        )
    }

    fn list(&self, view: &View) -> Drawn {
        let columns = self.size.columns;
        let title = match view.waiting.len() {
            0 => "unstuck inbox: nothing waits for you".to_owned(),
            1 => "unstuck inbox: 1 question waits for you".to_owned(),
            many => format!("unstuck inbox: {many} questions wait for you"),
        };
        let room = self.room().max(1);
        let first = view.selected / room * room;
        let waiting = view.waiting.iter().enumerate().skip(first).take(room);
        let middle = waiting.map(|(at, one)| self.row(one, at == view.selected));
        let title = format!("{BOLD}{}{BOLD:#}", cut(&title, columns));
        let all = ["↑↓ move", "Enter open", "X abort all", "? help", "q leave"];
        let keys = keys(&all, columns);
        (title, middle.collect(), keys)
    }

    /// A question on one line.
    fn row(&self, question: &Question, selected: bool) -> String {
        let asked = &question.asked;
        let mark = if selected { ">" } else { " " };
        let line = format!(
            "{mark} {}  {}  {}  {}",
            padded(&ago(question.at, self.now), 10),
            padded(&name(question), 16),
            padded(word(asked.question), 6),
            gist(question)
        );
        match selected {
            true => format!("{SELECTED}{}{SELECTED:#}", padded(&line, self.size.columns)),
            false => cut(&line, self.size.columns),
        }
    }

    fn question(&self, opened: &Opened) -> Drawn {
        let columns = self.size.columns;
        let title = title(&opened.question, self.now);
        // Styles cannot be cut through.
        let title = match width(&title) > columns {
            true => cut(&anstream::adapter::strip_str(&title).to_string(), columns),
            false => title,
        };
        let body = self.body(opened);
        let more = body.len().saturating_sub(opened.scroll + self.room());
        let mut middle: Vec<_> = body
            .into_iter()
            .skip(opened.scroll)
            .take(self.room())
            .collect();
        if let Some(last) = middle.last_mut().filter(|_| more > 0) {
            *last = format!(
                "{DIM}{}{DIM:#}",
                cut(&format!("↓ {} more lines", more + 1), columns)
            );
        }
        (title, middle, self.keys_of(opened))
    }

    fn keys_of(&self, opened: &Opened) -> String {
        let columns = self.size.columns;
        match &opened.asks {
            Asks::Words(..) => keys(&["Enter sends", "Esc takes it back"], columns),
            Asks::Sure(answer) => {
                let yes = format!("y {answer}");
                keys(&[&yes, "any other key does nothing"], columns)
            }
            Asks::Previewing { .. } => keys(&["Esc stop"], columns),
            Asks::Preview(_) => keys(&["↑↓ scroll", "any other key goes back"], columns),
            _ if opened.settled => keys(&["q back"], columns),
            Asks::Answer | Asks::Giving(_) => {
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
                keys(&all, columns)
            }
        }
    }

    /// All that is known of a question, and what each answer does; or its preview.
    fn body(&self, opened: &Opened) -> Vec<String> {
        let columns = self.size.columns;
        if let Asks::Preview(lines) = &opened.asks {
            let lines = lines.iter().flat_map(|line| wrapped(line, columns));
            return lines.collect();
        }
        let mut body = facts(&opened.question, self.now, columns);
        if opened.settled {
            return body;
        }
        body.push(String::new());
        for choice in &opened.choices {
            let answer = choice.answer;
            body.extend(self.choice(answer.key(), answer.name(), &show(&choice.does)));
        }
        if opened.can_preview() {
            let does = match opened.needs_network() {
                true => "runs the command on a copy without network, which it probably needs",
                false => "shows what the command would change; runs it on a copy without network",
            };
            body.extend(self.choice('p', "preview", does));
        }
        if opened.needs_network() {
            let does = "runs it on a copy with network; what it does there is real";
            body.extend(self.choice('P', "preview", does));
        }
        let note = match opened.note.is_empty() {
            true => "a line that goes with your answer".to_owned(),
            false => show(&opened.note),
        };
        body.extend(self.choice('n', "note", &note));
        body
    }

    /// A key and what it does.
    fn choice(&self, key: char, name: &str, does: &str) -> Vec<String> {
        let room = self.size.columns.saturating_sub(DOES);
        let lines = wrapped(does, room).into_iter().enumerate();
        lines
            .map(|(at, line)| match at {
                0 => format!("{BOLD}{key}{BOLD:#}  {name:<11}{line}"),
                _ => format!("{:DOES$}{line}", ""),
            })
            .collect()
    }
}

/// What is asked about the answer itself.
fn asking(opened: &Opened, columns: usize) -> Option<String> {
    let text = match &opened.asks {
        Asks::Answer | Asks::Preview(_) => return None,
        Asks::Words(answer, words) => {
            let name = answer.map_or("note", |answer| answer.name());
            let before = format!("{name}: ");
            let room = columns.saturating_sub(width(&before) + 1);
            return Some(format!(
                "{BOLD}{before}{BOLD:#}{}▏",
                tail(&show(words), room)
            ));
        }
        Asks::Sure(answer) => {
            let does = opened.choices.iter().find(|one| one.answer == *answer);
            let does = does.map_or_else(String::new, |one| show(&one.does));
            format!("{answer}: {does}. Really? y")
        }
        Asks::Giving(answer) => format!("{answer} …"),
        Asks::Previewing { network } => {
            let network = if *network { "with" } else { "without" };
            format!("the command runs on a copy of the project {network} network; Esc cancels …")
        }
    };
    Some(format!("{YELLOW}{}{YELLOW:#}", cut(&text, columns)))
}

/// What is asked about aborting all requests of a project.
fn bulk(view: &View, columns: usize) -> String {
    let text = match &view.bulk {
        None => String::new(),
        Some(Bulk::Sure(questions)) => {
            let project = questions.first().map(name).unwrap_or_default();
            let all = match questions.len() {
                1 => "the only request".to_owned(),
                count => format!("all {count} requests"),
            };
            format!("abort {all} of {project} and end their runs? y")
        }
        Some(Bulk::Giving(count)) => format!("aborting {count} …"),
    };
    format!("{YELLOW}{}{YELLOW:#}", cut(&text, columns))
}

/// The keys on the last line, as far apart as there is room.
fn keys(all: &[&str], columns: usize) -> String {
    let wide = all.join("  ");
    let line = match width(&wide) <= columns {
        true => wide,
        false => all.join(" "),
    };
    format!("{DIM}{}{DIM:#}", cut(&line, columns))
}

/// The folder of the project, without those around it.
fn name(question: &Question) -> String {
    let folder = Path::new(&question.project).file_name();
    let name = folder.map(|name| name.to_string_lossy().into_owned());
    show(&name.unwrap_or_else(|| question.project.clone()))
}
