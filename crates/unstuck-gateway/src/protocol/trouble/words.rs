//! How each API names a failure, as data: by our kind, or else by the status.

/// What the APIs call one failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Words {
    /// Anthropic's `type`.
    pub(super) anthropic: &'static str,
    /// OpenAI's `type`.
    pub(super) openai: &'static str,
    /// OpenAI's `code`.
    pub(super) code: &'static str,
    /// Google's `status`.
    pub(super) google: &'static str,
}

const fn words(
    anthropic: &'static str,
    openai: &'static str,
    code: &'static str,
    google: &'static str,
) -> Words {
    Words {
        anthropic,
        openai,
        code,
        google,
    }
}

#[rustfmt::skip]
const BY_KIND: &[(&str, Words)] = &[
    ("rate_limit",        words("rate_limit_error",      "requests",                  "rate_limit_exceeded",     "RESOURCE_EXHAUSTED")),
    ("rate_limit_timed",  words("rate_limit_error",      "usage_limit_reached",       "rate_limit_exceeded",     "RESOURCE_EXHAUSTED")),
    ("quota_exhausted",   words("billing_error",         "insufficient_quota",        "insufficient_quota",      "RESOURCE_EXHAUSTED")),
    ("server_overloaded", words("overloaded_error",      "service_unavailable_error", "server_is_overloaded",    "UNAVAILABLE")),
    ("server_error",      words("api_error",             "server_error",              "server_error",            "INTERNAL")),
    ("network_error",     words("api_error",             "server_error",              "server_error",            "UNAVAILABLE")),
    ("service_down",      words("api_error",             "server_error",              "server_error",            "UNAVAILABLE")),
    ("timeout",           words("timeout_error",         "server_error",              "server_error",            "DEADLINE_EXCEEDED")),
    ("context_limit",     words("invalid_request_error", "invalid_request_error",     "context_length_exceeded", "INVALID_ARGUMENT")),
    ("content_filter",    words("invalid_request_error", "invalid_request_error",     "invalid_prompt",          "INVALID_ARGUMENT")),
    ("invalid_request",   words("invalid_request_error", "invalid_request_error",     "invalid_request",         "INVALID_ARGUMENT")),
    ("model_not_found",   words("not_found_error",       "invalid_request_error",     "model_not_found",         "NOT_FOUND")),
    ("auth_required",     words("authentication_error",  "invalid_request_error",     "invalid_api_key",         "UNAUTHENTICATED")),
    ("auth_expired",      words("authentication_error",  "invalid_request_error",     "token_expired",           "UNAUTHENTICATED")),
    ("permission_denied", words("permission_error",      "invalid_request_error",     "permission_denied",       "PERMISSION_DENIED")),
    ("stuck",             words("permission_error",      "invalid_request_error",     "stuck",                   "PERMISSION_DENIED")),
];

#[rustfmt::skip]
const BY_STATUS: &[(u16, Words)] = &[
    (400, words("invalid_request_error", "invalid_request_error",     "invalid_request",      "INVALID_ARGUMENT")),
    (401, words("authentication_error",  "invalid_request_error",     "invalid_api_key",      "UNAUTHENTICATED")),
    (402, words("billing_error",         "insufficient_quota",        "insufficient_quota",   "RESOURCE_EXHAUSTED")),
    (403, words("permission_error",      "invalid_request_error",     "permission_denied",    "PERMISSION_DENIED")),
    (404, words("not_found_error",       "invalid_request_error",     "not_found",            "NOT_FOUND")),
    (408, words("timeout_error",         "server_error",              "server_error",         "DEADLINE_EXCEEDED")),
    (413, words("request_too_large",     "invalid_request_error",     "request_too_large",    "INVALID_ARGUMENT")),
    (429, words("rate_limit_error",      "requests",                  "rate_limit_exceeded",  "RESOURCE_EXHAUSTED")),
    (503, words("overloaded_error",      "service_unavailable_error", "server_is_overloaded", "UNAVAILABLE")),
    (504, words("timeout_error",         "server_error",              "server_error",         "DEADLINE_EXCEEDED")),
    (529, words("overloaded_error",      "service_unavailable_error", "server_is_overloaded", "UNAVAILABLE")),
];

const FAULT_OF_OURS: Words = words("api_error", "server_error", "server_error", "INTERNAL");
const FAULT_OF_THEIRS: Words = words(
    "invalid_request_error",
    "invalid_request_error",
    "invalid_request",
    "INVALID_ARGUMENT",
);

impl Words {
    /// What a failure of that kind, answered with that status, is called.
    pub(super) fn of(kind: &str, status: u16) -> Self {
        let by_kind = BY_KIND.iter().find(|(known, _)| *known == kind);
        let by_status = || BY_STATUS.iter().find(|(known, _)| *known == status);
        match (by_kind, status) {
            (Some((_, words)), _) => *words,
            (None, 500..) => by_status().map_or(FAULT_OF_OURS, |(_, words)| *words),
            (None, _) => by_status().map_or(FAULT_OF_THEIRS, |(_, words)| *words),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_here_is_a_kind() {
        for (name, _) in BY_KIND {
            assert!(name.parse::<unstuck_core::Kind>().is_ok(), "{name}");
        }
    }

    #[test]
    fn an_unnamed_failure_is_called_by_its_status() {
        assert_eq!(
            Words::of("gateway_closed", 529).anthropic,
            "overloaded_error"
        );
        assert_eq!(Words::of("gateway_closed", 599).openai, "server_error");
        assert_eq!(Words::of("gateway_closed", 418).google, "INVALID_ARGUMENT");
        assert_eq!(Words::of("timeout", 529).anthropic, "timeout_error");
    }
}
