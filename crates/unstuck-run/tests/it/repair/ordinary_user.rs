//! Runs these tests again as a user other than root.

use std::process::Command;

/// Tests that only root can run: they become another user, who must be able to run this program.
mod root {
    use super::*;

    #[test]
    fn all_repair_tests_pass_as_an_ordinary_user() {
        #[expect(
            clippy::disallowed_methods,
            reason = "the tests run themselves as another user"
        )]
        let output = Command::new("setpriv")
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(std::env::current_exe().unwrap())
            .args(["repair::", "--test-threads=2"])
            .args(["--skip", "root::", "--skip", "tools::"])
            .output()
            .unwrap();
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{output:?}");
        assert!(stdout.contains("test result: ok"), "{stdout}");
    }
}
