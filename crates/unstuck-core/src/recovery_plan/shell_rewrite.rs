//! Rewrites of shell commands: corrected, split, in portable syntax, with less to do or more time.
//!
//! Every function takes a command text and returns another one; nothing is executed.

use super::shell_lexer::{ShellToken, ShellTokenKind, shell_tokens};

/// Corrects the most common mistakes of a command, if it has any.
pub(crate) fn fix_common_mistakes(command: &str) -> Option<String> {
    let mut text = command
        .replace(['\u{201c}', '\u{201d}'], "\"")
        .replace(['\u{2018}', '\u{2019}'], "'")
        .replace("&amp;", "&")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("\r\n", "\n");
    if !text.contains(['\'', '"']) {
        text = text.replace("| |", "|");
    }
    for _ in 0..3 {
        let Err(open) = shell_tokens(&text) else {
            break;
        };
        text.push(match open.quote {
            '(' => ')',
            '{' => '}',
            quote => quote,
        });
    }
    let text = close_blocks(trim_dangling_operators(&text));
    (text != command).then_some(text)
}

fn trim_dangling_operators(text: &str) -> String {
    let ends: &[char] = &[' ', '\n', '|', '&', '\\'];
    let mut text = text.trim_end();
    // A single `&` at the end is intended, not a mistake.
    if !text.ends_with('&') || text.ends_with("&&") {
        text = text.trim_end_matches(ends);
    }
    let start: &[char] = &[' ', '\n', '|', ';', '&'];
    text.trim_start_matches(start).to_owned()
}

/// Adds the keywords that close `if`, `for` and similar blocks.
fn close_blocks(text: String) -> String {
    let Ok(tokens) = shell_tokens(&text) else {
        return text;
    };
    let count = |word: &str| tokens.iter().filter(|token| token.value == word).count();
    let opened = [("if", "fi"), ("do", "done"), ("case", "esac"), ("{", "}")];
    let missing = opened.iter().flat_map(|(open, close)| {
        std::iter::repeat_n(*close, count(open).saturating_sub(count(close)))
    });
    let missing: Vec<_> = missing.collect();
    if missing.is_empty() {
        text
    } else {
        format!("{text}; {}", missing.join("; "))
    }
}

/// Words that the following text depends on: split apart it would mean something else.
const BINDING_WORDS: [&str; 24] = [
    "if", "for", "while", "until", "case", "do", "{", "(", ")", "||", "cd", "pushd", "export",
    "set", "unset", "source", ".", "[", "[[", "test", "read", "trap", "umask", "eval",
];

/// Returns the parts of a command that can run one after the other; `None` if it has only one.
///
/// A command whose parts depend on each other is not split: without its first part, `D=/tmp/x; rm -rf $D/*` would
/// remove everything.
pub(crate) fn split_commands(command: &str) -> Option<Vec<String>> {
    let tokens = shell_tokens(command).ok()?;
    let binds = |token: &ShellToken| {
        token.kind == ShellTokenKind::Redirect && token.value.contains("<<")
            || BINDING_WORDS.contains(&token.value.as_str())
            || !token.literal && token.value.contains(['$', '`'])
            || super::failed_tool_call::is_assignment(&token.value)
    };
    if tokens.iter().any(binds) {
        return None;
    }
    let is_end = |token: &ShellToken| {
        token.kind == ShellTokenKind::Control && ["&&", ";", "\n"].contains(&token.value.as_str())
    };
    let parts: Vec<String> = tokens
        .split(is_end)
        .filter_map(|part| command.get(part.first()?.span.start..part.last()?.span.end))
        .map(str::to_owned)
        .collect();
    (parts.len() > 1).then_some(parts)
}

/// Returns the stages of a pipeline, each reading the output of the previous one from a file in `dir`.
pub(crate) fn split_pipeline(command: &str, dir: &str) -> Option<Vec<String>> {
    let tokens = shell_tokens(command).ok()?;
    let only_pipes = tokens.iter().all(|token| match token.kind {
        ShellTokenKind::Word => true,
        ShellTokenKind::Control => token.value == "|",
        ShellTokenKind::Redirect => !token.value.contains('<'),
    });
    let stages: Vec<&str> = tokens
        .split(|token| token.kind == ShellTokenKind::Control)
        .filter_map(|part| command.get(part.first()?.span.start..part.last()?.span.end))
        .collect();
    if !only_pipes || stages.len() < 2 {
        return None;
    }
    let file = |n: usize| super::shell_lexer::shell_quote(&format!("{dir}/stage-{n}.txt"));
    let last = stages.len() - 1;
    let stage = |(n, text): (usize, &&str)| {
        let input = if n == 0 {
            String::new()
        } else {
            format!(" < {}", file(n))
        };
        let output = if n == last {
            String::new()
        } else {
            format!(" > {}", file(n + 1))
        };
        format!("{text}{input}{output}")
    };
    Some(stages.iter().enumerate().map(stage).collect())
}

/// Returns the command in POSIX syntax, if that is different.
pub(crate) fn to_posix(command: &str) -> Option<String> {
    let tokens = shell_tokens(command).ok()?;
    let mut text = String::new();
    let mut at = 0;
    let mut in_test = false;
    for (index, token) in tokens.iter().enumerate() {
        text.push_str(command.get(at..token.span.start)?);
        at = token.span.end;
        let before = index.checked_sub(1).map(|index| &tokens[index]);
        let first = before.is_none_or(|before| before.kind == ShellTokenKind::Control);
        in_test |= token.value == "[[";
        text.push_str(to_posix_token(
            command,
            token,
            first,
            in_test,
            tokens.get(index + 1),
        ));
        in_test &= token.value != "]]";
        if before.is_some_and(|before| before.value == "function") && !token.value.ends_with("()") {
            text.push_str("()");
        }
        if before.is_some_and(|before| ["&>", "&>>"].contains(&before.value.as_str())) {
            text.push_str(" 2>&1");
        }
    }
    text.push_str(command.get(at..)?);
    let text = text.trim_start().to_owned();
    (text != command).then_some(text)
}

fn to_posix_token<'a>(
    command: &'a str,
    token: &ShellToken,
    first: bool,
    in_test: bool,
    next: Option<&ShellToken>,
) -> &'a str {
    match token.value.as_str() {
        "[[" => "[",
        "]]" => "]",
        "==" if in_test => "=",
        "source" if first => ".",
        "function" if first => "",
        "&>" => ">",
        "&>>" => ">>",
        "|&" => "2>&1 |",
        "echo" if first && next.is_some_and(|next| next.value == "-e") => "printf",
        "-e" if command[..token.span.start].trim_end().ends_with("echo") => "'%b\\n'",
        _ => command.get(token.span.clone()).unwrap_or_default(),
    }
}

/// Returns the command with this range replaced.
pub(crate) fn replace_span(
    command: &str,
    span: &std::ops::Range<usize>,
    new: &str,
) -> Option<String> {
    Some(format!(
        "{}{new}{}",
        command.get(..span.start)?,
        command.get(span.end..)?
    ))
}

/// Doubles a duration with a unit such as `60`, `30s` or `2m`.
pub(crate) fn double_time(time: &str) -> Option<String> {
    let unit = time.trim_start_matches(|c: char| c.is_ascii_digit());
    let number: u64 = time[..time.len() - unit.len()].parse().ok()?;
    let known = ["", "s", "m", "h", "d"].contains(&unit);
    known.then(|| format!("{}{unit}", number.saturating_mul(2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S2-09: quotes are closed, stray pipes and typographic quotes are removed.
    #[test]
    fn common_mistakes_are_corrected() {
        for (wrong, right) in [
            ("echo 'a", "echo 'a'"),
            ("echo \"a b", "echo \"a b\""),
            ("echo $(date", "echo $(date)"),
            ("ls |", "ls"),
            ("echo \u{201c}a\u{201d}", "echo \"a\""),
            ("a &amp;&amp; b", "a && b"),
            ("if true; then ls", "if true; then ls; fi"),
            ("for f in a b; do echo $f", "for f in a b; do echo $f; done"),
        ] {
            assert_eq!(fix_common_mistakes(wrong).as_deref(), Some(right));
        }
        assert_eq!(fix_common_mistakes("ls -la"), None);
        assert_eq!(fix_common_mistakes("sleep 9 &"), None);
    }

    /// S2-09: a complex command becomes several simple ones.
    #[test]
    fn commands_are_split_at_their_operators() {
        assert_eq!(
            split_commands("a 1 && b '2;3'; c").unwrap(),
            ["a 1", "b '2;3'", "c"]
        );
        assert_eq!(split_commands("ls"), None);
        for bound in [
            "cd x && ls",
            "D=/tmp; rm -rf $D/*",
            "[ -f a ] && rm a",
            "test -d x && ls",
            "a || b; c",
        ] {
            assert_eq!(split_commands(bound), None, "{bound}");
        }
        assert_eq!(
            split_pipeline("a | b -x | c", "tmp").unwrap(),
            [
                "a > tmp/stage-1.txt",
                "b -x < tmp/stage-1.txt > tmp/stage-2.txt",
                "c < tmp/stage-2.txt"
            ]
        );
    }

    /// S2-09: bash-only syntax is replaced by portable syntax.
    #[test]
    fn bash_syntax_becomes_portable() {
        for (bash, posix) in [
            ("[[ $a == b ]] && ls", "[ $a = b ] && ls"),
            ("source ./env", ". ./env"),
            ("make &> log", "make > log 2>&1"),
            ("make |& tee log", "make 2>&1 | tee log"),
            ("echo -e 'a\\tb'", "printf '%b\\n' 'a\\tb'"),
            ("function f { ls; }", "f() { ls; }"),
        ] {
            assert_eq!(to_posix(bash).as_deref(), Some(posix));
        }
        assert_eq!(to_posix("ls source"), None);
    }

    #[test]
    fn durations_with_a_unit_double() {
        assert_eq!(double_time("60").as_deref(), Some("120"));
        assert_eq!(double_time("2m").as_deref(), Some("4m"));
        assert_eq!(double_time("soon"), None);
    }
}
