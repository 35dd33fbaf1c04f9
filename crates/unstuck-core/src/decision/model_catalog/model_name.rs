//! Comparison of model names in their many spellings.
//!
//! Providers and gateways write the same model as `claude-sonnet-4-5-20250929`, `anthropic/claude-sonnet-4.5`,
//! `us.anthropic.claude-sonnet-4-5-20250929-v1:0` or `claude-sonnet-4-5@20250929`.

/// A name that can be compared regardless of its spelling.
#[derive(Debug, Clone, Copy)]
pub(super) struct ModelName<'a>(&'a str);

impl<'a> ModelName<'a> {
    pub(super) fn parse(name: &'a str) -> Self {
        Self(base_name(name))
    }

    /// True if the other name is the same model.
    pub(super) fn is_same_model(self, other: &str) -> bool {
        // Prefixes and suffixes only make a name longer, so most names differ without stripping any.
        self.equals_ignoring_form(other)
            || other.len() > self.0.len() && self.equals_ignoring_form(base_name(other))
    }

    fn equals_ignoring_form(self, other: &str) -> bool {
        let same_length = other.len() == self.0.len();
        same_length
            && self
                .0
                .bytes()
                .map(fold_byte)
                .eq(other.bytes().map(fold_byte))
    }
}

/// Folds a byte for comparison: case-insensitive, with `4.5` equal to `4-5`.
fn fold_byte(byte: u8) -> u8 {
    match byte {
        b'.' | b'_' => b'-',
        other => other.to_ascii_lowercase(),
    }
}

/// Returns the name without provider prefixes, dates, versions and variants.
fn base_name(name: &str) -> &str {
    let name = name.trim();
    let name = name.rsplit_once('/').map_or(name, |(_, last)| last);
    let name = name
        .rsplit_once("anthropic.")
        .map_or(name, |(_, last)| last);
    let name = name.split(['@', ':', '[']).next().unwrap_or(name);
    let name = name.strip_suffix("-v1").unwrap_or(name);
    let name = name.strip_suffix("-latest").unwrap_or(name);
    without_date(name)
}

/// Returns the name without a `-20250929` or `-2025-08-07` suffix.
fn without_date(name: &str) -> &str {
    for shape in ["-dddddddd", "-dddd-dd-dd"] {
        if let Some(start) = name.len().checked_sub(shape.len())
            && name.is_char_boundary(start)
            && matches_shape(&name[start..], shape)
        {
            return &name[..start];
        }
    }
    name
}

fn matches_shape(text: &str, shape: &str) -> bool {
    text.bytes().zip(shape.bytes()).all(|(byte, wanted)| {
        if wanted == b'd' {
            byte.is_ascii_digit()
        } else {
            byte == wanted
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(a: &str, b: &str) -> bool {
        ModelName::parse(a).is_same_model(b) && ModelName::parse(b).is_same_model(a)
    }

    #[test]
    fn spellings_of_one_model_are_equal() {
        for name in [
            "claude-sonnet-4-5-20250929",
            "claude-sonnet-4-5@20250929",
            "anthropic/claude-sonnet-4.5",
            "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
            "anthropic.claude-sonnet-4-5-20250929-v1",
            "openrouter/anthropic/claude-sonnet-4.5:beta",
            "Claude-Sonnet-4-5-latest",
            "claude-sonnet-4-5[1m]",
        ] {
            assert!(same(name, "claude-sonnet-4-5"), "{name}");
        }
        assert!(same("gpt-5-nano-2025-08-07", "gpt-5-nano"));
        assert!(same("models/gemini-2.5-pro", "gemini-2.5-pro"));
        assert!(same("gpt-5-nano-2025-08-07", "openai/gpt-5-nano"));
        assert!(!same("claude-sonnet-4-5", "claude-sonnet-4"));
        assert!(!same("gpt-5-nano", "gpt-5-mini"));
        assert!(!same("", "gpt-5-mini"));
    }
}
