//! The playbook: all that is known about recovering, read and checked once.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::{
    ChainEntry, HostKnowledge, KindKnowledge, Knowledge, KnowledgeError, KnowledgeOverlay,
    KnownTool, Strategy, StrategyVariant, ToolRole, parse_file,
};
use crate::failure::{Kind, Layer};

/// All that is known about recovering.
///
/// ```
/// use unstuck_core::knowledge::Playbook;
/// use unstuck_core::{Kind, Layer};
///
/// let playbook = Playbook::built_in();
/// let first = playbook.chain(Kind::CommandNotFound, Layer::WatchedTool).next().unwrap();
/// assert_eq!((first.strategy.as_str(), first.confidence), ("alternative_command", 0.9));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Playbook {
    kinds: BTreeMap<Kind, KindKnowledge>,
    strategies: BTreeMap<String, Strategy>,
    variants: Vec<StrategyVariant>,
    tools: Vec<KnownTool>,
    options: BTreeMap<String, Vec<String>>,
    /// What is known about hosts.
    pub hosts: HostKnowledge,
}

#[derive(Deserialize)]
struct VariantFile {
    variant: Vec<StrategyVariant>,
}

#[derive(Deserialize)]
struct ToolFile {
    tool: Vec<KnownTool>,
    options: BTreeMap<String, Vec<String>>,
}

impl Playbook {
    /// The embedded playbook.
    pub fn built_in() -> &'static Self {
        static BUILT_IN: LazyLock<Playbook> =
            LazyLock::new(|| match Playbook::new(Knowledge::built_in()) {
                Ok(playbook) => playbook,
                // The embedded files are tested; this can only be reached by a build that skipped its tests.
                Err(error) => unreachable!("embedded playbook: {error}"),
            });
        &BUILT_IN
    }

    /// The embedded steps for the kinds and strategies of some knowledge.
    pub fn new(knowledge: &Knowledge) -> Result<Self, KnowledgeError> {
        let steps: VariantFile = parse_file("steps.toml", include_str!("../../data/steps.toml"))?;
        let alternatives = include_str!("../../data/alternatives.toml");
        let other: VariantFile = parse_file("alternatives.toml", alternatives)?;
        let tools: ToolFile = parse_file("tools.toml", include_str!("../../data/tools.toml"))?;
        let mut strategies: BTreeMap<String, Strategy> = parse_file(
            "strategies.toml",
            include_str!("../../data/strategies.toml"),
        )?;
        strategies.extend(knowledge.strategies.clone());
        let playbook = Self {
            kinds: knowledge.kinds.clone(),
            strategies,
            variants: other.variant.into_iter().chain(steps.variant).collect(),
            tools: tools.tool,
            options: tools.options,
            hosts: parse_file("hosts.toml", include_str!("../../data/hosts.toml"))?,
        };
        playbook.check().map(|()| playbook)
    }

    /// The playbook with other chains and further strategies.
    pub fn with_overlay(&self, overlay: KnowledgeOverlay) -> Result<Self, KnowledgeError> {
        let mut playbook = self.clone();
        playbook.strategies.extend(overlay.strategies);
        for (kind, change) in overlay.kinds {
            if let Some(file) = playbook.kinds.get_mut(&kind) {
                change.apply(file);
            }
        }
        playbook.check().map(|()| playbook)
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
                let problem = format!("there is no strategy `{name}`");
                Err(KnowledgeError {
                    location: place,
                    problem,
                })
            }
        }
    }

    /// What is known about a kind.
    pub fn kind(&self, kind: Kind) -> Option<&KindKnowledge> {
        self.kinds.get(&kind)
    }

    /// The ways to recover from a kind in a layer, in the given priority.
    pub fn chain(&self, kind: Kind, layer: Layer) -> impl Iterator<Item = &ChainEntry> {
        let links = self.kinds.get(&kind).into_iter();
        links
            .flat_map(|file| &file.chain)
            .filter(move |link| link.layers.is_empty() || link.layers.contains(&layer))
    }

    /// The strategy of this id.
    pub fn strategy(&self, id: &str) -> Option<&Strategy> {
        self.strategies.get(id)
    }

    /// Every strategy by its id.
    pub fn strategies(&self) -> impl Iterator<Item = (&str, &Strategy)> {
        let all = self.strategies.iter();
        all.map(|(id, strategy)| (id.as_str(), strategy))
    }

    /// The ways to do a strategy by tool calls, the most special first.
    pub fn variants<'a>(&'a self, strategy: &'a str) -> impl Iterator<Item = &'a StrategyVariant> {
        let all = self.variants.iter();
        all.filter(move |variant| variant.strategy == strategy)
    }

    /// The tool that an agent calls by this name.
    pub fn tool(&self, name: &str) -> Option<&KnownTool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// The known tools of a role, the usual one first.
    pub fn tools(&self, role: ToolRole) -> impl Iterator<Item = &KnownTool> {
        self.tools.iter().filter(move |tool| tool.role == role)
    }

    /// The options of a program that take the next word as their value.
    pub fn options_with_value(&self, program: &str) -> &[String] {
        self.options.get(program).map_or(&[], Vec::as_slice)
    }
}
