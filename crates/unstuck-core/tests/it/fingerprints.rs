//! Fingerprints: repeated failures have the same one, different failures have different ones.

use std::collections::BTreeMap;

use proptest::prelude::*;
use unstuck_core::Failure;

use crate::texts;

/// Messages with slots for their variable parts.
const MESSAGES: &[(&str, &str)] = &[
    ("tac", "tac: {path}: No such file or directory"),
    ("server", "listen EADDRINUSE: address already in use :::{n}"),
    (
        "deploy",
        "error: job {uuid} at {time}: no space left on device",
    ),
    ("pypy", "ModuleNotFoundError: No module named '{name}'"),
    (
        "mkdir",
        "mkdir: cannot create directory ‘{path}’: Permission denied",
    ),
    (
        "worker",
        "{time} FATAL worker {n} (pid {n}) ran out of memory: \"{name}\"",
    ),
    (
        "client",
        "request {request} to https://{name}.example.com/v1/{n}?k={n} failed: connection reset by peer",
    ),
    (
        "fetch",
        "Error: connect ECONNREFUSED 127.0.0.1:{n} at 0x{hex}",
    ),
];

/// The values of the slots.
#[derive(Debug, Clone)]
struct Fill {
    n: u32,
    name: String,
    path: String,
    time: String,
    uuid: String,
    request: String,
    hex: String,
}

prop_compose! {
    fn fill()(
        n in 1..u32::MAX,
        name in "zq[bcdfg]{1,9}",
        path in "(/zq[bcdfg0-9_]{1,8}){1,4}\\.zq[bcd]?",
        time in "20[2-9][0-9]-(0[1-9]|1[0-2])-[0-2][0-9]T[01][0-9]:[0-5][0-9]:[0-5][0-9](\\.[0-9]{3})?Z",
        uuid in "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}",
        request in "req_[0-9b-dB-D]{6,24}",
        hex in "[0-9a-f]{4,12}",
    ) -> Fill {
        Fill { n, name, path, time, uuid, request, hex }
    }
}

impl Fill {
    fn put_into(&self, message: &str) -> String {
        message
            .replace("{n}", &self.n.to_string())
            .replace("{name}", &self.name)
            .replace("{path}", &self.path)
            .replace("{time}", &self.time)
            .replace("{uuid}", &self.uuid)
            .replace("{request}", &self.request)
            .replace("{hex}", &self.hex)
    }
}

fn fingerprint(tool: &str, message: &str) -> String {
    let failure = Failure::tool(tool).with_exit_code(1).with_stderr(message);
    super::diagnose(&failure).fingerprint
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn numbers_ids_paths_times_and_names_are_ignored(one in fill(), two in fill()) {
        for (tool, message) in MESSAGES {
            let (one, two) = (one.put_into(message), two.put_into(message));
            prop_assert_eq!(fingerprint(tool, &one), fingerprint(tool, &two), "{} / {}", one, two);
        }
    }

    #[test]
    fn surrounding_lines_are_ignored(before in "(step zq[bcdfg]{1,9} done\n){0,4}", one in fill()) {
        for (tool, message) in MESSAGES {
            let message = one.put_into(message);
            let in_a_log = format!("{before}{message}\n");
            prop_assert_eq!(fingerprint(tool, &in_a_log), fingerprint(tool, &message), "{}", in_a_log);
        }
    }

    /// A result of one long line is truncated for display: the cut must not depend on the length of its numbers.
    #[test]
    fn long_lines_have_stable_fingerprints(one in fill(), two in fill()) {
        let result = |fill: &Fill| {
            let line = fill.put_into(r#"{"type":"result","duration_ms":{n},"duration_api_ms":{n},"session_id":"{uuid}","uuid":"{uuid}","usage":{"input_tokens":{n},"cache_creation_input_tokens":{n},"output_tokens":{n},"service_tier":"standard"},"modelUsage":{},"total_cost_usd":0.{n},"subtype":"success","is_error":true,"num_turns":{n},"result":"API Error: 529 Overloaded. This is a server-side issue, usually temporary."}"#);
            super::diagnose(&Failure::agent("claude").with_exit_code(1).with_stdout(line))
        };
        let (one, two) = (result(&one), result(&two));
        prop_assert_eq!(&one.fingerprint, &two.fingerprint, "{} / {}", one.evidence.line, two.evidence.line);
    }
}

#[test]
fn different_failures_have_different_fingerprints() {
    let filled = Fill {
        n: 7,
        name: "zqname".into(),
        path: "/zq/a.txt".into(),
        time: "2026-11-15T20:30:00Z".into(),
        uuid: "2b1f6c1e-6a3c-4a55-9f5e-2f2d2a7c9e10".into(),
        request: "req_011CSNw2".into(),
        hex: "7ffe".into(),
    };
    let mut seen = BTreeMap::new();
    let messages = MESSAGES.iter().map(|(tool, message)| {
        let message = filled.put_into(message);
        (format!("{tool}: {message}"), fingerprint(tool, &message))
    });
    let known = texts::failures().into_iter().map(|failure| {
        (
            format!("{failure:?}"),
            super::diagnose(&failure).fingerprint,
        )
    });
    for (failure, fingerprint) in messages.chain(known) {
        if let Some(other) = seen.insert(fingerprint, failure.clone()) {
            panic!("these have the same fingerprint:\n{other}\n{failure}");
        }
    }
}

#[test]
fn one_message_of_two_tools_has_two_fingerprints() {
    let message = "open a.txt: No such file or directory";
    assert_ne!(fingerprint("cp", message), fingerprint("mv", message));
}

#[test]
fn unknown_failures_are_distinguished_by_their_last_line() {
    let one = fingerprint("frob", "the frobnicator is not aligned");
    assert_ne!(one, fingerprint("frob", "the gizmo came loose"));
    assert_eq!(
        one,
        fingerprint("frob", "step 1\nthe frobnicator is not aligned\n")
    );
}
