//! Effects of a command, derived from its words: files created and removed, packages installed, processes stopped.
//!
//! This module approves nothing. Misreading a command can only produce a worse suggestion, never a permission.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::command_arguments::CommandArguments;
use super::project_facts::ProjectFacts;
use super::repair_catalog::RepairCatalog;
use super::repair_knowledge_file::{EffectKind, OperandSelection, ProgramCallRule, ProgramSpec};
use super::{command_arguments, path_strings};
use crate::recovery_plan::{ShellToken, ShellTokenKind, shell_tokens};

/// Maximum depth of scripts that are followed into the commands they run.
const MAX_SCRIPT_DEPTH: u8 = 2;

/// A command, analyzed as far as possible.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct CommandAnalysis {
    /// The command.
    pub(super) text: String,
    /// Its effects, in order.
    pub(super) effects: Vec<CommandEffect>,
    /// Numbers in it that may be ports.
    pub(super) ports: BTreeSet<u16>,
}

/// An effect of a command.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct CommandEffect {
    /// The program, without its directory.
    pub(super) program: String,
    /// The path of the program, if it belongs to the project.
    pub(super) program_path: Option<String>,
    pub(super) kinds: Vec<EffectKind>,
    pub(super) ecosystem: Option<String>,
    pub(super) manager: Option<String>,
    /// The working directory, relative to the root.
    pub(super) directory: String,
    /// The affected paths.
    pub(super) targets: Vec<String>,
    /// Other affected objects, and words that may name some.
    pub(super) things: Vec<String>,
    /// The packages it names.
    pub(super) packages: Vec<String>,
    /// The paths it reads.
    pub(super) reads: Vec<String>,
    /// Project directories it takes packages from.
    pub(super) sources: Vec<String>,
    /// Project directories it installs as packages.
    pub(super) projects: Vec<String>,
    /// True if it affects the other packages of the workspace.
    pub(super) members: bool,
    /// The project script it runs: runner and name.
    pub(super) script: Option<(String, String)>,
    /// The project file it runs.
    pub(super) file: Option<String>,
    /// Files of which the project must have one, in any directory.
    pub(super) required_files: Vec<String>,
    /// True if the file it runs is a shell script.
    pub(super) shell: bool,
    /// True if the program is known and not only guessed from names.
    pub(super) is_known_program: bool,
    /// True if the program is a shell builtin.
    pub(super) builtin: bool,
    /// Script nesting depth; 0 for the command itself.
    pub(super) depth: u8,
    pub(super) frozen: bool,
    pub(super) offline: bool,
    pub(super) loose: bool,
    pub(super) fresh: bool,
}

impl CommandEffect {
    pub(super) fn has_effect(&self, work: EffectKind) -> bool {
        self.kinds.contains(&work)
    }

    pub(super) fn has_any_effect(&self, works: &[EffectKind]) -> bool {
        works.iter().any(|work| self.has_effect(*work))
    }
}

impl CommandAnalysis {
    /// Analyzes a command; nothing is known about one that cannot be parsed.
    pub(super) fn analyze(book: &RepairCatalog, facts: &ProjectFacts, text: &str) -> Self {
        let mut reader = EffectReader {
            book,
            facts,
            directory: String::new(),
            depth: 0,
            finds: false,
            effects: Vec::new(),
        };
        reader.read_command(text);
        Self {
            text: text.to_owned(),
            effects: reader.effects,
            ports: ports(text),
        }
    }

    pub(super) fn has_effect(&self, work: EffectKind) -> bool {
        self.effects.iter().any(|deed| deed.has_effect(work))
    }

    /// Returns the effects of this kind.
    pub(super) fn effects_of_kind(&self, work: EffectKind) -> impl Iterator<Item = &CommandEffect> {
        self.effects
            .iter()
            .filter(move |deed| deed.has_effect(work))
    }

    /// Returns true if it removes something that covers a path.
    pub(super) fn removes(&self, path: &str) -> bool {
        let removing =
            |deed: &&CommandEffect| deed.has_any_effect(&[EffectKind::Remove, EffectKind::Clean]);
        let mut of = self
            .effects
            .iter()
            .filter(removing)
            .flat_map(|deed| &deed.targets);
        of.any(|one| path_strings::covers(one, path))
    }

    /// Returns the project files it consists of.
    pub(super) fn files(&self) -> BTreeSet<&str> {
        let all = self.effects.iter();
        all.filter_map(|deed| deed.file.as_deref()).collect()
    }
}

fn ports(text: &str) -> BTreeSet<u16> {
    let numbers = text.split(|c: char| !c.is_ascii_digit());
    let numbers = numbers.filter(|number| (2..=5).contains(&number.len()));
    numbers.filter_map(|number| number.parse().ok()).collect()
}

struct EffectReader<'a> {
    book: &'a RepairCatalog,
    facts: &'a ProjectFacts,
    directory: String,
    depth: u8,
    /// True if the next program is located by its launcher.
    finds: bool,
    effects: Vec<CommandEffect>,
}

impl EffectReader<'_> {
    fn read_command(&mut self, text: &str) {
        let Ok(tokens) = shell_tokens(text) else {
            return;
        };
        for part in tokens.split(|token| token.kind == ShellTokenKind::Control) {
            self.read_simple_command(part);
        }
    }

    /// Analyzes one simple command with its redirections.
    fn read_simple_command(&mut self, tokens: &[ShellToken]) {
        let mut words = Vec::new();
        let mut rest = tokens.iter();
        while let Some(token) = rest.next() {
            match token.kind {
                ShellTokenKind::Word => words.push(token.value.as_str()),
                ShellTokenKind::Redirect => {
                    let target = rest.next().map_or("", |token| token.value.as_str());
                    self.read_redirect(&token.value, target);
                }
                ShellTokenKind::Control => {}
            }
        }
        self.read_call(command_arguments::without_prefixes(&words));
    }

    fn read_redirect(&mut self, sign: &str, target: &str) {
        let writes = sign.contains('>') && !sign.ends_with('&');
        if !writes || target.starts_with("/dev/") || target.is_empty() {
            return;
        }
        if let Some(path) = path_strings::normalize(&self.directory, target) {
            self.effects.push(CommandEffect {
                kinds: vec![EffectKind::Create],
                targets: vec![path],
                depth: self.depth,
                is_known_program: true,
                builtin: true,
                ..CommandEffect::default()
            });
        }
    }

    fn read_call(&mut self, words: &[&str]) {
        let Some((program, arguments)) = words.split_first() else {
            return;
        };
        if *program == "cd" {
            let to = arguments.iter().find(|word| !word.starts_with('-'));
            let to =
                to.and_then(|to| path_strings::relative(&self.facts.roots, &self.directory, to));
            self.directory = to.unwrap_or_default();
            return;
        }
        let name = path_strings::base_name(program);
        let known = self.book.program(name);
        // A launcher that locates the program may also be given its version.
        let known = known.or_else(|| {
            let bare = self.finds.then(|| command_arguments::package_name(name))?;
            self.book.program(bare)
        });
        match known {
            Some(known) => self.read_known_program(known, program, arguments),
            None => self.read_unknown_program(program, arguments),
        }
    }

    fn new_effect(&mut self, program: &str) -> CommandEffect {
        let is_path = program.contains('/');
        let path =
            is_path.then(|| path_strings::relative(&self.facts.roots, &self.directory, program));
        CommandEffect {
            program: path_strings::base_name(program).to_owned(),
            program_path: path.flatten(),
            directory: self.directory.clone(),
            depth: self.depth,
            builtin: std::mem::take(&mut self.finds),
            ..CommandEffect::default()
        }
    }

    /// Analyzes a program of which only the name is known, or a file of the project.
    fn read_unknown_program(&mut self, program: &str, arguments: &[&str]) {
        let mut deed = self.new_effect(program);
        let operands: Vec<&str> = command_arguments::plain_operands(arguments);
        let names = [deed.program.as_str()]
            .into_iter()
            .chain(operands.first().copied());
        deed.kinds = names
            .flat_map(|name| self.book.effects_of_script_name(name))
            .collect();
        deed.things = operands.iter().map(|word| (*word).to_owned()).collect();
        deed.reads = inner_reads(&self.directory, arguments);
        deed.file.clone_from(&deed.program_path);
        self.push_with_script(deed);
    }

    fn read_known_program(&mut self, program: &ProgramSpec, path: &str, arguments: &[&str]) {
        let words = CommandArguments::parse(program, arguments);
        let mut deed = self.new_effect(path);
        deed.is_known_program = true;
        deed.builtin |= program.builtin;
        deed.manager.clone_from(&program.manager);
        deed.required_files.clone_from(&program.required_files);
        deed.shell = program.shell;
        let manager = program.manager.as_deref();
        let manager = manager.and_then(|name| self.book.manager(name));
        let ecosystem = manager.map(|manager| manager.ecosystem.clone());
        deed.ecosystem = program.ecosystem.clone().or(ecosystem);
        if let Some(folder) = words.value(&program.directory_options) {
            let folder = path_strings::relative(&self.facts.roots, &self.directory, folder);
            deed.directory = folder.unwrap_or_default();
        }
        deed.reads = inner_reads(&deed.directory, arguments);
        let Some((does, verb)) = command_arguments::best_call_rule(program, &words) else {
            deed.file = project_file(self.book, self.facts, &deed);
            if let Some(verb) = words.operands.first().filter(|_| deed.file.is_some()) {
                deed.kinds = self.book.effects_of_script_name(verb);
            }
            return self.push_with_script(deed);
        };
        if self.read_launched(does, verb, &words, arguments)
            || self.read_interpreted_program(does, &words, arguments)
        {
            return;
        }
        let operands = words.operands_after(if does.verb_is_script { 0 } else { verb });
        self.describe(&mut deed, does, &operands);
        deed.frozen = does.frozen || words.has_any(&program.frozen);
        deed.offline = words.has_any(&program.offline);
        deed.loose = words.has_any(&program.loose_options);
        deed.members = words.has_any(&program.members);
        let sources = words.values(&program.local);
        let source = |word: &str| path_strings::relative(&self.facts.roots, &deed.directory, word);
        deed.sources = sources.filter_map(source).collect();
        let folders = words.values(&program.projects);
        let folders = folders.chain(
            operands
                .iter()
                .copied()
                .filter(|word| does.names_packages && command_arguments::is_directory(word)),
        );
        deed.projects = folders
            .filter_map(|word| source(command_arguments::without_extras(word)))
            .collect();
        deed.file = project_file(self.book, self.facts, &deed).or(deed.file);
        deed.fresh = does.fresh || words.has_any(&program.fresh);
        self.take_options(&mut deed, does, &words);
        if deed.frozen {
            deed.kinds.retain(|work| *work != EffectKind::Lock);
        }
        self.follow_scripts(deed, does, &operands);
    }

    /// Adds an effect for each script that it names.
    fn follow_scripts(&mut self, deed: CommandEffect, does: &ProgramCallRule, operands: &[&str]) {
        let named = does.script.iter().flat_map(|_| operands);
        let count = if does.each { operands.len() } else { 1 };
        let names: Vec<&str> = named.copied().take(count).collect();
        let Some(runner) = does.script.as_ref().filter(|_| !names.is_empty()) else {
            return self.push_with_script(deed);
        };
        for name in names {
            self.push_with_script(CommandEffect {
                script: Some((runner.clone(), name.to_owned())),
                kinds: Vec::new(),
                ..deed.clone()
            });
        }
    }

    /// Analyzes the command that a call launches; false if it launches none.
    fn read_launched(
        &mut self,
        does: &ProgramCallRule,
        verb: usize,
        words: &CommandArguments<'_>,
        all: &[&str],
    ) -> bool {
        self.finds = does.finds_program;
        if let Some(skipped) = does.launches {
            let verb = if does.keeps_verb { 0 } else { verb };
            let from = words.operand_position(verb + skipped);
            self.read_call(command_arguments::without_prefixes(
                from.and_then(|at| all.get(at..)).unwrap_or_default(),
            ));
            return true;
        }
        if let Some(option) = &does.launch_option {
            let at = all.iter().position(|word| word == option);
            if let Some(rest) = at.and_then(|at| all.get(at + 1..)) {
                self.read_call(rest);
                return true;
            }
        }
        if let Some(option) = &does.shell_option {
            let at = all.iter().position(|word| word == option);
            if let Some(text) = at.and_then(|at| all.get(at + 1)) {
                self.read_command(text);
                return true;
            }
        }
        self.finds = false;
        false
    }

    /// Analyzes a known program that an interpreter runs as a file, such as `node yarn-1.22.cjs`; false if there is
    /// none.
    fn read_interpreted_program(
        &mut self,
        does: &ProgramCallRule,
        words: &CommandArguments<'_>,
        all: &[&str],
    ) -> bool {
        let Some(file) = words.operands.first().filter(|_| does.file) else {
            return false;
        };
        let name = path_strings::base_name(file);
        let packed = [".phar", ".cjs", ".pyz"];
        let bare = packed.iter().find_map(|end| name.strip_suffix(end));
        let bare = bare
            .map(|bare| bare.trim_end_matches(|c: char| "-.".contains(c) || c.is_ascii_digit()));
        let known = self.book.program(name).or_else(|| self.book.program(bare?));
        let (Some(known), Some(at)) = (known, words.operand_position(0)) else {
            return false;
        };
        let rest = all.get(at + 1..).unwrap_or_default();
        self.finds = true;
        let path = if file.contains('/') {
            (*file).to_owned()
        } else {
            format!("./{file}")
        };
        self.read_known_program(known, &path, rest);
        true
    }

    fn describe(&self, deed: &mut CommandEffect, does: &ProgramCallRule, operands: &[&str]) {
        deed.kinds.clone_from(&does.effects);
        let folder = deed.directory.clone();
        let path = |word: &&str| path_strings::relative(&self.facts.roots, &folder, word);
        deed.targets = select_operands(does.targets, operands)
            .iter()
            .filter_map(path)
            .collect();
        let places = does
            .target_paths
            .iter()
            .filter_map(|place| path(&place.as_str()));
        deed.targets.extend(places);
        let reads = select_operands(does.reads, operands);
        deed.reads.extend(reads.iter().filter_map(path));
        deed.things.clone_from(&does.resources);
        deed.things
            .extend(operands.iter().map(|word| (*word).to_owned()));
        if does.names_packages {
            let names = operands
                .iter()
                .filter(|word| command_arguments::is_package(word));
            let names = names.map(|word| command_arguments::package_name(word).to_owned());
            deed.packages = names.collect();
        }
        if does.by_name {
            let works = operands
                .iter()
                .flat_map(|name| self.book.effects_of_script_name(name));
            let works: Vec<EffectKind> = works.collect();
            if !works.is_empty() {
                deed.kinds = works;
            }
        }
        if does.file {
            deed.file = operands.first().and_then(path);
            let verb = operands.get(1).copied().unwrap_or_default();
            deed.kinds.extend(self.book.effects_of_script_name(verb));
        }
    }

    fn take_options(
        &self,
        deed: &mut CommandEffect,
        does: &ProgramCallRule,
        words: &CommandArguments<'_>,
    ) {
        let folder = deed.directory.clone();
        let values = |names: &[String]| -> Vec<String> {
            let values = words.values(names);
            let path = |word: &str| path_strings::relative(&self.facts.roots, &folder, word);
            values.filter_map(path).collect()
        };
        let of = values(&does.target_options).into_iter();
        let of = of.map(|one| {
            if does.anywhere {
                format!("**/{one}")
            } else {
                one
            }
        });
        deed.targets.extend(of);
        deed.reads.extend(values(&does.reads_options));
    }

    /// Adds an effect and, if it runs a project script, the effects of that script.
    fn push_with_script(&mut self, mut deed: CommandEffect) {
        let named = deed.script.as_ref().map(|(_, name)| name.clone());
        let name = named.or_else(|| {
            deed.file
                .as_deref()
                .map(|file| path_strings::base_name(file).to_owned())
        });
        if let Some(name) = &name {
            deed.kinds.extend(self.book.effects_of_script_name(name));
        }
        let bodies = self.script_bodies(&deed);
        self.effects.push(deed);
        for (folder, body) in bodies {
            let outer = std::mem::replace(&mut self.directory, folder);
            self.depth += 1;
            for line in body.lines() {
                self.read_command(line.trim_start_matches(['@', '-', '+', '\t', ' ']));
            }
            self.depth -= 1;
            self.directory = outer;
        }
    }

    /// Returns the bodies of the script or file that an effect runs, each with its working directory.
    fn script_bodies(&self, deed: &CommandEffect) -> Vec<(String, String)> {
        if self.depth >= MAX_SCRIPT_DEPTH {
            return Vec::new();
        }
        let is_known_file =
            deed.is_known_program && deed.program_path.is_some() && deed.file == deed.program_path;
        let body = match (&deed.script, &deed.file) {
            (Some((runner, name)), _) if deed.members => {
                let all = self.facts.member_scripts(runner, name);
                return all
                    .map(|(at, body)| (at.to_owned(), body.to_owned()))
                    .collect();
            }
            (Some((runner, name)), _) => self.facts.script(runner, name).map(str::to_owned),
            (None, Some(_)) if is_known_file && !deed.kinds.is_empty() => None,
            (None, Some(file)) => self.shell_text(file, deed.shell),
            (None, None) => None,
        };
        body.map(|body| (deed.directory.clone(), body))
            .into_iter()
            .collect()
    }

    /// Returns the text of a file, if it is a shell script.
    fn shell_text(&self, file: &str, by_shell: bool) -> Option<String> {
        let text = self.facts.path_fact(file)?.text.as_deref()?;
        let first = text.lines().next().unwrap_or_default();
        let is_shell = file.ends_with(".sh") || (first.starts_with("#!") && first.contains("sh"));
        (by_shell || is_shell).then(|| text.to_owned())
    }
}

/// Returns the project file that is this known program, unless it belongs to installed packages.
fn project_file(
    book: &RepairCatalog,
    facts: &ProjectFacts,
    deed: &CommandEffect,
) -> Option<String> {
    let path = deed.program_path.as_deref()?;
    book.generated_path_of(facts, path)
        .is_none()
        .then(|| path.to_owned())
}

/// Returns the files that are read within a word, such as `$(cat app.pid)`.
fn inner_reads(folder: &str, words: &[&str]) -> Vec<String> {
    static READ: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"[$`]\(?\s*(?:cat|<)\s+([A-Za-z0-9_./-]+)").ok());
    let Some(read) = READ.as_ref() else {
        return Vec::new();
    };
    let found = words.iter().flat_map(|word| read.captures_iter(word));
    let paths = found.filter_map(|found| path_strings::normalize(folder, found.get(1)?.as_str()));
    paths.collect()
}

fn select_operands<'a>(which: OperandSelection, operands: &[&'a str]) -> Vec<&'a str> {
    let part = match (which, operands) {
        (OperandSelection::None, _) | (_, []) => &[],
        (OperandSelection::All, all) => all,
        (OperandSelection::First, all) => &all[..1],
        (OperandSelection::Last, all) => &all[all.len() - 1..],
        (OperandSelection::AfterFirst, all) => &all[1..],
        (OperandSelection::ButLast, all) => &all[..all.len() - 1],
    };
    part.to_vec()
}
