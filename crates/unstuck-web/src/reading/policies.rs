//! Policies that were set over the API, in the store's settings.

use serde_json::Value;
use unstuck_core::{RetryPolicy, Timestamp};
use unstuck_store::{Expected, PutSetting, Store, StoreError};

use crate::deeds::{DeedError, PolicyChange, PolicyOf};
use crate::model::{PolicyKept, PolicyOrigin};

/// What a policy is kept under.
pub fn policy_key(of: &PolicyOf) -> String {
    match of {
        PolicyOf::Everybody => "retry-policy".to_owned(),
        PolicyOf::Project(root) => format!("retry-policy:{root}"),
    }
}

/// The policy that was set; none where none was.
pub async fn policy_set(store: &Store, of: &PolicyOf) -> Result<Option<PolicyKept>, DeedError> {
    let Some(setting) = store.setting(&policy_key(of)).await? else {
        return Ok(None);
    };
    let policy = RetryPolicy::from_json(&setting.value.to_string());
    // One that a newer unstuck has set may say what is not known here.
    let policy = policy.map_err(|error| {
        DeedError::Unavailable(format!("the policy that was set cannot be read: {error}"))
    })?;
    Ok(Some(PolicyKept {
        policy,
        origin: PolicyOrigin::Set,
        version: setting.version,
    }))
}

/// Sets a policy, or takes away what was set, if nobody has changed it meanwhile.
pub async fn set_policy(
    store: &Store,
    change: &PolicyChange,
    now: Timestamp,
) -> Result<(), DeedError> {
    let value = change.policy.as_ref().map(serde_json::to_value);
    let value = value.transpose().unwrap_or(Some(Value::Null));
    let put = PutSetting {
        key: policy_key(&change.of),
        value,
        expected: match change.seen {
            None => Expected::Anything,
            Some(0) => Expected::Nothing,
            Some(version) => Expected::Version(version),
        },
        at: now,
        by: change.who.clone().unwrap_or_default(),
    };
    match store.put_setting(put).await {
        Ok(_) => Ok(()),
        Err(StoreError::SettingChanged { .. }) => Err(DeedError::Stale(
            "the policy was changed meanwhile; look at it again, and change that".to_owned(),
        )),
        Err(error) => Err(error.into()),
    }
}
