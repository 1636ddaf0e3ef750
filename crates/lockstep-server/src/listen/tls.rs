//! TLS, with certificates and a key that the user has.

use crate::ServerError;
use std::io;
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// What accepts connections, TLS 1.2 or later.
///
/// # Errors
/// When a file cannot be read, or the key does not go with the certificate.
pub(super) fn acceptor(certificates: &Path, key: &Path) -> Result<TlsAcceptor, ServerError> {
    let wrong = |path: &Path, error: &dyn std::fmt::Display| ServerError::File {
        path: path.to_owned(),
        source: io::Error::new(io::ErrorKind::InvalidData, error.to_string()),
    };
    let chain = CertificateDer::pem_file_iter(certificates)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| wrong(certificates, &error))?;
    if chain.is_empty() {
        let none = "it has no certificate; a PEM file begins with -----BEGIN CERTIFICATE-----";
        return Err(wrong(certificates, &none));
    }
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, &error))?;
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(certificates, &error))?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(|error| wrong(key, &error))?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
