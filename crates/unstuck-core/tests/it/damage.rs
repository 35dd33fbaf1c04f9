//! Damage to texts in transit: truncated, repeated, mixed with others, colored, with other line ends.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use unstuck_core::{Failure, LossyText};

use crate::texts;

/// Maximum size of a text.
const MAX_BYTES: usize = 20_000;

/// A kind of damage to a text.
#[derive(Debug, Clone)]
enum Damage {
    Cut(Index, Index),
    Repeat(Index, Index),
    Splice(Index, Index),
    Flip(Index, u8),
    Colour(Index, u8),
    Title(Index),
    Crlf,
    CarriageReturns,
    Blanks,
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        any::<(Index, Index)>().prop_map(|(from, to)| Damage::Cut(from, to)),
        any::<(Index, Index)>().prop_map(|(from, to)| Damage::Repeat(from, to)),
        any::<(Index, Index)>().prop_map(|(at, other)| Damage::Splice(at, other)),
        any::<(Index, u8)>().prop_map(|(at, bits)| Damage::Flip(at, bits)),
        any::<(Index, u8)>().prop_map(|(at, colour)| Damage::Colour(at, colour)),
        any::<Index>().prop_map(Damage::Title),
        Just(Damage::Crlf),
        Just(Damage::CarriageReturns),
        Just(Damage::Blanks),
    ]
}

impl Damage {
    fn apply(&self, text: &mut Vec<u8>, others: &[Failure]) {
        let place = |at: &Index| at.index(text.len() + 1);
        match self {
            Self::Cut(a, b) | Self::Repeat(a, b) => {
                let (a, b) = (place(a), place(b));
                let part = a.min(b)..a.max(b);
                if matches!(self, Self::Cut(..)) {
                    text.drain(part);
                } else {
                    text.extend_from_within(part);
                }
            }
            Self::Splice(at, other) => {
                let at = place(at);
                let other = other.get(others);
                let texts = [&other.body, &other.stdout, &other.stderr];
                let bytes = texts.into_iter().flatten().flat_map(LossyText::bytes);
                text.splice(at..at, bytes.copied());
            }
            Self::Flip(at, bits) if !text.is_empty() => {
                let at = at.index(text.len());
                text[at] ^= bits;
            }
            Self::Flip(..) => {}
            Self::Colour(at, colour) => {
                let at = place(at);
                text.splice(at..at, format!("\u{1b}[{colour}m").into_bytes());
            }
            Self::Title(at) => {
                let at = place(at);
                text.splice(at..at, b"\x1b]0;working\x07".to_vec());
            }
            Self::Crlf => replace(text, b"\r\n"),
            Self::CarriageReturns => replace(text, b"\r"),
            Self::Blanks => replace(text, b" \t \n"),
        }
        text.truncate(MAX_BYTES);
    }
}

/// Replaces every line end.
fn replace(text: &mut Vec<u8>, end: &[u8]) {
    *text = text
        .split(|byte| *byte == b'\n')
        .collect::<Vec<_>>()
        .join(end);
}

pub(crate) fn each_text(failure: &mut Failure, change: impl Fn(&mut Vec<u8>)) {
    for text in [&mut failure.body, &mut failure.stdout, &mut failure.stderr] {
        // An empty text is a statement by itself; damage must not fill it.
        if let Some(text) = text.as_mut().filter(|text| !text.is_blank()) {
            let mut bytes = text.bytes().to_vec();
            change(&mut bytes);
            *text = bytes.into();
        }
    }
}

pub(crate) fn damaged() -> impl Strategy<Value = Failure> {
    let known = texts::failures();
    (select(known.clone()), vec(damage(), 1..8)).prop_map(move |(mut failure, damages)| {
        for damage in damages {
            each_text(&mut failure, |text| damage.apply(text, &known));
        }
        failure
    })
}
