//! Formats money and tokens.

use maud::{Markup, html};

/// Formats an amount: in cents, with more digits below one cent.
pub(crate) fn usd(usd: f64) -> String {
    match usd.abs() {
        0.0 => "$0".to_owned(),
        v if v < 0.000_1 => "< $0.0001".to_owned(),
        v if v < 0.01 => format!("${usd:.4}"),
        _ => format!("${usd:.2}"),
    }
}

/// Renders a cost that may be partly unknown.
pub(crate) fn cost(known: Option<f64>, unpriced: u64) -> Markup {
    let calls = pluralize(unpriced, "call");
    html! {
        @match (known, unpriced) {
            (None, _) => { span title={ (calls) " of unknown price" } { "unknown" } }
            (Some(known), 0) => { (usd(known)) }
            (Some(known), _) => { span title={ "plus " (calls) " of unknown price" } { (usd(known)) " + unknown" } }
        }
    }
}

/// Formats extra cost or savings with a sign.
pub(crate) fn signed_usd(amount: f64) -> String {
    let sign = if amount < 0.0 { '-' } else { '+' };
    format!("{sign}{}", usd(amount.abs()))
}

/// Formats a number of tokens.
pub(crate) fn tokens(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{}k", short_number(count as f64 / 1e3)),
        _ => format!("{}M", short_number(count as f64 / 1e6)),
    }
}

/// Formats a number with one decimal unless it is zero.
fn short_number(number: f64) -> String {
    let text = format!("{number:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// Formats a count with its noun, in the plural unless it is one.
pub(crate) fn pluralize(count: u64, thing: &str) -> String {
    match count {
        1 => format!("1 {thing}"),
        _ => format!("{count} {thing}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_short_and_small_amounts_are_not_zero() {
        assert_eq!(
            [usd(0.0), usd(0.000_01), usd(0.0042), usd(1.5)],
            ["$0", "< $0.0001", "$0.0042", "$1.50"]
        );
        assert_eq!([signed_usd(0.142), signed_usd(-1.5)], ["+$0.14", "-$1.50"]);
        assert_eq!(
            [tokens(999), tokens(12_340), tokens(2_500_000)],
            ["999", "12.3k", "2.5M"]
        );
        assert_eq!(
            [pluralize(1, "run"), pluralize(0, "run")],
            ["1 run", "0 runs"]
        );
    }
}
