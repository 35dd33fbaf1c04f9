//! The dashboard of `unstuck serve` in a real Chromium: real runs, real agents, a real API that fails.

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

/// A browser in front of a server.
struct Desk {
    browser: Chromium,
    serving: Serving,
}

impl Desk {
    /// A server in this place, and a browser that came by the printed link.
    async fn open(place: &Place, args: &[&str]) -> Self {
        let mut desk = Self::reading(place, args).await;
        let link = desk.serving.link();
        desk.come(&link).await;
        desk
    }

    /// A server in this place, and a browser that nobody has logged in.
    async fn reading(place: &Place, args: &[&str]) -> Self {
        let browser = Chromium::start().await;
        let serving = Serving::start(place, args);
        Self { browser, serving }
    }

    /// Opens a link that logs in.
    async fn come(&self, link: &str) {
        self.browser.page.goto(link).await.unwrap();
        self.until("location.pathname === '/' && document.readyState === 'complete'")
            .await;
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.serving.port)
    }

    /// Opens a page, and waits until it is live.
    async fn goto(&self, path: &str) {
        self.browser.page.goto(&self.url(path)).await.unwrap();
        self.until("document.getElementById('live')?.dataset.state === 'live'")
            .await;
    }

    async fn until(&self, script: &str) {
        self.browser.until(script).await;
    }

    /// Waits until the page, or what a selector finds in it, shows a text.
    async fn shows(&self, within: &str, text: &str) {
        let (within, text) = (json!(within), json!(text));
        self.until(&format!(
            "(document.querySelector({within})?.innerText || '').includes({text})"
        ))
        .await;
    }

    /// Waits until what a selector finds can be pressed, and presses it.
    async fn press(&self, selector: &str) {
        let found = json!(selector);
        self.until(&format!(
            "(() => {{ const it = document.querySelector({found}); return Boolean(it) && !it.disabled && it.checkVisibility(); }})()"
        ))
        .await;
        self.browser.click(selector).await;
    }

    /// Writes into a field in place of what stands there.
    async fn fill(&self, selector: &str, text: &str) {
        let (found, text) = (json!(selector), json!(text));
        let script = format!("document.querySelector({found}).value = {text}");
        self.browser.says(&script).await;
    }

    /// Keeps pictures of the page, at a desk and on a phone; everybody must be able to use it there.
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

    /// What the page gets from an address of its server.
    async fn fetched(&self, path: &str) -> String {
        let ask = "const done = arguments[1]; fetch(arguments[0]).then((answer) => answer.text()).then(done)";
        let page = &self.browser.page;
        let text = page.execute_async(ask, vec![json!(path)]).await.unwrap();
        text.as_str().unwrap().to_owned()
    }

    /// The status that a page gets for what it posts.
    async fn posted(&self, path: &str, body: Value) -> Value {
        let ask = "const done = arguments[2]; fetch(arguments[0], {method: 'POST', headers: {'Content-Type': 'application/json'}, body: JSON.stringify(arguments[1])}).then((answer) => done(answer.status))";
        let page = &self.browser.page;
        page.execute_async(ask, vec![json!(path), body])
            .await
            .unwrap()
    }

    /// Presses keys, wherever the focus is.
    async fn keys(&self, keys: &str) {
        let page = &self.browser.page;
        let focused = page.active_element().await.unwrap();
        focused.send_keys(keys).await.unwrap();
    }

    /// Presses Tab until something has the focus.
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

    /// Ends the browser; nothing must have gone wrong on the last page.
    async fn close(self) {
        assert_eq!(self.says("window.wrong").await, json!([]));
        self.browser.close().await;
    }
}

/// A command of unstuck that goes on beside the browser, and ends with the test.
struct Beside(Child);

impl Beside {
    fn start(place: &Place, args: &[&str], env: &[(&str, &str)]) -> Self {
        let mut command = place.command(args);
        command.envs(env.iter().copied());
        command.stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }

    /// Stops it as by Ctrl-C.
    fn stop(&mut self) {
        kill_process(Pid::from_child(&self.0), Signal::INT).unwrap();
        self.code();
    }

    /// Its exit code, once it has ended.
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
