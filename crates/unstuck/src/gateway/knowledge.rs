//! What the gateway knows, with the user's own rules, strategies and models; it outlives the command that started it.

use unstuck_core::Classifier;
use unstuck_core::decision::Catalog;
use unstuck_core::knowledge::{Knowledge, KnowledgeError, Playbook};
use unstuck_gateway::Knows;

use crate::config::Config;

/// What is built in, and what the user adds to it.
pub(crate) struct Configured {
    /// None where nothing is added.
    own: Option<(Classifier, Playbook)>,
    catalog: Catalog,
}

impl Configured {
    /// Reads the user's additions.
    pub(crate) fn new(config: &Config) -> Result<Self, KnowledgeError> {
        let is_built_in = std::ptr::eq(config.classifier()?, Classifier::built_in());
        let own = match is_built_in {
            true => None,
            false => {
                let classifier = Classifier::new(config.overlaid(Knowledge::built_in()))?;
                let playbook = Playbook::new(classifier.knowledge())?;
                Some((classifier, playbook))
            }
        };
        Ok(Self {
            own,
            catalog: config.catalog().clone(),
        })
    }
}

impl Knows for Configured {
    fn classifier(&self) -> &Classifier {
        match &self.own {
            Some((classifier, _)) => classifier,
            None => Classifier::built_in(),
        }
    }

    fn playbook(&self) -> &Playbook {
        match &self.own {
            Some((_, playbook)) => playbook,
            None => Playbook::built_in(),
        }
    }

    fn catalog(&self) -> &Catalog {
        &self.catalog
    }
}
