//! Tests of whole pages: escaping and accessibility.

mod sample;

use sample::Sample;

use super::layout;
use super::parts::controls::Permissions;
use super::{failures, inbox, login, overview, policies, run, runs, session, settings};

const ALL: Permissions = Permissions {
    can_answer: true,
    can_change: true,
};

/// Hostile texts that an agent might write.
const HOSTILE: [&str; 9] = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "' onmouseover='alert(1)",
    "</textarea></title></style><svg onload=alert(1)>",
    "javascript:alert(1)",
    "]]><!--><iframe src=//evil.example>",
    "\u{0}\u{7}\u{1b}[2J\u{1b}]8;;http://evil.example\u{7}text",
    "\u{202e}gnp.exe\u{2066}\u{200f}",
    "{{7*7}}${7*7}&lt;script&gt;",
];

fn pages<F: Fn(&str) -> String>(sample: &Sample<F>) -> Vec<(&'static str, String)> {
    let session_page = sample.session_page();
    let all = [
        ("now", overview::page(&sample.now())),
        ("runs", runs::page(&sample.runs())),
        ("run", run::page(&sample.run_page())),
        ("session", session::page(&session_page)),
        (
            "retry dialog",
            session::retry_dialog(&session_page, &sample.prompt()),
        ),
        (
            "escalate dialog",
            session::model_switch_dialog(&session_page, &sample.estimate()),
        ),
        ("inbox", inbox::page(&sample.inbox())),
        ("question", inbox::escalation_page(&sample.question_page())),
        ("preview", inbox::preview(&sample.preview())),
        ("failures", failures::page(&sample.failures())),
        ("policies", policies::page(&sample.policies())),
        ("settings", settings::page(&sample.settings())),
        ("login", login::page(&sample.frame(), "/")),
        (
            "trouble",
            login::error_page(
                &sample.frame(),
                "Not found",
                &(sample.says)("run `x` not found"),
            ),
        ),
    ];
    all.into_iter()
        .map(|(name, page)| (name, page.into_string()))
        .collect()
}

/// Returns the tags of a page without the text between them.
fn tags(page: &str) -> Vec<&str> {
    let mut tags = Vec::new();
    let mut rest = page;
    while let Some(from) = rest.find('<') {
        let mut quoted = false;
        let to = rest[from..].find(|c: char| {
            quoted ^= c == '"';
            c == '>' && !quoted
        });
        let to = to.map_or(rest.len(), |to| from + to + 1);
        tags.push(&rest[from..to]);
        rest = &rest[to..];
    }
    tags
}

/// Returns the attribute names of a tag.
fn names(tag: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut quoted = false;
    for word in tag.split_inclusive(|c: char| {
        quoted ^= c == '"';
        !quoted && c.is_whitespace()
    }) {
        let name = word.split('=').next().unwrap_or_default();
        names.push(name.trim());
    }
    names
}

#[test]
fn agent_text_is_never_rendered_as_markup() {
    let plain = pages(&Sample {
        says: |text: &str| format!("{text}harmless"),
        may: ALL,
    });
    for hostile in HOSTILE {
        let sample = Sample {
            says: |text: &str| format!("{text}{hostile}"),
            may: ALL,
        };
        for ((name, page), (_, plain)) in pages(&sample).into_iter().zip(&plain) {
            for tag in tags(&page) {
                let element = names(tag)[0].to_lowercase();
                assert!(
                    !["<img", "<iframe", "<object", "<embed", "<style", "<base"]
                        .iter()
                        .any(|one| element.starts_with(one)),
                    "{name}: {tag}"
                );
                if element.starts_with("<script") {
                    assert!(tag.contains("src=\"/assets/unstuck-"), "{name}: {tag}");
                }
                for attribute in names(tag).into_iter().skip(1) {
                    assert!(
                        !attribute.to_lowercase().starts_with("on") && attribute != "style",
                        "{name}: {tag}"
                    );
                }
                for link in ["href=\"", "src=\"", "action=\""] {
                    let Some(target) = tag.split(link).nth(1) else {
                        continue;
                    };
                    assert!(
                        target.starts_with('/') || target.starts_with('#'),
                        "{name}: {tag}"
                    );
                    assert!(!target.starts_with("//"), "{name}: {tag}");
                }
            }
            // Only the texts changed: the number of elements is the same.
            assert_eq!(
                tags(&page).len(),
                tags(plain).len(),
                "{name} with {hostile:?}"
            );
            // Editable text must stay unchanged.
            let commands = page.contains(|c: char| c.is_control() && c != '\n' && c != '\t');
            assert!(
                name == "retry dialog" || !commands,
                "{name} with {hostile:?}"
            );
        }
    }
}

/// Bidirectional control characters are made visible wherever a human reads them.
#[test]
fn misleading_characters_are_visible_on_every_page() {
    let sample = Sample {
        says: |text: &str| format!("{text}\u{202e}gnp.exe\u{2066}"),
        may: ALL,
    };
    for (name, page) in pages(&sample) {
        let mut rest = page.as_str();
        while let Some(from) = rest.find('>') {
            let to = rest[from..].find('<').map_or(rest.len(), |to| from + to);
            let text = &rest[from..to];
            // Editable text must stay unchanged.
            let is_edited = rest[..from].ends_with("aria-describedby=\"retry-prompt-hint\"");
            assert!(
                is_edited || !text.contains(['\u{202e}', '\u{2066}']),
                "{name}: {text}"
            );
            rest = &rest[to..];
        }
    }
}

#[test]
fn endless_lines_are_truncated_on_every_page() {
    let long = "x".repeat(1 << 20);
    let sample = Sample {
        says: |text: &str| format!("{text}{long}"),
        may: ALL,
    };
    for (name, page) in pages(&sample) {
        // Ids and editable prompts stay whole; lines of output do not.
        let texts: usize = tags(&page).iter().map(|tag| tag.len()).sum();
        let shown = page.len() - texts;
        let most = if name == "retry dialog" {
            3 << 20
        } else {
            1 << 20
        };
        assert!(shown < most, "{name}: {shown} bytes of text");
    }
}

#[test]
fn every_page_has_landmarks_one_h1_and_labels_for_all_fields() {
    let sample = Sample {
        says: str::to_owned,
        may: ALL,
    };
    for (name, page) in pages(&sample)
        .into_iter()
        .filter(|(_, page)| page.starts_with("<!DOCTYPE"))
    {
        for wanted in [
            "<html lang=\"en\"",
            "<main id=\"main\"",
            "<nav class=\"nav\" aria-label=",
            "class=\"skip\"",
            "aria-live=\"polite\"",
            "<title>",
        ] {
            assert!(page.contains(wanted), "{name}: {wanted}");
        }
        assert_eq!(page.matches("<h1").count(), 1, "{name}");
        let mut ids: Vec<_> = page
            .split(" id=\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .collect();
        ids.sort_unstable();
        let all = ids.len();
        ids.dedup();
        assert_eq!(ids.len(), all, "{name}: an id is there twice");
        for tag in tags(&page).into_iter().filter(|tag| {
            ["<input", "<select", "<textarea"]
                .iter()
                .any(|one| tag.starts_with(one))
        }) {
            let id = tag
                .split(" id=\"")
                .nth(1)
                .and_then(|rest| rest.split('"').next());
            let labelled = id.is_some_and(|id| page.contains(&format!("for=\"{id}\"")));
            // A checkbox is inside its label.
            assert!(
                labelled || tag.contains("type=\"checkbox\"") || tag.contains("type=\"hidden\""),
                "{name}: {tag}"
            );
        }
    }
}

#[test]
fn read_only_viewer_sees_why_buttons_are_disabled() {
    let sample = Sample {
        says: str::to_owned,
        may: Permissions::default(),
    };
    for (name, page) in pages(&sample) {
        for tag in tags(&page).into_iter().filter(|tag| {
            tag.starts_with("<button")
                && (tag.contains("data-dialog") || tag.contains("value=\"approve\""))
        }) {
            assert!(
                tag.contains(" disabled") && tag.contains(" title=\""),
                "{name}: {tag}"
            );
        }
    }
    let question = inbox::escalation_page(&sample.question_page()).into_string();
    assert!(question.contains("Read-only access."), "{question}");
}

#[test]
fn each_part_renders_alone_with_its_name() {
    let sample = Sample {
        says: str::to_owned,
        may: ALL,
    };
    let view = sample.now();
    let whole = overview::page(&view).into_string();
    for part in ["needs", "tiles", "sessions", "upstreams", "ended"] {
        let alone = overview::part(&view, part).unwrap().into_string();
        assert!(whole.contains(&alone), "{part}");
        assert!(alone.contains(&format!("data-part=\"{part}\"")), "{part}");
    }
    assert!(overview::part(&view, "moon").is_none());
    assert!(
        layout::open_count(2)
            .into_string()
            .contains("data-part=\"open-count\"")
    );
}

/// S4-04: the page shows the retry in progress, its countdown and its number.
#[test]
fn waiting_session_shows_its_attempt_and_countdown() {
    let page = overview::page(
        &Sample {
            says: str::to_owned,
            may: ALL,
        }
        .now(),
    )
    .into_string();
    assert!(page.contains("3 of 4"), "{page}");
    assert!(
        page.contains("Retrying <time") && page.contains(">in 42 s</time>"),
        "{page}"
    );
}

/// S4-12: the header of the session shows a model switch.
#[test]
fn session_header_shows_current_and_previous_models() {
    let page = session::page(
        &Sample {
            says: str::to_owned,
            may: ALL,
        }
        .session_page(),
    )
    .into_string();
    assert!(page.contains("<span class=\"tag\">claude-haiku-5</span> → <span class=\"tag\">claude-sonnet-5-5</span>"), "{page}");
}

/// S4-10: earlier attempts are kept and compared.
#[test]
fn attempts_are_compared_with_the_previous_one() {
    let page = session::page(
        &Sample {
            says: str::to_owned,
            may: ALL,
        }
        .session_page(),
    )
    .into_string();
    assert!(
        page.contains("Prompt changes since the previous attempt"),
        "{page}"
    );
    assert!(
        page.contains("added: </span>The last report had no section"),
        "{page}"
    );
}
