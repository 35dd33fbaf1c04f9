//! Determines from an owner's entry if it works on the machine's processes, or only on files.
//!
//! This never allows anything: the entry is already allowed. If it cannot be read for certain, it is confined more, not
//! less.

use unstuck_core::command_policy::DirectOrShell;

use super::path_lists::{InspectionProgram, SandboxPathLists};
use super::sandbox_profile::{FileOwnerScope, ProcessAccess};

/// Words after which a command begins.
const COMMAND_STARTERS: [&str; 8] = ["then", "do", "else", "elif", "if", "while", "until", "!"];
/// Begin of an expansion, of which only `$(`, `$$` and plain variables are understood.
const EXPANSIONS: [char; 2] = ['`', '\\'];
/// Syntax that this scanner does not understand.
const UNREADABLE_SYNTAX: [&str; 4] = ["<(", ">(", "<<", "eval"];

/// Returns the processes that a command has to see. Those of the machine are visible only if every program of the line is
/// known not to execute anything else. Open files of processes are visible only to one single command of a few known
/// programs with options that only list or signal: no pipe, no shell, no other program.
///
/// ```
/// use unstuck_repair::sandbox::{ProcessAccess, process_scope};
///
/// assert_eq!(process_scope("npm install"), ProcessAccess::Own);
/// assert_eq!(process_scope("kill \"$(cat server.pid)\" && rm -f server.pid"), ProcessAccess::Signals);
/// assert_eq!(process_scope("fuser -k 3000/tcp"), ProcessAccess::Inspect);
/// assert_eq!(process_scope("fuser -k 3000/tcp && npm start"), ProcessAccess::Own);
/// assert_eq!(process_scope("ss -ltn | awk -f port.awk"), ProcessAccess::Own);
/// ```
pub fn process_scope(command: &str) -> ProcessAccess {
    let lists = &SandboxPathLists::built_in().processes;
    if lists
        .inspect
        .iter()
        .any(|look| is_plain_inspection(look, command))
    {
        return ProcessAccess::Inspect;
    }
    let programs = programs(command);
    let signals = programs.iter().any(|name| lists.signals.contains(name));
    let is_known = |name| lists.signals.contains(name) || lists.harmless.contains(name);
    let runs_only_those = programs.iter().all(is_known)
        && is_readable(command)
        && !has_assignment(command)
        && !command.contains(EXPANSIONS);
    if runs_only_those && (signals || names_processes(command)) {
        ProcessAccess::Signals
    } else {
        ProcessAccess::Own
    }
}

/// True if a command is one call of a program that inspects processes, with only known arguments.
fn is_plain_inspection(look: &InspectionProgram, command: &str) -> bool {
    let DirectOrShell::Direct(commands) = DirectOrShell::for_text(command) else {
        return false;
    };
    let [words] = commands.as_slice() else {
        return false;
    };
    let Some((program, arguments)) = words.split_first() else {
        return false;
    };
    program_name(program) == look.program
        && arguments.iter().all(|word| look.accepts_argument(word))
}

impl InspectionProgram {
    /// True if an argument is a known option, a signal, a process or a port.
    fn accepts_argument(&self, argument: &str) -> bool {
        let is_number = |text: &str| {
            !text.is_empty() && text.len() <= 7 && text.bytes().all(|byte| byte.is_ascii_digit())
        };
        if self.words.contains(argument) || is_number(argument) {
            return true;
        }
        let port = argument.strip_suffix("/tcp");
        let port = port.or_else(|| argument.strip_suffix("/udp"));
        if port.is_some_and(is_number) {
            return true;
        }
        let (option, port) = argument.split_once(':').unwrap_or((argument, "0"));
        let is_option = |letters: &str| {
            !letters.is_empty() && letters.chars().all(|c| self.letters.contains(c))
        };
        let is_known = option.is_empty()
            || self.words.contains(option)
            || option.strip_prefix('-').is_some_and(is_option);
        is_known && is_number(port)
    }
}

/// Returns the files over which a command needs power: every owner's only if it changes owners or modes or removes
/// files, and executes nothing of the project.
///
/// ```
/// use unstuck_repair::sandbox::{FileOwnerScope, file_scope};
///
/// assert_eq!(file_scope("chown -R \"$(id -u)\" .cache"), FileOwnerScope::AnyOwner);
/// assert_eq!(file_scope("chown -R 1000 .cache && npm ci"), FileOwnerScope::Own);
/// ```
pub fn file_scope(command: &str) -> FileOwnerScope {
    let lists = &SandboxPathLists::built_in().files;
    let programs = programs(command);
    let only_those = programs.iter().all(|name| lists.only.contains(name));
    if !programs.is_empty() && only_those && is_readable(command) {
        FileOwnerScope::AnyOwner
    } else {
        FileOwnerScope::Own
    }
}

fn is_readable(command: &str) -> bool {
    !UNREADABLE_SYNTAX
        .iter()
        .any(|clever| command.contains(clever))
        && !may_expand_to_a_program(command)
}

/// True if the result of an expansion may be a program: variables anywhere, because an empty one makes the next word
/// the program, and substitutions where a command begins.
fn may_expand_to_a_program(command: &str) -> bool {
    let mut rest = command.replace("$$", "").replace("$(", "");
    rest.retain(|c| c == '$');
    let begins_command = |before: &str| {
        let before = before.trim_end_matches(['"', '\'', ' ', '\t']);
        let word = before
            .rsplit([' ', '\t', ';', '&', '|', '\n', '(', ')'])
            .next();
        before.is_empty()
            || before.ends_with([';', '&', '|', '\n', '(', ')', '{', '}', '!'])
            || word.is_some_and(|word| COMMAND_STARTERS.contains(&word))
    };
    let substitutions: Vec<_> = command.match_indices("$(").collect();
    let has_xargs = command.contains("xargs") && !substitutions.is_empty();
    let begins = substitutions
        .iter()
        .any(|(at, _)| begins_command(&command[..*at]));
    !rest.is_empty() || has_xargs || begins
}

/// True if the command looks up other processes by their id.
fn names_processes(command: &str) -> bool {
    let mut after = command.split("/proc/").skip(1);
    after.any(|rest| {
        rest.starts_with(['$', '`', '"', '[', '*'])
            || rest.starts_with(|c: char| c.is_ascii_digit())
    })
}

/// True if a command sets a variable, which could make a program load other files.
fn has_assignment(command: &str) -> bool {
    split_words(command)
        .iter()
        .any(|word| matches!(word, ScannedWord::Text(text) if is_assignment(text)))
}

/// Returns every word that may be a program, by its base name; a program inside the project keeps its path.
fn programs(command: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut begins = true;
    for word in split_words(command) {
        match word {
            ScannedWord::NextCommand => begins = true,
            ScannedWord::ResumeCommand => begins = false,
            ScannedWord::Text(text) if begins && !is_assignment(&text) => {
                begins = COMMAND_STARTERS.contains(&text.as_str()) || text == "xargs";
                if !COMMAND_STARTERS.contains(&text.as_str()) && !text.starts_with('-') {
                    found.push(program_name(&text));
                } else {
                    begins = true;
                }
            }
            ScannedWord::Text(_) => {}
        }
    }
    found
}

/// Returns the name of a program without a system directory: `./kill` is not `kill`.
fn program_name(program: &str) -> String {
    match program.rsplit_once('/') {
        Some(("/bin" | "/usr/bin" | "/sbin" | "/usr/sbin", name)) => name.to_owned(),
        _ => program.to_owned(),
    }
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

enum ScannedWord {
    Text(String),
    /// Another command begins after the word.
    NextCommand,
    /// The command around a substitution continues after the word.
    ResumeCommand,
}

/// Splits a command conservatively: quotes are dropped, and every operator or substitution begins another command.
fn split_words(command: &str) -> Vec<ScannedWord> {
    let mut words = Vec::new();
    let mut text = String::new();
    let mut open = 0_usize;
    for c in command.chars() {
        match c {
            '\'' | '"' | '\\' | '$' => {}
            ' ' | '\t' => push_word(&mut words, &mut text),
            ')' if open > 0 => {
                open -= 1;
                push_word(&mut words, &mut text);
                words.push(ScannedWord::ResumeCommand);
            }
            ';' | '&' | '|' | '(' | ')' | '`' | '{' | '}' | '\n' => {
                open += usize::from(c == '(');
                push_word(&mut words, &mut text);
                words.push(ScannedWord::NextCommand);
            }
            other => text.push(other),
        }
    }
    push_word(&mut words, &mut text);
    words
}

fn push_word(words: &mut Vec<ScannedWord>, text: &mut String) {
    if !text.is_empty() {
        words.push(ScannedWord::Text(std::mem::take(text)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn process_entries_are_recognized() {
        for command in [
            "kill -9 4711",
            "pkill -f 'node server.js'",
            "killall node || true",
            "kill -0 \"$(cat run/app.pid)\" 2>/dev/null || rm -f run/app.pid",
            "test -d /proc/$(cat app.pid) || rm app.pid",
            "if pgrep -f worker; then rm lock; fi",
            "/usr/bin/pkill -x app",
            "kill \"$(cat dev-server.pid)\" && rm -f dev-server.pid && sleep 0.3",
            "lsof -ti:3000 | xargs -r kill -9",
            "kill $(lsof -t -i:8080)",
        ] {
            assert_eq!(process_scope(command), ProcessAccess::Signals, "{command}");
        }
        for command in [
            "fuser -k 5432/tcp",
            "/usr/bin/fuser -k -TERM 5432/tcp",
            "fuser -n tcp 3000",
            "lsof -ti:3000",
            "lsof -nP -iTCP:3000 -sTCP:LISTEN",
            "lsof -p 4711",
            "ss -ltnp",
            "ss -ltn sport = :3000",
        ] {
            assert_eq!(process_scope(command), ProcessAccess::Inspect, "{command}");
        }
    }

    #[test]
    fn other_entries_see_only_their_own_processes() {
        for command in [
            "rm -rf node_modules && npm ci",
            "echo kill",
            "./kill 12",
            "rm -f kill.pid",
            "git checkout kill",
            "python3 migrate.py --kill",
            "make -j$(grep -c processor /proc/cpuinfo) && cat /proc/self/status",
        ] {
            assert_eq!(process_scope(command), ProcessAccess::Own, "{command}");
        }
    }

    /// Programs of the project never run where they could see or signal the machine's processes.
    #[test]
    fn programs_next_to_a_signal_see_only_their_own_processes() {
        for command in [
            "npm run stop && kill 12",
            "pkill -x nosuch; awk -f tools/port.awk",
            "ss -ltn | awk -f tools/port.awk",
            "kill 12; ./start.sh",
            "kill 12; sh start.sh",
            "kill $(node pid.js)",
            "kill `node pid.js`",
            "kill 12 | sed -f x.sed",
            "PATH=. kill 12",
            "PORT=3000 /usr/bin/pkill -x app",
            "LD_PRELOAD=./x.so kill 12",
            "export PATH=.; kill 12",
            "lsof -ti:3000 | xargs -r node kill.js",
            "lsof -ti:3000 | xargs -I{} sh -c 'x {}'",
            "trap ./x EXIT; kill 12",
            ". ./x; kill 12",
            "kill() { ./x; }; kill 12",
            "alias kill=./x; kill 12",
            "for p in 1 2; do ./x; done; kill 12",
            "X=./x; $X; kill 12",
            "$0 x; kill 12",
            "$kill ./x; kill 12",
            "$(true) ./x; kill 12",
            "kill 12; \"$(cat x)\"",
            "if $(cat x); then kill 12; fi",
            "kill 12 | xargs $(cat x)",
            "kill 12 & ./x",
            "kill 12\n./x",
            "pg_ctl -D data restart",
            "start-stop-daemon --start --exec ./x",
            "find . -exec ./x \\; ; kill 12",
            "sudo kill 12",
            "cat x | sh; kill 12",
            "test -d /proc/12 && node x.js",
        ] {
            assert_eq!(process_scope(command), ProcessAccess::Own, "{command}");
        }
    }

    #[test]
    fn project_programs_cannot_inspect_processes() {
        for command in [
            "fuser -k 3000/tcp && ./start.sh",
            "fuser -k 3000/tcp; sh -c 'npm start'",
            "lsof -ti:3000 | xargs -r node kill.js",
            "fuser -k $(node port.js)/tcp",
            "fuser -k 3000/tcp <(node x.js)",
            "FUSER=1 eval fuser -k 1/tcp",
            "./fuser -k 3000/tcp; fuser 1/tcp",
            "ss -ltn | awk -f tools/port.awk",
            "ss -ltn | sort --compress-program=./x",
            "lsof -ti:3000 | xargs -r kill -9",
            "kill $(lsof -t -i:8080)",
            "fuser -k 5432/tcp; sleep 1",
            "fuser -k 5432/tcp && sleep 1",
            "ss -D dump",
            "ss -F tools/filter",
            "ss --diag=dump",
            "lsof -Dbcache",
            "lsof -D cache",
            "lsof +D .",
            "./fuser -k 3000/tcp",
            "tools/ss -ltn",
            "netstat -tlnp",
            "kill 4711",
            "X=1 fuser -k 3000/tcp",
        ] {
            assert_ne!(process_scope(command), ProcessAccess::Inspect, "{command}");
        }
    }

    #[test]
    fn any_owner_scope_requires_that_no_project_code_runs() {
        for command in [
            "chown -R build:build .cache",
            "chown -R \"$(id -u):$(id -g)\" dist && chmod -R u+rwX dist",
            "rm -rf dist",
        ] {
            assert_eq!(file_scope(command), FileOwnerScope::AnyOwner, "{command}");
        }
        for command in [
            "",
            "npm ci",
            "rm -rf dist && npm run build",
            "rm -rf $(node what.js)",
            "./chown x",
            "cp -r /home/other/secrets .",
            "chown 0 <(node x.js)",
            "find . -exec node x.js ;",
            "case $x in a) node x.js;; esac",
            "chown $(id -u) a; (rm -rf b) && node x.js",
            "f() { node x.js; }; rm a",
            "$(true) ./x; rm a",
            "$rm ./x",
        ] {
            assert_eq!(file_scope(command), FileOwnerScope::Own, "{command}");
        }
    }

    proptest! {
        #[test]
        fn a_command_with_another_program_never_gets_inspect_scope(before in "\\PC{0,20}", after in "\\PC{0,20}") {
            let command = format!("{before}; node x.js && fuser -k 1/tcp {after}");
            prop_assert_ne!(process_scope(&command), ProcessAccess::Inspect);
        }
    }
}
