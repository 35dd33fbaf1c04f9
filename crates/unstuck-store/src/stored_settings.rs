//! Versioned settings made over REST or in the dashboard; the versions prevent lost updates.

use serde::Serialize;
use serde_json::Value;
use unstuck_core::Timestamp;

/// A stored setting.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StoredSetting {
    /// The key.
    pub key: String,
    /// The value; null right after it was deleted.
    pub value: Value,
    /// The version; it rises with every change, also across deletions.
    pub version: u64,
    /// The time of the change.
    pub at: Timestamp,
    /// The author of the change.
    pub by: String,
}

/// The precondition of a change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ExpectedVersion {
    /// Any value or none.
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
    /// The key.
    pub key: String,
    /// The new value; `None` deletes the setting.
    pub value: Option<Value>,
    /// The expected current version.
    pub expected: ExpectedVersion,
    /// The time of the change.
    pub at: Timestamp,
    /// The author of the change.
    pub by: String,
}

/// An entry of a setting's history: author, time, and the value before and after.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SettingHistoryEntry {
    /// The resulting version.
    pub version: u64,
    /// The time of the change.
    pub at: Timestamp,
    /// The author of the change.
    pub by: String,
    /// The value before; `None` if there was none.
    pub before: Option<Value>,
    /// The value after; `None` if it was deleted.
    pub after: Option<Value>,
}
