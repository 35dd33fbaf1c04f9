//! Tests of the REST API of `unstuck serve` with real processes, HTTP and failing agents.

mod answering;
mod browser;
mod escalating;
mod following;
mod looking;
mod policies;
mod previewing;
mod retrying;
mod tokens;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use serde_json::Value;

use crate::Place;
use crate::gateway::Serving;

/// An agent that is not logged in until a file exists.
const CLAUDE: &str = "#!/bin/sh\necho \"$@\" >> calls; [ -f login ] && echo done && exit 0; echo 'Not logged in · Please run /login'; exit 7\n";

/// Sets up a place whose agent needs human input immediately.
fn asking() -> Place {
    let place = Place::new();
    place.tool("claude", CLAUDE);
    place
}

/// Returns a token created with `unstuck token`.
fn token(place: &Place, scope: &str) -> String {
    let args = ["token", "create", "--scope", scope, "--name", "laptop"];
    let made = place.run(&args, "");
    assert_eq!(made.code, 0, "{}", made.stderr);
    made.stdout.trim().to_owned()
}

/// A client of the API.
struct Client {
    serving: Serving,
    token: Option<String>,
}

/// A response.
struct Got {
    status: u16,
    head: String,
    body: String,
}

impl Got {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let found = lines.find(|(own, _)| own.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value)
    }

    /// Asserts the status.
    #[track_caller]
    fn is(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}\n{}", self.head, self.body);
        self
    }
}

impl Client {
    /// Starts a server and returns a client with a token of this scope.
    fn of(place: &Place, scope: &str) -> Self {
        let token = token(place, scope);
        Self {
            serving: Serving::start(place, &["--quiet"]),
            token: Some(token),
        }
    }

    fn get(&self, path: &str) -> Got {
        self.ask("GET", path, "", &[])
    }

    fn post(&self, path: &str, body: &Value) -> Got {
        self.ask("POST", path, &body.to_string(), &[])
    }

    fn put(&self, path: &str, body: &Value, etag: &str) -> Got {
        self.ask("PUT", path, &body.to_string(), &[("if-match", etag)])
    }

    fn ask(&self, method: &str, path: &str, body: &str, headers: &[(&str, &str)]) -> Got {
        let mut answer = String::new();
        let mut stream = self.send(method, path, body, headers);
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        Got {
            status: head[9..12].parse().unwrap(),
            body: if head.to_lowercase().contains("chunked") {
                unchunked(body)
            } else {
                body.to_owned()
            },
            head: head.replace("\r\n", "\n"),
        }
    }

    fn send(&self, method: &str, path: &str, body: &str, headers: &[(&str, &str)]) -> TcpStream {
        self.send_as(self.token.as_deref(), method, path, body, headers)
    }

    fn send_as(
        &self,
        token: Option<&str>,
        method: &str,
        path: &str,
        body: &str,
        headers: &[(&str, &str)],
    ) -> TcpStream {
        let port = &self.serving.port;
        let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
        let mut lines: Vec<String> = headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        if let Some(token) = token {
            lines.push(format!("authorization: Bearer {token}\r\n"));
        }
        if !body.is_empty() {
            let length = body.len();
            lines.push(format!(
                "content-type: application/json\r\ncontent-length: {length}\r\n"
            ));
        }
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\n{}\r\n{body}",
            lines.concat()
        )
        .unwrap();
        stream
    }

    /// Follows the event stream and yields its lines.
    fn events(&self) -> impl Iterator<Item = String> + use<> {
        let path = "/api/events?after=0";
        let stream = self.send("GET", path, "", &[("accept", "text/event-stream")]);
        BufReader::new(stream).lines().map_while(Result::ok)
    }

    /// Returns the only run.
    fn run(&self) -> Value {
        let runs = self.get("/api/runs").is(200).json();
        assert_eq!(runs["items"].as_array().map(Vec::len), Some(1), "{runs}");
        runs["items"][0].clone()
    }

    /// Returns the only run once it has this status.
    #[track_caller]
    fn run_that(&self, status: &str) -> Value {
        crate::gateway::until(&format!("the run is {status}"), || {
            Some(self.run()).filter(|run| run["status"] == status)
        })
    }
}

fn unchunked(mut body: &str) -> String {
    let mut text = String::new();
    while let Some((length, rest)) = body.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).unwrap();
        text.push_str(&rest[..length]);
        body = rest[length..].trim_start_matches("\r\n");
    }
    text
}
