//! How an approved text runs.

use unstuck_core::command_policy::DirectOrShell;

use super::texts;

/// Returns the words of each command, if no shell is needed.
fn argv(text: &str) -> Option<Vec<Vec<String>>> {
    match DirectOrShell::for_text(text) {
        DirectOrShell::Direct(commands) => Some(commands),
        DirectOrShell::Shell(line) => {
            assert_eq!(line, text, "a shell gets the very text");
            None
        }
    }
}

/// S3-17, S3-47: the entries named in the first design need no shell.
#[test]
fn plain_words_run_without_a_shell() {
    for (text, expected) in [
        ("npm ci", vec![vec!["npm", "ci"]]),
        ("ls", vec![vec!["ls"]]),
        (
            "rm -rf node_modules && bun install",
            vec![vec!["rm", "-rf", "node_modules"], vec!["bun", "install"]],
        ),
        ("a && b && c", vec![vec!["a"], vec!["b"], vec!["c"]]),
        (
            "./fix.sh --x=1 a,b c@d 50% +x e:f",
            vec![vec!["./fix.sh", "--x=1", "a,b", "c@d", "50%", "+x", "e:f"]],
        ),
        ("npm run 'build all'", vec![vec!["npm", "run", "build all"]]),
        (
            "npm run \"a && b\" ''",
            vec![vec!["npm", "run", "a && b", ""]],
        ),
        (
            "git commit -m \"it's\"",
            vec![vec!["git", "commit", "-m", "it's"]],
        ),
        (
            "x '$HOME' '*' 'a;b' '\\' 'é'",
            vec![vec!["x", "$HOME", "*", "a;b", "\\", "é"]],
        ),
        ("'my program' x", vec![vec!["my program", "x"]]),
    ] {
        let expected: Vec<_> = expected.iter().map(|words| texts(words)).collect();
        assert_eq!(argv(text), Some(expected), "{text}");
    }
}

#[test]
fn text_with_shell_syntax_runs_in_a_shell() {
    for text in [
        "a;b",
        "a ; b",
        "a || b",
        "a | b",
        "a & b",
        "a &&b",
        "a&& b",
        "a &&  b",
        "a  b",
        "a\tb",
        "a\nb",
        "a && ",
        "&& a",
        " && ",
        "",
        "a $x",
        "a ${x}",
        "a $(b)",
        "a `b`",
        "a \"$x\"",
        "a \"`b`\"",
        "a \"\\n\"",
        "a \"!\"",
        "a *",
        "a ?",
        "a [b]",
        "a {b,c}",
        "a ~",
        "a #",
        "a !",
        "a \\b",
        "a > b",
        "a < b",
        "(a)",
        "a 'b",
        "a \"b",
        "a 'b'c",
        "a b'c'",
        "a 'b''c'",
        "a é",
        "A=1 b",
        "A=1",
        "'' a",
        "cd x && npm ci",
        "export A=1 && npm ci",
        "echo hi",
        "true",
        ". x",
        "source x",
        "eval x",
        "exec x",
        "if x",
        "time x && { y",
        "npm ci && true",
        "set -e && npm ci",
        "test -f x && npm ci",
    ] {
        assert_eq!(argv(text), None, "{text}");
    }
}
