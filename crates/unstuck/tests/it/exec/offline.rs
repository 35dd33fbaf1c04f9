//! A machine without a network: a run waits until it is back, and no limit is used up meanwhile.
//!
//! The test has its own network namespace with its own hosts; nothing leaves it.

/// Tests that only root can run: they remove and restore a network.
mod root {
    use crate::Place;
    use crate::gateway::claude;

    /// Runs the agent without a network, and adds one as soon as unstuck reports the wait.
    const SCRIPT: &str = r#"
ip link set lo up || exit 90
"$UNSTUCK" exec -- sh ./agent 2> told & unstuck=$!
tries=0
until grep -q 'network is down' told; do
  tries=$((tries + 1)); [ $tries -lt 300 ] && kill -0 $unstuck || exit 91
  sleep 0.1
done
ip link add v0 type veth peer name v1 && ip link set v0 up && ip link set v1 up &&
  ip addr add 192.0.2.2/24 dev v0 && ip route add default via 192.0.2.1 || exit 92
mount --bind hosts /etc/hosts || exit 93
touch up
wait $unstuck
"#;

    /// The same with an agent whose calls go through the gateway, where `unstuck status` shows the wait. The API is on
    /// the loopback interface.
    const SCRIPT_WITH_GATEWAY: &str = r#"
ip link set lo up || exit 90
"$UNSTUCK" faults serve api.toml --listen 127.0.0.1:8080 & api=$!
"$UNSTUCK" exec -- claude -p --output-format json > answer 2> told & unstuck=$!
tries=0
until grep -q 'network is down' told; do
  tries=$((tries + 1)); [ $tries -lt 300 ] && kill -0 $unstuck || exit 91
  sleep 0.1
done
tries=0
until "$UNSTUCK" status --json > status; grep -q '"state": "waiting"' status; do
  tries=$((tries + 1)); [ $tries -lt 300 ] && kill -0 $unstuck || exit 94
  sleep 0.1
done
ip link add v0 type veth peer name v1 && ip link set v0 up && ip link set v1 up &&
  ip addr add 192.0.2.2/24 dev v0 && ip route add default via 192.0.2.1 || exit 92
mount --bind hosts /etc/hosts || exit 93
wait $unstuck
code=$?
kill $api
exit $code
"#;

    #[test]
    fn call_waits_for_the_network_in_the_gateway() {
        let place = Place::new();
        let names = unstuck_core::network_symptom::probe_names().join(" ");
        let hosts = format!("127.0.0.1 localhost api.anthropic.com {names}\n");
        place.write("hosts", &hosts);
        place.write(
            "api.toml",
            "[[step]]\nanswer = { text = \"All done.\" }\ntimes = \"always\"\n",
        );
        claude(&place);
        let mut command = place.program("unshare", &["--net", "--mount"]);
        let status = command
            .args(["sh", "-c", SCRIPT_WITH_GATEWAY])
            .env("UNSTUCK", env!("CARGO_BIN_EXE_unstuck"))
            .env("ANTHROPIC_BASE_URL", "http://api.anthropic.com:8080")
            .status()
            .unwrap();
        let told = place.text("told");
        assert_eq!(status.code(), Some(0), "{told}");
        assert!(told.contains("API call recovered"), "{told}");
        assert!(place.text("answer").contains("All done."), "{told}");
        assert_eq!(place.lines("count").len(), 1, "the agent ran once: {told}");
    }

    #[test]
    fn run_waits_for_the_network_and_continues() {
        let place = Place::new();
        let names = unstuck_core::network_symptom::probe_names().join(" ");
        place.write("hosts", &format!("127.0.0.1 localhost {names}\n"));
        place.write(
            "agent",
            "echo x >> count; [ -e up ] && echo done && exit 0; \
             echo 'curl: (6) Could not resolve host: api.anthropic.com' >&2; exit 6",
        );
        let mut command = place.program("unshare", &["--net", "--mount"]);
        let status = command
            .args(["sh", "-c", SCRIPT])
            .env("UNSTUCK", env!("CARGO_BIN_EXE_unstuck"))
            .status()
            .unwrap();
        let told = place.text("told");
        assert_eq!(status.code(), Some(0), "{told}");
        assert!(told.contains("network is back"), "{told}");
        assert_eq!(place.lines("count").len(), 2, "{told}");
    }
}
