//! The configuration that counts: what all layers together say.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use unstuck_core::agent::{AgentFile, Agents};
use unstuck_core::decision::{Catalog, Model, Price};
use unstuck_core::knowledge::{Knowledge, KnowledgeError, Overlay, Playbook};
use unstuck_core::repair::{Book, RepairFile};
use unstuck_core::stuck::StuckLimits;
use unstuck_core::{Classifier, RetryPolicy};

use crate::file::File;
use crate::policies::Policies;
use crate::problem::Problem;
use crate::project_settings::Compared;
use crate::repairs::RepairWords;
use crate::section::{
    Budget, ErrorRecovery, Escalations, GatewaySection, Loop, ModelSection, RecoverySection, Role,
    RunSection, Webhooks,
};
use crate::tree::fault::{Fault, What};
use crate::tree::path;
use crate::tree::source::{Origin, Sources};
use crate::tree::{At, Node, SourceId, Table};

/// What is there but could not be read.
#[derive(Debug, Default)]
pub(crate) struct Unread {
    /// Roles, by their ids.
    pub(crate) roles: BTreeSet<String>,
    /// Values, by the paths at which they are missing now.
    pub(crate) values: BTreeSet<String>,
}

/// What all layers together say; the default one says nothing.
#[derive(Debug, Default)]
pub struct Config {
    sources: Sources,
    pub(crate) tree: Table,
    pub(crate) file: File,
    pub(crate) policies: Policies,
    files: Vec<PathBuf>,
    unread: Unread,
    pub(crate) repair_words: RepairWords,
    /// The files that agents can write.
    pub(crate) projects: Vec<SourceId>,
    pub(crate) compared: Compared,
    /// The agents of the owner's own files.
    owners_agents: BTreeMap<String, AgentFile>,
    old_names: Vec<Problem>,
    recognized: OnceLock<Agents>,
    classifier: OnceLock<Classifier>,
    playbook: OnceLock<Playbook>,
    catalog: OnceLock<Catalog>,
    agents: OnceLock<Agents>,
    book: OnceLock<Book>,
}

impl Config {
    pub(crate) fn new(
        sources: Sources,
        tree: Table,
        file: File,
        policies: Policies,
        files: Vec<PathBuf>,
        unread: Unread,
    ) -> Self {
        Self {
            unread,
            sources,
            tree,
            file,
            policies,
            files,
            ..Self::default()
        }
    }

    /// The same, and whose word each file is.
    pub(crate) fn with_words(self, words: RepairWords, projects: Vec<SourceId>) -> Self {
        Self {
            repair_words: words,
            projects,
            ..self
        }
    }

    /// The same, and how the project's files stand to what was accepted of them.
    pub(crate) fn with_compared(self, compared: Compared) -> Self {
        Self { compared, ..self }
    }

    pub(crate) fn with_owners_agents(self, owners_agents: BTreeMap<String, AgentFile>) -> Self {
        Self {
            owners_agents,
            ..self
        }
    }

    pub(crate) fn with_old_names(self, old_names: Vec<Problem>) -> Self {
        Self { old_names, ..self }
    }

    /// Returns the keys that are written with a name of an earlier version, each with the name to use now.
    pub fn old_names(&self) -> &[Problem] {
        &self.old_names
    }

    /// The files that were read, the first one first.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Where the value at a path comes from, such as `role.planner.timeout`; none if nobody set it.
    pub fn origin(&self, path: &str) -> Option<Origin> {
        let found = path::find_entry(&self.tree, path)?;
        Some(self.sources.origin(found.key_at))
    }

    /// The value at a path as it was set, in the one spelling of its keys; none if nobody set it.
    pub fn value(&self, path: &str) -> Option<serde_json::Value> {
        path::find(&self.tree, path).map(Node::to_json)
    }

    /// The run as a whole.
    pub fn run(&self) -> &RunSection {
        &self.file.run
    }

    /// The roles, in the order of the files.
    pub fn roles(&self) -> &[Role] {
        &self.file.role
    }

    /// The role of that id.
    pub fn role(&self, id: &str) -> Option<&Role> {
        self.file.role.iter().find(|role| role.id == id)
    }

    /// The ids of all roles, also of those that could not be read.
    pub fn role_ids(&self) -> impl Iterator<Item = &str> {
        let read = self.file.role.iter().map(|role| role.id.as_str());
        read.chain(self.unread.roles.iter().map(String::as_str))
    }

    /// Whether there is a role of that id, be it readable or not.
    pub(crate) fn knows_role(&self, id: &str) -> bool {
        self.unread.roles.contains(id) || self.role(id).is_some()
    }

    /// Whether there is a value at that path which could not be read, and was told.
    pub(crate) fn is_unread(&self, path: &str) -> bool {
        self.unread.values.contains(path)
    }

    /// The roles whose outputs a role's prompt may use: those it needs, and what they need; in a loop all of them.
    pub fn outputs_for(&self, role: &Role) -> BTreeSet<&str> {
        if self.looping().is_some() {
            return self.file.role.iter().map(|role| role.id.as_str()).collect();
        }
        // What a role that could not be read has to do with it is told when it can be.
        let mut found: BTreeSet<_> = self.unread.roles.iter().map(String::as_str).collect();
        let mut waiting: Vec<_> = role.needs.iter().filter_map(|id| self.role(id)).collect();
        while let Some(role) = waiting.pop() {
            if found.insert(role.id.as_str()) {
                waiting.extend(role.needs.iter().filter_map(|id| self.role(id)));
            }
        }
        found
    }

    /// What is done about the failures of roles.
    pub fn error_recovery(&self) -> &ErrorRecovery {
        &self.file.error_recovery
    }

    /// The loop, if the roles run in one.
    pub fn looping(&self) -> Option<&Loop> {
        self.file.looping.as_ref()
    }

    /// What may be spent.
    pub fn budget(&self) -> &Budget {
        &self.file.budget
    }

    /// How long people are waited for, and who may answer.
    pub fn escalations(&self) -> &Escalations {
        &self.file.escalations
    }

    /// When an agent is taken for stuck.
    pub fn stuck(&self) -> &StuckLimits {
        &self.file.stuck
    }

    /// Which repair commands may run, whoever says so; none if nothing is said about it.
    ///
    /// What counts is what [`Config::repairs`] makes of it.
    pub fn recovery(&self) -> Option<&RecoverySection> {
        self.file.recovery.as_ref()
    }

    /// Who is told what.
    pub fn webhooks(&self) -> &Webhooks {
        &self.file.webhooks
    }

    /// What stands between agents and their LLM APIs.
    pub fn gateway(&self) -> &GatewaySection {
        &self.file.gateway
    }

    /// Whether `[recovery]` of projects counts without asking.
    pub fn trusts_projects(&self) -> bool {
        self.file.trust_project_config
    }

    /// The agents: the known ones and the user's own.
    pub fn agents(&self) -> &Agents {
        if self.file.agents.is_empty() {
            return Agents::built_in();
        }
        self.agents.get_or_init(|| {
            let own = foundations_first(self.file.agents.values());
            own.fold(Agents::built_in().clone(), Agents::with)
        })
    }

    /// The agents by which a command line of the user is recognized: the known ones and those of the user's own files.
    ///
    /// What is known about an agent decides what is added to its command line and its environment, so a project has no
    /// say about commands that are not its own.
    pub fn recognized_agents(&self) -> &Agents {
        if self.owners_agents.is_empty() {
            return Agents::built_in();
        }
        self.recognized.get_or_init(|| {
            let own = foundations_first(self.owners_agents.values());
            own.fold(Agents::built_in().clone(), Agents::with)
        })
    }

    /// The models and their ladders: the known ones and the user's own.
    pub fn catalog(&self) -> &Catalog {
        self.catalog.get_or_init(|| {
            let models = self.file.models.model.iter();
            let catalog = models.fold(Catalog::embedded(), with_model);
            let ladders = self.file.models.ladder.iter().cloned();
            ladders.fold(catalog, Catalog::with_ladder)
        })
    }

    /// The policy that counts where nothing else is said; none if the files say nothing.
    pub fn policy(&self) -> Option<&RetryPolicy> {
        self.policies.general.as_ref()
    }

    /// Where that policy comes from.
    pub fn policy_origin(&self) -> String {
        match self.origin("policy") {
            Some(Origin::File { path, .. }) => format!("[policy] in {}", path.display()),
            Some(Origin::Named(name)) => name,
            _ => "the template `standard`".to_owned(),
        }
    }

    /// The configured policies and the templates, each id once.
    pub fn policies(&self) -> impl Iterator<Item = &RetryPolicy> {
        self.policies.all()
    }

    fn is_plain(&self) -> bool {
        self.file.kinds.is_empty() && self.file.strategies.is_empty()
    }

    /// Some knowledge with the user's additions.
    pub fn overlaid(&self, knowledge: &Knowledge) -> Knowledge {
        knowledge.overlaid(Overlay {
            kinds: self.file.kinds.clone(),
            strategies: self.file.strategies.clone(),
        })
    }

    /// The classifier with the user's own rules; the built-in one where there are none.
    pub fn classifier(&self) -> Result<&Classifier, KnowledgeError> {
        if self.is_plain() {
            return Ok(Classifier::built_in());
        }
        if self.classifier.get().is_none() {
            let classifier = Classifier::new(self.overlaid(Knowledge::built_in()))?;
            classifier.check()?;
            // Another thread that was faster has made the same one.
            let _ = self.classifier.set(classifier);
        }
        Ok(self
            .classifier
            .get()
            .unwrap_or_else(|| Classifier::built_in()))
    }

    /// The classifier, once it is known to be in order.
    pub fn classifier_or_built_in(&self) -> &Classifier {
        self.classifier().unwrap_or_else(|_| Classifier::built_in())
    }

    /// What is done about failures, with the user's own chains and strategies, once they are known to be in order.
    pub fn playbook(&self) -> &Playbook {
        self.playbook.get().unwrap_or_else(|| Playbook::built_in())
    }

    /// Makes sure that the user's own rules, chains and strategies are in order before anything is run.
    pub fn prepare(&self) -> Result<(), KnowledgeError> {
        if !self.is_plain() && self.playbook.get().is_none() {
            let playbook = Playbook::new(self.classifier()?.knowledge())?;
            // Another thread that was faster has made the same one.
            let _ = self.playbook.set(playbook);
        }
        Ok(())
    }

    /// What is known about repairs, with the user's own knowledge; the built-in one where there is none.
    pub fn book(&self) -> Result<&Book, KnowledgeError> {
        if self.file.repairs == RepairFile::default() {
            return Ok(Book::built_in());
        }
        if self.book.get().is_none() {
            let book = Book::built_in().overlaid(self.file.repairs.clone())?;
            // Another thread that was faster has made the same one.
            let _ = self.book.set(book);
        }
        Ok(self.book.get().unwrap_or_else(|| Book::built_in()))
    }

    /// What is known about repairs, once it is known to be in order.
    pub fn book_or_built_in(&self) -> &Book {
        self.book().unwrap_or_else(|_| Book::built_in())
    }

    /// Something wrong with the value at a path, shown where it stands.
    ///
    /// A path that nobody set is shown where the nearest value around it stands.
    pub fn problem_at(&self, path: &str, what: impl Into<String>) -> Problem {
        let mut fault = Fault::new(What::Told(what.into()));
        fault.at = self.place_of(path);
        Problem::of(&self.sources, path, &fault)
    }

    fn place_of(&self, mut path: &str) -> Option<At> {
        loop {
            if let Some(found) = path::find_entry(&self.tree, path) {
                return Some(found.node.at);
            }
            path = path.rsplit_once('.')?.0;
        }
    }

    pub(crate) fn sources(&self) -> &Sources {
        &self.sources
    }

    /// A path as people here would write it.
    pub fn shown(&self, path: &Path) -> PathBuf {
        self.sources.shown(path)
    }
}

/// Agents in an order in which each comes after the one that it is like.
fn foundations_first<'f>(
    own: impl Iterator<Item = &'f AgentFile>,
) -> impl Iterator<Item = AgentFile> {
    let mut waiting: Vec<_> = own.cloned().collect();
    let mut ordered = Vec::new();
    while !waiting.is_empty() {
        let waits = |file: &AgentFile| {
            let mut others = waiting.iter().filter(|other| other.id != file.id);
            others.any(|other| file.like.as_ref() == Some(&other.id))
        };
        // In a circle, which is told elsewhere, nobody is first.
        let at = waiting.iter().position(|file| !waits(file));
        ordered.push(waiting.remove(at.unwrap_or(0)));
    }
    ordered.into_iter()
}

/// A catalog with one model more, or one that is changed.
pub(crate) fn with_model(catalog: Catalog, own: &ModelSection) -> Catalog {
    let known = catalog.models.iter().find(|model| model.id == own.id);
    let mut model = known.cloned().unwrap_or_else(|| Model {
        id: own.id.clone(),
        provider: "own".to_owned(),
        family: None,
        context: None,
        max_output: None,
        price: None,
        long: None,
        aliases: Vec::new(),
    });
    if let Some(provider) = &own.provider {
        model.provider.clone_from(provider);
    }
    model.family = own.family.clone().or(model.family);
    model.context = own.context.or(model.context);
    model.max_output = own.max_output.or(model.max_output);
    if let Some(price) = &own.price {
        model.price = Some(Price {
            input: price.input,
            output: price.output,
            cached: price.cached,
            as_of: price.as_of.clone(),
        });
        // Whoever states a price states it for prompts of every length.
        model.long = None;
    }
    if let Some(aliases) = &own.aliases {
        model.aliases.clone_from(aliases);
    }
    catalog.with(model)
}
