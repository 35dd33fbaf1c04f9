//! Random secrets, stored only as hashes.

use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// The system provided no random bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cannot get random bytes from the operating system")]
pub struct RandomnessError;

/// Generates a secret with 256 random bits.
pub(super) fn generate_secret() -> Result<String, RandomnessError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|_| RandomnessError)?;
    Ok(BASE64URL_NOPAD.encode(&bytes))
}

/// The SHA-256 hash of a secret. Secrets have 256 random bits, so a slow hash would add nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SecretHash([u8; 32]);

impl SecretHash {
    pub(super) fn of_secret(secret: &str) -> Self {
        Self(Sha256::digest(secret).into())
    }

    pub(super) fn parse_hex(text: &str) -> Option<Self> {
        let bytes = HEXLOWER.decode(text.as_bytes()).ok()?;
        bytes.try_into().ok().map(Self)
    }

    pub(super) fn to_hex(&self) -> String {
        HEXLOWER.encode(&self.0)
    }

    /// Compares in constant time.
    pub(super) fn matches(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}
