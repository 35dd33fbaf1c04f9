//! Policies set over the API, stored in the store's settings.

use serde_json::Value;
use unstuck_core::{RetryPolicy, Timestamp};
use unstuck_store::{ExpectedVersion, SettingUpdate, Store, StoreError};

use crate::commands::{PolicyTarget, SetRetryPolicy, WebCommandError};
use crate::model::{EffectiveRetryPolicy, PolicyOrigin};

/// Returns the settings key of a policy.
pub fn policy_key(of: &PolicyTarget) -> String {
    match of {
        PolicyTarget::Default => "retry-policy".to_owned(),
        PolicyTarget::Project(root) => format!("retry-policy:{root}"),
    }
}

/// Returns the stored policy, or `None` if none was set.
pub async fn stored_policy(
    store: &Store,
    of: &PolicyTarget,
) -> Result<Option<EffectiveRetryPolicy>, WebCommandError> {
    let Some(setting) = store.setting(&policy_key(of)).await? else {
        return Ok(None);
    };
    let policy = RetryPolicy::from_json(&setting.value.to_string());
    // A policy stored by a newer version may contain unknown values.
    let policy = policy.map_err(|error| {
        WebCommandError::Unavailable(format!("cannot read the stored policy: {error}"))
    })?;
    Ok(Some(EffectiveRetryPolicy {
        policy,
        origin: PolicyOrigin::Set,
        version: setting.version,
    }))
}

/// Sets or removes a policy unless it was changed in the meantime.
pub async fn set_policy(
    store: &Store,
    change: &SetRetryPolicy,
    now: Timestamp,
) -> Result<(), WebCommandError> {
    let value = change.policy.as_ref().map(serde_json::to_value);
    let value = value.transpose().unwrap_or(Some(Value::Null));
    let put = SettingUpdate {
        key: policy_key(&change.target),
        value,
        expected: match change.expected_version {
            None => ExpectedVersion::Anything,
            Some(0) => ExpectedVersion::Nothing,
            Some(version) => ExpectedVersion::Version(version),
        },
        at: now,
        by: change.who.clone().unwrap_or_default(),
    };
    match store.put_setting(put).await {
        Ok(_) => Ok(()),
        Err(StoreError::SettingChanged { .. }) => Err(WebCommandError::Stale(
            "the policy was changed in the meantime; reload it and apply your change again"
                .to_owned(),
        )),
        Err(error) => Err(error.into()),
    }
}
