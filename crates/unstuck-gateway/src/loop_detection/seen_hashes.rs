//! What has been seen before, as far as it is remembered.

use std::collections::{HashSet, VecDeque};

/// Longer circles than this are not recognised.
const MAX_HASHES: usize = 256;

/// Hashes that were seen; the oldest is forgotten first.
#[derive(Debug, Default)]
pub(super) struct SeenHashes {
    known: HashSet<u64>,
    order: VecDeque<u64>,
}

impl SeenHashes {
    /// Whether it is new. From now on it is not.
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
    fn the_oldest_is_forgotten() {
        let mut memory = SeenHashes::default();
        assert!(memory.insert(0) && !memory.insert(0));
        assert!((1..=MAX_HASHES as u64).all(|hash| memory.insert(hash)));
        assert!(memory.insert(0));
        assert_eq!(memory.known.len(), MAX_HASHES);
    }
}
