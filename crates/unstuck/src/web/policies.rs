//! Retry policies that are set over REST: values in the store, which count like those of configuration files.

use std::path::Path;

use anyhow::Result;
use unstuck_core::RetryPolicy;
use unstuck_core::decision::default_template;
use unstuck_store::{ExpectedVersion, SettingUpdate, StoreError, StoredSetting};
use unstuck_web::commands::{CommandError, PolicyChange, PolicyTarget};
use unstuck_web::model::{EffectivePolicy, PolicyOrigin};

use super::{Desk, Doer, actor_name};
use crate::config::{self, ConfigSources, policy_key};

/// The key under which the store keeps it.
fn settings_key(of: &PolicyTarget) -> String {
    match of {
        PolicyTarget::Default => policy_key(None),
        PolicyTarget::Project(root) => policy_key(Some(root)),
    }
}

/// The policy that counts.
pub(super) async fn effective_policy(
    doer: &Doer,
    of: PolicyTarget,
) -> Result<EffectivePolicy, CommandError> {
    let set = doer.0.store.setting(&settings_key(&of)).await?;
    if let Some(set) = set {
        return stored_policy(set);
    }
    match of {
        PolicyTarget::Default => default_policy(doer).await,
        PolicyTarget::Project(root) => project_policy(doer, root).await,
    }
}

/// A policy that was set.
fn stored_policy(set: StoredSetting) -> Result<EffectivePolicy, CommandError> {
    let policy = RetryPolicy::from_json(&set.value.to_string());
    let policy = policy.map_err(|error| {
        CommandError::Unavailable(format!("the policy that was set cannot be read: {error}"))
    })?;
    Ok(EffectivePolicy {
        policy,
        origin: PolicyOrigin::Set,
        version: set.version,
    })
}

/// What counts for all projects where nobody has set anything.
async fn default_policy(doer: &Doer) -> Result<EffectivePolicy, CommandError> {
    doer.run_blocking(|desk| {
        let files = ConfigSources {
            named: desk.config.as_deref(),
            ..ConfigSources::default()
        };
        let config = config::load_without_project(files)?;
        Ok(configured_policy(config.policy(), PolicyOrigin::Configured))
    })
    .await
}

/// What counts for a project for which nobody has set anything: what its files say, or else what counts for all.
async fn project_policy(doer: &Doer, root: String) -> Result<EffectivePolicy, CommandError> {
    let default = Box::pin(effective_policy(doer, PolicyTarget::Default)).await?;
    doer.run_blocking(move |desk| {
        let session = desk.session();
        let root = Path::new(&root);
        let without = ConfigSources {
            store: None,
            ..session.sources()
        };
        // What the files of the project add to those of the user.
        let own = config::load_in(root, without)?;
        let (own, users) = (
            own.policy().cloned(),
            config::load_without_project(without)?,
        );
        Ok(match own {
            Some(own) if users.policy() != Some(&own) => {
                configured_policy(Some(&own), PolicyOrigin::Configured)
            }
            _ => EffectivePolicy {
                origin: PolicyOrigin::Default,
                version: 0,
                ..default
            },
        })
    })
    .await
}

fn configured_policy(configured: Option<&RetryPolicy>, origin: PolicyOrigin) -> EffectivePolicy {
    EffectivePolicy {
        origin: match configured {
            Some(_) => origin,
            None => PolicyOrigin::BuiltIn,
        },
        policy: configured.cloned().unwrap_or_else(default_template),
        version: 0,
    }
}

/// Sets a policy, or takes away what was set.
pub(super) async fn put_policy(
    doer: &Doer,
    change: PolicyChange,
) -> Result<EffectivePolicy, CommandError> {
    doer.0.refuse_agents()?;
    // The gateway would not hear of it: better nothing is saved than half of it counts.
    doer.run_blocking(|desk| gateway_policy(desk).map(drop))
        .await?;
    let value = change.policy.as_ref().map(serde_json::to_value).transpose();
    let value = value.map_err(|error| CommandError::Unavailable(error.to_string()))?;
    let put = SettingUpdate {
        key: settings_key(&change.target),
        value,
        expected: match change.expected_version {
            None => ExpectedVersion::Anything,
            Some(0) => ExpectedVersion::Nothing,
            Some(version) => ExpectedVersion::Version(version),
        },
        at: crate::clock::now().at,
        by: actor_name(change.who),
    };
    match doer.0.store.put_setting(put).await {
        Ok(_) => {
            doer.run_blocking(reload_gateway_policy).await?;
            effective_policy(doer, change.target).await
        }
        Err(StoreError::SettingChanged { .. }) => Err(CommandError::Stale(
            "the policy was changed meanwhile; look at it again, and change that".to_owned(),
        )),
        Err(error) => Err(error.into()),
    }
}

/// What was set counts for the calls of the gateway from the next decision on, as it does for runs.
fn reload_gateway_policy(desk: &Desk) -> Result<()> {
    desk.gateway.set_policy(gateway_policy(desk)?);
    Ok(())
}

fn gateway_policy(desk: &Desk) -> Result<RetryPolicy> {
    let config = config::load(desk.session().sources())?;
    (desk.policy)(&config)
}

/// The policies that can be named.
pub(super) async fn templates(doer: &Doer) -> Result<Vec<RetryPolicy>, CommandError> {
    doer.run_blocking(|desk| {
        let config = config::load_without_project(desk.session().sources())?;
        Ok(config.policies().cloned().collect())
    })
    .await
}
