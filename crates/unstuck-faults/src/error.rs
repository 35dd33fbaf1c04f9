//! What can go wrong with the fault server itself.

use std::path::PathBuf;

/// Why the fault server could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum FaultsError {
    /// The script is not one.
    #[error("the script is not valid: {0}")]
    Script(#[from] toml::de::Error),
    /// The script in a file is not one.
    #[error("{path} is not a valid script: {source}")]
    ScriptFile {
        /// The file.
        path: PathBuf,
        /// What is wrong, and in which line.
        source: Box<toml::de::Error>,
    },
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The certificate for TLS could not be made.
    #[error("the certificate for TLS could not be made: {0}")]
    Tls(String),
    /// The server could not be started.
    #[error("the server could not be started: {0}")]
    Start(#[source] std::io::Error),
}

impl FaultsError {
    /// Makes the error of one file from what the system said.
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
