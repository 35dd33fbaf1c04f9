//! The ways to recover of one role: the chains of the playbook, changed as `[error_recovery]` and the role itself say.

use std::borrow::Cow;
use std::collections::BTreeMap;

use unstuck_core::knowledge::{
    Change, KindOverlay, KnowledgeError, Link, Overlay, Playbook, Strategy,
};
use unstuck_core::{Kind, Layer};

use crate::config::Config;
use crate::section::{KindRecovery, Role};

/// How sure a person who names a way is of it; the next one is a little less sure, so that their order stands.
const NAMED: f64 = 0.99;
const NEXT: f64 = 0.02;

/// A switch of [`KindRecovery`] and the changes that it is about.
struct Switch {
    set: fn(&KindRecovery) -> Option<bool>,
    is: fn(&Change) -> bool,
    /// What a strategy without them is called.
    without: &'static str,
    /// The strategy that brings them into a chain.
    brings: &'static str,
}

const SWITCHES: [Switch; 3] = [
    Switch {
        set: |recovery| recovery.simplify_prompt,
        is: |change| matches!(change, Change::Prompt(name) if name == "focus"),
        without: "without a simpler prompt",
        brings: "focus_on_core",
    },
    Switch {
        set: |recovery| recovery.emphasize_format,
        is: |change| matches!(change, Change::Prompt(name) if ["sections", "format", "diff"].contains(&name.as_str())),
        without: "without stressing the format",
        brings: "strict_format",
    },
    Switch {
        set: |recovery| recovery.reduce_max_chars,
        is: |change| matches!(change, Change::OutputLimit(_)),
        without: "at the same length",
        brings: "smaller_output",
    },
];

impl Config {
    /// What is done about the failures of a role.
    ///
    /// [`prepare`](Config::prepare) must have said that the user's own chains are in order.
    pub fn playbook_for(&self, role: &Role) -> Result<Cow<'_, Playbook>, KnowledgeError> {
        let playbook = self.playbook();
        let overlay = chains(playbook, &self.recovery_of(role));
        if overlay == Overlay::default() {
            return Ok(Cow::Borrowed(playbook));
        }
        playbook.overlaid(overlay).map(Cow::Owned)
    }

    /// What is said about each kind for a role: its own word first.
    pub fn recovery_of(&self, role: &Role) -> BTreeMap<Kind, KindRecovery> {
        let mut all = self.file.error_recovery.strategies.clone();
        for (kind, own) in &role.error_recovery {
            let general = all.get(kind).cloned().unwrap_or_default();
            all.insert(*kind, own.or(&general));
        }
        all
    }
}

/// The chains that are not those of the playbook.
fn chains(playbook: &Playbook, recoveries: &BTreeMap<Kind, KindRecovery>) -> Overlay {
    let mut overlay = Overlay::default();
    for (kind, recovery) in recoveries {
        let Some(known) = playbook.kind(*kind) else {
            continue;
        };
        let mut chain = Chain {
            playbook,
            links: known.chain.clone(),
            strategies: BTreeMap::new(),
        };
        chain.change(recovery);
        if chain.links != known.chain {
            let change = KindOverlay {
                chain: Some(chain.links),
                ..KindOverlay::default()
            };
            overlay.kinds.insert(*kind, change);
            overlay.strategies.extend(chain.strategies);
        }
    }
    overlay
}

/// A chain that is being changed, and the strategies that it needs beyond the known ones.
struct Chain<'a> {
    playbook: &'a Playbook,
    links: Vec<Link>,
    strategies: BTreeMap<String, Strategy>,
}

impl Chain<'_> {
    fn change(&mut self, recovery: &KindRecovery) {
        if let Some(named) = &recovery.strategies {
            let mut sure = NAMED;
            self.links = named.iter().map(|id| link(id, &mut sure)).collect();
        }
        for switch in &SWITCHES {
            match (switch.set)(recovery) {
                Some(true) => self.bring(switch),
                Some(false) => self.drop(switch),
                None => {}
            }
        }
        if let Some(template) = &recovery.custom_prompt_modifier {
            self.add_prompt(template);
        }
    }

    fn strategy(&self, id: &str) -> Option<&Strategy> {
        let own = self.strategies.get(id);
        own.or_else(|| self.playbook.strategy(id))
    }

    /// Adds a link, unless the chain has it already.
    fn push(&mut self, link: Link) {
        let known = |known: &Link| known.strategy == link.strategy && known.layers == link.layers;
        if !self.links.iter().any(known) {
            self.links.push(link);
        }
    }

    /// Takes a change out of every way; one that was nothing else is left out.
    fn drop(&mut self, switch: &Switch) {
        for mut link in std::mem::take(&mut self.links) {
            let Some(strategy) = self.strategy(&link.strategy).cloned() else {
                continue;
            };
            let kept = strategy.changes.iter().filter(|one| !(switch.is)(one));
            let changes: Vec<_> = kept.cloned().collect();
            if changes.len() == strategy.changes.len() {
                self.push(link);
                continue;
            }
            if is_nothing(&changes) {
                continue;
            }
            link.strategy = self.named(&link.strategy, strategy, changes, switch);
            self.push(link);
        }
    }

    /// The strategy that makes just these changes: a known one, or one that is made from another.
    fn named(
        &mut self,
        id: &str,
        mut strategy: Strategy,
        changes: Vec<Change>,
        switch: &Switch,
    ) -> String {
        let mut known = self.playbook.strategies();
        if let Some((known, _)) = known.find(|(_, known)| known.changes == changes) {
            return known.to_owned();
        }
        let id = format!("{id}_{}", switch.without.replace(' ', "_"));
        strategy.title = format!("{}, {}", strategy.title, switch.without);
        strategy.changes = changes;
        self.strategies.insert(id.clone(), strategy);
        id
    }

    /// Makes sure that a way makes the change.
    fn bring(&mut self, switch: &Switch) {
        let makes = |link: &Link| {
            let strategy = self.strategy(&link.strategy);
            strategy.is_some_and(|strategy| strategy.changes.iter().any(switch.is))
        };
        if !self.links.iter().any(makes) {
            self.links
                .insert(0, link(switch.brings, &mut NAMED.clone()));
        }
    }

    /// Puts a prompt template first, with what the first way changes apart from the prompt.
    fn add_prompt(&mut self, template: &str) {
        let id = format!("prompt_{template}");
        let first = self
            .links
            .iter()
            .filter(|link| link.layers.is_empty() || link.layers.contains(&Layer::Agent))
            .filter_map(|link| self.strategy(&link.strategy))
            .find(|strategy| !strategy.asks && !strategy.changes.is_empty());
        let others = first.into_iter().flat_map(|first| &first.changes);
        let others =
            others.filter(|change| matches!(change, Change::Timeout(_) | Change::OutputLimit(_)));
        let mut changes = vec![Change::Prompt(template.to_owned())];
        changes.extend(others.cloned());
        let mut title = format!("Add the prompt `{template}`");
        if changes
            .iter()
            .any(|change| matches!(change, Change::Timeout(_)))
        {
            title.push_str(", with more time");
        }
        let strategy = Strategy {
            title,
            changes,
            risks: Vec::new(),
            asks: false,
        };
        self.strategies.insert(id.clone(), strategy);
        self.links.insert(0, link(&id, &mut (NAMED + NEXT / 4.0)));
    }
}

/// A conversation alone, or a prompt that only makes sense with what was taken out, is no way to recover.
fn is_nothing(changes: &[Change]) -> bool {
    changes
        .iter()
        .all(|change| matches!(change, Change::Session(_)))
}

fn link(strategy: &str, sure: &mut f64) -> Link {
    let link = Link {
        strategy: strategy.to_owned(),
        confidence: *sure,
        iterations: 1,
        layers: Vec::new(),
    };
    *sure = (*sure - NEXT).max(0.5);
    link
}
