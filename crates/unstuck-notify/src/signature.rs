//! Standard Webhooks signatures: `v1,` and the base64 of HMAC-SHA256 over id, timestamp and body.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// An unusable secret; the error does not contain it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidSecret {
    /// The secret is empty.
    #[error("is empty")]
    Empty,
    /// The secret starts with `whsec_` but is not base64.
    #[error("is not base64 after the prefix whsec_")]
    NotBase64,
}

/// Returns the header `webhook-signature`: one signature per secret, so that receivers can rotate secrets.
///
/// Secrets are separated by blanks. One that starts with `whsec_` is base64, any other is used as is.
///
/// ```
/// let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
/// let signed = unstuck_notify::sign(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, br#"{"test": 2432232314}"#)?;
/// assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
/// # Ok::<(), unstuck_notify::InvalidSecret>(())
/// ```
pub fn sign(secrets: &str, id: &str, seconds: i64, body: &[u8]) -> Result<String, InvalidSecret> {
    let signed = secrets.split_whitespace().map(|secret| {
        let key = match secret.strip_prefix("whsec_") {
            Some(encoded) => STANDARD
                .decode(encoded)
                .map_err(|_| InvalidSecret::NotBase64)?,
            None => secret.as_bytes().to_vec(),
        };
        // HMAC keys may have any length.
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).map_err(|_| InvalidSecret::Empty)?;
        mac.update(format!("{id}.{seconds}.").as_bytes());
        mac.update(body);
        let code = mac.finalize().into_bytes();
        Ok(format!("v1,{}", STANDARD.encode(code)))
    });
    let signed = signed.collect::<Result<Vec<_>, _>>()?;
    if signed.is_empty() {
        Err(InvalidSecret::Empty)
    } else {
        Ok(signed.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test vector of the specification's reference libraries.
    #[test]
    fn published_test_vector_matches() {
        let id = "msg_p5jXN8AQM9LWM0D4loKWxJek";
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let signed = sign(secret, id, 1_614_265_330, br#"{"test": 2432232314}"#);
        let expected = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        assert_eq!(signed.as_deref(), Ok(expected));
    }

    #[test]
    fn each_secret_adds_a_signature() {
        let both = sign("old whsec_bmV3", "a", 1, b"x").unwrap();
        let alone = [sign("old", "a", 1, b"x"), sign("new", "a", 1, b"x")];
        assert_eq!(both, alone.map(Result::unwrap).join(" "));
    }

    #[test]
    fn invalid_secret_error_does_not_contain_the_secret() {
        assert_eq!(sign(" ", "a", 1, b"x"), Err(InvalidSecret::Empty));
        let wrong = sign("whsec_%%%", "a", 1, b"x").unwrap_err();
        assert!(!wrong.to_string().contains('%'));
    }
}
