//! The groups in which the top-level help lists the commands.

use clap::Command;
use clap::builder::StyledStr;

/// The groups in order, with the names of their commands.
const GROUPS: [(&str, &[&str]); 5] = [
    (
        "Run",
        &["exec", "run", "repair", "serve", "resume", "stop", "demo"],
    ),
    (
        "Answer",
        &[
            "inbox", "approve", "reject", "resolve", "retry", "escalate", "skip", "abort",
        ],
    ),
    (
        "Inspect",
        &["status", "runs", "show", "logs", "explain", "diff", "cost"],
    ),
    (
        "Set up",
        &[
            "config", "agents", "policy", "trust", "token", "webhook", "store",
        ],
    ),
    (
        "Advanced",
        &[
            "classify", "plan", "kinds", "preview", "guard", "propose", "faults", "help",
        ],
    ),
];

/// The description of clap's own `help` command, which exists only after parsing.
const HELP_ABOUT: &str = "Print this message or the help of a command";

/// Returns the command with a help text that lists its subcommands in groups.
pub(crate) fn with_grouped_help(command: Command) -> Command {
    let template = template(&command);
    command.help_template(template)
}

fn template(command: &Command) -> StyledStr {
    let styles = command.get_styles();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let names = GROUPS.iter().flat_map(|(_, names)| names.iter());
    let width = names.map(|name| name.len()).max().unwrap_or_default();
    let mut text = String::from("{about-with-newline}\n{usage-heading} {usage}\n\n");
    for (title, names) in GROUPS {
        text.push_str(&format!("{header}{title}:{header:#}\n"));
        for name in names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about =
                about.map_or_else(|| HELP_ABOUT.to_owned(), |about| about.ansi().to_string());
            text.push_str(&format!("  {literal}{name:width$}{literal:#}  {about}\n"));
        }
        text.push('\n');
    }
    text.push_str(&format!(
        "{header}Options:{header:#}\n{{options}}{{after-help}}"
    ));
    StyledStr::from(text)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use clap::CommandFactory;

    use super::*;
    use crate::Cli;

    #[test]
    fn every_visible_command_is_in_exactly_one_group() {
        let command = Cli::command();
        let mut listed = BTreeMap::<&str, usize>::new();
        for name in GROUPS.iter().flat_map(|(_, names)| names.iter()) {
            *listed.entry(name).or_default() += 1;
        }
        listed.remove("help");
        let visible = command.get_subcommands().filter(|one| !one.is_hide_set());
        let expected: BTreeMap<_, _> = visible.map(|one| (one.get_name(), 1)).collect();
        assert_eq!(listed, expected);
    }
}
