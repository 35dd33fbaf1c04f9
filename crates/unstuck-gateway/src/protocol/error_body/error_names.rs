//! The error names of each API, as data: by failure kind, or else by status.

/// The names of one failure in each API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ErrorNames {
    /// Anthropic's `type`.
    pub(super) anthropic: &'static str,
    /// OpenAI's `type`.
    pub(super) openai: &'static str,
    /// OpenAI's `code`.
    pub(super) code: &'static str,
    /// Google's `status`.
    pub(super) google: &'static str,
}

const fn names(
    anthropic: &'static str,
    openai: &'static str,
    code: &'static str,
    google: &'static str,
) -> ErrorNames {
    ErrorNames {
        anthropic,
        openai,
        code,
        google,
    }
}

#[rustfmt::skip]
const BY_KIND: &[(&str, ErrorNames)] = &[
    ("rate_limit",        names("rate_limit_error",      "requests",                  "rate_limit_exceeded",     "RESOURCE_EXHAUSTED")),
    ("rate_limit_timed",  names("rate_limit_error",      "usage_limit_reached",       "rate_limit_exceeded",     "RESOURCE_EXHAUSTED")),
    ("quota_exhausted",   names("billing_error",         "insufficient_quota",        "insufficient_quota",      "RESOURCE_EXHAUSTED")),
    ("server_overloaded", names("overloaded_error",      "service_unavailable_error", "server_is_overloaded",    "UNAVAILABLE")),
    ("server_error",      names("api_error",             "server_error",              "server_error",            "INTERNAL")),
    ("network_error",     names("api_error",             "server_error",              "server_error",            "UNAVAILABLE")),
    ("service_down",      names("api_error",             "server_error",              "server_error",            "UNAVAILABLE")),
    ("timeout",           names("timeout_error",         "server_error",              "server_error",            "DEADLINE_EXCEEDED")),
    ("context_limit",     names("invalid_request_error", "invalid_request_error",     "context_length_exceeded", "INVALID_ARGUMENT")),
    ("content_filter",    names("invalid_request_error", "invalid_request_error",     "invalid_prompt",          "INVALID_ARGUMENT")),
    ("invalid_request",   names("invalid_request_error", "invalid_request_error",     "invalid_request",         "INVALID_ARGUMENT")),
    ("model_not_found",   names("not_found_error",       "invalid_request_error",     "model_not_found",         "NOT_FOUND")),
    ("auth_required",     names("authentication_error",  "invalid_request_error",     "invalid_api_key",         "UNAUTHENTICATED")),
    ("auth_expired",      names("authentication_error",  "invalid_request_error",     "token_expired",           "UNAUTHENTICATED")),
    ("permission_denied", names("permission_error",      "invalid_request_error",     "permission_denied",       "PERMISSION_DENIED")),
    ("stuck",             names("permission_error",      "invalid_request_error",     "stuck",                   "PERMISSION_DENIED")),
];

#[rustfmt::skip]
const BY_STATUS: &[(u16, ErrorNames)] = &[
    (400, names("invalid_request_error", "invalid_request_error",     "invalid_request",      "INVALID_ARGUMENT")),
    (401, names("authentication_error",  "invalid_request_error",     "invalid_api_key",      "UNAUTHENTICATED")),
    (402, names("billing_error",         "insufficient_quota",        "insufficient_quota",   "RESOURCE_EXHAUSTED")),
    (403, names("permission_error",      "invalid_request_error",     "permission_denied",    "PERMISSION_DENIED")),
    (404, names("not_found_error",       "invalid_request_error",     "not_found",            "NOT_FOUND")),
    (408, names("timeout_error",         "server_error",              "server_error",         "DEADLINE_EXCEEDED")),
    (413, names("request_too_large",     "invalid_request_error",     "request_too_large",    "INVALID_ARGUMENT")),
    (429, names("rate_limit_error",      "requests",                  "rate_limit_exceeded",  "RESOURCE_EXHAUSTED")),
    (503, names("overloaded_error",      "service_unavailable_error", "server_is_overloaded", "UNAVAILABLE")),
    (504, names("timeout_error",         "server_error",              "server_error",         "DEADLINE_EXCEEDED")),
    (529, names("overloaded_error",      "service_unavailable_error", "server_is_overloaded", "UNAVAILABLE")),
];

const SERVER_FAULT: ErrorNames = names("api_error", "server_error", "server_error", "INTERNAL");
const CLIENT_FAULT: ErrorNames = names(
    "invalid_request_error",
    "invalid_request_error",
    "invalid_request",
    "INVALID_ARGUMENT",
);

impl ErrorNames {
    /// Returns the names of a failure of that kind and status.
    pub(super) fn for_failure(kind: &str, status: u16) -> Self {
        let by_kind = BY_KIND.iter().find(|(known, _)| *known == kind);
        let by_status = || BY_STATUS.iter().find(|(known, _)| *known == status);
        match (by_kind, status) {
            (Some((_, words)), _) => *words,
            (None, 500..) => by_status().map_or(SERVER_FAULT, |(_, words)| *words),
            (None, _) => by_status().map_or(CLIENT_FAULT, |(_, words)| *words),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_names_a_failure_kind() {
        for (name, _) in BY_KIND {
            assert!(name.parse::<unstuck_core::FailureKind>().is_ok(), "{name}");
        }
    }

    #[test]
    fn unnamed_failure_is_named_by_its_status() {
        assert_eq!(
            ErrorNames::for_failure("gateway_closed", 529).anthropic,
            "overloaded_error"
        );
        assert_eq!(
            ErrorNames::for_failure("gateway_closed", 599).openai,
            "server_error"
        );
        assert_eq!(
            ErrorNames::for_failure("gateway_closed", 418).google,
            "INVALID_ARGUMENT"
        );
        assert_eq!(
            ErrorNames::for_failure("timeout", 529).anthropic,
            "timeout_error"
        );
    }
}
