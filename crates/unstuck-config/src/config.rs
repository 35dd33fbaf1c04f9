//! The effective configuration, merged from all layers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use unstuck_core::agent::{AgentDefinition, Agents};
use unstuck_core::decision::{CatalogModel, ModelCatalog, Price};
use unstuck_core::knowledge::{
    DiagnosisKnowledge, KnowledgeError, KnowledgeOverlay, RecoveryKnowledge,
};
use unstuck_core::loop_detection::AgentLoopLimits;
use unstuck_core::repair::{RepairCatalog, RepairKnowledgeFile};
use unstuck_core::{Classifier, RetryPolicy};

use crate::problem::ConfigProblem;
use crate::project_settings_comparison::ProjectSettingsComparison;
use crate::retry_policies::RetryPolicies;
use crate::root_section::RootSection;
use crate::section::{
    BudgetSection, ErrorRecoverySection, EscalationsSection, GatewaySection, ModelEntry,
    PipelineLoopSection, RepairPolicySection, RoleSection, RunSection, WebhooksSection,
};
use crate::trust_layering::LayeredRepairPolicy;
use crate::value_tree::path;
use crate::value_tree::source::{ConfigValueOrigin, Sources};
use crate::value_tree::value_error::{ValueError, ValueErrorKind};
use crate::value_tree::{Node, SourceId, Span, Table};

/// Settings that are present but could not be read.
#[derive(Debug, Default)]
pub(crate) struct UnreadableValues {
    /// The role ids.
    pub(crate) roles: BTreeSet<String>,
    /// The paths of the missing values.
    pub(crate) values: BTreeSet<String>,
}

/// The effective configuration of all layers; the default is empty.
#[derive(Debug, Default)]
pub struct Config {
    sources: Sources,
    pub(crate) tree: Table,
    pub(crate) root: RootSection,
    pub(crate) policies: RetryPolicies,
    files: Vec<PathBuf>,
    unread: UnreadableValues,
    pub(crate) repair_trust: LayeredRepairPolicy,
    /// The sources that agents can write.
    pub(crate) projects: Vec<SourceId>,
    pub(crate) comparison: ProjectSettingsComparison,
    /// The agents defined in the owner's files.
    owner_agents: BTreeMap<String, AgentDefinition>,
    old_names: Vec<ConfigProblem>,
    recognized: OnceLock<Agents>,
    classifier: OnceLock<Classifier>,
    playbook: OnceLock<RecoveryKnowledge>,
    catalog: OnceLock<ModelCatalog>,
    agents: OnceLock<Agents>,
    repair_catalog: OnceLock<RepairCatalog>,
}

impl Config {
    pub(crate) fn new(
        sources: Sources,
        tree: Table,
        root: RootSection,
        policies: RetryPolicies,
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

    /// Adds the repair trust of each file.
    pub(crate) fn with_repair_trust(
        self,
        words: LayeredRepairPolicy,
        projects: Vec<SourceId>,
    ) -> Self {
        Self {
            repair_trust: words,
            projects,
            ..self
        }
    }

    /// Adds the comparison of the project's files with the accepted settings.
    pub(crate) fn with_comparison(self, compared: ProjectSettingsComparison) -> Self {
        Self {
            comparison: compared,
            ..self
        }
    }

    pub(crate) fn with_owner_agents(
        self,
        owners_agents: BTreeMap<String, AgentDefinition>,
    ) -> Self {
        Self {
            owner_agents: owners_agents,
            ..self
        }
    }

    pub(crate) fn with_old_names(self, old_names: Vec<ConfigProblem>) -> Self {
        Self { old_names, ..self }
    }

    /// Returns the deprecated keys in use, each with its replacement.
    pub fn old_names(&self) -> &[ConfigProblem] {
        &self.old_names
    }

    /// Returns the files that were read, lowest precedence first.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Returns the source of the value at a path such as `role.planner.timeout`; `None` if it is not set.
    pub fn origin(&self, path: &str) -> Option<ConfigValueOrigin> {
        let found = path::find_entry(&self.tree, path)?;
        Some(self.sources.origin(found.key_span))
    }

    /// Returns the value at a path, with canonical keys; `None` if it is not set.
    pub fn value(&self, path: &str) -> Option<serde_json::Value> {
        path::find_value(&self.tree, path).map(Node::to_json)
    }

    /// Returns the `[run]` section.
    pub fn run(&self) -> &RunSection {
        &self.root.run
    }

    /// Returns the roles, in file order.
    pub fn roles(&self) -> &[RoleSection] {
        &self.root.role
    }

    /// Returns the role with this id.
    pub fn role(&self, id: &str) -> Option<&RoleSection> {
        self.root.role.iter().find(|role| role.id == id)
    }

    /// Returns the ids of all roles, including unreadable ones.
    pub fn role_ids(&self) -> impl Iterator<Item = &str> {
        let read = self.root.role.iter().map(|role| role.id.as_str());
        read.chain(self.unread.roles.iter().map(String::as_str))
    }

    /// Returns whether a role with this id exists, readable or not.
    pub(crate) fn has_role(&self, id: &str) -> bool {
        self.unread.roles.contains(id) || self.role(id).is_some()
    }

    /// Returns whether the value at this path could not be read, which was already reported.
    pub(crate) fn is_unreadable(&self, path: &str) -> bool {
        self.unread.values.contains(path)
    }

    /// Returns the roles whose outputs a role's prompt may use: its direct and indirect dependencies; in a loop all
    /// roles.
    pub fn outputs_for(&self, role: &RoleSection) -> BTreeSet<&str> {
        if self.loop_section().is_some() {
            return self.root.role.iter().map(|role| role.id.as_str()).collect();
        }
        // Unreadable roles are reported once they can be read.
        let mut found: BTreeSet<_> = self.unread.roles.iter().map(String::as_str).collect();
        let mut waiting: Vec<_> = role.needs.iter().filter_map(|id| self.role(id)).collect();
        while let Some(role) = waiting.pop() {
            if found.insert(role.id.as_str()) {
                waiting.extend(role.needs.iter().filter_map(|id| self.role(id)));
            }
        }
        found
    }

    /// Returns the error recovery settings of roles.
    pub fn error_recovery(&self) -> &ErrorRecoverySection {
        &self.root.error_recovery
    }

    /// Returns the loop settings, if the roles run in a loop.
    pub fn loop_section(&self) -> Option<&PipelineLoopSection> {
        self.root.loop_section.as_ref()
    }

    /// Returns the budget limits.
    pub fn budget(&self) -> &BudgetSection {
        &self.root.budget
    }

    /// Returns the escalation deadlines and permissions.
    pub fn escalations(&self) -> &EscalationsSection {
        &self.root.escalations
    }

    /// Returns the limits of loop detection.
    pub fn stuck(&self) -> &AgentLoopLimits {
        &self.root.stuck
    }

    /// Returns the declared repair permissions; `None` if there are none.
    ///
    /// [`Config::repair_policy`] returns the effective ones.
    pub fn recovery(&self) -> Option<&RepairPolicySection> {
        self.root.recovery.as_ref()
    }

    /// Returns the notification settings.
    pub fn webhooks(&self) -> &WebhooksSection {
        &self.root.webhooks
    }

    /// Returns the gateway settings.
    pub fn gateway(&self) -> &GatewaySection {
        &self.root.gateway
    }

    /// Returns whether `[recovery]` of projects applies without confirmation.
    pub fn trusts_projects(&self) -> bool {
        self.root.trust_project_config
    }

    /// Returns the built-in and user-defined agents.
    pub fn agents(&self) -> &Agents {
        if self.root.agents.is_empty() {
            return Agents::built_in();
        }
        self.agents.get_or_init(|| {
            let own = bases_first(self.root.agents.values());
            own.fold(Agents::built_in().clone(), Agents::with)
        })
    }

    /// Returns the agents used to recognize command lines of the user: the built-in ones and those of the user's own
    /// files.
    ///
    /// An agent's definition decides what is added to its command line and environment, so projects do not affect
    /// commands that are not their own.
    pub fn recognized_agents(&self) -> &Agents {
        if self.owner_agents.is_empty() {
            return Agents::built_in();
        }
        self.recognized.get_or_init(|| {
            let own = bases_first(self.owner_agents.values());
            own.fold(Agents::built_in().clone(), Agents::with)
        })
    }

    /// Returns the built-in and user-defined models and ladders.
    pub fn catalog(&self) -> &ModelCatalog {
        self.catalog.get_or_init(|| {
            let models = self.root.models.model.iter();
            let catalog = models.fold(ModelCatalog::embedded(), with_model);
            let ladders = self.root.models.ladder.iter().cloned();
            ladders.fold(catalog, ModelCatalog::with_ladder)
        })
    }

    /// Returns the general policy; `None` if the files set none.
    pub fn policy(&self) -> Option<&RetryPolicy> {
        self.policies.general.as_ref()
    }

    /// Returns the source of that policy.
    pub fn policy_origin(&self) -> String {
        match self.origin("policy") {
            Some(ConfigValueOrigin::File { path, .. }) => format!("[policy] in {}", path.display()),
            Some(ConfigValueOrigin::Named(name)) => name,
            _ => "template `standard`".to_owned(),
        }
    }

    /// Returns the configured policies and the templates, each id once.
    pub fn policies(&self) -> impl Iterator<Item = &RetryPolicy> {
        self.policies.all()
    }

    fn is_built_in(&self) -> bool {
        self.root.kinds.is_empty() && self.root.strategies.is_empty()
    }

    /// Returns this knowledge with the user's additions.
    pub fn with_user_knowledge(&self, knowledge: &DiagnosisKnowledge) -> DiagnosisKnowledge {
        knowledge.with_overlay(KnowledgeOverlay {
            kinds: self.root.kinds.clone(),
            strategies: self.root.strategies.clone(),
        })
    }

    /// Returns the classifier with the user's rules; the built-in one if there are none.
    pub fn classifier(&self) -> Result<&Classifier, KnowledgeError> {
        if self.is_built_in() {
            return Ok(Classifier::built_in());
        }
        if self.classifier.get().is_none() {
            let classifier =
                Classifier::new(self.with_user_knowledge(DiagnosisKnowledge::built_in()))?;
            classifier.check()?;
            // Another thread was faster and built the same one.
            let _ = self.classifier.set(classifier);
        }
        Ok(self
            .classifier
            .get()
            .unwrap_or_else(|| Classifier::built_in()))
    }

    /// Returns the classifier, once it is known to be valid.
    pub fn classifier_or_built_in(&self) -> &Classifier {
        self.classifier().unwrap_or_else(|_| Classifier::built_in())
    }

    /// Returns the playbook with the user's chains and strategies, once they are known to be valid.
    pub fn playbook(&self) -> &RecoveryKnowledge {
        self.playbook
            .get()
            .unwrap_or_else(|| RecoveryKnowledge::built_in())
    }

    /// Validates user-defined rules, chains and strategies before anything runs.
    pub fn prepare(&self) -> Result<(), KnowledgeError> {
        if !self.is_built_in() && self.playbook.get().is_none() {
            let playbook = RecoveryKnowledge::new(self.classifier()?.knowledge())?;
            // Another thread was faster and built the same one.
            let _ = self.playbook.set(playbook);
        }
        Ok(())
    }

    /// Returns the repair catalog with the user's repairs; the built-in one if there are none.
    pub fn repair_catalog(&self) -> Result<&RepairCatalog, KnowledgeError> {
        if self.root.repairs == RepairKnowledgeFile::default() {
            return Ok(RepairCatalog::built_in());
        }
        if self.repair_catalog.get().is_none() {
            let book = RepairCatalog::built_in().with_overlay(self.root.repairs.clone())?;
            // Another thread was faster and built the same one.
            let _ = self.repair_catalog.set(book);
        }
        Ok(self
            .repair_catalog
            .get()
            .unwrap_or_else(|| RepairCatalog::built_in()))
    }

    /// Returns the repair catalog, once it is known to be valid.
    pub fn repair_catalog_or_built_in(&self) -> &RepairCatalog {
        self.repair_catalog()
            .unwrap_or_else(|_| RepairCatalog::built_in())
    }

    /// Returns a problem with the value at a path, with its location.
    ///
    /// For an unset path the location is that of the nearest enclosing value.
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

    /// Returns a path relative to the working directory where possible.
    pub fn display_path(&self, path: &Path) -> PathBuf {
        self.sources.display_path(path)
    }
}

/// Returns the agents sorted so that each follows its base.
fn bases_first<'f>(
    own: impl Iterator<Item = &'f AgentDefinition>,
) -> impl Iterator<Item = AgentDefinition> {
    let mut waiting: Vec<_> = own.cloned().collect();
    let mut ordered = Vec::new();
    while !waiting.is_empty() {
        let waits = |file: &AgentDefinition| {
            let mut others = waiting.iter().filter(|other| other.id != file.id);
            others.any(|other| file.base_agent.as_ref() == Some(&other.id))
        };
        // A cycle is reported elsewhere; it has no first agent.
        let at = waiting.iter().position(|file| !waits(file));
        ordered.push(waiting.remove(at.unwrap_or(0)));
    }
    ordered.into_iter()
}

/// Returns a catalog with one model added or changed.
pub(crate) fn with_model(catalog: ModelCatalog, own: &ModelEntry) -> ModelCatalog {
    let known = catalog.models.iter().find(|model| model.id == own.id);
    let mut model = known.cloned().unwrap_or_else(|| CatalogModel {
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
        // A configured price applies to prompts of every length.
        model.long = None;
    }
    if let Some(aliases) = &own.aliases {
        model.aliases.clone_from(aliases);
    }
    catalog.with(model)
}
