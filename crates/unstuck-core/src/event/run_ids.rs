//! The ids of runs and sessions.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::decision::RandomDraw;

/// The alphabet of ids: Crockford's, without easily confused letters.
const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// The id of a run: ten letters and digits, of which users type the first few.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(String);

impl RunId {
    /// Creates a random id.
    pub fn random(draw: RandomDraw) -> Self {
        let letter = |place: u32| char::from(LETTERS[(draw.0 >> (place * 5)) as usize % 32]);
        Self((0..10).map(letter).collect())
    }

    /// Creates an id from its text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the short form that users see.
    pub fn short(&self) -> &str {
        self.0.get(..6).unwrap_or(&self.0)
    }

    /// Returns the id of the session with this number.
    pub fn session_id(&self, number: u32) -> SessionId {
        SessionId(format!("{}-{number}", self.0))
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The id of a session: the run's id and a number.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(String);

impl SessionId {
    /// Creates an id from its text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::SeededRng;

    #[test]
    fn ids_are_short_and_unambiguous() {
        let id = RunId::random(SeededRng::seeded(1).next_draw());
        assert_eq!(id.as_str().len(), 10);
        assert!(id.as_str().bytes().all(|letter| LETTERS.contains(&letter)));
        assert_eq!(id.short().len(), 6);
        assert_eq!(id.session_id(1).as_str(), format!("{id}-1"));
    }
}
