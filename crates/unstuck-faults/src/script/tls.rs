//! What a client meets that speaks TLS.

use std::path::PathBuf;

use serde::Deserialize;

use super::step::StepRepeat;

/// With this the server's port also speaks TLS, by a certificate that is made when it starts.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TlsScript {
    /// What is wrong with the certificate.
    pub certificate: CertificateFault,
    /// How many handshakes fail before the others work: a number or `"always"`.
    #[serde(rename = "fails")]
    pub failing_handshakes: StepRepeat,
    /// How they fail.
    #[serde(rename = "how")]
    pub handshake_fault: HandshakeFault,
    /// Where the certificate is written as PEM, for clients that shall trust it.
    pub pem_file: Option<PathBuf>,
}

/// What is wrong with a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CertificateFault {
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

impl Default for TlsScript {
    fn default() -> Self {
        Self {
            certificate: CertificateFault::default(),
            failing_handshakes: StepRepeat::Count(0),
            handshake_fault: HandshakeFault::default(),
            pem_file: None,
        }
    }
}
