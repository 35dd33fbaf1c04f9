//! Case-insensitive search for many literals at once.
//!
//! Every literal is indexed by its four least common consecutive bytes; a shorter one by all of its bytes. At each byte
//! of a text, a table of byte pairs shows the key lengths with a key ending there, which is nearly always none; then
//! one bit shows whether these bytes are a key; only then are literals compared. Building an Aho–Corasick automaton of
//! as many literals takes many times as long: it was a third of a cold start.

/// An index of numbered literals.
#[derive(Debug)]
pub(crate) struct LiteralIndex {
    /// In lower case.
    literals: Vec<Box<[u8]>>,
    shelves: Vec<Bucket>,
    /// For each byte pair, one bit per bucket: whether a key of it ends with the pair; and [`BEGINS`].
    pairs: Vec<u8>,
}

/// The bit of a byte pair that begins a four-byte key.
const BEGINS: u8 = 1 << 7;

/// A match of a literal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LiteralMatch {
    pub(crate) literal: usize,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl LiteralIndex {
    pub(crate) fn new<'l>(literals: impl IntoIterator<Item = &'l str>) -> Self {
        let lower = |literal: &str| literal.to_ascii_lowercase().into_bytes().into_boxed_slice();
        let literals: Vec<_> = literals.into_iter().map(lower).collect();
        let shelves = [(4, usize::MAX), (3, 3), (2, 2), (1, 1)];
        let shelves: Vec<_> = shelves
            .map(|(width, longest)| Bucket::new(width, longest, &literals))
            .into_iter()
            .filter(|shelf| !shelf.entries.is_empty())
            .collect();
        let mut pairs = vec![0; 1 << 16];
        for (number, shelf) in shelves.iter().enumerate() {
            for entry in &shelf.entries {
                let last = entry.key as usize & 0xffff;
                if shelf.mask == 0xff {
                    let any_before = (0..=0xff).map(|before| before << 8 | last);
                    any_before.for_each(|pair| pairs[pair] |= 1 << number);
                } else {
                    pairs[last] |= 1 << number;
                }
                if shelf.mask == u32::MAX {
                    pairs[entry.key as usize >> 16] |= BEGINS;
                }
            }
        }
        Self {
            literals,
            shelves,
            pairs,
        }
    }

    /// Calls back for every match of every literal, including overlapping ones; roughly in text order.
    pub(crate) fn for_each_match(&self, text: &[u8], mut call: impl FnMut(LiteralMatch)) {
        let text = text.to_ascii_lowercase();
        let mut key = 0_u32;
        for (at, byte) in text.iter().enumerate() {
            key = key << 8 | u32::from(*byte);
            let filed = self.pairs[key as usize & 0xffff];
            if filed & !BEGINS == 0 {
                continue;
            }
            let begins = self.pairs[key as usize >> 16] & BEGINS != 0;
            for (number, shelf) in self.shelves.iter().enumerate() {
                if filed & 1 << number == 0 || shelf.mask == u32::MAX && !begins {
                    continue;
                }
                for entry in shelf.entries_for(key & shelf.mask) {
                    let needle = &self.literals[entry.literal as usize];
                    let Some(start) = (at + 1).checked_sub(entry.key_end as usize) else {
                        continue;
                    };
                    if text[start..].starts_with(needle) {
                        call(LiteralMatch {
                            literal: entry.literal as usize,
                            start,
                            end: start + needle.len(),
                        });
                    }
                }
            }
        }
    }
}

/// Literals indexed under the same key length.
#[derive(Debug)]
struct Bucket {
    mask: u32,
    /// One bit per key hash: whether there may be entries.
    bits: Vec<u64>,
    /// Sorted by key.
    entries: Vec<BucketEntry>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct BucketEntry {
    key: u32,
    literal: u32,
    /// The end of the key within the literal.
    key_end: u32,
}

impl Bucket {
    /// Indexes the literals that are at least as long as the key and not longer than `longest`.
    fn new(width: usize, longest: usize, literals: &[Box<[u8]>]) -> Self {
        let fit = (0_u32..)
            .zip(literals)
            .filter(|(_, literal)| (width..=longest).contains(&literal.len()));
        let mut entries: Vec<BucketEntry> = fit
            .map(|(needle, literal)| {
                let (key, filed_up_to) = rarest_key(literal, width);
                BucketEntry {
                    key,
                    literal: needle,
                    key_end: filed_up_to,
                }
            })
            .collect();
        entries.sort_unstable();
        let mut bits = vec![0; 1 << (HASH_BITS - 6)];
        for entry in &entries {
            let (word, bit) = bit_position(entry.key);
            bits[word] |= bit;
        }
        Self {
            mask: u32::MAX >> (32 - 8 * width),
            bits,
            entries,
        }
    }

    fn entries_for(&self, key: u32) -> &[BucketEntry] {
        let (word, bit) = bit_position(key);
        if self.bits[word] & bit == 0 {
            return &[];
        }
        let start = self.entries.partition_point(|entry| entry.key < key);
        let rest = &self.entries[start..];
        let len = rest.iter().take_while(|entry| entry.key == key).count();
        &rest[..len]
    }
}

const HASH_BITS: u32 = 16;

fn bit_position(key: u32) -> (usize, u64) {
    let hash = key.wrapping_mul(0x9e37_79b1) >> (32 - HASH_BITS);
    ((hash >> 6) as usize, 1 << (hash & 63))
}

/// Returns the least common run of this length, as a key, and its end.
fn rarest_key(literal: &[u8], width: usize) -> (u32, u32) {
    let rarity = |window: &[u8]| window.iter().map(|byte| byte_rarity(*byte)).sum::<u32>();
    let mut best = (0, 0, 0);
    for (start, window) in (0_u32..).zip(literal.windows(width)) {
        let key = window
            .iter()
            .fold(0, |key, byte| key << 8 | u32::from(*byte));
        let rarity = rarity(window);
        if start == 0 || rarity > best.0 {
            best = (rarity, key, start);
        }
    }
    (best.1, best.2 + u32::try_from(width).unwrap_or(0))
}

/// Returns the approximate rarity of a byte in log text.
fn byte_rarity(byte: u8) -> u32 {
    match byte {
        b' ' | b'e' | b't' | b'a' | b'o' | b'i' | b'n' | b's' | b'r' => 0,
        b'l' | b'd' | b'c' | b'u' | b'm' | b'p' | b'f' | b'h' | b'g' | b'0'..=b'9' => 1,
        b'.' | b':' | b'/' | b'-' | b'_' => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(literals: &[&str], text: &str) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        LiteralIndex::new(literals.iter().copied()).for_each_match(text.as_bytes(), |one| {
            assert_eq!(
                text[one.start..one.end].to_ascii_lowercase(),
                literals[one.literal].to_ascii_lowercase()
            );
            found.push((one.literal, one.start));
        });
        found.sort_unstable();
        found
    }

    #[test]
    fn literals_of_every_length_are_found_in_any_case_even_overlapping() {
        let literals = ["Rate Limit", "limit", "it", "t", "超时"];
        assert_eq!(
            found(&literals, "RATE LIMIT 超时 t"),
            [(0, 0), (1, 5), (2, 8), (3, 2), (3, 9), (3, 18), (4, 11)]
        );
        assert_eq!(found(&literals, "li"), []);
        assert_eq!(found(&[], "anything"), []);
    }

    proptest! {
        #[test]
        fn no_match_is_missed(text in "[abAB ]{0,40}", literals in prop::collection::vec("[ab ]{1,6}", 0..8)) {
            let literals: Vec<&str> = literals.iter().map(String::as_str).collect();
            let lower = text.to_ascii_lowercase();
            let mut expected: Vec<(usize, usize)> = Vec::new();
            for (needle, literal) in literals.iter().enumerate() {
                let starts = (0..lower.len()).filter(|at| lower[*at..].starts_with(literal));
                expected.extend(starts.map(|at| (needle, at)));
            }
            prop_assert_eq!(found(&literals, &text), expected);
        }
    }
}
