//! What a command does, read from its words: which files it makes and removes, what it installs, runs and stops.
//!
//! Nothing here approves anything. Reading a command wrongly can only lead to a worse offer, never to a permission.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::book::Book;
use super::call::Words;
use super::data::{Does, Operands, Program, Work};
use super::facts::Facts;
use super::{call, paths};
use crate::action::{Token, TokenKind, shell_words};

/// So deep scripts are followed into the commands that they run.
const DEEPEST: u8 = 2;

/// A command, understood as far as possible.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Entry {
    /// The command.
    pub(super) text: String,
    /// What it does, in order.
    pub(super) deeds: Vec<Deed>,
    /// Numbers in it that may be ports.
    pub(super) ports: BTreeSet<u16>,
}

/// One thing that a command does.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Deed {
    /// The program, without its folder.
    pub(super) program: String,
    /// Where the program is, if it is one of the project.
    pub(super) program_path: Option<String>,
    pub(super) works: Vec<Work>,
    pub(super) ecosystem: Option<String>,
    pub(super) manager: Option<String>,
    /// The folder that it works in, relative to the root.
    pub(super) folder: String,
    /// The paths that it works on.
    pub(super) of: Vec<String>,
    /// Other things that it works on, and words that may name some.
    pub(super) things: Vec<String>,
    /// The packages that it names.
    pub(super) named: Vec<String>,
    /// The paths that it reads.
    pub(super) reads: Vec<String>,
    /// The folders of the project that it takes packages from.
    pub(super) sources: Vec<String>,
    /// The folders of the project that it installs as packages.
    pub(super) projects: Vec<String>,
    /// Whether it works in the other packages of the workspace.
    pub(super) members: bool,
    /// The script of the project that it runs: the runner and the name.
    pub(super) script: Option<(String, String)>,
    /// The file of the project that it runs.
    pub(super) file: Option<String>,
    /// Files of which the project must have one, in whatever folder.
    pub(super) wants: Vec<String>,
    /// Whether the file that it runs is a script of a shell.
    pub(super) shell: bool,
    /// Whether the program is known, and not only guessed from names.
    pub(super) known: bool,
    /// Whether every shell has the program built in.
    pub(super) builtin: bool,
    /// How deep in scripts it stands; 0 for the command itself.
    pub(super) depth: u8,
    pub(super) frozen: bool,
    pub(super) offline: bool,
    pub(super) loose: bool,
    pub(super) fresh: bool,
}

impl Deed {
    pub(super) fn does(&self, work: Work) -> bool {
        self.works.contains(&work)
    }

    pub(super) fn does_any(&self, works: &[Work]) -> bool {
        works.iter().any(|work| self.does(*work))
    }
}

impl Entry {
    /// Reads a command; of one that cannot be read nothing is known.
    pub(super) fn read(book: &Book, facts: &Facts, text: &str) -> Self {
        let mut reader = Reader {
            book,
            facts,
            folder: String::new(),
            depth: 0,
            finds: false,
            deeds: Vec::new(),
        };
        reader.command(text);
        Self {
            text: text.to_owned(),
            deeds: reader.deeds,
            ports: ports(text),
        }
    }

    pub(super) fn does(&self, work: Work) -> bool {
        self.deeds.iter().any(|deed| deed.does(work))
    }

    /// The deeds that do such work.
    pub(super) fn doing(&self, work: Work) -> impl Iterator<Item = &Deed> {
        self.deeds.iter().filter(move |deed| deed.does(work))
    }

    /// Whether it removes what covers a path.
    pub(super) fn removes(&self, path: &str) -> bool {
        let removing = |deed: &&Deed| deed.does_any(&[Work::Remove, Work::Clean]);
        let mut of = self.deeds.iter().filter(removing).flat_map(|deed| &deed.of);
        of.any(|one| paths::covers(one, path))
    }

    /// The files of the project that it consists of.
    pub(super) fn files(&self) -> BTreeSet<&str> {
        let all = self.deeds.iter();
        all.filter_map(|deed| deed.file.as_deref()).collect()
    }
}

fn ports(text: &str) -> BTreeSet<u16> {
    let numbers = text.split(|c: char| !c.is_ascii_digit());
    let numbers = numbers.filter(|number| (2..=5).contains(&number.len()));
    numbers.filter_map(|number| number.parse().ok()).collect()
}

struct Reader<'a> {
    book: &'a Book,
    facts: &'a Facts,
    folder: String,
    depth: u8,
    /// Whether the next program is found by its launcher.
    finds: bool,
    deeds: Vec<Deed>,
}

impl Reader<'_> {
    fn command(&mut self, text: &str) {
        let Ok(tokens) = shell_words(text) else {
            return;
        };
        for part in tokens.split(|token| token.kind == TokenKind::Control) {
            self.part(part);
        }
    }

    /// One simple command with its redirections.
    fn part(&mut self, tokens: &[Token]) {
        let mut words = Vec::new();
        let mut rest = tokens.iter();
        while let Some(token) = rest.next() {
            match token.kind {
                TokenKind::Word => words.push(token.value.as_str()),
                TokenKind::Redirect => {
                    let target = rest.next().map_or("", |token| token.value.as_str());
                    self.redirect(&token.value, target);
                }
                TokenKind::Control => {}
            }
        }
        self.call(call::without_prefixes(&words));
    }

    fn redirect(&mut self, sign: &str, target: &str) {
        let writes = sign.contains('>') && !sign.ends_with('&');
        if !writes || target.starts_with("/dev/") || target.is_empty() {
            return;
        }
        if let Some(path) = paths::resolved(&self.folder, target) {
            self.deeds.push(Deed {
                works: vec![Work::Create],
                of: vec![path],
                depth: self.depth,
                known: true,
                builtin: true,
                ..Deed::default()
            });
        }
    }

    fn call(&mut self, words: &[&str]) {
        let Some((program, arguments)) = words.split_first() else {
            return;
        };
        if *program == "cd" {
            let to = arguments.iter().find(|word| !word.starts_with('-'));
            let to = to.and_then(|to| paths::relative(&self.facts.roots, &self.folder, to));
            self.folder = to.unwrap_or_default();
            return;
        }
        let name = paths::base(program);
        let known = self.book.program(name);
        // Who finds a program itself may be told its version, too.
        let known = known.or_else(|| {
            let bare = self.finds.then(|| call::package_name(name))?;
            self.book.program(bare)
        });
        match known {
            Some(known) => self.known_program(known, program, arguments),
            None => self.unknown_program(program, arguments),
        }
    }

    fn deed(&mut self, program: &str) -> Deed {
        let is_path = program.contains('/');
        let path = is_path.then(|| paths::relative(&self.facts.roots, &self.folder, program));
        Deed {
            program: paths::base(program).to_owned(),
            program_path: path.flatten(),
            folder: self.folder.clone(),
            depth: self.depth,
            builtin: std::mem::take(&mut self.finds),
            ..Deed::default()
        }
    }

    /// A program of which only its name is known, or a file of the project.
    fn unknown_program(&mut self, program: &str, arguments: &[&str]) {
        let mut deed = self.deed(program);
        let operands: Vec<&str> = call::plain_operands(arguments);
        let names = [deed.program.as_str()]
            .into_iter()
            .chain(operands.first().copied());
        deed.works = names
            .flat_map(|name| self.book.works_of_name(name))
            .collect();
        deed.things = operands.iter().map(|word| (*word).to_owned()).collect();
        deed.reads = inner_reads(&self.folder, arguments);
        deed.file.clone_from(&deed.program_path);
        self.follow(deed);
    }

    fn known_program(&mut self, program: &Program, path: &str, arguments: &[&str]) {
        let words = Words::read(program, arguments);
        let mut deed = self.deed(path);
        deed.known = true;
        deed.builtin |= program.builtin;
        deed.manager.clone_from(&program.manager);
        deed.wants.clone_from(&program.wants);
        deed.shell = program.shell;
        let manager = program.manager.as_deref();
        let manager = manager.and_then(|name| self.book.manager(name));
        let ecosystem = manager.map(|manager| manager.ecosystem.clone());
        deed.ecosystem = program.ecosystem.clone().or(ecosystem);
        if let Some(folder) = words.value(&program.folder) {
            let folder = paths::relative(&self.facts.roots, &self.folder, folder);
            deed.folder = folder.unwrap_or_default();
        }
        deed.reads = inner_reads(&deed.folder, arguments);
        let Some((does, verb)) = call::best(program, &words) else {
            deed.file = own_file(self.book, self.facts, &deed);
            if let Some(verb) = words.operands.first().filter(|_| deed.file.is_some()) {
                deed.works = self.book.works_of_name(verb);
            }
            return self.follow(deed);
        };
        if self.launched(does, verb, &words, arguments) || self.run_by(does, &words, arguments) {
            return;
        }
        let operands = words.after(if does.verb_is_script { 0 } else { verb });
        self.describe(&mut deed, does, &operands);
        deed.frozen = does.frozen || words.has_any(&program.frozen);
        deed.offline = words.has_any(&program.offline);
        deed.loose = words.has_any(&program.loose);
        deed.members = words.has_any(&program.members);
        let sources = words.values(&program.local);
        let source = |word: &str| paths::relative(&self.facts.roots, &deed.folder, word);
        deed.sources = sources.filter_map(source).collect();
        let folders = words.values(&program.projects);
        let folders = folders.chain(
            operands
                .iter()
                .copied()
                .filter(|word| does.named && call::is_folder(word)),
        );
        deed.projects = folders
            .filter_map(|word| source(call::without_extras(word)))
            .collect();
        deed.file = own_file(self.book, self.facts, &deed).or(deed.file);
        deed.fresh = does.fresh || words.has_any(&program.fresh);
        self.take_options(&mut deed, does, &words);
        if deed.frozen {
            deed.works.retain(|work| *work != Work::Lock);
        }
        self.follow_scripts(deed, does, &operands);
    }

    /// Adds a deed once for each script that it names.
    fn follow_scripts(&mut self, deed: Deed, does: &Does, operands: &[&str]) {
        let named = does.script.iter().flat_map(|_| operands);
        let count = if does.each { operands.len() } else { 1 };
        let names: Vec<&str> = named.copied().take(count).collect();
        let Some(runner) = does.script.as_ref().filter(|_| !names.is_empty()) else {
            return self.follow(deed);
        };
        for name in names {
            self.follow(Deed {
                script: Some((runner.clone(), name.to_owned())),
                works: Vec::new(),
                ..deed.clone()
            });
        }
    }

    /// Reads the command that a call launches; false if it launches none.
    fn launched(&mut self, does: &Does, verb: usize, words: &Words<'_>, all: &[&str]) -> bool {
        self.finds = does.finds;
        if let Some(skipped) = does.launches {
            let verb = if does.keeps_verb { 0 } else { verb };
            let from = words.operand_at(verb + skipped);
            self.call(call::without_prefixes(
                from.and_then(|at| all.get(at..)).unwrap_or_default(),
            ));
            return true;
        }
        if let Some(option) = &does.launch_option {
            let at = all.iter().position(|word| word == option);
            if let Some(rest) = at.and_then(|at| all.get(at + 1..)) {
                self.call(rest);
                return true;
            }
        }
        if let Some(option) = &does.shell_option {
            let at = all.iter().position(|word| word == option);
            if let Some(text) = at.and_then(|at| all.get(at + 1)) {
                self.command(text);
                return true;
            }
        }
        self.finds = false;
        false
    }

    /// Reads a known program that an interpreter runs as a file, such as `node yarn-1.22.cjs`; false if it is none.
    fn run_by(&mut self, does: &Does, words: &Words<'_>, all: &[&str]) -> bool {
        let Some(file) = words.operands.first().filter(|_| does.file) else {
            return false;
        };
        let name = paths::base(file);
        let packed = [".phar", ".cjs", ".pyz"];
        let bare = packed.iter().find_map(|end| name.strip_suffix(end));
        let bare = bare
            .map(|bare| bare.trim_end_matches(|c: char| "-.".contains(c) || c.is_ascii_digit()));
        let known = self.book.program(name).or_else(|| self.book.program(bare?));
        let (Some(known), Some(at)) = (known, words.operand_at(0)) else {
            return false;
        };
        let rest = all.get(at + 1..).unwrap_or_default();
        self.finds = true;
        let path = match file.contains('/') {
            true => (*file).to_owned(),
            false => format!("./{file}"),
        };
        self.known_program(known, &path, rest);
        true
    }

    fn describe(&self, deed: &mut Deed, does: &Does, operands: &[&str]) {
        deed.works.clone_from(&does.works);
        let folder = deed.folder.clone();
        let path = |word: &&str| paths::relative(&self.facts.roots, &folder, word);
        deed.of = chosen(does.of, operands).iter().filter_map(path).collect();
        let places = does.places.iter().filter_map(|place| path(&place.as_str()));
        deed.of.extend(places);
        let reads = chosen(does.reads, operands);
        deed.reads.extend(reads.iter().filter_map(path));
        deed.things.clone_from(&does.things);
        deed.things
            .extend(operands.iter().map(|word| (*word).to_owned()));
        if does.named {
            let names = operands.iter().filter(|word| call::is_package(word));
            let names = names.map(|word| call::package_name(word).to_owned());
            deed.named = names.collect();
        }
        if does.by_name {
            let works = operands
                .iter()
                .flat_map(|name| self.book.works_of_name(name));
            let works: Vec<Work> = works.collect();
            if !works.is_empty() {
                deed.works = works;
            }
        }
        if does.file {
            deed.file = operands.first().and_then(path);
            let verb = operands.get(1).copied().unwrap_or_default();
            deed.works.extend(self.book.works_of_name(verb));
        }
    }

    fn take_options(&self, deed: &mut Deed, does: &Does, words: &Words<'_>) {
        let folder = deed.folder.clone();
        let values = |names: &[String]| -> Vec<String> {
            let values = words.values(names);
            let path = |word: &str| paths::relative(&self.facts.roots, &folder, word);
            values.filter_map(path).collect()
        };
        let of = values(&does.of_options).into_iter();
        let of = of.map(|one| {
            if does.anywhere {
                format!("**/{one}")
            } else {
                one
            }
        });
        deed.of.extend(of);
        deed.reads.extend(values(&does.reads_options));
    }

    /// Adds a deed and, where it runs a script of the project, what that does.
    fn follow(&mut self, mut deed: Deed) {
        let named = deed.script.as_ref().map(|(_, name)| name.clone());
        let name = named.or_else(|| {
            deed.file
                .as_deref()
                .map(|file| paths::base(file).to_owned())
        });
        if let Some(name) = &name {
            deed.works.extend(self.book.works_of_name(name));
        }
        let bodies = self.bodies(&deed);
        self.deeds.push(deed);
        for (folder, body) in bodies {
            let outer = std::mem::replace(&mut self.folder, folder);
            self.depth += 1;
            for line in body.lines() {
                self.command(line.trim_start_matches(['@', '-', '+', '\t', ' ']));
            }
            self.depth -= 1;
            self.folder = outer;
        }
    }

    /// What the script or file consists of that a deed runs, each part with the folder that it runs in.
    fn bodies(&self, deed: &Deed) -> Vec<(String, String)> {
        if self.depth >= DEEPEST {
            return Vec::new();
        }
        let is_known_file =
            deed.known && deed.program_path.is_some() && deed.file == deed.program_path;
        let body = match (&deed.script, &deed.file) {
            (Some((runner, name)), _) if deed.members => {
                let all = self.facts.member_scripts(runner, name);
                return all
                    .map(|(at, body)| (at.to_owned(), body.to_owned()))
                    .collect();
            }
            (Some((runner, name)), _) => self.facts.script(runner, name).map(str::to_owned),
            (None, Some(_)) if is_known_file && !deed.works.is_empty() => None,
            (None, Some(file)) => self.shell_text(file, deed.shell),
            (None, None) => None,
        };
        body.map(|body| (deed.folder.clone(), body))
            .into_iter()
            .collect()
    }

    /// The text of a file, if it is a shell script.
    fn shell_text(&self, file: &str, by_shell: bool) -> Option<String> {
        let text = self.facts.path(file)?.text.as_deref()?;
        let first = text.lines().next().unwrap_or_default();
        let is_shell = file.ends_with(".sh") || (first.starts_with("#!") && first.contains("sh"));
        (by_shell || is_shell).then(|| text.to_owned())
    }
}

/// The file of the project that a known program is, unless it belongs to what was installed.
fn own_file(book: &Book, facts: &Facts, deed: &Deed) -> Option<String> {
    let path = deed.program_path.as_deref()?;
    book.place(facts, path).is_none().then(|| path.to_owned())
}

/// The files that are read within a word, such as `$(cat app.pid)`.
fn inner_reads(folder: &str, words: &[&str]) -> Vec<String> {
    static READ: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"[$`]\(?\s*(?:cat|<)\s+([A-Za-z0-9_./-]+)").ok());
    let Some(read) = READ.as_ref() else {
        return Vec::new();
    };
    let found = words.iter().flat_map(|word| read.captures_iter(word));
    let paths = found.filter_map(|found| paths::resolved(folder, found.get(1)?.as_str()));
    paths.collect()
}

fn chosen<'a>(which: Operands, operands: &[&'a str]) -> Vec<&'a str> {
    let part = match (which, operands) {
        (Operands::None, _) | (_, []) => &[],
        (Operands::All, all) => all,
        (Operands::First, all) => &all[..1],
        (Operands::Last, all) => &all[all.len() - 1..],
        (Operands::AfterFirst, all) => &all[1..],
        (Operands::ButLast, all) => &all[..all.len() - 1],
    };
    part.to_vec()
}
