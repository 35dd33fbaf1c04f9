//! Deserializes sizes with a unit, such as `64MiB`.

use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer};

const UNITS: [(&str, u64); 7] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("B", 1),
];

/// Reads a size in bytes.
pub(super) fn read<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let text = String::deserialize(from)?;
    parse(&text).filter(|size| *size > 0).ok_or_else(|| {
        let expected = "a size in quotes, like \"64MiB\" or \"500kB\"";
        Error::invalid_value(Unexpected::Str(&text), &expected)
    })
}

fn parse(text: &str) -> Option<u64> {
    let text = text.trim();
    let (number, factor) = UNITS
        .into_iter()
        .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor)))?;
    number.trim().parse::<u64>().ok()?.checked_mul(factor)
}

/// Returns the JSON Schema of a size.
pub(super) fn schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "string",
        "pattern": r"^\s*[0-9]+\s*(B|kB|KiB|MB|MiB|GB|GiB)\s*$",
        "examples": ["64MiB"]
    })
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn size_requires_a_unit() {
        assert_eq!(parse("64MiB"), Some(64 << 20));
        assert_eq!(parse(" 500 kB "), Some(500_000));
        assert_eq!(parse("12B"), Some(12));
        for wrong in [
            "",
            "64",
            "MiB",
            "-1MiB",
            "1.5MiB",
            "99999999999GiB",
            "64mib",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
