//! TLS options of a script.

use std::path::PathBuf;

use serde::Deserialize;

use super::step::FaultScriptStepRepeat;

/// The TLS options of a script: they enable TLS on the server's port, with a certificate created at the start.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TlsFaultOptions {
    /// Fault of the certificate.
    pub certificate: CertificateFault,
    /// Number of handshakes that fail before others succeed: a number or `"always"`.
    #[serde(rename = "fails")]
    pub failing_handshakes: FaultScriptStepRepeat,
    /// Way they fail.
    #[serde(rename = "how")]
    pub handshake_fault: TlsHandshakeFault,
    /// File to write the certificate to as PEM, for clients to trust.
    pub pem_file: Option<PathBuf>,
}

/// The fault of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CertificateFault {
    /// Only self-signed: for `localhost` and `127.0.0.1`.
    #[default]
    SelfSigned,
    /// Self-signed and for another name.
    WrongHost,
    /// Self-signed and expired.
    Expired,
}

/// The way a handshake fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TlsHandshakeFault {
    /// Sends bytes that are not TLS.
    #[default]
    Garbage,
    /// Closes the connection.
    Close,
    /// Resets the connection.
    Reset,
}

impl Default for TlsFaultOptions {
    fn default() -> Self {
        Self {
            certificate: CertificateFault::default(),
            failing_handshakes: FaultScriptStepRepeat::Count(0),
            handshake_fault: TlsHandshakeFault::default(),
            pem_file: None,
        }
    }
}
