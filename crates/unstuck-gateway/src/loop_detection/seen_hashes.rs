//! A bounded set of seen hashes.

use std::collections::{HashSet, VecDeque};

/// The maximum number of hashes; longer loops are not recognized.
const MAX_HASHES: usize = 256;

/// A set of seen hashes that drops the oldest first.
#[derive(Debug, Default)]
pub(super) struct SeenHashes {
    known: HashSet<u64>,
    order: VecDeque<u64>,
}

impl SeenHashes {
    /// Inserts a hash; returns true if it is new.
    pub(super) fn insert(&mut self, hash: u64) -> bool {
        if !self.known.insert(hash) {
            return false;
        }
        self.order.push_back(hash);
        if self.order.len() > MAX_HASHES
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_hash_is_dropped() {
        let mut memory = SeenHashes::default();
        assert!(memory.insert(0) && !memory.insert(0));
        assert!((1..=MAX_HASHES as u64).all(|hash| memory.insert(hash)));
        assert!(memory.insert(0));
        assert_eq!(memory.known.len(), MAX_HASHES);
    }
}
