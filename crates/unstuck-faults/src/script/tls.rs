//! What a client meets that speaks TLS.

use std::path::PathBuf;

use serde::Deserialize;

use super::step::Times;

/// With this the server's port also speaks TLS, by a certificate that is made when it starts.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tls {
    /// What is wrong with the certificate.
    pub certificate: Certificate,
    /// How many handshakes fail before the others work: a number or `"always"`.
    #[serde(rename = "fails")]
    pub fails: Times,
    /// How they fail.
    #[serde(rename = "how")]
    pub how: HandshakeFault,
    /// Where the certificate is written as PEM, for clients that shall trust it.
    pub pem_file: Option<PathBuf>,
}

/// What is wrong with a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Certificate {
    /// Only that nobody has signed it: for `localhost` and `127.0.0.1`.
    #[default]
    SelfSigned,
    /// It is for another name as well.
    WrongHost,
    /// It has expired as well.
    Expired,
}

/// How a handshake fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HandshakeFault {
    /// Bytes that are no TLS.
    #[default]
    Garbage,
    /// The connection is closed.
    Close,
    /// The connection is reset.
    Reset,
}

impl Default for Tls {
    fn default() -> Self {
        Self {
            certificate: Certificate::default(),
            fails: Times::Count(0),
            how: HandshakeFault::default(),
            pem_file: None,
        }
    }
}
