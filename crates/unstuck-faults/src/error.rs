//! Errors of the fault server itself.

use std::path::PathBuf;

/// An error of the fault server.
#[derive(Debug, thiserror::Error)]
pub enum FaultServerError {
    /// The script is invalid.
    #[error("invalid script: {0}")]
    Script(#[from] toml::de::Error),
    /// The script in a file is invalid.
    #[error("invalid script {path}: {source}")]
    ScriptFile {
        /// Path of the file.
        path: PathBuf,
        /// Error with its line.
        source: Box<toml::de::Error>,
    },
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The TLS certificate could not be created.
    #[error("cannot create the TLS certificate: {0}")]
    Tls(String),
    /// The server could not be started.
    #[error("cannot start the server: {0}")]
    Start(#[source] std::io::Error),
}

impl FaultServerError {
    /// Returns a constructor of errors for one file.
    pub fn file(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }

    pub(crate) fn script_file(path: impl Into<PathBuf>) -> impl FnOnce(toml::de::Error) -> Self {
        let path = path.into();
        move |source| Self::ScriptFile {
            path,
            source: Box::new(source),
        }
    }
}
