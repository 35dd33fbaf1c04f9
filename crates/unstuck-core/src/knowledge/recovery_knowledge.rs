//! The whole recovery knowledge (kinds, strategies, variants, tools, hosts), parsed and validated once.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::{
    DiagnosisKnowledge, ForgesAndMirrors, KindKnowledge, KnowledgeError, KnowledgeOverlay,
    KnownAgentTool, Strategy, StrategyChainEntry, ToolCallStrategyVariant, ToolRole, parse_file,
};
use crate::failure::{FailureKind, FailureLayer};

/// The whole recovery knowledge: kinds, strategies, variants, tools and hosts.
///
/// ```
/// use unstuck_core::knowledge::RecoveryKnowledge;
/// use unstuck_core::{FailureKind, FailureLayer};
///
/// let recovery_knowledge = RecoveryKnowledge::built_in();
/// let first = recovery_knowledge.chain(FailureKind::CommandNotFound, FailureLayer::Tool).next().unwrap();
/// assert_eq!((first.strategy.as_str(), first.confidence), ("alternative_command", 0.9));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct RecoveryKnowledge {
    kinds: BTreeMap<FailureKind, KindKnowledge>,
    strategies: BTreeMap<String, Strategy>,
    variants: Vec<ToolCallStrategyVariant>,
    tools: Vec<KnownAgentTool>,
    options: BTreeMap<String, Vec<String>>,
    /// Knowledge about hosts.
    pub hosts: ForgesAndMirrors,
}

#[derive(Deserialize)]
struct VariantFile {
    variant: Vec<ToolCallStrategyVariant>,
}

#[derive(Deserialize)]
struct ToolFile {
    tool: Vec<KnownAgentTool>,
    options: BTreeMap<String, Vec<String>>,
}

impl RecoveryKnowledge {
    /// Returns the embedded recovery knowledge.
    pub fn built_in() -> &'static Self {
        static BUILT_IN: LazyLock<RecoveryKnowledge> = LazyLock::new(
            || match RecoveryKnowledge::new(DiagnosisKnowledge::built_in()) {
                Ok(recovery_knowledge) => recovery_knowledge,
                // The embedded files are tested; only a build that skipped its tests can get here.
                Err(error) => unreachable!("embedded recovery knowledge: {error}"),
            },
        );
        &BUILT_IN
    }

    /// Combines the embedded steps with the kinds and strategies of some knowledge.
    pub fn new(knowledge: &DiagnosisKnowledge) -> Result<Self, KnowledgeError> {
        let steps: VariantFile = parse_file("steps.toml", include_str!("../../data/steps.toml"))?;
        let alternatives = include_str!("../../data/alternatives.toml");
        let other: VariantFile = parse_file("alternatives.toml", alternatives)?;
        let tools: ToolFile = parse_file("tools.toml", include_str!("../../data/tools.toml"))?;
        let mut strategies: BTreeMap<String, Strategy> = parse_file(
            "strategies.toml",
            include_str!("../../data/strategies.toml"),
        )?;
        strategies.extend(knowledge.strategies.clone());
        let recovery_knowledge = Self {
            kinds: knowledge.kinds.clone(),
            strategies,
            variants: other.variant.into_iter().chain(steps.variant).collect(),
            tools: tools.tool,
            options: tools.options,
            hosts: parse_file("hosts.toml", include_str!("../../data/hosts.toml"))?,
        };
        recovery_knowledge.check().map(|()| recovery_knowledge)
    }

    /// Returns the knowledge with other chains and additional strategies.
    pub fn with_overlay(&self, overlay: KnowledgeOverlay) -> Result<Self, KnowledgeError> {
        let mut recovery_knowledge = self.clone();
        recovery_knowledge.strategies.extend(overlay.strategies);
        for (kind, change) in overlay.kinds {
            if let Some(file) = recovery_knowledge.kinds.get_mut(&kind) {
                change.apply(file);
            }
        }
        recovery_knowledge.check().map(|()| recovery_knowledge)
    }

    fn check(&self) -> Result<(), KnowledgeError> {
        let links = self.kinds.iter().flat_map(|(kind, file)| {
            let links = file.chain.iter();
            links.map(move |link| (format!("kinds/{kind}.toml"), &link.strategy))
        });
        let variants = self.variants.iter();
        let steps = variants.map(|variant| ("steps.toml".to_owned(), &variant.strategy));
        let unknown = links
            .chain(steps)
            .find(|(_, name)| !self.strategies.contains_key(*name));
        match unknown {
            None => Ok(()),
            Some((place, name)) => {
                let problem = format!("unknown strategy `{name}`");
                Err(KnowledgeError {
                    location: place,
                    problem,
                })
            }
        }
    }

    /// Returns the knowledge about a kind.
    pub fn kind(&self, kind: FailureKind) -> Option<&KindKnowledge> {
        self.kinds.get(&kind)
    }

    /// Returns the strategies for a kind in a layer, by priority.
    pub fn chain(
        &self,
        kind: FailureKind,
        layer: FailureLayer,
    ) -> impl Iterator<Item = &StrategyChainEntry> {
        let links = self.kinds.get(&kind).into_iter();
        links
            .flat_map(|file| &file.chain)
            .filter(move |link| link.layers.is_empty() || link.layers.contains(&layer))
    }

    /// Returns the strategy with this id.
    pub fn strategy(&self, id: &str) -> Option<&Strategy> {
        self.strategies.get(id)
    }

    /// Returns every strategy with its id.
    pub fn strategies(&self) -> impl Iterator<Item = (&str, &Strategy)> {
        let all = self.strategies.iter();
        all.map(|(id, strategy)| (id.as_str(), strategy))
    }

    /// Returns the variants of a strategy that use tool calls, most specific first.
    pub fn variants<'a>(
        &'a self,
        strategy: &'a str,
    ) -> impl Iterator<Item = &'a ToolCallStrategyVariant> {
        let all = self.variants.iter();
        all.filter(move |variant| variant.strategy == strategy)
    }

    /// Returns the tool that an agent calls by this name.
    pub fn tool(&self, name: &str) -> Option<&KnownAgentTool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// Returns the known tools of a role, the most common first.
    pub fn tools(&self, role: ToolRole) -> impl Iterator<Item = &KnownAgentTool> {
        self.tools.iter().filter(move |tool| tool.role == role)
    }

    /// Returns the options of a program that take the next word as their value.
    pub fn options_with_value(&self, program: &str) -> &[String] {
        self.options.get(program).map_or(&[], Vec::as_slice)
    }
}
