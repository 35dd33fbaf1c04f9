//! Tests that the OpenAPI document is complete and exact.

use std::collections::BTreeSet;

use serde_json::Value;
use unstuck_testkit::golden::assert_golden;
use unstuck_web::openapi;

use crate::ground::Ground;

fn document() -> Value {
    serde_json::to_value(openapi()).unwrap()
}

fn operations(document: &Value) -> Vec<(String, String, &Value)> {
    let paths = document["paths"].as_object().unwrap();
    let all = paths.iter().flat_map(|(path, item)| {
        let item = item.as_object().unwrap().iter();
        item.map(|(method, operation)| (method.to_uppercase(), path.clone(), operation))
    });
    all.collect()
}

/// Every route of the sources is in the document, and every path of the document is served by the router.
#[tokio::test]
async fn routes_and_document_paths_match() {
    let ground = Ground::new().await;
    let document = document();
    let all = operations(&document);
    assert!(all.len() >= 35, "{}", all.len());
    let token = ground.token(unstuck_web::auth::PermissionScope::Admin);
    for (method, path, _) in &all {
        let path = path.replace("{id}", "none").replace("{index}", "1");
        let reply = ground
            .ask(method, &path)
            .token(&token)
            .header("accept", "application/json");
        let reply = reply.send().await;
        let unknown = reply.body.contains("path not found");
        assert!(
            !unknown && reply.status != 405,
            "{method} {path}: {}",
            reply.body
        );
        assert!(
            !reply.status.is_server_error() || reply.status == 503,
            "{method} {path}: {}",
            reply.body
        );
    }
    let told: BTreeSet<_> = all.iter().map(|(_, path, _)| path.as_str()).collect();
    for routed in ROUTED {
        assert!(told.contains(routed), "{routed}");
    }
}

/// Routes that the specification names.
const ROUTED: [&str; 20] = [
    "/api/retry-policy",
    "/api/projects/{id}/retry-policy",
    "/api/sessions/{id}/retry",
    "/api/sessions/{id}/escalate",
    "/api/analytics/failures",
    "/api/analytics/failures/export",
    "/api/projects",
    "/api/runs",
    "/api/sessions/{id}",
    "/api/runs/{id}/attempts",
    "/api/events",
    "/api/escalations/{id}/answer",
    "/api/policy-templates",
    "/api/agents",
    "/api/models",
    "/api/budgets",
    "/api/success-rates",
    "/api/health",
    "/api/ready",
    "/api/version",
];

/// Answering an escalation or changing a policy that has changed in the meantime returns 412. Clients are generated
/// from the document, so it must list that.
#[test]
fn precondition_failed_is_documented_where_it_can_occur() {
    let document = document();
    for (path, method) in [
        ("/api/escalations/{id}/answer", "post"),
        ("/api/retry-policy", "put"),
        ("/api/retry-policy", "delete"),
        ("/api/projects/{id}/retry-policy", "put"),
    ] {
        let answers = &document["paths"][path][method]["responses"]["412"];
        let problem = &answers["content"]["application/problem+json"]["schema"]["$ref"];
        assert_eq!(
            problem, "#/components/schemas/ProblemDetails",
            "{method} {path}"
        );
    }
}

/// Two types of the same name in different modules would silently overwrite each other.
#[test]
fn every_model_type_has_its_own_schema() {
    let document = document();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    let text = document.to_string();
    for part in text.split("\"#/components/schemas/").skip(1) {
        let name = part.split('"').next().unwrap();
        assert!(schemas.contains_key(name), "nothing describes {name}");
    }
    let sources = concat_sources();
    let derived = sources.matches("ToSchema)]").count() + sources.matches("ToSchema,\n)]").count();
    let told = schemas
        .keys()
        .filter(|name| !name.starts_with("ListPage_"))
        .count();
    // ListPage has one schema per item type; a query enum is inlined.
    let in_place = ["ListPage", "By", "Format", "PolicyOrigin"].len();
    assert_eq!(
        told + in_place,
        derived,
        "{:?}",
        schemas.keys().collect::<Vec<_>>()
    );
}

fn concat_sources() -> String {
    let mut all = String::new();
    let mut folders = vec![concat!(env!("CARGO_MANIFEST_DIR"), "/src").into()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir::<std::path::PathBuf>(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path)
            } else {
                all.push_str(&std::fs::read_to_string(path).unwrap_or_default())
            }
        }
    }
    all
}

#[test]
fn every_operation_documents_its_problems_and_has_a_unique_name() {
    let document = document();
    let mut names = BTreeSet::new();
    for (method, path, operation) in operations(&document) {
        let responses = operation["responses"].as_object().unwrap();
        for status in ["400", "401", "403", "429", "500", "503"] {
            let kind = &responses[status]["content"]["application/problem+json"];
            assert!(kind.is_object(), "{method} {path} {status}");
        }
        assert!(
            !path.contains('{') || responses.contains_key("404"),
            "{path}"
        );
        let has_body = operation.get("requestBody").is_some();
        assert!(!has_body || responses.contains_key("413"), "{path}");
        let name = operation["operationId"].as_str().unwrap().to_owned();
        assert!(names.insert(name.clone()), "{name} is there twice");
        assert!(!operation["summary"].as_str().unwrap().is_empty());
    }
    assert_eq!(document["openapi"], "3.1.0");
}

#[test]
fn document_matches_the_recorded_one() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/openapi.json");
    let made = serde_json::to_string_pretty(&document()).unwrap() + "\n";
    assert_golden(path.as_ref(), &made);
}
