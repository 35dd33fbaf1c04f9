//! Tests a pipeline of agents with every kind of failure: each is recovered or escalated as its data specify.

use std::collections::BTreeMap;

use serde_json::Value;
use unstuck_core::decision::template;
use unstuck_core::knowledge::{
    AttemptChange, ConversationMode, RecoveryKnowledge, StrategyChainEntry,
};
use unstuck_core::{Category, FailureKind, FailureLayer, RecoveryLevel};

use super::project;
use crate::Place;

/// An agent's way to show a kind: its standard output, standard error and exit code.
struct Shown {
    kind: FailureKind,
    stdout: &'static str,
    stderr: &'static str,
    code: i32,
    /// Expectations of its role, as lines of its table.
    expects: &'static str,
}

const fn says(kind: FailureKind, stderr: &'static str) -> Shown {
    Shown {
        kind,
        stdout: "I have begun.",
        stderr,
        code: 1,
        expects: "",
    }
}

const fn answers(kind: FailureKind, stdout: &'static str, expects: &'static str) -> Shown {
    Shown {
        kind,
        stdout,
        stderr: "",
        code: 0,
        expects,
    }
}

/// A failure for each kind.
const SHOWN: &[Shown] = &[
    says(FailureKind::RateLimit, "429 Too Many Requests: slow down"),
    says(
        FailureKind::RateLimitTimed,
        "You have hit your usage limit. Try again in 0 minutes 1 second.",
    ),
    says(
        FailureKind::ServerOverloaded,
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#,
    ),
    says(
        FailureKind::ServerError,
        "API Error: 500 internal server error",
    ),
    Shown {
        code: 124,
        ..says(FailureKind::Timeout, "")
    },
    says(
        FailureKind::NetworkError,
        "Error: connect ECONNREFUSED 10.0.0.7:443",
    ),
    says(
        FailureKind::LockHeld,
        "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 4121 (apt)",
    ),
    says(
        FailureKind::ContextLimit,
        "Error: prompt is too long: 214000 tokens > 200000 maximum",
    ),
    says(
        FailureKind::ContentFilter,
        "Error: the response was blocked by the content filter",
    ),
    says(
        FailureKind::InvalidRequest,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"messages.3: tool_use ids must be unique"}}"#,
    ),
    says(
        FailureKind::ModelNotFound,
        r#"{"error":{"code":"model_not_found","message":"The model `nimbus-9` does not exist"}}"#,
    ),
    says(
        FailureKind::CliCrash,
        "thread 'main' panicked at src/agent.rs:17:5:\nindex out of bounds",
    ),
    says(
        FailureKind::JsonParseError,
        "json.decoder.JSONDecodeError: Expecting ',' delimiter: line 4 column 2 (char 61)",
    ),
    answers(FailureKind::EmptyOutput, "", ""),
    answers(
        FailureKind::FormatValidation,
        "It is seven.",
        "expect.match = '(?i)answer: \\d+|fine'",
    ),
    answers(
        FailureKind::MissingSections,
        "# Summary\nAll well.",
        "expect.sections = [\"# Findings\"]",
    ),
    answers(
        FailureKind::DiffParseError,
        "I changed the file as you asked.",
        "expect.diff = true",
    ),
    says(
        FailureKind::ContextError,
        "error: missing placeholder 'design' in reviewer.md",
    ),
    says(
        FailureKind::Stuck,
        "agent is stuck: loop detected, stopping",
    ),
    says(FailureKind::StepLimit, "Error: Reached max turns (3)"),
    says(
        FailureKind::CommandNotFound,
        "nohup: failed to run command 'ninja': No such file or directory",
    ),
    says(
        FailureKind::ToolNotFound,
        "Error: unknown tool: edit_notebook",
    ),
    says(
        FailureKind::PermissionDenied,
        "mkdir: cannot create directory '/opt/site': Permission denied",
    ),
    says(
        FailureKind::FileNotFound,
        "cat: notes/plan.md: No such file or directory",
    ),
    says(
        FailureKind::InvalidArguments,
        "error: unrecognized arguments: --colour",
    ),
    says(
        FailureKind::SyntaxError,
        "  File \"<string>\", line 1\nSyntaxError: unterminated string literal",
    ),
    says(
        FailureKind::InputRequired,
        "EOFError: EOF when reading a line",
    ),
    says(
        FailureKind::DiskFull,
        "write error: No space left on device",
    ),
    says(
        FailureKind::OutOfMemory,
        "java.lang.OutOfMemoryError: Java heap space",
    ),
    says(
        FailureKind::OsLimit,
        "OSError: [Errno 24] Too many open files: 'a.csv'",
    ),
    says(
        FailureKind::PortInUse,
        "Error: listen EADDRINUSE: address already in use :::5173",
    ),
    says(
        FailureKind::ResourceConflict,
        "fatal: a branch named 'topic/search' already exists",
    ),
    says(
        FailureKind::ServiceDown,
        "Cannot connect to the Docker daemon at unix:///run/docker.sock. Is the docker daemon running?",
    ),
    says(
        FailureKind::MissingDependency,
        "ModuleNotFoundError: No module named 'orjson'",
    ),
    says(
        FailureKind::DependencyConflict,
        "npm error ERESOLVE unable to resolve dependency tree",
    ),
    says(
        FailureKind::LockfileDrift,
        "error: the lock file Cargo.lock needs to be updated but --locked was passed to prevent this",
    ),
    says(
        FailureKind::StaleBuild,
        "RuntimeError: Bad magic number in .pyc file",
    ),
    says(
        FailureKind::MigrationNeeded,
        "FAILED: Target database is not up to date.",
    ),
    says(
        FailureKind::ConfigError,
        "Error: failed to load the configuration file: TOML parse error at line 3",
    ),
    says(
        FailureKind::AuthRequired,
        "Not logged in · Please run /login",
    ),
    says(
        FailureKind::AuthExpired,
        "OAuth token has expired. Please obtain a new token.",
    ),
    says(
        FailureKind::QuotaExhausted,
        "Your credit balance is too low to access the API.",
    ),
    says(FailureKind::CliNotFound, "Error: spawn codex ENOENT"),
    says(
        FailureKind::CertificateError,
        "curl: (60) SSL certificate problem: certificate has expired",
    ),
    says(
        FailureKind::TestFailure,
        "FAILED tests/test_shop.py::test_total - assert 3 == 4\n1 failed in 0.02s",
    ),
    says(
        FailureKind::CompileError,
        "error[E0308]: mismatched types\nerror: could not compile `shop`",
    ),
    says(
        FailureKind::VcsConflict,
        "error: Your local changes to the following files would be overwritten by merge: a.rs",
    ),
    says(FailureKind::Unknown, "it did not go well"),
    answers(FailureKind::None, "All fine.", ""),
];

/// Number of stated resets that are waited for, each for the stated time.
const RESETS: u32 = 1;

/// The actual or expected history of a role.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Story {
    attempts: u64,
    /// Levels of its decisions, with the strategy if one was chosen.
    decisions: Vec<String>,
    outcome: String,
}

/// How often an agent fails before it succeeds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fails {
    Once,
    Always,
}

/// Returns the history that the knowledge base implies for a role played by a plain program.
fn implied(kind: FailureKind, fails: Fails) -> Story {
    let playbook = RecoveryKnowledge::built_in();
    let file = playbook.kind(kind).unwrap();
    let policy = template("pipeline").unwrap();
    let retries = file.layer_defaults(FailureLayer::Agent).retries;
    let most = match kind {
        FailureKind::RateLimitTimed => RESETS,
        _ => retries
            .unwrap_or(policy.max_retries)
            .min(policy.max_retries),
    };
    let most = most as usize;
    let ways = || {
        playbook
            .chain(kind, FailureLayer::Agent)
            .filter(|link| is_possible(playbook, link))
    };
    let same = || vec![RecoveryLevel::Same.name().to_owned(); most];
    let changed = |after_same: bool| {
        let is_new = |link: &&StrategyChainEntry| {
            let unchanged = playbook
                .strategy(&link.strategy)
                .unwrap()
                .changes
                .is_empty();
            !(after_same && unchanged)
        };
        let ways = ways().filter(is_new).take(most);
        ways.map(|link| format!("{} {}", RecoveryLevel::Alternative.name(), link.strategy))
            .collect()
    };
    let mut decisions: Vec<String> = match file.level(kind, FailureLayer::Agent) {
        _ if kind.category() == Category::Unknown => same(),
        Some(RecoveryLevel::Same) => [same(), changed(true)].concat(),
        Some(RecoveryLevel::Alternative) => changed(false),
        _ => Vec::new(),
    };
    let ends = |attempts: usize, decisions, outcome: &str| Story {
        attempts: attempts as u64,
        decisions,
        outcome: outcome.to_owned(),
    };
    match kind.category() {
        Category::None => ends(1, Vec::new(), "succeeded"),
        Category::Code => ends(1, vec!["stop".to_owned()], "failed"),
        _ if fails == Fails::Once && !decisions.is_empty() => {
            decisions.truncate(1);
            ends(2, decisions, "recovered")
        }
        _ => {
            let attempts = decisions.len() + 1;
            decisions.push(RecoveryLevel::Escalate.name().to_owned());
            ends(attempts, decisions, "awaiting_human")
        }
    }
}

/// Returns true if a strategy can help a program that only reads a prompt, without approval.
fn is_possible(playbook: &RecoveryKnowledge, link: &StrategyChainEntry) -> bool {
    let strategy = playbook.strategy(&link.strategy).unwrap();
    let can = |change: &AttemptChange| match change {
        AttemptChange::Prompt(_) | AttemptChange::Timeout(_) | AttemptChange::OutputLimit(_) => {
            true
        }
        AttemptChange::Conversation(choice) => *choice == ConversationMode::Fresh,
        AttemptChange::Model(_) | AttemptChange::Repair => false,
    };
    !strategy.requires_human
        && strategy.changes.iter().all(can)
        && !strategy.risks.iter().any(|risk| risk == "safety")
}

/// Returns a script that shows a kind the given number of times.
fn script(shown: &Shown, fails: Fails) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "'\\''"));
    let fine = match shown.kind {
        FailureKind::DiffParseError => {
            r"printf 'diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n'"
        }
        FailureKind::MissingSections => r"printf '# Findings\nnone\n'",
        _ => "echo fine",
    };
    let enough = match fails {
        Fails::Once => format!("[ $UNSTUCK_ATTEMPT -ge 2 ] && {fine} && exit 0\n"),
        Fails::Always => String::new(),
    };
    let wrote = |text: &str, to: &str| match text {
        "" => String::new(),
        text => format!("printf '%s\\n' {}{to}\n", quoted(text)),
    };
    format!(
        "cat > prompts/$UNSTUCK_ROLE-$UNSTUCK_ATTEMPT\n{enough}{}{}exit {}\n",
        wrote(shown.stdout, ""),
        wrote(shown.stderr, " >&2"),
        shown.code
    )
}

fn run_all(fails: Fails) -> Place {
    let limit = format!("[error_recovery.strategies.rate_limit_timed]\nmax_retries = {RESETS}\n");
    let mut config = format!("[run]\nparallel = 8\n{limit}");
    let place = project("");
    for shown in SHOWN {
        let name = shown.kind.name();
        place.write(&format!("agents/{name}.sh"), &script(shown, fails));
        config.push_str(&format!(
            "[[role]]\nid = \"{name}\"\nagent = \"command\"\ncommand = [\"sh\", \"agents/{name}.sh\"]\nprompt = \"Do it.\"\n{}\n",
            shown.expects
        ));
    }
    std::fs::create_dir(place.project().join("prompts")).unwrap();
    super::configure(&place, &config);
    place.run(&["run"], "").told(3, &[]);
    place
}

/// Returns the history of each role.
fn stories(place: &Place) -> BTreeMap<String, (Story, String)> {
    let name = |event: &Value| event["session"].as_str().unwrap().to_owned();
    let mut decisions: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for made in place.events("decision_made") {
        let decision = &made["decision"];
        let level = decision["level"].as_str().unwrap_or("stop");
        let told = match (level, decision["strategy"].as_str()) {
            ("alternative", Some(strategy)) => format!("{level} {strategy}"),
            _ => level.to_owned(),
        };
        decisions.entry(name(&made)).or_default().push(told);
    }
    let failed = place.events("attempt_failed").into_iter();
    let kinds: BTreeMap<String, String> = failed
        .map(|event| {
            (
                name(&event),
                event["diagnosis"]["kind"].as_str().unwrap().to_owned(),
            )
        })
        .collect();
    let ended = place.events("session_finished").into_iter().map(|end| {
        let session = name(&end);
        let story = Story {
            attempts: end["attempts"].as_u64().unwrap(),
            decisions: decisions.remove(&session).unwrap_or_default(),
            outcome: end["outcome"].as_str().unwrap().to_owned(),
        };
        let kind = kinds
            .get(&session)
            .cloned()
            .unwrap_or_else(|| "none".to_owned());
        (end["role"].as_str().unwrap().to_owned(), (story, kind))
    });
    ended.collect()
}

/// Compares the histories with those implied by the data and prints them as a table.
fn compare(fails: Fails) -> Place {
    let place = run_all(fails);
    let happened = stories(&place);
    let mut wrong = Vec::new();
    let mut table = format!(
        "{:<20} {:>8}  {:<15} decisions\n",
        "kind", "attempts", "outcome"
    );
    for kind in FailureKind::ALL {
        let (story, found) = &happened[kind.name()];
        let wanted = implied(*kind, fails);
        table.push_str(&format!(
            "{kind:<20} {:>8}  {:<15} {}\n",
            story.attempts,
            story.outcome,
            story.decisions.join(", ")
        ));
        if (found.as_str(), story) != (kind.name(), &wanted) {
            wrong.push(format!(
                "{kind} was taken for {found}: {story:?} instead of {wanted:?}"
            ));
        }
    }
    show(&table);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    place
}

#[expect(
    clippy::print_stdout,
    reason = "the table is for those who read what the test writes"
)]
fn show(table: &str) {
    println!("{table}");
}

/// S2-01, S0-19: a temporary or repairable failure is recovered; one that needs human input is escalated immediately.
#[test]
fn single_failure_of_every_kind_is_recovered_as_its_data_allow() {
    let place = compare(Fails::Once);
    let prompt = |name: &str| place.text(&format!("prompts/{name}-2"));
    assert_eq!(prompt("server_error"), "Do it.", "the same again");
    for (kind, told) in [
        ("timeout", "timed out"),
        ("missing_sections", "# Findings"),
        ("permission_denied", "cannot create directory '/opt/site'"),
    ] {
        assert!(prompt(kind).contains(told), "{told} in {}", prompt(kind));
    }
}

/// S2-01: each strategy of the chain is tried once, and an escalation follows when it is exhausted.
#[test]
fn permanent_failure_of_every_kind_exhausts_its_chain_and_escalates() {
    compare(Fails::Always);
}
