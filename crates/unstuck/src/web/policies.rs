//! Retry policies set over REST: stored values that apply like those in configuration files.

use std::path::Path;

use anyhow::Result;
use unstuck_core::RetryPolicy;
use unstuck_core::decision::default_template;
use unstuck_store::{ExpectedVersion, SettingUpdate, StoreError, StoredSetting};
use unstuck_web::commands::{PolicyTarget, SetRetryPolicy, WebCommandError};
use unstuck_web::model::{EffectiveRetryPolicy, PolicyOrigin};

use super::{Desk, Doer, actor_name};
use crate::config::{self, ConfigSources, policy_key};

/// Returns the settings key of the policy in the store.
fn settings_key(of: &PolicyTarget) -> String {
    match of {
        PolicyTarget::Default => policy_key(None),
        PolicyTarget::Project(root) => policy_key(Some(root)),
    }
}

/// Returns the effective policy.
pub(super) async fn effective_policy(
    doer: &Doer,
    of: PolicyTarget,
) -> Result<EffectiveRetryPolicy, WebCommandError> {
    let set = doer.0.store.setting(&settings_key(&of)).await?;
    if let Some(set) = set {
        return stored_policy(set);
    }
    match of {
        PolicyTarget::Default => default_policy(doer).await,
        PolicyTarget::Project(root) => project_policy(doer, root).await,
    }
}

/// Parses a stored policy.
fn stored_policy(set: StoredSetting) -> Result<EffectiveRetryPolicy, WebCommandError> {
    let policy = RetryPolicy::from_json(&set.value.to_string());
    let policy = policy.map_err(|error| {
        WebCommandError::Unavailable(format!("cannot read the stored policy: {error}"))
    })?;
    Ok(EffectiveRetryPolicy {
        policy,
        origin: PolicyOrigin::Set,
        version: set.version,
    })
}

/// Returns the policy for all projects if none is set.
async fn default_policy(doer: &Doer) -> Result<EffectiveRetryPolicy, WebCommandError> {
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

/// Returns the policy for a project if none is set: from its files, else the policy for all projects.
async fn project_policy(
    doer: &Doer,
    root: String,
) -> Result<EffectiveRetryPolicy, WebCommandError> {
    let default = Box::pin(effective_policy(doer, PolicyTarget::Default)).await?;
    doer.run_blocking(move |desk| {
        let session = desk.session();
        let root = Path::new(&root);
        let without = ConfigSources {
            store: None,
            ..session.sources()
        };
        // Settings that the project's files add to the user's.
        let own = config::load_in(root, without)?;
        let (own, users) = (
            own.policy().cloned(),
            config::load_without_project(without)?,
        );
        Ok(match own {
            Some(own) if users.policy() != Some(&own) => {
                configured_policy(Some(&own), PolicyOrigin::Configured)
            }
            _ => EffectiveRetryPolicy {
                origin: PolicyOrigin::Default,
                version: 0,
                ..default
            },
        })
    })
    .await
}

fn configured_policy(
    configured: Option<&RetryPolicy>,
    origin: PolicyOrigin,
) -> EffectiveRetryPolicy {
    EffectiveRetryPolicy {
        origin: match configured {
            Some(_) => origin,
            None => PolicyOrigin::BuiltIn,
        },
        policy: configured.cloned().unwrap_or_else(default_template),
        version: 0,
    }
}

/// Sets or removes a policy.
pub(super) async fn put_policy(
    doer: &Doer,
    change: SetRetryPolicy,
) -> Result<EffectiveRetryPolicy, WebCommandError> {
    doer.0.refuse_agents()?;
    // The gateway would not be notified: reject the change instead of applying it only partly.
    doer.run_blocking(|desk| gateway_policy(desk).map(drop))
        .await?;
    let value = change.policy.as_ref().map(serde_json::to_value).transpose();
    let value = value.map_err(|error| WebCommandError::Unavailable(error.to_string()))?;
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
        Err(StoreError::SettingChanged { .. }) => Err(WebCommandError::Stale(
            "the policy was changed in the meantime; reload it and apply your change again"
                .to_owned(),
        )),
        Err(error) => Err(error.into()),
    }
}

/// Applies the policy to gateway calls from the next decision on, as for runs.
fn reload_gateway_policy(desk: &Desk) -> Result<()> {
    desk.gateway.set_policy(gateway_policy(desk)?);
    Ok(())
}

fn gateway_policy(desk: &Desk) -> Result<RetryPolicy> {
    let config = config::load(desk.session().sources())?;
    (desk.policy)(&config)
}

/// Returns the available policies.
pub(super) async fn templates(doer: &Doer) -> Result<Vec<RetryPolicy>, WebCommandError> {
    doer.run_blocking(|desk| {
        let config = config::load_without_project(desk.session().sources())?;
        Ok(config.policies().cloned().collect())
    })
    .await
}
