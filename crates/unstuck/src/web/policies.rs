//! Retry policies that are set over REST: values in the store, which count like those of configuration files.

use std::path::Path;

use anyhow::Result;
use unstuck_core::RetryPolicy;
use unstuck_core::decision::default_template;
use unstuck_store::{Expected, PutSetting, Setting, StoreError};
use unstuck_web::deeds::{DeedError, PolicyChange, PolicyOf};
use unstuck_web::model::{PolicyKept, PolicyOrigin};

use super::{Desk, Doer, who};
use crate::config::{self, Sources, policy_key};

/// The key under which the store keeps it.
fn key(of: &PolicyOf) -> String {
    match of {
        PolicyOf::Everybody => policy_key(None),
        PolicyOf::Project(root) => policy_key(Some(root)),
    }
}

/// The policy that counts.
pub(super) async fn policy(doer: &Doer, of: PolicyOf) -> Result<PolicyKept, DeedError> {
    let set = doer.0.store.setting(&key(&of)).await?;
    if let Some(set) = set {
        return read(set);
    }
    match of {
        PolicyOf::Everybody => everybodys(doer).await,
        PolicyOf::Project(root) => projects(doer, root).await,
    }
}

/// A policy that was set.
fn read(set: Setting) -> Result<PolicyKept, DeedError> {
    let policy = RetryPolicy::from_json(&set.value.to_string());
    let policy = policy.map_err(|error| {
        DeedError::Unavailable(format!("the policy that was set cannot be read: {error}"))
    })?;
    Ok(PolicyKept {
        policy,
        origin: PolicyOrigin::Set,
        version: set.version,
    })
}

/// What counts for all projects where nobody has set anything.
async fn everybodys(doer: &Doer) -> Result<PolicyKept, DeedError> {
    doer.beside(|desk| {
        let files = Sources {
            named: desk.config.as_deref(),
            ..Sources::default()
        };
        let config = config::load_nowhere(files)?;
        Ok(kept(config.policy(), PolicyOrigin::Configured))
    })
    .await
}

/// What counts for a project for which nobody has set anything: what its files say, or else what counts for all.
async fn projects(doer: &Doer, root: String) -> Result<PolicyKept, DeedError> {
    let default = Box::pin(policy(doer, PolicyOf::Everybody)).await?;
    doer.beside(move |desk| {
        let session = desk.session();
        let root = Path::new(&root);
        let without = Sources {
            store: None,
            ..session.sources()
        };
        // What the files of the project add to those of the user.
        let own = config::load_in(root, without)?;
        let (own, users) = (own.policy().cloned(), config::load_nowhere(without)?);
        Ok(match own {
            Some(own) if users.policy() != Some(&own) => kept(Some(&own), PolicyOrigin::Configured),
            _ => PolicyKept {
                origin: PolicyOrigin::Default,
                version: 0,
                ..default
            },
        })
    })
    .await
}

fn kept(configured: Option<&RetryPolicy>, origin: PolicyOrigin) -> PolicyKept {
    PolicyKept {
        origin: match configured {
            Some(_) => origin,
            None => PolicyOrigin::BuiltIn,
        },
        policy: configured.cloned().unwrap_or_else(default_template),
        version: 0,
    }
}

/// Sets a policy, or takes away what was set.
pub(super) async fn put(doer: &Doer, change: PolicyChange) -> Result<PolicyKept, DeedError> {
    doer.0.only_for_people()?;
    // The gateway would not hear of it: better nothing is saved than half of it counts.
    doer.beside(|desk| policy_of_calls(desk).map(drop)).await?;
    let value = change.policy.as_ref().map(serde_json::to_value).transpose();
    let value = value.map_err(|error| DeedError::Unavailable(error.to_string()))?;
    let put = PutSetting {
        key: key(&change.of),
        value,
        expected: match change.seen {
            None => Expected::Anything,
            Some(0) => Expected::Nothing,
            Some(version) => Expected::Version(version),
        },
        at: crate::clock::now().at,
        by: who(change.who),
    };
    match doer.0.store.put_setting(put).await {
        Ok(_) => {
            doer.beside(renew_gateway).await?;
            policy(doer, change.of).await
        }
        Err(StoreError::SettingChanged { .. }) => Err(DeedError::Stale(
            "the policy was changed meanwhile; look at it again, and change that".to_owned(),
        )),
        Err(error) => Err(error.into()),
    }
}

/// What was set counts for the calls of the gateway from the next decision on, as it does for runs.
fn renew_gateway(desk: &Desk) -> Result<()> {
    desk.gateway.set_policy(policy_of_calls(desk)?);
    Ok(())
}

fn policy_of_calls(desk: &Desk) -> Result<RetryPolicy> {
    let config = config::load(desk.session().sources())?;
    (desk.policy)(&config)
}

/// The policies that can be named.
pub(super) async fn templates(doer: &Doer) -> Result<Vec<RetryPolicy>, DeedError> {
    doer.beside(|desk| {
        let config = config::load_nowhere(desk.session().sources())?;
        Ok(config.policies().cloned().collect())
    })
    .await
}
