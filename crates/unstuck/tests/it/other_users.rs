//! M7: all users of a machine share loopback, and unstuck only serves its owner.
//!
//! Other users are real: a child process that has dropped its privileges connects to the real program.

/// Tests that need root, because they switch users.
mod root {
    use std::process::Stdio;

    use unstuck_faults::FaultServer;

    use crate::Place;
    use crate::gateway::{Serving, api, by_user, until};

    /// A user unrelated to the one running the tests.
    const STRANGER: &str = "6666";
    const ANSWERS: &str = "[[step]]\nanswer = { text = \"Done.\" }\ntimes = \"always\"\n";
    /// Requests a path, and prints the first line and the rest; then stops reading.
    const ASK: &str = r#"
import socket, sys
port, method, path, extra, body, hangs_up = sys.argv[1:7]
s = socket.create_connection(("127.0.0.1", int(port)))
s.settimeout(20)
head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nconnection: close\r\n{extra}content-length: {len(body)}\r\n\r\n"
s.sendall((head + body).encode())
if hangs_up:
    s.close()
    sys.exit()
got = b""
try:
    while piece := s.recv(65536):
        got += piece
        if b"text/event-stream" in got:
            break
except TimeoutError:
    pass
sys.stdout.write(got.decode(errors="replace"))
"#;
    const CALL: &str = r#"{"model":"claude-sonnet-5-5","max_tokens":9,"messages":[{"role":"user","content":"x"}]}"#;

    /// A client: another user, or ourselves.
    struct Asker<'a> {
        place: &'a Place,
        port: &'a str,
        user: Option<&'a str>,
    }

    impl Asker<'_> {
        fn send(
            &self,
            method: &str,
            path: &str,
            extra: &str,
            body: &str,
            hangs_up: &str,
        ) -> String {
            let words = [
                "python3", "-c", ASK, self.port, method, path, extra, body, hangs_up,
            ];
            let mut command = match self.user {
                Some(user) => {
                    let (uid, gid) = (format!("--reuid={user}"), format!("--regid={user}"));
                    let mut command = self
                        .place
                        .program("setpriv", &[&uid, &gid, "--clear-groups"]);
                    command.args(words);
                    command
                }
                None => self.place.program(words[0], &words[1..]),
            };
            // Other users cannot enter the test's directory.
            let output = command.current_dir("/").stderr(Stdio::inherit()).output();
            String::from_utf8(output.unwrap().stdout).unwrap()
        }

        fn get(&self, path: &str) -> String {
            self.send("GET", path, "", "", "")
        }

        fn call(&self) -> String {
            let path = "/anthropic/v1/messages";
            self.send("POST", path, "content-type: application/json\r\n", CALL, "")
        }
    }

    fn asked(api: &FaultServer) -> usize {
        api.requests().len()
    }

    /// A server whose upstream has the owner's key.
    fn with_key(place: &Place, api: &FaultServer, args: &[&str]) -> Serving {
        by_user(
            place,
            &format!(
                "[[gateway.upstreams.anthropic]]\nurl = \"{}\"\nkey_env = \"OWNERS_KEY\"\n",
                api.url()
            ),
        );
        Serving::start_with(place, args, &[("OWNERS_KEY", "0wners-key-123456")])
    }

    #[test]
    fn other_user_reads_nothing_and_spends_no_key_while_owner_can() {
        let place = Place::new();
        place.run(
            &["exec", "--policy", "off", "--", "echo", "a private text"],
            "",
        );
        let api = api(ANSWERS);
        let serving = with_key(&place, &api, &[]);
        let asker = |user| Asker {
            place: &place,
            port: &serving.port,
            user,
        };
        let (stranger, own) = (asker(Some(STRANGER)), asker(None));
        for path in [
            "/api/runs",
            "/api/escalations",
            "/api/events?after=0",
            "/api/projects",
            "/api/health",
            "/",
            "/runs",
            "/inbox",
        ] {
            let refused = stranger.get(path);
            assert!(refused.starts_with("HTTP/1.1 401"), "{path}: {refused}");
            let served = own.get(path);
            assert!(served.starts_with("HTTP/1.1 200"), "{path}: {served}");
        }
        let refused = stranger.call();
        assert!(refused.starts_with("HTTP/1.1 403"), "{refused}");
        assert!(refused.contains("only the user who runs it"), "{refused}");
        assert_eq!(asked(&api), 0, "the owner's key was spent");
        let served = own.call();
        assert!(served.contains("Done."), "{served}");
        assert_eq!(asked(&api), 1);
    }

    /// The kernel attributes a connection whose client has disconnected to root; its data must not be trusted as
    /// root's.
    #[test]
    fn other_user_who_sends_and_disconnects_spends_no_key() {
        let place = Place::new();
        let api = api(ANSWERS);
        let serving = with_key(&place, &api, &[]);
        let asker = |user| Asker {
            place: &place,
            port: &serving.port,
            user,
        };
        let extra = "content-type: application/json\r\n";
        for _ in 0..20 {
            let stranger = asker(Some(STRANGER));
            stranger.send("POST", "/anthropic/v1/messages", extra, CALL, "yes");
        }
        assert!(asker(None).call().contains("Done."));
        assert_eq!(asked(&api), 1, "only our own call arrived");
    }

    #[test]
    fn other_user_with_a_token_is_served() {
        let place = Place::new();
        let api = api(ANSWERS);
        place.write("token", "0123456789abcdef0123456789abcdef\n");
        let serving = with_key(&place, &api, &["--token-file", "token"]);
        let made = place.run(&["token", "create", "--scope", "read"], "");
        let stranger = Asker {
            place: &place,
            port: &serving.port,
            user: Some(STRANGER),
        };
        let token = format!("authorization: Bearer {}\r\n", made.stdout.trim());
        let read = stranger.send("GET", "/api/runs", &token, "", "");
        assert!(read.starts_with("HTTP/1.1 200"), "{read}");
        let token = "x-unstuck-token: 0123456789abcdef0123456789abcdef\r\n";
        let called = stranger.send("POST", "/anthropic/v1/messages", token, CALL, "");
        assert!(called.contains("Done."), "{called}");
        assert!(stranger.call().starts_with("HTTP/1.1 401"));
        assert_eq!(asked(&api), 1);
    }

    /// The private gateway of a run: others may see its address in the agent's environment and command line.
    #[test]
    fn other_user_cannot_use_the_private_gateway_of_a_run() {
        let place = Place::new();
        let api = api(ANSWERS);
        by_user(
            &place,
            &format!(
                "[[gateway.upstreams.anthropic]]\nurl = \"{}\"\nkey_env = \"OWNERS_KEY\"\n",
                api.url()
            ),
        );
        place.tool(
            "claude",
            "#!/bin/sh\necho \"$ANTHROPIC_BASE_URL\" > url.new; mv url.new url; while [ ! -e go ]; do sleep 0.05; done; echo done\n",
        );
        let mut run = place.command(&["exec", "--", "claude", "-p", "x"]);
        run.env("OWNERS_KEY", "0wners-key-123456")
            .env("ANTHROPIC_API_KEY", "agents-own-key-123")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let mut run = run.spawn().unwrap();
        let url = until("the agent runs", || {
            std::fs::read_to_string(place.project().join("url")).ok()
        });
        let rest = url.trim().strip_prefix("http://127.0.0.1:").unwrap();
        let (port, path) = rest.split_once('/').unwrap();
        let path = format!("/{path}/v1/messages");
        let extra = "content-type: application/json\r\n";
        let asker = |user| Asker {
            place: &place,
            port,
            user,
        };
        let refused = asker(Some(STRANGER)).send("POST", &path, extra, CALL, "");
        let spent = asked(&api);
        let served = asker(None).send("POST", &path, extra, CALL, "");
        place.write("go", "");
        run.wait().unwrap();
        assert!(refused.starts_with("HTTP/1.1 403"), "{refused}");
        assert_eq!(spent, 0, "the owner's key was spent");
        assert!(served.contains("Done."), "{served}");
    }
}
