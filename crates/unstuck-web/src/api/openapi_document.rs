//! The general parts of the OpenAPI document: description, security and problem responses.

use utoipa::openapi::path::{Operation, ParameterIn, PathItem};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{
    ComponentsBuilder, ContentBuilder, InfoBuilder, OpenApi, OpenApiBuilder, Ref, RefOr,
    ResponseBuilder, SecurityRequirement,
};
use utoipa::{PartialSchema, ToSchema};

use crate::model::{FieldProblem, ProblemDetails};

/// Problems that every operation can return.
const COMMON_PROBLEMS: [(u16, &str); 6] = [
    (400, "The request is malformed."),
    (401, "Authentication is required, or the token is invalid."),
    (
        403,
        "The scope of the token is insufficient, or the host or origin is not allowed.",
    ),
    (429, "Too many requests from this address; see Retry-After."),
    (500, "The server or its database failed."),
    (503, "The operation is currently unavailable."),
];
/// Problems with path parameters.
const PATH_PROBLEMS: [(u16, &str); 1] = [(404, "Not found.")];
/// Problems with the body.
const BODY_PROBLEMS: [(u16, &str); 3] = [
    (413, "The body exceeds 1 MiB."),
    (415, "The Content-Type is not JSON."),
    (422, "The body is invalid."),
];
/// Conflicts with the current state.
const CONFLICT_PROBLEMS: [(u16, &str); 1] = [(409, "Conflict with the current state.")];
/// Problems with the version of a change.
const VERSION_PROBLEMS: [(u16, &str); 2] = [
    (412, "The resource was changed in the meantime."),
    (428, "The If-Match header is missing."),
];

/// Creates the document without routes.
pub(super) fn base_document() -> OpenApi {
    let info = InfoBuilder::new()
        .title("unstuck")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(
            "Runs, sessions, failures and escalations of a recovery supervisor for AI agents. Read access from the same \
             machine requires no token; changes require one. Errors are problem details (RFC 9457).",
        ));
    let bearer = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some(
            "A token created with `unstuck token`, with the scope read, answer or admin.",
        ))
        .build();
    let key = ApiKeyValue::with_description(
        "x-unstuck-key",
        "The key of a login, sent together with its cookie from a page of this server.",
    );
    let components = ComponentsBuilder::new()
        .security_scheme("token", SecurityScheme::Http(bearer))
        .security_scheme("login", SecurityScheme::ApiKey(ApiKey::Header(key)))
        .schema(ProblemDetails::name(), ProblemDetails::schema())
        .schema(FieldProblem::name(), FieldProblem::schema());
    let security = [
        SecurityRequirement::new("token", [""; 0]),
        SecurityRequirement::new("login", [""; 0]),
    ];
    OpenApiBuilder::new()
        .info(info)
        .components(Some(components.build()))
        .security(Some(security))
        .build()
}

/// Adds the problem responses to all operations.
pub(super) fn with_problem_responses(mut document: OpenApi) -> OpenApi {
    for item in document.paths.paths.values_mut() {
        let PathItem {
            get,
            put,
            post,
            delete,
            ..
        } = item;
        for operation in get.iter_mut() {
            // Read access from the same machine needs no credential.
            operation.security = Some(vec![
                SecurityRequirement::default(),
                SecurityRequirement::new("token", [""; 0]),
            ]);
            add_problem_responses(operation, false);
        }
        for operation in [put, post, delete].into_iter().flatten() {
            add_problem_responses(operation, true);
        }
    }
    document
}

fn add_problem_responses(operation: &mut Operation, changes: bool) {
    let parameters = operation.parameters.as_deref().unwrap_or_default();
    let has = |place: ParameterIn, name: Option<&str>| {
        parameters.iter().any(|one| match one {
            RefOr::T(one) => one.parameter_in == place && name.is_none_or(|name| one.name == name),
            RefOr::Ref(_) => false,
        })
    };
    let has_path = has(ParameterIn::Path, None) || has(ParameterIn::Query, Some("project"));
    let has_version = has(ParameterIn::Header, Some("if-match"));
    let mut problems: Vec<(u16, &str)> = COMMON_PROBLEMS.to_vec();
    problems.extend(PATH_PROBLEMS.iter().filter(|_| has_path));
    problems.extend(
        BODY_PROBLEMS
            .iter()
            .filter(|_| operation.request_body.is_some()),
    );
    problems.extend(CONFLICT_PROBLEMS.iter().filter(|_| changes));
    problems.extend(VERSION_PROBLEMS.iter().filter(|_| has_version));
    for (status, description) in problems {
        let content = ContentBuilder::new()
            .schema(Some(Ref::from_schema_name(ProblemDetails::name())))
            .build();
        let response = ResponseBuilder::new()
            .description(description)
            .content("application/problem+json", content)
            .build();
        let responses = &mut operation.responses.responses;
        responses
            .entry(status.to_string())
            .or_insert(RefOr::T(response));
    }
}
