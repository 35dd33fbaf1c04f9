//! The configuration that counts: what all layers together say.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use unstuck_core::agent::{AgentFile, Agents};
use unstuck_core::decision::{Model, ModelCatalog, Price};
use unstuck_core::knowledge::{Knowledge, KnowledgeError, KnowledgeOverlay, Playbook};
use unstuck_core::loop_detection::LoopLimits;
use unstuck_core::repair::{RepairCatalog, RepairFile};
use unstuck_core::{Classifier, RetryPolicy};

use crate::policies::Policies;
use crate::problem::ConfigProblem;
use crate::project_settings::ProjectComparison;
use crate::root::RootSection;
use crate::section::{
    BudgetSection, ErrorRecovery, Escalations, GatewaySection, LoopSection, ModelSection,
    RecoverySection, Role, RunSection, Webhooks,
};
use crate::spanned::path;
use crate::spanned::source::{Origin, Sources};
use crate::spanned::value_error::{ValueError, ValueErrorKind};
use crate::spanned::{Node, SourceId, Span, Table};
use crate::trust_layering::RepairDeclarations;

/// What is there but could not be read.
#[derive(Debug, Default)]
pub(crate) struct UnreadableValues {
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
    pub(crate) root: RootSection,
    pub(crate) policies: Policies,
    files: Vec<PathBuf>,
    unread: UnreadableValues,
    pub(crate) repair_trust: RepairDeclarations,
    /// The files that agents can write.
    pub(crate) projects: Vec<SourceId>,
    pub(crate) comparison: ProjectComparison,
    /// The agents of the owner's own files.
    owner_agents: BTreeMap<String, AgentFile>,
    old_names: Vec<ConfigProblem>,
    recognized: OnceLock<Agents>,
    classifier: OnceLock<Classifier>,
    playbook: OnceLock<Playbook>,
    catalog: OnceLock<ModelCatalog>,
    agents: OnceLock<Agents>,
    repair_catalog: OnceLock<RepairCatalog>,
}

impl Config {
    pub(crate) fn new(
        sources: Sources,
        tree: Table,
        root: RootSection,
        policies: Policies,
        files: Vec<PathBuf>,
        unread: UnreadableValues,
    ) -> Self {
        Self {
            unread,
            sources,
            tree,
            root,
            policies,
            files,
            ..Self::default()
        }
    }

    /// The same, and whose word each file is.
    pub(crate) fn with_repair_trust(
        self,
        words: RepairDeclarations,
        projects: Vec<SourceId>,
    ) -> Self {
        Self {
            repair_trust: words,
            projects,
            ..self
        }
    }

    /// The same, and how the project's files stand to what was accepted of them.
    pub(crate) fn with_comparison(self, compared: ProjectComparison) -> Self {
        Self {
            comparison: compared,
            ..self
        }
    }

    pub(crate) fn with_owner_agents(self, owners_agents: BTreeMap<String, AgentFile>) -> Self {
        Self {
            owner_agents: owners_agents,
            ..self
        }
    }

    pub(crate) fn with_old_names(self, old_names: Vec<ConfigProblem>) -> Self {
        Self { old_names, ..self }
    }

    /// Returns the keys that are written with a name of an earlier version, each with the name to use now.
    pub fn old_names(&self) -> &[ConfigProblem] {
        &self.old_names
    }

    /// The files that were read, the first one first.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Where the value at a path comes from, such as `role.planner.timeout`; none if nobody set it.
    pub fn origin(&self, path: &str) -> Option<Origin> {
        let found = path::find_entry(&self.tree, path)?;
        Some(self.sources.origin(found.key_span))
    }

    /// The value at a path as it was set, in the one spelling of its keys; none if nobody set it.
    pub fn value(&self, path: &str) -> Option<serde_json::Value> {
        path::find_value(&self.tree, path).map(Node::to_json)
    }

    /// The run as a whole.
    pub fn run(&self) -> &RunSection {
        &self.root.run
    }

    /// The roles, in the order of the files.
    pub fn roles(&self) -> &[Role] {
        &self.root.role
    }

    /// The role of that id.
    pub fn role(&self, id: &str) -> Option<&Role> {
        self.root.role.iter().find(|role| role.id == id)
    }

    /// The ids of all roles, also of those that could not be read.
    pub fn role_ids(&self) -> impl Iterator<Item = &str> {
        let read = self.root.role.iter().map(|role| role.id.as_str());
        read.chain(self.unread.roles.iter().map(String::as_str))
    }

    /// Whether there is a role of that id, be it readable or not.
    pub(crate) fn has_role(&self, id: &str) -> bool {
        self.unread.roles.contains(id) || self.role(id).is_some()
    }

    /// Whether there is a value at that path which could not be read, and was told.
    pub(crate) fn is_unreadable(&self, path: &str) -> bool {
        self.unread.values.contains(path)
    }

    /// The roles whose outputs a role's prompt may use: those it needs, and what they need; in a loop all of them.
    pub fn outputs_for(&self, role: &Role) -> BTreeSet<&str> {
        if self.loop_section().is_some() {
            return self.root.role.iter().map(|role| role.id.as_str()).collect();
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
        &self.root.error_recovery
    }

    /// The loop, if the roles run in one.
    pub fn loop_section(&self) -> Option<&LoopSection> {
        self.root.loop_section.as_ref()
    }

    /// What may be spent.
    pub fn budget(&self) -> &BudgetSection {
        &self.root.budget
    }

    /// How long people are waited for, and who may answer.
    pub fn escalations(&self) -> &Escalations {
        &self.root.escalations
    }

    /// When an agent is taken for stuck.
    pub fn stuck(&self) -> &LoopLimits {
        &self.root.stuck
    }

    /// Which repair commands may run, whoever says so; none if nothing is said about it.
    ///
    /// What counts is what [`Config::repair_policy`] makes of it.
    pub fn recovery(&self) -> Option<&RecoverySection> {
        self.root.recovery.as_ref()
    }

    /// Who is told what.
    pub fn webhooks(&self) -> &Webhooks {
        &self.root.webhooks
    }

    /// What stands between agents and their LLM APIs.
    pub fn gateway(&self) -> &GatewaySection {
        &self.root.gateway
    }

    /// Whether `[recovery]` of projects counts without asking.
    pub fn trusts_projects(&self) -> bool {
        self.root.trust_project_config
    }

    /// The agents: the known ones and the user's own.
    pub fn agents(&self) -> &Agents {
        if self.root.agents.is_empty() {
            return Agents::built_in();
        }
        self.agents.get_or_init(|| {
            let own = bases_first(self.root.agents.values());
            own.fold(Agents::built_in().clone(), Agents::with)
        })
    }

    /// The agents by which a command line of the user is recognized: the known ones and those of the user's own files.
    ///
    /// What is known about an agent decides what is added to its command line and its environment, so a project has no
    /// say about commands that are not its own.
    pub fn recognized_agents(&self) -> &Agents {
        if self.owner_agents.is_empty() {
            return Agents::built_in();
        }
        self.recognized.get_or_init(|| {
            let own = bases_first(self.owner_agents.values());
            own.fold(Agents::built_in().clone(), Agents::with)
        })
    }

    /// The models and their ladders: the known ones and the user's own.
    pub fn catalog(&self) -> &ModelCatalog {
        self.catalog.get_or_init(|| {
            let models = self.root.models.model.iter();
            let catalog = models.fold(ModelCatalog::embedded(), with_model);
            let ladders = self.root.models.ladder.iter().cloned();
            ladders.fold(catalog, ModelCatalog::with_ladder)
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

    fn is_built_in(&self) -> bool {
        self.root.kinds.is_empty() && self.root.strategies.is_empty()
    }

    /// Some knowledge with the user's additions.
    pub fn with_user_knowledge(&self, knowledge: &Knowledge) -> Knowledge {
        knowledge.with_overlay(KnowledgeOverlay {
            kinds: self.root.kinds.clone(),
            strategies: self.root.strategies.clone(),
        })
    }

    /// The classifier with the user's own rules; the built-in one where there are none.
    pub fn classifier(&self) -> Result<&Classifier, KnowledgeError> {
        if self.is_built_in() {
            return Ok(Classifier::built_in());
        }
        if self.classifier.get().is_none() {
            let classifier = Classifier::new(self.with_user_knowledge(Knowledge::built_in()))?;
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
        if !self.is_built_in() && self.playbook.get().is_none() {
            let playbook = Playbook::new(self.classifier()?.knowledge())?;
            // Another thread that was faster has made the same one.
            let _ = self.playbook.set(playbook);
        }
        Ok(())
    }

    /// What is known about repairs, with the user's own knowledge; the built-in one where there is none.
    pub fn repair_catalog(&self) -> Result<&RepairCatalog, KnowledgeError> {
        if self.root.repairs == RepairFile::default() {
            return Ok(RepairCatalog::built_in());
        }
        if self.repair_catalog.get().is_none() {
            let book = RepairCatalog::built_in().with_overlay(self.root.repairs.clone())?;
            // Another thread that was faster has made the same one.
            let _ = self.repair_catalog.set(book);
        }
        Ok(self
            .repair_catalog
            .get()
            .unwrap_or_else(|| RepairCatalog::built_in()))
    }

    /// What is known about repairs, once it is known to be in order.
    pub fn repair_catalog_or_built_in(&self) -> &RepairCatalog {
        self.repair_catalog()
            .unwrap_or_else(|_| RepairCatalog::built_in())
    }

    /// Something wrong with the value at a path, shown where it stands.
    ///
    /// A path that nobody set is shown where the nearest value around it stands.
    pub fn problem_at(&self, path: &str, what: impl Into<String>) -> ConfigProblem {
        let mut fault = ValueError::new(ValueErrorKind::Custom(what.into()));
        fault.span = self.span_of(path);
        ConfigProblem::from_error(&self.sources, path, &fault)
    }

    fn span_of(&self, mut path: &str) -> Option<Span> {
        loop {
            if let Some(found) = path::find_entry(&self.tree, path) {
                return Some(found.node.span);
            }
            path = path.rsplit_once('.')?.0;
        }
    }

    pub(crate) fn sources(&self) -> &Sources {
        &self.sources
    }

    /// A path as people here would write it.
    pub fn display_path(&self, path: &Path) -> PathBuf {
        self.sources.display_path(path)
    }
}

/// Agents in an order in which each comes after the one that it is like.
fn bases_first<'f>(own: impl Iterator<Item = &'f AgentFile>) -> impl Iterator<Item = AgentFile> {
    let mut waiting: Vec<_> = own.cloned().collect();
    let mut ordered = Vec::new();
    while !waiting.is_empty() {
        let waits = |file: &AgentFile| {
            let mut others = waiting.iter().filter(|other| other.id != file.id);
            others.any(|other| file.base_agent.as_ref() == Some(&other.id))
        };
        // In a circle, which is told elsewhere, nobody is first.
        let at = waiting.iter().position(|file| !waits(file));
        ordered.push(waiting.remove(at.unwrap_or(0)));
    }
    ordered.into_iter()
}

/// A catalog with one model more, or one that is changed.
pub(crate) fn with_model(catalog: ModelCatalog, own: &ModelSection) -> ModelCatalog {
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
