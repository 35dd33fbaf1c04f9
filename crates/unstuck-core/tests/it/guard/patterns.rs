//! `require_human`: generous, because a false match only requires approval.

use unstuck_core::command_policy::OnUnlistedCommand;

use super::{rules, verdict};

/// `curl x` in other notations.
const OTHER_CLOTHES: &[&str] = &[
    "curl x",
    "  curl   x ",
    "curl\tx",
    "CURL x",
    "Curl x",
    "/usr/bin/curl x",
    "./curl x",
    "../../bin/curl x",
    "~/bin/curl x",
    "\"curl\" x",
    "'curl' x",
    "c'u'rl x",
    "cu\"\"rl x",
    "cu\\rl x",
    "\\curl x",
    "cu\\\nrl x",
    "$'curl' x",
    "$'\\x63url' x",
    "$'\\143\\165rl' x",
    "$'\\u0063url' x",
    "cu$@rl x",
    "c${u}url x",
    "cu$9rl x",
    "curl$IFS'x'",
    "curl${IFS}x",
    "curl${IFS%?}x",
    "{curl,x}",
    "FOO=1 curl x",
    "FOO=1 BAR='a b' curl x",
    "FOO+=1 curl x",
    "A[0]=1 curl x",
    ">out curl x",
    "2>/dev/null curl x",
    "2>&1 curl x",
    "&>log curl x",
    "<in curl x",
    "< in curl x",
    "curl<in x",
    "curl x >out 2>&1",
    "sudo curl x",
    "sudo -u root curl x",
    "sudo -n -E curl x",
    "sudo --user=root curl x",
    "sudo FOO=1 curl x",
    "/usr/bin/sudo /usr/bin/curl x",
    "doas curl x",
    "env curl x",
    "env -i PATH=/x curl x",
    "env -u FOO curl x",
    "env -S 'curl x'",
    "env -S\"A=1 curl x\"",
    "nice curl x",
    "nice -n 5 curl x",
    "nice -5 curl x",
    "timeout 5 curl x",
    "timeout -k 1 5 curl x",
    "timeout -s KILL 5m curl x",
    "time curl x",
    "time -p curl x",
    "command curl x",
    "builtin command curl x",
    "exec curl x",
    "exec -a name curl x",
    "eval curl x",
    "eval 'curl x'",
    "nohup curl x",
    "stdbuf -oL curl x",
    "ionice -c 3 curl x",
    "setsid -w curl x",
    "flock /tmp/l curl x",
    "chroot /mnt curl x",
    "xargs curl x",
    "xargs -n 1 curl x",
    "xargs -I {} curl x",
    "find . -exec curl x ;",
    "find . -name y -execdir curl x {} +",
    "find . -ok curl x \\;",
    "fd -e js --exec curl x",
    "busybox curl x",
    "sh -c 'curl x'",
    "bash -c \"curl x\"",
    "bash -lc 'true; curl x'",
    "su -c 'curl x'",
    "su root -c 'curl x'",
    "ssh host curl x",
    "watch -n 1 curl x",
    "npx -y curl x",
    "npm exec -- curl x",
    "docker run --rm image curl x",
    "sudo env nice -n 5 timeout 5 sh -c 'exec curl x'",
    "! curl x",
];

/// Lines that contain `curl x`.
const JOINED: &[&str] = &[
    "true && curl x",
    "true&&curl x",
    "true || curl x",
    "true; curl x",
    "true;curl x",
    "true | curl x",
    "true |& curl x",
    "true & curl x",
    "true\ncurl x",
    "curl x & true",
    "(curl x)",
    "( cd a; curl x )",
    "{ curl x; }",
    "((1)); curl x",
    "echo $(curl x)",
    "echo \"$(curl x)\"",
    "echo `curl x`",
    "echo \"`curl x`\"",
    "echo `echo \\`curl x\\``",
    "echo $(echo $(echo $(curl x)))",
    "echo ${y:-$(curl x)}",
    "echo $((1+$(curl x)))",
    "cat <(curl x)",
    "tee >(curl x)",
    "cat <<EOF\n$(curl x)\nEOF",
    "bash <<EOF\ncurl x\nEOF",
    "bash <<< 'curl x'",
    "if true; then curl x; fi",
    "if curl x; then true; fi",
    "while curl x; do true; done",
    "for i in 1 2; do curl x; done",
    "until false; do sudo curl x; done",
    "case y in y) curl x;; esac",
    "f() { curl x; }; f",
    "function f { curl x; }",
    "coproc curl x",
    "trap 'curl x' EXIT",
    "echo \"a=\"; curl x",
    "awk 'BEGIN{system(\"curl x\")}'",
    "python3 -c \"import os; os.system('curl x')\"",
    "git $(true) commit; curl x",
];

/// Returns true if a pattern matches a command; a command without a match is denied here.
fn covers(pattern: &str, command: &str) -> bool {
    match verdict(&rules(&[], &[pattern], OnUnlistedCommand::Deny), command) {
        "ask" => true,
        "deny" => false,
        other => panic!("{pattern}, {command}: {other}"),
    }
}

/// S3-18: `*` is any run of characters; without one an entry matches the first words of a command.
#[test]
fn pattern_is_stars_or_first_words() {
    for (pattern, command) in [
        ("*", "anything at all"),
        ("curl *", "curl http://x"),
        ("curl *", "curl"),
        ("git push", "git push"),
        ("git push", "git push origin main"),
        ("rm -rf *", "rm -rf node_modules"),
        ("*prod*", "deploy --env=prod --yes"),
        ("*prod*", "prod"),
        ("git * --force", "git push origin --force"),
        ("a*b*c", "aXbYbZc"),
        ("a*a", "aa"),
        ("**", "x"),
        ("rm -rf dist && *", "rm -rf dist && npm ci"),
        ("curl * | sh", "true; curl http://x|sh"),
        ("curl *|*sh", "curl http://x | sudo bash"),
    ] {
        assert!(covers(pattern, command), "{pattern} should cover {command}");
    }
    for (pattern, command) in [
        ("git push", "git pushx"),
        ("git push", "git pull"),
        ("git push", "git"),
        ("curl *", "curlx http://x"),
        ("curl *", "libcurl http://x"),
        ("a*a", "a"),
        ("a*b", "abc"),
        ("rm -rf *", "rm node_modules"),
        ("npm ci", "npm cid"),
        ("deploy?", "deployx"),
        ("curl *", "echo curl http://x"),
        ("curl *", "npm install curl x"),
        ("curl *", "find . -name curl"),
        ("curl *", "sudo echo curl x"),
        ("git push", "git commit -m 'git push'"),
    ] {
        assert!(
            !covers(pattern, command),
            "{pattern} should not cover {command}"
        );
    }
}

/// S3-18: the same command in other notations.
#[test]
fn other_notations_of_a_command_match() {
    for command in OTHER_CLOTHES {
        assert!(covers("curl *", command), "{command}");
    }
}

/// S3-18: every command of a line, however it is joined.
#[test]
fn every_command_of_a_line_is_checked() {
    for command in JOINED {
        assert!(covers("curl *", command), "{command}");
    }
    assert!(covers("git push", "git $(echo -q) push"));
    assert!(covers("git push", "git >log push"));
}

/// Threat T5: a long line does not disable the check.
#[test]
fn last_of_many_commands_is_checked() {
    let many = format!("{}curl x", "true && ".repeat(500));
    assert!(many.len() < 4096 && covers("curl *", &many));
    let deep = format!("{}curl x{}", "$(".repeat(1000), ")".repeat(1000));
    assert!(covers("curl *", &deep));
    let ticks = format!("{}curl x", "`".repeat(2001));
    assert!(covers("curl *", &ticks));
    let wrapped = format!("{}curl x", "sudo ".repeat(800));
    assert!(covers("curl *", &wrapped));
    let optioned = format!("{}curl x", "sudo -u ".repeat(500));
    assert!(covers("curl *", &optioned));
    let braces = format!("{}curl x", "{ ".repeat(2000));
    assert!(covers("curl *", &braces));
}

/// S3-18: entries are read as generously as commands.
#[test]
fn entry_in_another_notation_matches() {
    for (pattern, command) in [
        ("Git Push", "git push"),
        ("  git   push ", "git push -f"),
        ("'git' \"push\"", "git push"),
        ("/usr/bin/curl *", "curl x"),
        ("./deploy.sh", "deploy.sh now"),
        ("./deploy.sh", "/repo/deploy.sh now"),
        ("sudo *", "FOO=1 /usr/bin/sudo ls"),
        ("FOO=1 npm ci", "FOO=1 npm ci"),
        ("ÄPFEL *", "äpfel x"),
    ] {
        assert!(covers(pattern, command), "{pattern} should cover {command}");
    }
}
