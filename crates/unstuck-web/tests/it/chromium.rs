//! A Chromium instance controlled through chromedriver.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use data_encoding::BASE64;
use fantoccini::error::{CmdError, ErrorStatus};
use fantoccini::wd::WebDriverCompatibleCommand;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper::Method;
use hyper_util::client::legacy::connect::HttpConnector;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use url::{ParseError, Url};

/// Script that records errors from the start of a page.
const WATCH: &str = r#"
    window.wrong = [];
    addEventListener("error", (e) => wrong.push("error: " + (e.message || e.target.src || e.target.href)), true);
    addEventListener("unhandledrejection", (e) => wrong.push("rejected: " + e.reason));
    document.addEventListener("securitypolicyviolation", (e) => wrong.push("csp: " + e.violatedDirective + " " + e.blockedURI));
    const told = console.error;
    console.error = (...all) => { wrong.push("console: " + all.join(" ")); told(...all); };
"#;

/// Script that reports sideways scrolling, clipped content and recorded errors.
const FAULTS: &str = r#"(() => {
    const wide = document.documentElement.scrollWidth - innerWidth;
    const all = [...(window.wrong || [])];
    if (wide > 0) all.push("scrolls sideways by " + wide);
    for (const it of document.querySelectorAll(".card, dialog[open]")) {
        const more = it.scrollWidth - it.clientWidth;
        if (more > 1 && !["auto", "scroll"].includes(getComputedStyle(it).overflowX)) all.push("cuts off " + more + " of " + it.innerText.slice(0, 80));
    }
    return all;
})()"#;

/// Script that reports serious accessibility violations found by axe.
const AXE: &str = "const done = arguments[0]; axe.run(document, {resultTypes: ['violations']}).then((r) => done(r.violations
    .filter((v) => ['serious', 'critical'].includes(v.impact))
    .map((v) => v.id + ': ' + v.nodes.slice(0, 4).map((n) => n.html + ' ' + n.failureSummary).join('; '))));";

/// A browser with one window.
pub(crate) struct Chromium {
    pub(crate) page: Client,
    driver: Child,
    profile: TempDir,
}

/// The size and color scheme of a page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    pub(crate) name: &'static str,
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) scheme: &'static str,
}

pub(crate) const LOOKS: [Look; 4] = [
    Look {
        name: "desk-light",
        width: 1280,
        height: 900,
        scheme: "light",
    },
    Look {
        name: "desk-dark",
        width: 1280,
        height: 900,
        scheme: "dark",
    },
    Look {
        name: "phone-light",
        width: 390,
        height: 844,
        scheme: "light",
    },
    Look {
        name: "phone-dark",
        width: 390,
        height: 844,
        scheme: "dark",
    },
];

/// A command of the Chrome DevTools Protocol.
#[derive(Debug)]
struct Cdp(Value);

impl WebDriverCompatibleCommand for Cdp {
    fn endpoint(&self, base: &Url, session: Option<&str>) -> Result<Url, ParseError> {
        base.join(&format!(
            "session/{}/goog/cdp/execute",
            session.unwrap_or_default()
        ))
    }

    fn method_and_body(&self, _: &Url) -> (Method, Option<String>) {
        (Method::POST, Some(self.0.to_string()))
    }
}

impl Chromium {
    /// Starts a browser; machines without one do not run the test group `browser`.
    pub(crate) async fn start() -> Self {
        let (driver, port) = driver().await;
        let profile = tempfile::tempdir().unwrap();
        let arguments = [
            "--headless=new".to_owned(),
            "--no-sandbox".to_owned(),
            "--disable-gpu".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            "--disable-background-networking".to_owned(),
            "--disable-component-update".to_owned(),
            "--disable-sync".to_owned(),
            "--no-first-run".to_owned(),
            "--hide-scrollbars".to_owned(),
            format!("--user-data-dir={}", profile.path().display()),
        ];
        let wanted = json!({"goog:chromeOptions": {"args": arguments}});
        let page = ClientBuilder::new(HttpConnector::new())
            .capabilities(wanted.as_object().unwrap().clone())
            .connect(&format!("http://127.0.0.1:{port}"))
            .await
            .unwrap();
        let browser = Self {
            page,
            driver,
            profile,
        };
        browser.look(LOOKS[0]).await;
        browser
            .cdp(
                "Page.addScriptToEvaluateOnNewDocument",
                json!({"source": WATCH}),
            )
            .await;
        browser
    }

    pub(crate) async fn cdp(&self, command: &str, params: Value) -> Value {
        let command = Cdp(json!({"cmd": command, "params": params}));
        self.page.issue_cmd(command).await.unwrap()
    }

    pub(crate) async fn look(&self, look: Look) {
        let size = json!({"width": look.width, "height": look.height, "deviceScaleFactor": 1, "mobile": look.width < 500});
        self.cdp("Emulation.setDeviceMetricsOverride", size).await;
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": look.scheme}]});
        self.cdp("Emulation.setEmulatedMedia", media).await;
    }

    /// Returns the result of a script.
    pub(crate) async fn says(&self, script: &str) -> Value {
        self.page
            .execute(&format!("return {script}"), Vec::new())
            .await
            .unwrap()
    }

    /// Waits until a script returns true.
    pub(crate) async fn until(&self, script: &str) {
        let yes = async {
            loop {
                let said: Result<Value, CmdError> = self
                    .page
                    .execute(&format!("return {script}"), Vec::new())
                    .await;
                if matches!(said, Ok(Value::Bool(true))) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let in_time = tokio::time::timeout(Duration::from_secs(20), yes).await;
        assert!(
            in_time.is_ok(),
            "never came true: {script}\n{}",
            self.says("document.body.innerText").await
        );
    }

    /// Clicks the element that a selector finds. Waits while the page replaces, moves or covers it; the browser reports such a click
    /// instead of performing it.
    pub(crate) async fn click(&self, selector: &str) {
        let center = format!(
            "document.querySelector({})?.scrollIntoView({{block: 'center', behavior: 'instant'}})",
            json!(selector)
        );
        let mut last = None;
        for _ in 0..100 {
            self.says(&center).await;
            let found = self.page.find(Locator::Css(selector)).await;
            let found = found.unwrap_or_else(|error| panic!("{selector}: {error}"));
            match found.click().await {
                Err(error) if error.is_stale_element_reference() || is_intercepted(&error) => {
                    last = Some(error);
                }
                clicked => return clicked.unwrap(),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{selector} cannot be clicked: {last:?}");
    }

    /// Returns layout and accessibility problems of the current page.
    pub(crate) async fn faults(&self) -> Vec<String> {
        let mut found = vec![self.says(FAULTS).await];
        let axe = target().join("axe/axe.min.js");
        let source = std::fs::read_to_string(&axe)
            .unwrap_or_else(|error| panic!("{}: {error}; `./check` fetches it", axe.display()));
        self.page.execute(&source, Vec::new()).await.unwrap();
        found.push(self.page.execute_async(AXE, Vec::new()).await.unwrap());
        let all = found.iter().filter_map(Value::as_array).flatten();
        all.map(|one| one.as_str().unwrap().to_owned()).collect()
    }

    /// Saves a screenshot of the whole page.
    pub(crate) async fn picture(&self, name: &str) {
        let size = "[innerWidth, document.documentElement.scrollHeight, innerHeight]";
        let size = self.says(size).await;
        let sized = |height: &Value| json!({"width": size[0], "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.cdp("Emulation.setDeviceMetricsOverride", sized(&size[1]))
            .await;
        let shot = self.cdp("Page.captureScreenshot", json!({})).await;
        self.cdp("Emulation.setDeviceMetricsOverride", sized(&size[2]))
            .await;
        let bytes = shot["data"].as_str().unwrap().as_bytes();
        let folder = target().join("screenshots");
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(format!("{name}.png"));
        std::fs::write(path, BASE64.decode(bytes).unwrap()).unwrap();
    }

    pub(crate) async fn close(mut self) {
        self.page.clone().close().await.unwrap();
        self.driver.kill().await.unwrap();
    }
}

fn is_intercepted(error: &CmdError) -> bool {
    matches!(error, CmdError::Standard(error) if error.error == ErrorStatus::ElementClickIntercepted)
}

impl Drop for Chromium {
    /// A killed driver leaves its browser behind; the lock of the profile contains its pid.
    fn drop(&mut self) {
        let lock = std::fs::read_link(self.profile.path().join("SingletonLock"));
        let lock = lock.ok().and_then(|lock| lock.to_str().map(str::to_owned));
        let pid = lock.and_then(|lock| lock.rsplit_once('-')?.1.parse().ok());
        if let Some(pid) = pid.and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// Returns Cargo's target directory.
fn target() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .unwrap()
        .to_owned()
}

/// Starts a driver and returns it with its port. Retries if another process took the chosen port first.
async fn driver() -> (Child, u16) {
    for _ in 0..5 {
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("chromedriver (apt-get install chromium chromium-driver)");
        if let Some(port) = port(&mut driver).await {
            return (driver, port);
        }
    }
    panic!("chromedriver did not start");
}

/// Returns the port that the driver prints when it is ready.
async fn port(driver: &mut Child) -> Option<u16> {
    let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
    while let Some(line) = lines.next_line().await.unwrap() {
        let said = line.strip_prefix("ChromeDriver was started successfully on port ");
        if let Some(port) = said {
            // Keep reading the output so that the driver does not block.
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
            return port.trim_end_matches('.').parse().ok();
        }
    }
    None
}
