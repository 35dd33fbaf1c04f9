//! Reads git's configuration format.

/// A setting of a configuration file. Section and name are lowercase; the subsection is not kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GitSetting {
    pub(super) section: String,
    pub(super) name: String,
    pub(super) value: String,
}

impl GitSetting {
    /// Returns true if this is the setting of a section and name, whatever the subsection.
    pub(super) fn is(&self, section: &str, name: &str) -> bool {
        self.section == section && self.name == name
    }
}

/// Returns the settings of a configuration file. Text that git would reject is skipped.
pub(super) fn parse_settings(text: &str) -> Vec<GitSetting> {
    let mut settings = Vec::new();
    let mut section = String::new();
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    loop {
        rest = rest.trim_start();
        let Some(first) = rest.chars().next() else {
            return settings;
        };
        match first {
            '#' | ';' => rest = rest.split_once('\n').map_or("", |(_, after)| after),
            '[' => (section, rest) = parse_section(&rest[1..]),
            _ => {
                let end = rest.find(['=', '\n']).unwrap_or(rest.len());
                let name = rest[..end].split_whitespace().next().unwrap_or_default();
                let (value, after) = match rest[end..].strip_prefix('=') {
                    Some(value) => parse_value(value),
                    None => ("true".to_owned(), &rest[end..]),
                };
                settings.push(GitSetting {
                    section: section.clone(),
                    name: name.to_ascii_lowercase(),
                    value,
                });
                rest = after;
            }
        }
    }
}

/// Returns the name of a section, and the text after its header.
fn parse_section(header: &str) -> (String, &str) {
    let mut is_quoted = false;
    let mut is_escaped = false;
    let mut end = header.len();
    for (at, letter) in header.char_indices() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            ']' | '\n' if !is_quoted => {
                end = at;
                break;
            }
            _ => {}
        }
    }
    let name = header[..end]
        .split(|letter: char| letter == '.' || letter == '"' || letter.is_whitespace());
    let name = name
        .clone()
        .find(|part| !part.is_empty())
        .unwrap_or_default();
    let rest = header.get(end + 1..).unwrap_or_default();
    (name.to_ascii_lowercase(), rest)
}

/// Returns a value without quotes, escapes and comments, and the text after it.
fn parse_value(text: &str) -> (String, &str) {
    let mut value = String::new();
    // Spaces at the end do not count unless they are quoted.
    let mut kept = 0;
    let mut is_quoted = false;
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\n' => {
                value.truncate(kept);
                return (value, &text[at + 1..]);
            }
            '"' => is_quoted = !is_quoted,
            '\\' => match letters.next() {
                Some((_, 'n')) => value.push('\n'),
                Some((_, 't')) => value.push('\t'),
                Some((_, 'b')) => drop(value.pop()),
                Some((_, '\n')) | None => {}
                Some((_, '\r')) => drop(letters.next()),
                Some((_, other)) => value.push(other),
            },
            '#' | ';' if !is_quoted => {
                value.truncate(kept);
                let rest = text[at..].split_once('\n').map_or("", |(_, after)| after);
                return (value, rest);
            }
            letter if letter.is_whitespace() && !is_quoted => {
                if !value.is_empty() {
                    value.push(letter);
                }
                continue;
            }
            letter => value.push(letter),
        }
        kept = value.len();
    }
    value.truncate(kept);
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> Vec<String> {
        let show = |one: GitSetting| format!("{}.{}={}", one.section, one.name, one.value);
        parse_settings(text).into_iter().map(show).collect()
    }

    #[test]
    fn sections_names_and_values_are_read_as_git_reads_them() {
        let text = "# comment\n[core] ; another\n\tHooksPath = .hooks  # here\n\tbare\n[Include \"a]\\\"b\"] path=\"x y\" \n\
                    [filter.lfs]\nclean = \"a # b\" c \\\n  d\n\tpath = a\\\"b\\\\c\n";
        assert_eq!(
            settings(text),
            [
                "core.hookspath=.hooks",
                "core.bare=true",
                "include.path=x y",
                "filter.clean=a # b c   d",
                "filter.path=a\"b\\c",
            ]
        );
    }

    #[test]
    fn damaged_text_ends() {
        for text in [
            "[",
            "[\"",
            "=",
            "a=\"",
            "a=\\",
            "[a]\\\n=",
            "\0",
            "[a\nb=c",
            "\u{feff}[é]ü=ß\\",
        ] {
            drop(settings(text));
        }
        assert_eq!(settings("[a\nb=c"), ["a.b=c"]);
    }
}
