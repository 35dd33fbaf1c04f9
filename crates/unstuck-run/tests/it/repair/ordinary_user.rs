//! All of this once more as somebody who is not root.

use std::process::Command;

use super::support::is_root;

#[test]
fn everything_holds_for_an_ordinary_user_too() {
    if !is_root() {
        println!("skipped: these tests run as an ordinary user already");
        return;
    }
    #[expect(
        clippy::disallowed_methods,
        reason = "the tests run themselves as another user"
    )]
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(std::env::current_exe().unwrap())
        .args(["repair::", "--skip", "ordinary_user", "--test-threads=2"])
        .output();
    let Ok(output) = output else {
        println!("skipped: there is no setpriv here");
        return;
    };
    let told = String::from_utf8_lossy(&output.stdout);
    if told.is_empty() {
        println!("skipped: an ordinary user cannot reach the tests");
        return;
    }
    assert!(output.status.success(), "{told}");
    assert!(told.contains("test result: ok"), "{told}");
}
