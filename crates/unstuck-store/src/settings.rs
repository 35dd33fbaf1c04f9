//! What people have set over REST or in the dashboard: values with versions, so that two do not overwrite each other.

use serde::Serialize;
use serde_json::Value;
use unstuck_core::Timestamp;

/// A value that somebody has set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StoredSetting {
    /// What it is known by.
    pub key: String,
    /// The value; null right after it was taken away.
    pub value: Value,
    /// Rises with every change, also over a time in which there was no value.
    pub version: u64,
    /// When it was set.
    pub at: Timestamp,
    /// Who set it.
    pub by: String,
}

/// What must be there for a change to be made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ExpectedVersion {
    /// Anything or nothing.
    #[default]
    Anything,
    /// No value.
    Nothing,
    /// The value of this version.
    Version(u64),
}

/// A change of a setting.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingUpdate {
    /// What it is known by.
    pub key: String,
    /// The new value; none takes it away.
    pub value: Option<Value>,
    /// What must be there now.
    pub expected: ExpectedVersion,
    /// When it is changed.
    pub at: Timestamp,
    /// Who changes it.
    pub by: String,
}

/// A change that was made.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SettingRevision {
    /// The version that it led to.
    pub version: u64,
    /// When it was made.
    pub at: Timestamp,
    /// Who made it.
    pub by: String,
    /// The value before; none where there was none.
    pub before: Option<Value>,
    /// The value after; none where it was taken away.
    pub after: Option<Value>,
}
