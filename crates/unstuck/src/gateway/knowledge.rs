//! Knowledge of the gateway, including the user's own rules, strategies and models. It outlives the command that
//! created it.

use unstuck_core::Classifier;
use unstuck_core::decision::ModelCatalog;
use unstuck_core::knowledge::{DiagnosisKnowledge, KnowledgeError, RecoveryKnowledge};
use unstuck_gateway::GatewayKnowledgeProvider;

use crate::config::Config;

/// Built-in knowledge plus the user's additions.
pub(crate) struct GatewayKnowledge {
    /// None without additions.
    custom: Option<(Classifier, RecoveryKnowledge)>,
    catalog: ModelCatalog,
}

impl GatewayKnowledge {
    /// Loads the user's additions.
    pub(crate) fn new(config: &Config) -> Result<Self, KnowledgeError> {
        let is_built_in = std::ptr::eq(config.classifier()?, Classifier::built_in());
        let own = if is_built_in {
            None
        } else {
            let classifier =
                Classifier::new(config.with_user_knowledge(DiagnosisKnowledge::built_in()))?;
            let playbook = RecoveryKnowledge::new(classifier.knowledge())?;
            Some((classifier, playbook))
        };
        Ok(Self {
            custom: own,
            catalog: config.catalog().clone(),
        })
    }
}

impl GatewayKnowledgeProvider for GatewayKnowledge {
    fn classifier(&self) -> &Classifier {
        match &self.custom {
            Some((classifier, _)) => classifier,
            None => Classifier::built_in(),
        }
    }

    fn playbook(&self) -> &RecoveryKnowledge {
        match &self.custom {
            Some((_, playbook)) => playbook,
            None => RecoveryKnowledge::built_in(),
        }
    }

    fn catalog(&self) -> &ModelCatalog {
        &self.catalog
    }
}
