//! API tokens and their scopes, stored as hashes in a file that only its owner can read.
//!
//! Each line creates or revokes a token. The file is append-only, so that two processes cannot lose each other's lines.
#![expect(
    clippy::disallowed_methods,
    reason = "the tokens are in the state directory, out of the agents' reach"
)]

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use unstuck_core::Timestamp;

use super::logins::CODE_LIFETIME;
use super::random_token::{RandomnessError, SecretHash, generate_secret};
use crate::model::PermissionScope;

/// Prefix that makes tokens recognizable.
const TOKEN_PREFIX: &str = "unstuck_";
/// Number of hash characters in an id.
const ID_LENGTH: usize = 8;

/// An error of the token store.
#[derive(Debug, thiserror::Error)]
pub enum TokenStoreError {
    /// The file cannot be read or written.
    #[error("cannot {operation} token file {path}: {source}")]
    File {
        /// Operation that failed.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// System error.
        source: io::Error,
    },
    /// Other users can read or change the file.
    #[error(
        "token file {path} is accessible to other users: run `chmod 600` on it and create new tokens"
    )]
    InsecurePermissions {
        /// The file.
        path: PathBuf,
    },
    /// The token does not exist.
    #[error("token `{id}` not found")]
    NotFound {
        /// Requested id.
        id: String,
    },
    /// The secret could not be generated.
    #[error(transparent)]
    Randomness(#[from] RandomnessError),
}

/// An API token without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebTokenRecord {
    /// Id of the token.
    pub id: String,
    /// Scope of the token.
    pub scope: PermissionScope,
    /// SHA-256 hash of the secret.
    pub hash: String,
    /// Creation time.
    pub created: Timestamp,
    /// Name of the token.
    pub name: String,
    /// For a login code: time until which it can log in a browser, once; `None` for a normal token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login_until: Option<Timestamp>,
}

/// A revoked token.
#[derive(Debug, Serialize, Deserialize)]
struct TokenRevocation {
    id: String,
    #[serde(alias = "revoked")]
    revoked_at: Timestamp,
}

/// The tokens stored in a file.
///
/// ```
/// use unstuck_core::Timestamp;
/// use unstuck_web::auth::{PermissionScope, TokenStore};
///
/// # let dir = tempfile::tempdir()?;
/// # let state = dir.path();
/// let tokens = TokenStore::open(state.join("tokens.jsonl"));
/// let (token, secret) = tokens.create("laptop", PermissionScope::Answer, Timestamp::from_seconds(1_794_777_000))?;
/// assert_eq!(tokens.check(&secret)?.map(|found| found.scope), Some(PermissionScope::Answer));
/// tokens.revoke(&token.id, Timestamp::from_seconds(1_794_777_060))?;
/// assert_eq!(tokens.check(&secret)?, None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TokenStore {
    path: PathBuf,
    cache: Mutex<TokenCache>,
}

/// The parsed tokens and the version of the file they come from.
#[derive(Debug, Default)]
struct TokenCache {
    version: Option<FileVersion>,
    tokens: Vec<(SecretHash, WebTokenRecord)>,
}

/// Attributes that reveal a change of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileVersion {
    inode: u64,
    length: u64,
    seconds: i64,
    nanos: i64,
}

impl TokenStore {
    /// Opens the file, which need not exist.
    pub fn open(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            cache: Mutex::default(),
        }
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates a token; its secret is returned only here.
    pub fn create(
        &self,
        name: &str,
        scope: PermissionScope,
        now: Timestamp,
    ) -> Result<(WebTokenRecord, String), TokenStoreError> {
        let secret = format!("{TOKEN_PREFIX}{}", generate_secret()?);
        let token = new_token(name, scope, &secret, now);
        self.append_record(&token)?;
        Ok((token, secret))
    }

    /// Creates a one-time code that logs a browser in at a running server, valid for a short time.
    pub fn create_login_code(
        &self,
        scope: PermissionScope,
        now: Timestamp,
    ) -> Result<String, TokenStoreError> {
        let code = generate_secret()?;
        self.append_record(&WebTokenRecord {
            login_until: Some(now.after(CODE_LIFETIME)),
            ..new_token("login", scope, &code, now)
        })?;
        Ok(code)
    }

    /// Exchanges a login code, once.
    pub(crate) fn exchange_login_code(
        &self,
        code: &str,
        now: Timestamp,
    ) -> Result<Option<PermissionScope>, TokenStoreError> {
        let mut read = self.reload_if_changed()?;
        let asked = SecretHash::of_secret(code);
        let is_good = |token: &WebTokenRecord| token.login_until.is_some_and(|until| until > now);
        let place = read
            .tokens
            .iter()
            .position(|(hash, token)| hash.matches(&asked) && is_good(token));
        let Some(place) = place else {
            return Ok(None);
        };
        // Hold the lock while the use is recorded, so that the code cannot be used twice.
        let (_, token) = read.tokens.remove(place);
        self.append_record(&TokenRevocation {
            id: token.id,
            revoked_at: now,
        })?;
        Ok(Some(token.scope))
    }

    /// Lists all valid tokens, the oldest first.
    pub fn list(&self) -> Result<Vec<WebTokenRecord>, TokenStoreError> {
        let read = self.reload_if_changed()?;
        let all = read.tokens.iter().map(|(_, token)| token);
        let all = all.filter(|token| token.login_until.is_none());
        Ok(all.cloned().collect())
    }

    /// Revokes a token.
    pub fn revoke(&self, id: &str, now: Timestamp) -> Result<WebTokenRecord, TokenStoreError> {
        let found = self.list()?.into_iter().find(|token| token.id == id);
        let token = found.ok_or_else(|| TokenStoreError::NotFound { id: id.to_owned() })?;
        self.append_record(&TokenRevocation {
            id: token.id.clone(),
            revoked_at: now,
        })?;
        Ok(token)
    }

    /// Returns the token with this id, if it is valid.
    pub(crate) fn find_valid(&self, id: &str) -> Result<Option<WebTokenRecord>, TokenStoreError> {
        let read = self.reload_if_changed()?;
        let mut all = read.tokens.iter().map(|(_, token)| token);
        Ok(all.find(|token| token.id == id).cloned())
    }

    /// Returns the token with this secret, if there is one.
    pub fn check(&self, secret: &str) -> Result<Option<WebTokenRecord>, TokenStoreError> {
        let (asked, read) = (SecretHash::of_secret(secret), self.reload_if_changed()?);
        // Compares with every token, so that timing reveals nothing.
        let mut found = None;
        for (hash, token) in &read.tokens {
            if hash.matches(&asked) && token.login_until.is_none() {
                found = Some(token);
            }
        }
        Ok(found.cloned())
    }

    fn append_record(&self, line: &impl Serialize) -> Result<(), TokenStoreError> {
        let failed = |source| self.file_error("write", source);
        if let Some(folder) = self.path.parent() {
            let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
            made.map_err(failed)?;
        }
        let opened = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(&self.path);
        let mut file = opened.map_err(failed)?;
        self.is_private(&file.metadata().map_err(failed)?)?;
        let mut text = serde_json::to_string(line).map_err(|error| failed(error.into()))?;
        text.push('\n');
        // A single write, so that lines of two processes do not interleave.
        file.write_all(text.as_bytes()).map_err(failed)?;
        file.sync_all().map_err(failed)
    }

    /// Locks the cache and reloads the file if it has changed.
    fn reload_if_changed(&self) -> Result<MutexGuard<'_, TokenCache>, TokenStoreError> {
        let mut read = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        let metadata = match fs::metadata(&self.path) {
            Ok(metadata) => metadata,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                *read = TokenCache::default();
                return Ok(read);
            }
            Err(error) => return Err(self.file_error("read", error)),
        };
        self.is_private(&metadata)?;
        let stamp = FileVersion {
            inode: metadata.ino(),
            length: metadata.len(),
            seconds: metadata.mtime(),
            nanos: metadata.mtime_nsec(),
        };
        if read.version != Some(stamp) {
            let text = fs::read_to_string(&self.path);
            let text = text.map_err(|error| self.file_error("read", error))?;
            *read = TokenCache {
                version: Some(stamp),
                tokens: parse_tokens(&text),
            };
        }
        Ok(read)
    }

    fn is_private(&self, metadata: &fs::Metadata) -> Result<(), TokenStoreError> {
        match metadata.permissions().mode() & 0o077 {
            0 => Ok(()),
            _ => Err(TokenStoreError::InsecurePermissions {
                path: self.path.clone(),
            }),
        }
    }

    fn file_error(&self, doing: &'static str, source: io::Error) -> TokenStoreError {
        TokenStoreError::File {
            operation: doing,
            path: self.path.clone(),
            source,
        }
    }
}

fn new_token(name: &str, scope: PermissionScope, secret: &str, now: Timestamp) -> WebTokenRecord {
    let hash = SecretHash::of_secret(secret).to_hex();
    WebTokenRecord {
        id: hash.chars().take(ID_LENGTH).collect(),
        scope,
        hash,
        created: now,
        name: name.to_owned(),
        login_until: None,
    }
}

/// Parses the valid tokens; other lines are skipped.
fn parse_tokens(text: &str) -> Vec<(SecretHash, WebTokenRecord)> {
    let mut tokens: Vec<(SecretHash, WebTokenRecord)> = Vec::new();
    for line in text.lines() {
        if let Ok(token) = serde_json::from_str::<WebTokenRecord>(line) {
            tokens.extend(SecretHash::parse_hex(&token.hash).map(|hash| (hash, token)));
        } else if let Ok(revoked) = serde_json::from_str::<TokenRevocation>(line) {
            tokens.retain(|(_, token)| token.id != revoked.id);
        }
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_seconds(1_794_777_000);

    fn tokens() -> (tempfile::TempDir, TokenStore) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/tokens.jsonl");
        (folder, TokenStore::open(path))
    }

    #[test]
    fn token_is_valid_until_revoked_and_its_secret_is_not_stored() {
        let (_folder, tokens) = tokens();
        assert_eq!(tokens.check("unstuck_x").unwrap(), None);
        let (token, secret) = tokens
            .create("laptop", PermissionScope::Admin, NOW)
            .unwrap();
        let (_, other) = tokens.create("phone", PermissionScope::Read, NOW).unwrap();
        assert_eq!(tokens.check(&secret).unwrap(), Some(token.clone()));
        assert_eq!(tokens.list().unwrap().len(), 2);
        let file = fs::read_to_string(tokens.path()).unwrap();
        assert!(!file.contains(&secret) && file.contains(&token.hash));
        tokens.revoke(&token.id, NOW).unwrap();
        assert_eq!(tokens.check(&secret).unwrap(), None);
        assert!(tokens.check(&other).unwrap().is_some());
        assert!(matches!(
            tokens.revoke(&token.id, NOW),
            Err(TokenStoreError::NotFound { .. })
        ));
    }

    #[test]
    fn token_created_by_another_process_is_valid_immediately() {
        let (_folder, tokens) = tokens();
        let elsewhere = TokenStore::open(tokens.path());
        let (_, secret) = elsewhere
            .create("laptop", PermissionScope::Read, NOW)
            .unwrap();
        assert!(tokens.check(&secret).unwrap().is_some());
    }

    #[test]
    fn login_code_from_the_file_works_once_for_a_short_time() {
        let (_folder, tokens) = tokens();
        let elsewhere = TokenStore::open(tokens.path());
        let code = elsewhere
            .create_login_code(PermissionScope::Answer, NOW)
            .unwrap();
        assert_eq!(tokens.check(&code).unwrap(), None);
        assert!(tokens.list().unwrap().is_empty());
        assert_eq!(
            tokens.exchange_login_code(&code, NOW).unwrap(),
            Some(PermissionScope::Answer)
        );
        assert_eq!(tokens.exchange_login_code(&code, NOW).unwrap(), None);
        let late = elsewhere
            .create_login_code(PermissionScope::Answer, NOW)
            .unwrap();
        assert_eq!(
            tokens
                .exchange_login_code(&late, NOW.after(CODE_LIFETIME))
                .unwrap(),
            None
        );
        let (_, secret) = elsewhere
            .create("laptop", PermissionScope::Admin, NOW)
            .unwrap();
        assert_eq!(tokens.exchange_login_code(&secret, NOW).unwrap(), None);
    }

    #[test]
    fn file_readable_by_others_is_rejected() {
        let (_folder, tokens) = tokens();
        let (_, secret) = tokens.create("laptop", PermissionScope::Read, NOW).unwrap();
        assert_eq!(fs::metadata(tokens.path()).unwrap().mode() & 0o777, 0o600);
        fs::set_permissions(tokens.path(), fs::Permissions::from_mode(0o644)).unwrap();
        assert!(matches!(
            tokens.check(&secret),
            Err(TokenStoreError::InsecurePermissions { .. })
        ));
    }
}
