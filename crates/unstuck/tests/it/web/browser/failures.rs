//! Tests of the failures page: filters in the URL and exports.

use super::Desk;
use crate::Place;
use crate::gateway::by_user;

/// Sets up three different failures in two projects.
fn history() -> Place {
    let place = Place::new();
    by_user(&place, "[policy]\nmaxRetries = 1\nbackoffBase = 0.001\n");
    place.tool("claude", "#!/bin/sh\n[ -f ok ] && echo done && exit 0; touch ok; echo 'API Error: 529 overloaded_error'; exit 1\n");
    let exec = [
        "exec",
        "--",
        "claude",
        "--model",
        "claude-sonnet-5-5",
        "-p",
        "fix the tests",
    ];
    place.run(&exec, "").told(0, &[]);
    let refused = "echo 'connect: connection refused' >&2; exit 1";
    place
        .run(&["exec", "--", "sh", "-c", refused], "")
        .told(3, &[]);
    let other = place.folder.path().join("other");
    std::fs::create_dir(&other).unwrap();
    let mut command = place.command(&["exec", "--", "sh", "-c", refused]);
    command.current_dir(other).output().unwrap();
    place
}

/// S4-17, S4-22, S4-32: every filter is in the URL and applies to the page and the export.
#[tokio::test(flavor = "multi_thread")]
async fn failures_are_filtered_by_the_url_and_exported() {
    let place = history();
    let desk = Desk::open(&place, &[]).await;
    desk.goto("/failures").await;
    desk.shows("#main", "5\nfailed of 6 attempts").await;
    desk.shows("#main", "1\nruns recovered").await;
    desk.picture("failures").await;
    let choose = |id: &str, text: &str| {
        format!(
            "(() => {{ const it = document.getElementById('{id}'); it.value = [...it.options].find((one) => one.text === '{text}').value; return true; }})()"
        )
    };
    // Each filter is chosen on the page that has the previous one: its URL shows that it applies.
    for (id, text, part, failed) in [
        ("days", "Today (UTC)", "[?&]days=1(&|$)", "5\nfailed"),
        ("project", "other", "[?&]project=[^&]", "2\nfailed"),
        (
            "kind",
            "network_error",
            "[?&]kind=network_error(&|$)",
            "2\nfailed",
        ),
    ] {
        desk.says(&choose(id, text)).await;
        desk.press("form[action='/failures'][role=search] button")
            .await;
        desk.until(&format!(
            "document.readyState === 'complete' && /{part}/.test(location.search)"
        ))
        .await;
        desk.shows("#main", failed).await;
    }
    let search = desk.says("location.search").await;
    for part in ["days=1", "kind=network_error", "project="] {
        assert!(search.as_str().unwrap().contains(part), "{search}");
    }
    for (format, lines) in [("csv", 3), ("jsonl", 2)] {
        let link = format!("a[download][href*='format={format}']");
        let link = desk
            .says(&format!(
                "document.querySelector(\"{link}\").getAttribute('href')"
            ))
            .await;
        let text = desk.fetched(link.as_str().unwrap()).await;
        assert_eq!(text.lines().count(), lines, "{text}");
        assert_eq!(text.matches("connection refused").count(), 2, "{text}");
    }
    desk.goto("/failures?model=claude-sonnet-5-5").await;
    desk.shows("#main", "1\nfailed of 2 attempts").await;
    desk.fill("#minutes", "30").await;
    desk.press("form[action='/failures'].row button").await;
    desk.shows("#main", "30 minutes per manual restart").await;
    desk.until("document.getElementById('model').value === 'claude-sonnet-5-5'")
        .await;
    desk.close().await;
}

/// S4-17: the export buttons save files with the filtered failures.
#[tokio::test(flavor = "multi_thread")]
async fn exports_are_saved_as_files() {
    let place = history();
    let desk = Desk::open(&place, &[]).await;
    let folder = place.folder.path().join("downloads");
    std::fs::create_dir(&folder).unwrap();
    let into = serde_json::json!({"behavior": "allow", "downloadPath": folder});
    desk.browser.cdp("Browser.setDownloadBehavior", into).await;
    desk.goto("/failures?kind=server_overloaded").await;
    desk.press("a.button[href*='format=csv']").await;
    desk.press("a.button[href*='format=jsonl']").await;
    let saved = |end: &str| {
        crate::gateway::until(end, || {
            let mut files = std::fs::read_dir(&folder).unwrap().flatten();
            let file = files.find(|file| file.file_name().to_string_lossy().ends_with(end))?;
            Some(std::fs::read_to_string(file.path()).unwrap()).filter(|text| !text.is_empty())
        })
    };
    let csv = saved(".csv");
    assert_eq!(csv.lines().count(), 2, "{csv}");
    assert!(
        csv.contains("server_overloaded") && csv.contains("claude-sonnet-5-5"),
        "{csv}"
    );
    let line: serde_json::Value = serde_json::from_str(saved(".jsonl").trim()).unwrap();
    assert_eq!(line["kind"], "server_overloaded", "{line}");
    desk.close().await;
}

/// The list of runs is filtered by the URL, too.
#[tokio::test(flavor = "multi_thread")]
async fn runs_are_filtered_by_the_url() {
    let place = history();
    let desk = Desk::open(&place, &[]).await;
    desk.goto("/runs").await;
    desk.until("document.querySelectorAll('[data-part=list] tbody tr').length === 3")
        .await;
    desk.picture("runs").await;
    desk.fill("#status", "recovered").await;
    desk.press("form[action='/runs'] button").await;
    desk.until("document.querySelectorAll('[data-part=list] tbody tr').length === 1")
        .await;
    desk.goto("/runs?status=waiting").await;
    desk.shows("[data-part=list]", "No runs match.").await;
    desk.close().await;
}

/// Older runs are one click away.
#[tokio::test(flavor = "multi_thread")]
async fn older_runs_are_on_further_pages() {
    let place = Place::new();
    for number in 0..51 {
        let number = number.to_string();
        place.run(&["exec", "--", "true", &number], "").told(0, &[]);
    }
    let desk = Desk::open(&place, &[]).await;
    desk.goto("/runs").await;
    desk.press("a.button[href*='after=']").await;
    desk.shows("[data-part=list]", "true 0").await;
    desk.until("document.querySelectorAll('[data-part=list] tbody tr').length === 1")
        .await;
    desk.close().await;
}
