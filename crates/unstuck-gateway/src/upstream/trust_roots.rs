//! Trusted CA certificates: those of this machine, or of the configured files.

use std::path::Path;
use std::sync::Arc;

use rustls_native_certs::{CertificateResult, load_certs_from_paths, load_native_certs};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::error::GatewayError;
use crate::settings::ProxyAndCertificateSettings;

/// Returns the TLS settings for upstreams.
pub(super) fn tls_config(
    network: &ProxyAndCertificateSettings,
) -> Result<ClientConfig, GatewayError> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| GatewayError::Tls(error.to_string()))?;
    Ok(config
        .with_root_certificates(roots(network)?)
        .with_no_client_auth())
}

fn roots(network: &ProxyAndCertificateSettings) -> Result<RootCertStore, GatewayError> {
    let mut store = RootCertStore::empty();
    match network.authorities.as_slice() {
        [] => {
            store.add_parsable_certificates(load_native_certs().certs);
            // A machine without CA certificates, such as a bare container, gets those that browsers trust.
            if store.is_empty() {
                store.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
            }
        }
        named => {
            for path in named {
                add_certificates(&mut store, path)?;
            }
        }
    }
    for path in &network.extra_authorities {
        add_certificates(&mut store, path)?;
    }
    Ok(store)
}

/// Adds the certificates of a file, or of all files of a directory.
fn add_certificates(store: &mut RootCertStore, path: &Path) -> Result<(), GatewayError> {
    let found = if path.is_dir() {
        load_certs_from_paths(None, Some(path))
    } else {
        load_certs_from_paths(Some(path), None)
    };
    let wrong = |why: String| GatewayError::Certificates {
        path: path.to_owned(),
        why,
    };
    let CertificateResult { certs, errors, .. } = found;
    match (store.add_parsable_certificates(certs), errors.first()) {
        ((1.., _), _) => Ok(()),
        (_, Some(error)) => Err(wrong(error.to_string())),
        (_, None) => Err(wrong("no certificate found".to_owned())),
    }
}
