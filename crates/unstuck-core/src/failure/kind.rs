//! Failure kinds, their categories and names.
//!
//! Names are stable: they appear in configuration, events, the REST API and analytics. The knowledge *about* a kind
//! (rules, chain, samples) is data in `data/kinds/<name>.toml`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The category of a failure kind, which determines its initial treatment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Category {
    /// Passes without changes: retry after a wait.
    Transient,
    /// Recurs unless something is changed.
    Systematic,
    /// Needs a human immediately.
    Fatal,
    /// The normal work of an agent or developer: not repaired by unstuck.
    Code,
    /// Unrecognized.
    Unknown,
    /// Not a failure.
    None,
}

impl Category {
    /// The wire name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::Systematic => "systematic",
            Self::Fatal => "fatal",
            Self::Code => "code",
            Self::Unknown => "unknown",
            Self::None => "none",
        }
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

macro_rules! kinds {
    ($($variant:ident $name:literal $category:ident;)+) => {
        /// A kind of failure.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum FailureKind {
            $(#[doc = concat!("`", $name, "`")] $variant,)+
        }

        impl FailureKind {
            /// All kinds, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The name used in configuration, events and on the wire.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// The category of this kind.
            pub const fn category(self) -> Category {
                match self { $(Self::$variant => Category::$category),+ }
            }

            /// The embedded knowledge file of this kind.
            pub(crate) const fn file(self) -> &'static str {
                match self {
                    $(Self::$variant => include_str!(concat!("../../data/kinds/", $name, ".toml"))),+
                }
            }
        }
    };
}

kinds! {
    RateLimit          "rate_limit"          Transient;
    RateLimitTimed     "rate_limit_timed"    Transient;
    ServerOverloaded   "server_overloaded"   Transient;
    ServerError        "server_error"        Transient;
    Timeout            "timeout"             Transient;
    NetworkError       "network_error"       Transient;
    LockHeld           "lock_held"           Transient;
    ContextLimit       "context_limit"       Systematic;
    ContentFilter      "content_filter"      Systematic;
    InvalidRequest     "invalid_request"     Systematic;
    ModelNotFound      "model_not_found"     Systematic;
    CliCrash           "cli_crash"           Systematic;
    JsonParseError     "json_parse_error"    Systematic;
    EmptyOutput        "empty_output"        Systematic;
    FormatValidation   "format_validation"   Systematic;
    MissingSections    "missing_sections"    Systematic;
    DiffParseError     "diff_parse_error"    Systematic;
    ContextError       "context_error"       Systematic;
    Stuck              "stuck"               Systematic;
    StepLimit          "step_limit"          Systematic;
    CommandNotFound    "command_not_found"   Systematic;
    ToolNotFound       "tool_not_found"      Systematic;
    PermissionDenied   "permission_denied"   Systematic;
    FileNotFound       "file_not_found"      Systematic;
    InvalidArguments   "invalid_arguments"   Systematic;
    SyntaxError        "syntax_error"        Systematic;
    InputRequired      "input_required"      Systematic;
    DiskFull           "disk_full"           Systematic;
    OutOfMemory        "out_of_memory"       Systematic;
    OsLimit            "os_limit"            Systematic;
    PortInUse          "port_in_use"         Systematic;
    ResourceConflict   "resource_conflict"   Systematic;
    ServiceDown        "service_down"        Systematic;
    MissingDependency  "missing_dependency"  Systematic;
    DependencyConflict "dependency_conflict" Systematic;
    LockfileDrift      "lockfile_drift"      Systematic;
    StaleBuild         "stale_build"         Systematic;
    MigrationNeeded    "migration_needed"    Systematic;
    ConfigError        "config_error"        Systematic;
    AuthRequired       "auth_required"       Fatal;
    AuthExpired        "auth_expired"        Fatal;
    QuotaExhausted     "quota_exhausted"     Fatal;
    CliNotFound        "cli_not_found"       Fatal;
    CertificateError   "certificate_error"   Fatal;
    TestFailure        "test_failure"        Code;
    CompileError       "compile_error"       Code;
    VcsConflict        "vcs_conflict"        Code;
    Unknown            "unknown"             Unknown;
    None               "none"                None;
}

/// Alternative names accepted on input, never written.
const ALIASES: &[(&str, FailureKind)] = &[
    ("rate_limited", FailureKind::RateLimit),
    ("auth_error", FailureKind::AuthRequired),
    ("overloaded", FailureKind::ServerOverloaded),
    ("context_length", FailureKind::ContextLimit),
    ("quota_exceeded", FailureKind::QuotaExhausted),
    ("network", FailureKind::NetworkError),
];

/// An unknown kind name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown kind `{name}`{}", suggestion.map(|kind| format!(", did you mean `{kind}`?")).unwrap_or_default())]
pub struct UnknownFailureKind {
    /// The unknown name.
    pub name: String,
    /// The kind with the most similar name, if there is one.
    pub suggestion: Option<FailureKind>,
}

impl FromStr for FailureKind {
    type Err = UnknownFailureKind;

    fn from_str(name: &str) -> Result<Self, UnknownFailureKind> {
        let wanted = name.trim().to_ascii_lowercase().replace(['-', ' '], "_");
        let exact = Self::ALL.iter().find(|kind| kind.name() == wanted);
        let alias = || {
            ALIASES
                .iter()
                .find(|(alias, _)| *alias == wanted)
                .map(|(_, kind)| kind)
        };
        exact
            .or_else(alias)
            .copied()
            .ok_or_else(|| UnknownFailureKind {
                name: name.to_owned(),
                suggestion: crate::did_you_mean::nearest(
                    &wanted,
                    Self::ALL.iter().map(|kind| (kind.name(), *kind)),
                ),
            })
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Serialize for FailureKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for FailureKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        name.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_aliases_and_old_spellings_are_parsed() {
        assert_eq!("rate_limit".parse(), Ok(FailureKind::RateLimit));
        assert_eq!("RATE_LIMIT_TIMED".parse(), Ok(FailureKind::RateLimitTimed));
        assert_eq!("rate_limited".parse(), Ok(FailureKind::RateLimit));
        assert_eq!("auth_error".parse(), Ok(FailureKind::AuthRequired));
    }

    #[test]
    fn typo_gets_a_suggestion() {
        let error = "rate_limt".parse::<FailureKind>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "unknown kind `rate_limt`, did you mean `rate_limit`?"
        );
        assert_eq!(
            "qqq".parse::<FailureKind>().unwrap_err().to_string(),
            "unknown kind `qqq`"
        );
    }

    /// S0-02, S0-04, S0-05, S0-06, S0-25 to S0-27: the categories and their kinds.
    #[test]
    fn categories_contain_the_specified_kinds() {
        let of = |category| {
            FailureKind::ALL
                .iter()
                .filter(move |kind| kind.category() == category)
                .map(|kind| kind.name())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            of(Category::Transient),
            [
                "rate_limit",
                "rate_limit_timed",
                "server_overloaded",
                "server_error",
                "timeout",
                "network_error",
                "lock_held"
            ]
        );
        assert_eq!(
            of(Category::Fatal),
            [
                "auth_required",
                "auth_expired",
                "quota_exhausted",
                "cli_not_found",
                "certificate_error"
            ]
        );
        assert_eq!(
            of(Category::Code),
            ["test_failure", "compile_error", "vcs_conflict"]
        );
        assert_eq!(FailureKind::CliCrash.category(), Category::Systematic);
        assert_eq!(FailureKind::JsonParseError.category(), Category::Systematic);
    }
}
