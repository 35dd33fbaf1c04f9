//! Errors: each one is reported, with its location and the expected value.

use crate::{Place, role};

fn told(text: &str) -> Vec<String> {
    Place::with("unstuck.toml", text).problems()
}

/// Asserts that exactly one problem is reported, containing these words.
fn assert_told(text: &str, words: &[&str]) {
    let problems = told(text);
    assert_eq!(problems.len(), 1, "{text}\n{}", problems.join("\n"));
    for word in words {
        assert!(
            problems[0].contains(word),
            "`{word}` is not in: {}",
            problems[0]
        );
    }
}

#[test]
fn error_shows_line_value_and_expectation() {
    let text = "[run]\nparallel = \"four\"\n";
    assert_eq!(
        told(text),
        [
            "unstuck.toml:2:12: `run.parallel` must be a non-negative integer, got \"four\"
  |
2 | parallel = \"four\"
  |            ^^^^^^"
        ]
    );
    let yaml = Place::with("unstuck.yaml", "run:\n  parallel: four\n");
    assert!(yaml.problems()[0].starts_with("unstuck.yaml:2:13: `run.parallel` must be"));
    let json = Place::with("unstuck.json", "{\n \"run\": {\"parallel\": \"four\"}\n}");
    assert!(json.problems()[0].starts_with("unstuck.json:2:22: `run.parallel` must be"));
}

#[test]
fn all_errors_are_reported_at_once() {
    let problems = told(
        "[run]\nparallel = -1\ntsk = \"x\"\n[[role]]\nid = \"a b\"\n[[role]]\nid = \"c\"\ntimout = \"5m\"\ntimeout = 20\n[loop]\non_stuck = \"escalat\"\n",
    );
    let all = problems.join("\n");
    for words in [
        "`run.parallel` must be a non-negative integer, got -1",
        "unknown key `tsk` in `run`, did you mean `task`?",
        "must be 1 to 64 letters, digits, `_` or `-`, got \"a b\"",
        "unknown key `timout` in `role.c`, did you mean `timeout`?",
        "`role.c.timeout` must be a duration in quotes, like \"90s\"",
        "`role.c` needs `agent`",
        "one of \"escalate\", \"stop\", \"continue\", got \"escalat\", did you mean `escalate`?",
    ] {
        assert!(all.contains(words), "`{words}` is not in:\n{all}");
    }
}

#[test]
fn syntax_errors_have_a_location() {
    for (name, text, place) in [
        ("unstuck.toml", "[run\n", "unstuck.toml:1:5:"),
        ("unstuck.json", "{\"run\": }", "unstuck.json:1:9:"),
        (
            "unstuck.json",
            "{\"run\": {}, \"run\": {}}",
            "unstuck.json:1:13:",
        ),
        ("unstuck.yaml", "run:\n  task: [a\n", "unstuck.yaml:"),
        (
            "unstuck.yaml",
            "run:\n  task: a\n  task: b\n",
            "unstuck.yaml:3:",
        ),
    ] {
        let problems = Place::with(name, text).problems();
        assert!(
            problems[0].starts_with(place),
            "{name} {text}: {}",
            problems[0]
        );
    }
}

/// S1-34: unsatisfiable dependencies are reported.
#[test]
fn role_dependencies_are_checked() {
    let needs = |id: &str, needs: &str| role(id, &format!("needs = [\"{needs}\"]"));
    assert_told(
        &(role("planner", "") + &needs("builder", "planer")),
        &[
            "unknown role `planer`, did you mean `planner`?",
            "unstuck.toml:10:10",
        ],
    );
    assert_told(
        &(needs("a", "b") + &needs("b", "c") + &needs("c", "a")),
        &["a → b → c → a"],
    );
    assert_told(&needs("a", "a"), &["a → a"]);
    assert_told(
        &(role("a", "") + "[[role]]\nid = \"a\"\nagent = \"claude\"\n"),
        &[
            "unstuck.toml:7:6",
            "duplicate role id `a` in the same file; use a unique id",
        ],
    );
    assert_told(
        "[[role]]\nid = \"a\"\nagent = \"cluade\"\nprompt = \"x\"\n",
        &["unknown agent `cluade`, did you mean `claude`?"],
    );
}

#[test]
fn unreadable_role_causes_no_further_errors() {
    assert_told(
        &(role("a", "needs = [\"b\"]") + "[[role]]\nid = \"b\"\nprompt = \"x\"\n"),
        &["`role.b` needs `agent`"],
    );
}

#[test]
fn misspelled_or_invalid_key_is_not_reported_as_missing() {
    for (text, words) in [
        (
            "id = 5\nagent = \"claude\"\nprompt = \"x\"",
            "must be a string, got 5",
        ),
        (
            "id = \"c/d\"\nagent = \"claude\"\nprompt = \"x\"",
            "1 to 64 letters",
        ),
        (
            "id = \"a\"\nagnet = \"claude\"\nprompt = \"x\"",
            "did you mean `agent`?",
        ),
        (
            "id = \"a\"\nagent = \"claude\"\npromt = \"x\"",
            "did you mean `prompt`?",
        ),
        (
            "id = \"a\"\nagent = \"claude\"\nprompt = 5",
            "must be a string",
        ),
        ("id = \"a\"\ncomand = [\"cat\"]", "did you mean `command`?"),
    ] {
        assert_told(&format!("[[role]]\n{text}\n"), &[words]);
        // Later errors are still reported.
        let two = told(&format!(
            "[[role]]\n{text}\n[[role]]\nid = \"z\"\nprompt = \"x\"\n"
        ));
        assert_eq!(two.len(), 2, "{two:?}");
        assert!(two[1].contains("`role.z` needs `agent`"), "{two:?}");
    }
    assert_told("[prompts.a]\ntxt = \"x\"\n", &["did you mean `text`?"]);
}

#[test]
fn role_needs_exactly_one_prompt() {
    assert_told(
        "[[role]]\nid = \"a\"\nagent = \"claude\"\n",
        &["needs a `prompt`"],
    );
    assert_told(&role("a", "prompt_file = \"x.md\""), &["keep only one"]);
    assert_told(
        "[[role]]\nid = \"a\"\nagent = \"claude\"\nprompt_file = \"gone.md\"\n",
        &["file gone.md not found", ":4:15"],
    );
    let place = Place::with(
        "unstuck.toml",
        "[[role]]\nid = \"a\"\nagent = \"claude\"\nprompt_file = \"x.md\"\nexpect.json = \"x.json\"\n",
    );
    std::fs::write(place.path().join("project/x.md"), b"\xff\xfe").unwrap();
    place.project("x.json", "{oops");
    let problems = place.problems();
    assert_eq!(problems.len(), 2, "{problems:?}");
    assert!(
        problems[0].contains("x.md is not valid UTF-8"),
        "{problems:?}"
    );
    assert!(
        problems[1].contains("x.json is not valid JSON"),
        "{problems:?}"
    );
    assert_eq!(
        told("[[role]]\nid = \"a\"\ncommand = [\"cat\"]\n"),
        Vec::<String>::new()
    );
    assert_told(
        "[[role]]\nid = \"a\"\nagent = \"command\"\n",
        &["needs a `command`"],
    );
    assert_told(
        &role("a", "command = [\"x\"]"),
        &["agent `claude` already has a command", ":5:11"],
    );
}

#[test]
fn impossible_agent_call_is_reported() {
    let codex = "[[role]]\nid = \"a\"\nagent = \"codex\"\nprompt = \"x\"\n";
    assert_told(
        &format!("{codex}allowed_tools = [\"Bash\"]\n"),
        &["no option for allowed tools", "--sandbox", ":5:17"],
    );
    let command =
        |words: &str| format!("[[role]]\nid = \"a\"\nprompt = \"x\"\ncommand = {words}\n");
    assert_told(
        &command("[\"cat\"]\nmodel = \"large\""),
        &["add \"{model}\" to `command`, or remove `model`", ":5:9"],
    );
    assert_told(
        &command("[\"sh\", \"-c\", \"agent {prompt}\"]"),
        &["the shell would execute the prompt", ":4:11"],
    );
    assert_told(
        &command("[\"agent\", \"{modle}\"]"),
        &["did you mean {model}?"],
    );
    let both = told(&command(
        "[\"cat\"]\nmodel = \"large\"\nallowed_tools = [\"Bash\"]",
    ));
    assert_eq!(both.len(), 2, "{both:?}");
}

#[test]
fn user_defined_agent_is_checked() {
    assert_told(
        "[agents.mine]\ntitle = \"Mine\"\n",
        &["`agents.mine.call.command`: missing"],
    );
    assert_told(
        "[agents.mine]\nbase_agent = \"cluade\"\n",
        &["unknown agent `cluade`, did you mean `claude`?", ":2:14"],
    );
    assert_told(
        "[agents.mine]\ncall.command = [\"mine\", \"{modle}\"]\n",
        &[
            "unknown placeholder {modle}, did you mean {model}?",
            ":2:16",
        ],
    );
    assert_told("[agents.a]\nbase_agent = \"a\"\n", &["unknown agent `a`"]);
    let circle = told("[agents.a]\nbase_agent = \"b\"\n[agents.b]\nbase_agent = \"a\"\n");
    assert!(
        circle[0].contains("`a` inherits from itself through `b`"),
        "{circle:?}"
    );
    assert_eq!(
        told("[agents.claude]\nbase_agent = \"claude\"\ntitle = \"Ours\"\n"),
        Vec::<String>::new()
    );
}

#[test]
fn unknown_names_are_reported() {
    assert_told(
        &role("a", "policy = \"patiant\""),
        &["`patiant`, did you mean `patient`?"],
    );
    assert_told(
        &role(
            "a",
            "[role.error_recovery.timeout]\ncustom_prompt_modifier = \"focsu\"",
        ),
        &["unknown prompt template `focsu`, did you mean `focus`?"],
    );
    assert_told(
        "[error_recovery.strategies.timeout]\nstrategies = [\"longer_timeot\"]\n",
        &["unknown strategy `longer_timeot`, did you mean `longer_timeout`?"],
    );
    assert_told(
        "[error_recovery.strategies.timeot]\nmax_retries = 1\n",
        &["unknown kind `timeot`, did you mean `timeout`?"],
    );
    assert_told(
        &(role("a", "") + "[loop.until]\npromise = { role = \"b\", text = \"DONE\" }\n"),
        &["unknown role `b`"],
    );
    assert_told(
        "[prompts]\nours = \"Mind {{ eror }}\"\n",
        &["unknown variable `eror`, did you mean `error`?"],
    );
    assert_told(
        &role("a", "expect.json = \"gone.json\""),
        &["file gone.json not found"],
    );
    assert_told(
        &role("a", "expect.match = \"a(\""),
        &["invalid regular expression"],
    );
    assert_told(
        "[[kinds.rate_limit.chain]]\nstrategy = \"nope\"\nconfidence = 0.5\n",
        &[
            "`kinds.rate_limit`: unknown strategy `nope`",
            "unstuck.toml:1",
        ],
    );
    assert_told(
        "[[repairs.requirement]]\nid = \"ours\"\nrequires = \"directory\"\ncategory = \"environment\"\nany = [\"/a(/\"]\ncause = \"c\"\noutcome = \"o\"\n",
        &["repair `ours`", "a(", "unstuck.toml:1"],
    );
    assert_told(
        "[webhooks]\non_escalation = \"example.org\"\n",
        &["must begin with https://"],
    );
}

#[test]
fn invalid_addresses_are_reported() {
    let hook = |text: &str| format!("[webhooks]\non_escalation = {{ {text} }}\n");
    for (text, words) in [
        ("format = \"slack\"", "needs a `url` or a `url_env`"),
        (
            "url = \"https://me:pw@a.example/\"",
            "must not contain a password",
        ),
        ("url = \"https:///x\"", "invalid URL"),
        (
            "url = \"https://a.example\", format = \"template\"",
            "needs a `template`",
        ),
        (
            "url = \"https://a.example\", template = \"x\"",
            "requires `format = ",
        ),
        (
            "url = \"https://a.example\", timeout = \"5m\"",
            "at most 45 seconds",
        ),
        (
            "url = \"https://a.example\", digest = 10",
            "a duration in quotes",
        ),
        (
            "url = \"https://a.example\", format = \"teams\"",
            "\"ntfy\"",
        ),
    ] {
        let all = told(&hook(text)).join("\n");
        assert!(all.contains(words), "{text}: {all}");
    }
    for (text, words) in [
        (
            "url = \"https://a.example\", secret_env = \"whsec_MfKQ9r8G\"",
            "the name of an environment variable",
        ),
        (
            "url = \"https://a.example\", url_env = \"B\"",
            "keep only one",
        ),
    ] {
        let place = Place::new();
        place.user("config.toml", &hook(text));
        let all = place.problems().join("\n");
        assert!(all.contains(words), "{text}: {all}");
    }
}

/// An agent can write the project's file, so nothing in it may run commands or reach private networks.
#[test]
fn owner_only_notification_settings_are_rejected_in_a_project() {
    for line in [
        "notify_command = \"./tell\"",
        "desktop = true",
        "allow_private = true",
        "on_resolved = { url = \"https://a.example\", token_env = \"AWS_SECRET_ACCESS_KEY\" }",
        "on_resolved = [\"https://b.example\", { url = \"https://a.example\", secret_env = \"KEY\" }]",
        "on_resolved = { url_env = \"HOOK\" }",
    ] {
        let all = told(&format!("[webhooks]\n{line}\n")).join("\n");
        assert!(
            all.contains("allowed only in your own configuration"),
            "{line}: {all}"
        );
        assert!(all.contains("unstuck.toml:2"), "{all}");
    }
}

#[test]
fn two_names_of_one_key_are_rejected() {
    assert_told(
        &role("a", "timeout = \"5m\"\ntimeout_seconds = 9"),
        &["`timeout_seconds` is an alias of `timeout`; keep only one"],
    );
}

#[test]
fn meaningless_numbers_are_rejected() {
    for (text, words) in [
        (
            "[policy]\nmaxCost = nan\n",
            "`policy.maxCost` must be a number, got NaN",
        ),
        (
            "[policy]\nmax_retries = -3\n",
            "`policy.maxRetries` is -3: must be an integer",
        ),
        (
            "[run]\nparallel = 0\n",
            "`run.parallel` must be 1 or more, got 0",
        ),
        ("[loop]\nmax_iterations = 0\n", "must be 1 or more"),
        ("[budget]\nper_run = { usd = -1.0 }\n", "must be 0 or more"),
        (
            "[error_recovery.strategies.timeout]\ntimeout_multiplier = 0.0\n",
            "must be 0.1 or more",
        ),
    ] {
        let all = told(text).join("\n");
        assert!(all.contains(words), "{text}: {all}");
    }
}

/// S3-17, S3-43: a blank entry is reported, and a section with one approves nothing.
#[test]
fn blank_list_entry_is_reported() {
    for text in [
        "[recovery]\nauto_approve = [\"npm ci\", \" \"]\n",
        "[recovery]\nauto_approve = [\"\"]\n",
    ] {
        assert_told(text, &["`recovery.auto_approve.", "must be a command"]);
    }
    assert_told(
        "[recovery]\nrequire_human = [\"\\t\"]\n",
        &["`recovery.require_human.1`", "must be a command"],
    );
}

/// S3-17: an entry of `auto_approve` that looks like a pattern is not one, and the owner is warned.
#[test]
fn pattern_like_approval_causes_a_warning() {
    let text = "[recovery]\nauto_approve = [\"npm ci\", \"npm *\", \"sh fix.sh\"]\non_unknown = \"allow\"\n";
    let config = Place::with("unstuck.toml", text).config();
    assert_eq!(config.check(), []);
    let notes: Vec<_> = config.warnings().iter().map(ToString::to_string).collect();
    let all = notes.join("\n");
    for words in [
        "`npm *` is matched literally",
        "`sh fix.sh` runs",
        "`recovery.on_unknown`",
    ] {
        assert!(all.contains(words), "`{words}` is not in:\n{all}");
    }
    assert!(!all.contains("npm ci`"), "{all}");
}

#[test]
fn invalid_id_is_reported_in_quotes() {
    let long = "x/".repeat(200);
    for (id, shown) in [
        ("../../etc", "`role.\"../../etc\".id`"),
        (&*long, "x/x/…\".id`"),
    ] {
        let text = format!("[[role]]\nid = \"{id}\"\nagent = \"claude\"\nprompt = \"Do it.\"\n");
        let problems = told(&text);
        assert!(problems[0].contains(shown), "{}", problems.join("\n"));
    }
}
