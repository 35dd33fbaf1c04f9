//! The requests that the server keeps, and its answers to auxiliary queries.

use hyper::Method;
use serde_json::json;
use unstuck_faults::{
    FaultScript, FaultScriptReply, FaultScriptStep, FaultServer, FaultServerError,
};

use crate::exchange::{ANTHROPIC, CHAT, DIALECTS, PROMPT, bare, post};

fn wrong(script: &str) -> String {
    match script.parse::<FaultScript>() {
        Err(FaultServerError::Script(error)) => error.to_string(),
        other => format!("no error but {other:?}"),
    }
}

#[tokio::test]
async fn requests_are_kept_without_secrets() {
    let server = FaultServer::start(FaultScript::answering("Done")).unwrap();
    for dialect in DIALECTS {
        dialect.ask(&server).await;
    }
    let requests = server.requests();
    assert_eq!(requests.len(), 4);
    for request in &requests {
        assert_eq!(
            (request.model.as_str(), request.prompt.as_str()),
            ("some-model", PROMPT)
        );
        assert_eq!(
            (request.method.as_str(), request.reply),
            ("POST", Some("answer"))
        );
        assert_eq!(request.header("authorization"), Some("(hidden)"));
    }
    assert!(requests.is_sorted_by_key(|request| request.at));
    assert!(!format!("{requests:?}").contains("sk-secret"));
}

#[tokio::test]
async fn a_key_in_the_url_is_not_kept() {
    let server = FaultServer::start(FaultScript::answering("Done")).unwrap();
    let path = "/v1beta/models/m:generateContent?key=sk-secret";
    post(&server, path, &json!({})).await;
    assert!(!format!("{:?}", server.requests()).contains("sk-secret"));
}

#[tokio::test]
async fn auxiliary_queries_use_no_step() {
    let server =
        FaultServer::start(FaultScript::default().with_step(FaultScriptReply::Overloaded)).unwrap();
    assert_eq!(bare(&server, Method::HEAD, "/").await.status, 200);
    let models = bare(&server, Method::GET, "/v1/models").await.json();
    assert_eq!(models["object"], "list");
    let models = bare(&server, Method::GET, "/v1beta/models").await.json();
    assert!(
        models["models"][0]["name"]
            .as_str()
            .unwrap()
            .starts_with("models/")
    );
    let body = json!({"messages": [{"role": "user", "content": "12345678"}]});
    let counted = post(&server, "/v1/messages/count_tokens", &body).await;
    assert_eq!(counted.json(), json!({"input_tokens": 2}));
    assert!(
        server
            .requests()
            .iter()
            .all(|request| request.reply.is_none())
    );
    assert_eq!(ANTHROPIC.ask(&server).await.status, 529);
}

#[tokio::test]
async fn unknown_paths_are_refused_in_the_format_of_their_protocol() {
    let server = FaultServer::start(FaultScript::answering("Done")).unwrap();
    let reached = post(&server, "/v1/messages/batches", &json!({})).await;
    assert_eq!(
        (reached.status, &reached.json()["type"]),
        (404, &json!("error"))
    );
    let reached = post(&server, "/v1/images/generations", &json!({})).await;
    assert_eq!(reached.status, 404);
    assert_eq!(reached.json()["error"]["type"], "invalid_request_error");
    let reached = post(&server, "/v1beta/models/m:predict", &json!({})).await;
    assert_eq!(reached.json()["error"]["status"], "NOT_FOUND");
}

#[tokio::test]
async fn a_request_that_is_not_a_json_object_never_breaks_the_server() {
    let server = FaultServer::start(FaultScript::answering("Done")).unwrap();
    for body in [
        json!(null),
        json!([]),
        json!({"messages": 3, "stream": "yes"}),
    ] {
        assert_eq!(post(&server, "/v1/messages", &body).await.status, 200);
    }
    let reached = bare(&server, Method::POST, "/v1/messages").await;
    assert_eq!(reached.status, 400);
    assert_eq!(reached.json()["error"]["type"], "invalid_request_error");
}

#[tokio::test]
async fn a_request_without_a_step_gets_an_error() {
    let script = FaultScript::default()
        .with_step(FaultScriptStep::from(FaultScriptReply::Quota).when_prompt("elsewhere"));
    let server = FaultServer::start(script).unwrap();
    let reached = CHAT.ask(&server).await;
    assert_eq!(reached.status, 500);
    assert!(reached.body.contains("no step"));
}

#[tokio::test]
async fn the_same_script_gives_the_same_bytes() {
    for dialect in DIALECTS {
        let mut bodies = Vec::new();
        for _ in 0..2 {
            let server = FaultServer::start(FaultScript::answering("Done")).unwrap();
            bodies.push(dialect.stream(&server).await.body);
        }
        assert_eq!(bodies[0], bodies[1]);
    }
}

#[tokio::test]
async fn a_stopped_server_no_longer_listens() {
    let server =
        FaultServer::start(FaultScript::default().with_step(FaultScriptReply::Hang)).unwrap();
    let address = server.url().trim_start_matches("http://").to_owned();
    let open = tokio::net::TcpStream::connect(&address).await;
    assert!(open.is_ok());
    server.stop();
    assert!(tokio::net::TcpStream::connect(&address).await.is_err());
}

#[test]
fn a_misspelled_script_is_refused_with_the_reason() {
    assert!(wrong("[[step]]\novreloaded = {}").contains("ovreloaded"));
    assert!(wrong("[[step]]\nrate_limit = { retry = 1 }").contains("retry"));
    assert!(wrong("[[step]]\ntimes = 2").contains("one reply"));
    assert!(wrong("[[step]]\nquota = {}\nauth = {}").contains("one reply"));
    assert!(wrong("[[step]]\nquota = {}\ntimes = \"often\"").contains("always"));
    assert!(wrong("[[step]]\nanswer = { text = \"x\", delay = \"soon\" }").contains("soon"));
    assert!(wrong("[[step]]\nanswer = { headers = { \"a b\" = \"1\" } }").contains("header"));
    assert!(wrong("[[steps]]\nquota = {}").contains("steps"));
}
