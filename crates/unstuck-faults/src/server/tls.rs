//! TLS with a self-signed certificate, created when the server starts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rcgen::{CertificateParams, KeyPair};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::error::FaultServerError;
use crate::script::{CertificateFault, FaultScriptStepRepeat, TlsFaultOptions, TlsHandshakeFault};

/// The TLS configuration of a server.
pub(super) struct TlsState {
    acceptor: TlsAcceptor,
    pem: String,
    script: TlsFaultOptions,
    begun: AtomicU32,
}

/// The outcome of a handshake.
pub(super) enum Handshake {
    Fails(TlsHandshakeFault),
    Works(TlsAcceptor),
}

impl TlsState {
    #[expect(clippy::disallowed_methods, reason = "a file that the script names")]
    pub(super) fn new(script: &TlsFaultOptions) -> Result<Self, FaultServerError> {
        let made = make_certificate(script.certificate).map_err(FaultServerError::Tls)?;
        if let Some(path) = &script.pem_file {
            std::fs::write(path, &made.1).map_err(FaultServerError::file(path))?;
        }
        Ok(Self {
            acceptor: made.0,
            pem: made.1,
            script: script.clone(),
            begun: AtomicU32::new(0),
        })
    }

    pub(super) fn pem(&self) -> &str {
        &self.pem
    }

    /// Returns the outcome of the next handshake.
    pub(super) fn next_handshake(&self) -> Handshake {
        let before = self.begun.fetch_add(1, Ordering::Relaxed);
        let fails = match self.script.failing_handshakes {
            FaultScriptStepRepeat::Within(_) | FaultScriptStepRepeat::Always => true,
            FaultScriptStepRepeat::Count(count) => before < count,
        };
        if fails {
            Handshake::Fails(self.script.handshake_fault)
        } else {
            Handshake::Works(self.acceptor.clone())
        }
    }
}

impl std::fmt::Debug for TlsState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secured").finish_non_exhaustive()
    }
}

fn make_certificate(certificate: CertificateFault) -> Result<(TlsAcceptor, String), String> {
    let names = match certificate {
        CertificateFault::WrongHost => vec!["elsewhere.example".to_owned()],
        CertificateFault::SelfSigned | CertificateFault::Expired => {
            vec!["localhost".to_owned(), "127.0.0.1".to_owned()]
        }
    };
    let mut params = CertificateParams::new(names).map_err(|error| error.to_string())?;
    if certificate == CertificateFault::Expired {
        params.not_before = rcgen::date_time_ymd(2019, 1, 1);
        params.not_after = rcgen::date_time_ymd(2020, 1, 1);
    }
    let key = KeyPair::generate().map_err(|error| error.to_string())?;
    let certificate = params
        .self_signed(&key)
        .map_err(|error| error.to_string())?;
    let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private)
        .map_err(|error| error.to_string())?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok((TlsAcceptor::from(Arc::new(config)), certificate.pem()))
}
