//! Tests of the dashboard of `unstuck serve` in Chromium: real runs, agent processes and an API that fails.

#[cfg(test)]
#[path = "../../../../../unstuck-web/tests/it/chromium.rs"]
mod chromium;
mod entering;
mod failures;
mod inbox;
mod now;
mod policies;
mod pressed;
mod reading;
mod session;
mod settings;
mod strangers;

use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use self::chromium::{Chromium, LOOKS};
use crate::Place;
use crate::gateway::Serving;

/// A browser connected to a server.
struct Desk {
    browser: Chromium,
    serving: Serving,
}

impl Desk {
    /// Starts a server and a browser that logs in with the printed link.
    async fn open(place: &Place, args: &[&str]) -> Self {
        let mut desk = Self::reading(place, args).await;
        let link = desk.serving.link();
        desk.come(&link).await;
        desk
    }

    /// Starts a server and a browser that is not logged in.
    async fn reading(place: &Place, args: &[&str]) -> Self {
        let browser = Chromium::start().await;
        let serving = Serving::start(place, args);
        Self { browser, serving }
    }

    /// Opens a login link.
    async fn come(&self, link: &str) {
        self.browser.page.goto(link).await.unwrap();
        self.until("location.pathname === '/' && document.readyState === 'complete'")
            .await;
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.serving.port)
    }

    /// Opens a page and waits until it is live.
    async fn goto(&self, path: &str) {
        self.browser.page.goto(&self.url(path)).await.unwrap();
        self.until("document.getElementById('live')?.dataset.state === 'live'")
            .await;
    }

    async fn until(&self, script: &str) {
        self.browser.until(script).await;
    }

    /// Waits until the page, or the selected part of it, shows a text.
    async fn shows(&self, within: &str, text: &str) {
        let (within, text) = (json!(within), json!(text));
        self.until(&format!(
            "(document.querySelector({within})?.innerText || '').includes({text})"
        ))
        .await;
    }

    /// Waits until a button is enabled and presses it.
    async fn press(&self, selector: &str) {
        let found = json!(selector);
        self.until(&format!(
            "(() => {{ const it = document.querySelector({found}); return Boolean(it) && !it.disabled && it.checkVisibility(); }})()"
        ))
        .await;
        self.browser.click(selector).await;
    }

    /// Replaces the content of a field.
    async fn fill(&self, selector: &str, text: &str) {
        let (found, text) = (json!(selector), json!(text));
        let script = format!("document.querySelector({found}).value = {text}");
        self.browser.says(&script).await;
    }

    /// Saves screenshots of the page on desktop and phone, and checks its accessibility.
    async fn picture(&self, name: &str) {
        for look in [LOOKS[0], LOOKS[3]] {
            self.browser.look(look).await;
            let faults = self.browser.faults().await;
            assert!(faults.is_empty(), "{name} {}: {faults:#?}", look.name);
            let name = format!("real-{name}-{}", look.name);
            self.browser.picture(&name).await;
        }
        self.browser.look(LOOKS[0]).await;
    }

    /// Returns what the page fetches from its server.
    async fn fetched(&self, path: &str) -> String {
        let ask = "const done = arguments[1]; fetch(arguments[0]).then((answer) => answer.text()).then(done)";
        let page = &self.browser.page;
        let text = page.execute_async(ask, vec![json!(path)]).await.unwrap();
        text.as_str().unwrap().to_owned()
    }

    /// Returns the status of a POST request sent by the page.
    async fn posted(&self, path: &str, body: Value) -> Value {
        let ask = "const done = arguments[2]; fetch(arguments[0], {method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify(arguments[1])}).then((answer) => done(answer.status))";
        let page = &self.browser.page;
        page.execute_async(ask, vec![json!(path), body])
            .await
            .unwrap()
    }

    /// Presses keys with the current focus.
    async fn keys(&self, keys: &str) {
        let page = &self.browser.page;
        let focused = page.active_element().await.unwrap();
        focused.send_keys(keys).await.unwrap();
    }

    /// Presses Tab until the selected element has the focus.
    async fn tab_to(&self, selector: &str) {
        let found = format!(
            "document.activeElement?.matches({}) === true",
            json!(selector)
        );
        for _ in 0..60 {
            self.keys("\u{e004}").await;
            if self.says(&found).await == true {
                return;
            }
        }
        panic!("{selector} is never reached");
    }

    async fn says(&self, script: &str) -> Value {
        self.browser.says(script).await
    }

    /// Closes the browser and checks that the last page had no errors.
    async fn close(self) {
        assert_eq!(self.says("window.wrong").await, json!([]));
        self.browser.close().await;
    }
}

/// An unstuck process that runs next to the browser and ends with the test.
struct Beside(Child);

impl Beside {
    fn start(place: &Place, args: &[&str], env: &[(&str, &str)]) -> Self {
        let mut command = place.command(args);
        command.envs(env.iter().copied());
        command.stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }

    /// Interrupts it like Ctrl-C.
    fn stop(&mut self) {
        kill_process(Pid::from_child(&self.0), Signal::INT).unwrap();
        self.code();
    }

    /// Returns its exit code once it has ended.
    fn code(&mut self) -> Option<i32> {
        self.0.wait().unwrap().code()
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
