//! What a command can do.

use super::support::Place;

#[test]
fn it_runs() {
    let place = Place::new();
    let tried = place.shell("id; pwd; ls -la / ~ /tmp; cat /proc/mounts | head -50; ps aux | head; echo hi > file; ls -la; exit 3");
    println!("{tried:#?}");
    println!("{}", tried.stdout);
}
