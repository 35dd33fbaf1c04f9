//! Tests many dashboards that follow many writing runs.

use std::io::{BufRead, BufReader, ErrorKind};
use std::net::TcpStream;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::Client;
use crate::Place;

const DASHBOARDS: u64 = 100;
const RUNS: usize = 50;
/// Number of empty reads after which no more events are expected.
const LOOKS: u32 = 600;
const LOOK: Duration = Duration::from_millis(50);

/// Placeholder while the last event is unknown.
const NEVER: u64 = u64::MAX;

/// A command that fails twice and then succeeds.
const AGENT: &str = "echo x >> \"$1\"; [ $(wc -l < \"$1\") -gt 2 ] && exit 0; echo 'API Error: 529 overloaded_error'; exit 1";

/// A dashboard that follows events over a connection that breaks repeatedly.
struct Dashboard<'a> {
    client: &'a Client,
    /// Number of events after which it is cut off.
    patience: usize,
    seen: Vec<u64>,
}

impl Dashboard<'_> {
    /// Follows until the event whose id `end` holds by then.
    fn follow(mut self, end: &AtomicU64) -> Vec<u64> {
        let is_done = |seen: &[u64]| match end.load(Ordering::Relaxed) {
            NEVER => true,
            end => seen.last() == Some(&end),
        };
        while !is_done(&self.seen) {
            let before = self.seen.len();
            let mut lines = self.connect();
            while !is_done(&self.seen) && self.seen.len() < before + self.patience {
                assert!(lines.quiet < LOOKS, "saw only {:?}", self.seen);
                self.seen.extend(lines.next_id());
            }
        }
        self.seen
    }

    fn connect(&self) -> Lines {
        let last = self.seen.last().copied().unwrap_or(0).to_string();
        let headers = [("accept", "text/event-stream"), ("last-event-id", &last)];
        let stream = self.client.send("GET", "/api/events", "", &headers);
        stream.set_read_timeout(Some(LOOK)).unwrap();
        Lines {
            stream: BufReader::new(stream),
            line: Vec::new(),
            id: None,
            quiet: 0,
        }
    }
}

struct Lines {
    stream: BufReader<TcpStream>,
    line: Vec<u8>,
    id: Option<u64>,
    /// Number of empty reads.
    quiet: u32,
}

impl Lines {
    /// Returns the id of the next event, if one arrived; the initial message does not count.
    fn next_id(&mut self) -> Option<u64> {
        match self.stream.read_until(b'\n', &mut self.line) {
            Ok(0) => panic!("the stream ended by itself"),
            Ok(_) => self.quiet = 0,
            Err(error) => {
                let waits = [ErrorKind::WouldBlock, ErrorKind::TimedOut];
                assert!(waits.contains(&error.kind()), "{error}");
                self.quiet += 1;
                return None;
            }
        }
        let line = String::from_utf8(std::mem::take(&mut self.line)).unwrap();
        if let Some(id) = line.strip_prefix("id: ") {
            self.id = Some(id.trim().parse().unwrap());
        }
        line.starts_with("data: ").then_some(self.id).flatten()
    }
}

/// S4-31: no follower misses or repeats an event, however often the connection breaks.
#[test]
fn hundred_dashboards_see_every_event_once_while_fifty_runs_write() {
    let place = Place::new();
    place.write(
        "unstuck.toml",
        "[policy]\ntemplate = \"standard\"\njitter = \"none\"\nbackoffBase = 0.01\nmaxBackoff = 0.02\n",
    );
    let client = Client::of(&place, "read");
    let end = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let _sends_home = SendsHome(&end);
        let dashboards: Vec<_> = (0..DASHBOARDS)
            .map(|number| {
                let dashboard = Dashboard {
                    client: &client,
                    patience: 40 + number as usize * 5,
                    seen: Vec::new(),
                };
                scope.spawn(|| dashboard.follow(&end))
            })
            .collect();
        write_runs(&place);
        let all = all(&client);
        assert!(all.len() > RUNS * 6, "only {} events", all.len());
        end.store(*all.last().unwrap(), Ordering::Relaxed);
        for dashboard in dashboards {
            assert_eq!(dashboard.join().unwrap(), all);
        }
    });
}

/// Stops all dashboards if the test fails, which would otherwise wait for them.
struct SendsHome<'a>(&'a AtomicU64);

impl Drop for SendsHome<'_> {
    fn drop(&mut self) {
        self.0.store(NEVER, Ordering::Relaxed);
    }
}

fn write_runs(place: &Place) {
    let children: Vec<_> = (0..RUNS)
        .map(|number| {
            let count = format!("count-{number}");
            let mut command = place.command(&["exec", "--", "sh", "-c", AGENT, "agent", &count]);
            command
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for child in children {
        let ended = child.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(0), "{told}");
    }
}

/// Returns the ids of all events, page by page.
fn all(client: &Client) -> Vec<u64> {
    let mut ids = Vec::new();
    let mut after = "0".to_owned();
    loop {
        let path = format!("/api/events?limit=500&after={after}");
        let accept = [("accept", "application/json")];
        let page = client.ask("GET", &path, "", &accept).is(200).json();
        let items = page["items"].as_array().unwrap();
        ids.extend(items.iter().map(|one| one["id"].as_u64().unwrap()));
        match page["next"].as_str() {
            Some(next) => after = next.to_owned(),
            None => return ids,
        }
    }
}
