//! Whether a command gives a failure what it needs, and how well.

mod files;
mod made;
mod packages;
mod processes;

pub(super) use packages::{is_declared, managers};

use super::book::Book;
use super::data::{Lack, Work};
use super::deed::{Deed, Entry};
use super::facts::Facts;
use super::message::Message;
use super::need::Need;
use super::paths;

/// How well a command fits a need.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Fit {
    /// 0 for the best way to meet the need, more for lesser ones.
    pub(super) preference: u8,
    /// Whether something of the failure or the project ties the command to it, beyond the kind of work.
    pub(super) tied: bool,
}

impl Fit {
    fn tied(preference: u8) -> Option<Self> {
        Some(Self {
            preference,
            tied: true,
        })
    }

    fn loose(preference: u8) -> Option<Self> {
        Some(Self {
            preference,
            tied: false,
        })
    }
}

/// What a command is judged by.
#[derive(Clone, Copy)]
pub(super) struct Judge<'a> {
    pub(super) book: &'a Book,
    pub(super) facts: &'a Facts,
    pub(super) message: &'a Message,
}

impl Judge<'_> {
    /// How well a command fits a need; none if it does not.
    pub(super) fn fit(&self, need: &Need<'_>, entry: &Entry) -> Option<Fit> {
        let fit = match need.lack {
            Lack::Packages => self.packages(need, entry),
            Lack::Output | Lack::Generated | Lack::Cache => self.made(need, entry),
            Lack::File | Lack::ByPlace => self.file(need, entry),
            Lack::Folder => self.folder(need, entry),
            Lack::Schema => self.schema(need, entry),
            Lack::Gone => self.gone(need, entry),
            Lack::Port => self.port(need, entry),
            Lack::Service => self.service(need, entry),
            Lack::Mode => self.on_path(need, entry, Work::Mode),
            Lack::LineEnds => self.line_ends(need, entry),
            Lack::Variable => self.variable(need, entry),
            Lack::Thing => self.thing(need, entry),
            Lack::Tool => self.tool(need, entry),
            Lack::Room => self.room(need, entry),
        };
        fit.filter(|_| self.harm(Some(need), entry).is_none())
    }

    /// What a command would remove that has nothing to do with the need.
    pub(super) fn harm(&self, need: Option<&Need<'_>>, entry: &Entry) -> Option<String> {
        // What the scripts of a project clean up is the project's word.
        let removing =
            |deed: &&Deed| deed.depth == 0 && deed.does_any(&[Work::Remove, Work::Clean]);
        let deeds = entry.deeds.iter().filter(removing);
        let mut of = deeds.flat_map(|deed| &deed.of);
        of.find(|path| !self.may_go(need, path)).cloned()
    }

    fn may_go(&self, need: Option<&Need<'_>>, path: &str) -> bool {
        let is_subject = need.is_some_and(|need| match need.lack {
            Lack::Gone | Lack::Cache => {
                let subject = need.path.as_deref();
                subject.is_some_and(|subject| is_only(path, subject))
            }
            Lack::Room => {
                let spare = &need.rule.things;
                let mut parts = path.split('/');
                parts.any(|part| spare.iter().any(|name| paths::is_like(name, part)))
            }
            _ => false,
        });
        if self.book.is_lockfile(path) {
            return self.is_lockfile_to_blame(need, path);
        }
        is_subject || self.facts.is_missing(path) || self.book.place(self.facts, path).is_some()
    }

    /// A lockfile goes only where it is itself what cannot be used; otherwise that would hide a mismatch.
    fn is_lockfile_to_blame(&self, need: Option<&Need<'_>>, path: &str) -> bool {
        let is_subject = need.is_some_and(|need| need.path.as_deref() == Some(path));
        is_subject || self.message.advises_removing(paths::base(path))
    }

    /// Whether the files that a command consists of name a text.
    fn names(&self, entry: &Entry, text: &str) -> bool {
        let files = entry.files();
        let in_files = || {
            self.facts
                .files_naming(text)
                .any(|file| files.contains(file))
        };
        let in_scripts = || {
            let scripts = entry.deeds.iter().filter_map(|deed| deed.script.as_ref());
            let mut bodies = scripts.filter_map(|(runner, name)| self.facts.script(runner, name));
            bodies.any(|body| contains_word(body, text))
        };
        !text.is_empty() && (in_files() || in_scripts())
    }

    /// Whether a command makes what is at a path: its words or its files name it.
    fn makes(&self, entry: &Entry, path: &str) -> bool {
        let making = [Work::Build, Work::Generate, Work::Create, Work::MakeFolder];
        let mut deeds = entry.deeds.iter().filter(|deed| deed.does_any(&making));
        let folder = paths::upwards(path).last().unwrap_or(path);
        deeds.any(|deed| deed.of.iter().any(|one| paths::covers(one, path)))
            || self.names(entry, path)
            || self.names(entry, paths::base(path))
            || (folder != path && self.names(entry, folder))
    }
}

/// Whether a path or pattern is that of a subject, and not of a folder that holds more than it.
fn is_only(path: &str, subject: &str) -> bool {
    let beside = paths::parent(path) == paths::parent(subject);
    path == subject
        || (path.contains('*')
            && (beside || path.starts_with("**/"))
            && paths::covers(path, subject))
}

/// Whether a text contains another that is not a part of a longer word.
pub(super) fn contains_word(text: &str, word: &str) -> bool {
    let is_inner = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(is_inner) && !after.is_some_and(is_inner)
    })
}
