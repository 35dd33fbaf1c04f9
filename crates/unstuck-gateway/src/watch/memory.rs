//! What has been seen before, as far as it is remembered.

use std::collections::{HashSet, VecDeque};

/// Longer circles than this are not recognised.
const MOST: usize = 256;

/// Hashes that were seen; the oldest is forgotten first.
#[derive(Debug, Default)]
pub(super) struct Memory {
    known: HashSet<u64>,
    order: VecDeque<u64>,
}

impl Memory {
    /// Whether it is new. From now on it is not.
    pub(super) fn is_new(&mut self, hash: u64) -> bool {
        if !self.known.insert(hash) {
            return false;
        }
        self.order.push_back(hash);
        if self.order.len() > MOST
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
        let mut memory = Memory::default();
        assert!(memory.is_new(0) && !memory.is_new(0));
        assert!((1..=MOST as u64).all(|hash| memory.is_new(hash)));
        assert!(memory.is_new(0));
        assert_eq!(memory.known.len(), MOST);
    }
}
